"""All that changes in a turn, and the gate that closes behind it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from harness_actors.ports import DeadlineToken
from harness_actors.turn.budget import TurnBudget
from harness_actors.turn.meter import TurnMeter
from harness_actors.turn.outcomes import ToolOutcome
from harness_actors.turn.repeats import RepeatGuard

CALL_IS_OVER = "the call is over"
TURN_IS_OVER = "the turn is over"


class CallTrace:
    """A call that was begun.

    Attributes:
        deadline: What its tool is told of its time, and of its end.
        outcome: What came of it; None while nobody has said so.
    """

    __slots__ = ("deadline", "outcome")

    def __init__(self, deadline: DeadlineToken) -> None:
        self.deadline = deadline
        self.outcome: ToolOutcome | None = None


@dataclass(eq=False)
class TurnState:
    """What one turn of one run has changed; made at its start and thrown away at its end.

    Work that was left alone, because it did not end when it was told to, goes on beside the turn
    and after it. So whatever a call may still write passes here: one outcome is taken of each,
    the first one, and none when the turn is over. May be asked from any thread.

    Args:
        meter: What the turn uses.
        budget: What is left of the turn; None where it has no bounds of its own.
        repeats: Which calls need not be made again.
        now: A clock that only goes forward, in seconds.
    """

    meter: TurnMeter
    budget: TurnBudget | None
    repeats: RepeatGuard
    _now: Callable[[], float]
    _lock: Lock = field(default_factory=Lock, init=False)
    _open: set[CallTrace] = field(default_factory=set, init=False)
    _writes_open: bool = field(default=True, init=False)

    def begin_trace(self, seconds: float | None) -> CallTrace:
        """A call begins.

        Args:
            seconds: How long it may take; None where nothing bounds it.
        """
        trace = CallTrace(DeadlineToken(seconds, self._now))
        with self._lock:
            if self._writes_open:
                self._open.add(trace)
        return trace

    def complete_trace(self, trace: CallTrace, outcome: ToolOutcome) -> bool:
        """Say what came of a call.

        Returns:
            Whether it counts: False for whoever comes late, because the call was stopped, has
            its outcome, or its turn is over. What is refused must have no effect.
        """
        with self._lock:
            if trace not in self._open:
                return False
            self._open.remove(trace)
            trace.outcome = outcome
        # What the tool has left behind learns that it works for nobody.
        trace.deadline.cancel(CALL_IS_OVER)
        return True

    def close_writes(self) -> None:
        """The turn is over: nothing counts any more. Done before it is finalized, always."""
        with self._lock:
            self._writes_open = False
            late, self._open = self._open, set()
        for trace in late:
            trace.deadline.cancel(TURN_IS_OVER)
