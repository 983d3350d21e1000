"""The kinds of disturbances."""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.chaos.plans import AGENTS

Scope = Literal["seat", "cell", "driver", "ray"]
"""What goes down: one executor host; the cell; the driver, with what Ray it started; Ray."""
Moment = Literal["any", "wave", "approval", "children"]
"""When it strikes: whenever; while calls of one message run at once; while somebody decides about a
call that waits for approval; while runs are at work that were delegated to who is struck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One way to disturb a batch.

    Attributes:
        name: As on the command line.
        role: Which process is struck, as the journal names it, or one of those that it does not
            name: ``driver``; of Ray ``raylet``, ``ray_agent``, either of those that take the
            raylet along, and ``gcs``, its head; ``ray`` for all of it.
        scope: What goes down with it.
        stops: It is stopped for good, in place of killed.
        joined: Under a Ray that was started by hand, which outlives the driver.
        amid: When it strikes.
        after: The kind that strikes just before, without which nobody would be there; empty for
            none.
        pressed: The windows of the runs' model are so small that they are summarized all the time.
        delegating: A part of the runs delegate.
        bar_s: Recovery takes at most this, at the 95th percentile.
    """

    name: str
    role: str
    scope: Scope
    stops: bool = False
    joined: bool = False
    amid: Moment = "any"
    after: str = ""
    pressed: bool = False
    delegating: bool = False
    bar_s: float = 5.0

    @property
    def signal(self) -> signal.Signals:
        return signal.SIGSTOP if self.stops else signal.SIGKILL

    @property
    def ends_command(self) -> bool:
        """Its strike ends the command, which has to be given again."""
        return self.scope == "driver"

    @property
    def leaves_cell(self) -> bool:
        """What is in flight goes on without the command, and the next one attaches to it."""
        return self.scope == "driver" and self.joined

    @property
    def whole_turns(self) -> bool:
        """Every run that it touches is in the middle of a turn, and asks its model again."""
        return self.scope != "seat" or self.role in ("agent_turn", *AGENTS)


_ALL = (
    Kind(name="coordinator", role="coordinator", scope="cell"),
    # Started to see to the runs of whoever was struck just before.
    Kind(name="repair", role="repair", scope="seat", after="agent_turn"),
    Kind(name="agent_turn", role="agent_turn", scope="seat"),
    Kind(name="driver", role="driver", scope="driver", bar_s=12.0),
    Kind(name="raylet", role="raylet", scope="ray", bar_s=20.0),
    Kind(name="ray_agent", role="ray_agent", scope="ray", bar_s=20.0),
    Kind(name="gcs", role="gcs", scope="ray", bar_s=20.0),
    Kind(name="ray", role="ray", scope="ray", bar_s=20.0),
    Kind(name="joined_driver", role="driver", scope="driver", joined=True),
    Kind(name="joined_raylet", role="raylet", scope="ray", joined=True, bar_s=20.0),
    Kind(name="joined_gcs", role="gcs", scope="ray", joined=True, bar_s=20.0),
    Kind(name="joined_ray", role="ray", scope="ray", joined=True, bar_s=20.0),
    Kind(name="stopped_coordinator", role="coordinator", scope="cell", stops=True, bar_s=20.0),
    Kind(name="stopped_agent_turn", role="agent_turn", scope="seat", stops=True, bar_s=20.0),
    Kind(name="wave_agent_turn", role="agent_turn", scope="seat", amid="wave"),
    Kind(name="wave_coordinator", role="coordinator", scope="cell", amid="wave"),
    Kind(name="approval_agent_turn", role="agent_turn", scope="seat", amid="approval"),
    Kind(name="approval_coordinator", role="coordinator", scope="cell", amid="approval"),
    Kind(name="compaction_worker", role="compaction_worker", scope="seat", pressed=True),
    Kind(name="pressed_compaction", role="compaction", scope="seat", pressed=True),
    Kind(name="pressed_agent_turn", role="agent_turn", scope="seat", pressed=True),
    Kind(name="pressed_coordinator", role="coordinator", scope="cell", pressed=True),
    Kind(name="pressed_driver", role="driver", scope="driver", pressed=True, bar_s=12.0),
    Kind(name="explore", role="explore", scope="seat", amid="children", delegating=True),
    Kind(name="run_task", role="run_task", scope="seat", amid="children", delegating=True),
    Kind(name="document", role="document", scope="seat", amid="children", delegating=True),
    Kind(name="delegating_agent_turn", role="agent_turn", scope="seat", delegating=True),
    Kind(name="delegating_coordinator", role="coordinator", scope="cell", delegating=True),
    Kind(name="delegating_driver", role="driver", scope="driver", delegating=True, bar_s=12.0),
    Kind(name="approval_driver", role="driver", scope="driver", joined=True, amid="approval"),
)

KINDS: Mapping[str, Kind] = {kind.name: kind for kind in _ALL}


def with_those_before(kinds: Sequence[Kind]) -> list[Kind]:
    """Kinds in the order in which they strike, each with the one that it comes after."""
    before = (([KINDS[kind.after]] if kind.after else [], kind) for kind in kinds)
    return [one for first, kind in before for one in (*first, kind)]
