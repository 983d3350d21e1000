"""Hops to executors that have nothing to do: answered where they are, and no actor is asked."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.records import RunSpec
from harness_actors.signals import Outcome, Signal
from harness_actors.state import COMPACTION, REPAIR, STOP_DECISION, StateDelta

AnswerAtOnce = Callable[
    [str, Signal, RunSpec, Mapping[str, Any], float], tuple[StateDelta, Outcome] | None
]
"""As `answer_at_once`."""
OURS = frozenset((REPAIR, COMPACTION, STOP_DECISION))
MOST_IN_A_ROW = 8
"""Hops of a run since its last turn of which the answer is looked for so: a cycle that leaves the
turn out must not be gone round in one event."""


@dataclass(eq=False)
class AtOnce:
    """Answers hops in the event that has led to them.

    Not as they are delivered: whoever does that is in the middle of something.

    Args:
        answer: Says what an executor answers; None where each is asked.
        runs: The runs in service, by id; the coordinator's own mapping.
        ask: Posts a hop to its host.

    Attributes:
        follow: Leads a run on from its answer; set from outside.
        due: Runs whose hops are looked at with `settle`, each with the number of that hop.
    """

    _answer: AnswerAtOnce | None
    _runs: Mapping[str, ActiveRun]
    _ask: Callable[[ActiveRun, Effects], None]
    follow: Callable[[ActiveRun, StateDelta, Outcome, Effects], None] = field(init=False)
    due: deque[tuple[ActiveRun, int]] = field(default_factory=deque, init=False)

    def takes(self, run: ActiveRun) -> bool:
        """Whether the answer to a run's hop may be had so."""
        to = run.hop.to
        if self._answer is None or to not in OURS or to in run.spec.custom:
            return False
        # What is offered is taken by whoever makes room.
        return run.hops < MOST_IN_A_ROW and (to != COMPACTION or run.offer is None)

    def add(self, run: ActiveRun) -> None:
        """Look for the answer to a hop, with `settle`."""
        self.due.append((run, run.hop_number))

    def settle(self, effects: Effects) -> None:
        """Answer what was delivered, or ask for it; what this leads to, too."""
        while self.due:
            run, hop_number = self.due.popleft()
            if self._runs.get(run.spec.run_id) is not run or run.hop_number != hop_number:
                continue
            assert self._answer is not None, "else nothing is added"
            hop, values = run.hop, run.state.values
            answered = self._answer(hop.to, hop.signal, run.spec, values, run.counts_from)
            if answered is None:
                self._ask(run, effects)
            else:
                self.follow(run, *answered, effects)
