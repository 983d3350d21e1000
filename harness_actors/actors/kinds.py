"""The kinds of actors that a cell is made of: the one table of them.

The coordinator, the seats and the runtimes know no kind by its name, but for whom they serve:
how an actor is started, kept and lost follows from its row.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from harness_actors.actors.embedded import EmbeddedModelHost
from harness_actors.actors.host.compaction_worker import host_worker
from harness_actors.actors.host.shipped_executors import host_executor
from harness_actors.actors.hosted import Hosted, Place
from harness_actors.actors.text.streams import TextStreams
from harness_actors.coordination.protocol import COMPACTION_WORKER, CUSTOM, Slot
from harness_actors.state import AGENT_TURN, COMPACTION, REPAIR, STOP_DECISION

EMBEDDED_MODEL = "embedded_model"
STREAMS = "streams"

Number = Literal["one", "agent turns", "one per program"]
"""How many there are; where a run goes among them says `coordination/routing.py`. `agent turns`:
as many as the cell is given, and a quarantine; `one per program`: few stay that no run needs."""

Failure = Literal["the cell stops", "its users fail"]
"""What it means that none starts. `its users fail`: whoever waits for it is told why, and it is
started again when it is needed next; one that has served before, without being asked for."""

Reachable = Literal["through its cell", "by name", "at a port"]
"""How others find it. `by name`: each one has a name of its own, so that nobody posts to one and
reads from another; `at a port`: of this machine, the same for the next one, so that whoever asks
need not be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorKind:
    """What is the same for all actors of a kind.

    Attributes:
        name: As slots, journals and people name it.
        host: Makes what it hosts, in the process that it lives in; importable by others.
        starts_with_cell: Else it is started when it is first needed.
        gets_programs: It is sent the programs of runs, and their keys. What these print is kept.
        runs_tools: It has a supervisor for the processes of tools.
    """

    name: str
    host: Callable[[Place], Hosted]
    number: Number = "one"
    starts_with_cell: bool = False
    gets_programs: bool = False
    runs_tools: bool = False
    failure: Failure = "its users fail"
    reachable: Reachable = "through its cell"

    def slots(self, agent_turns: int) -> list[Slot]:
        """Those that are filled when the cell starts."""
        if not self.starts_with_cell:
            return []
        many = agent_turns if self.number == "agent turns" else 1
        return [Slot(self.name, index=index) for index in range(many)]


Kinds = Mapping[str, ActorKind]
"""Kinds by their names."""


def table_of(*kinds: ActorKind) -> Kinds:
    """Kinds by their names."""
    return {kind.name: kind for kind in kinds}


KINDS = table_of(
    ActorKind(
        name=AGENT_TURN,
        host=host_executor,
        number="agent turns",
        starts_with_cell=True,
        gets_programs=True,
        runs_tools=True,
        failure="the cell stops",
    ),
    *(
        # Most runs never need them: who has nothing to do answers at the coordinator.
        ActorKind(name=name, host=host_executor, failure="the cell stops")
        for name in (REPAIR, COMPACTION, STOP_DECISION)
    ),
    ActorKind(
        name=CUSTOM,
        host=host_executor,
        number="one per program",
        gets_programs=True,
        failure="the cell stops",
    ),
    ActorKind(name=COMPACTION_WORKER, host=host_worker, gets_programs=True),
    ActorKind(name=EMBEDDED_MODEL, host=EmbeddedModelHost, reachable="at a port"),
    ActorKind(name=STREAMS, host=TextStreams.at, reachable="by name"),
)
