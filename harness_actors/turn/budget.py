"""What one turn may use, inside what its run may."""

from harness_actors.config import TurnLimits
from harness_actors.results import Usage
from harness_actors.turn.bounds import Due
from harness_actors.turn.meter import TurnMeter


class TurnBudget:
    """What is left of a turn, however often it was interrupted.

    Calls that run at once share it: those of a message are taken from it, one after the other,
    before the first of them begins, and time is what passes for all of them.

    Args:
        limits: What a turn may use.
        began: What the run had used when the turn began.
        meter: What the run uses.
    """

    def __init__(self, limits: TurnLimits, began: Usage, meter: TurnMeter) -> None:
        self._limits = limits
        self._began = began
        self._meter = meter

    @property
    def is_spent(self) -> bool:
        """Whether the turn is to end before its next model call. It has one in any case."""
        if not self._meter.rounds:
            return False
        used, began, limits = self._meter.usage, self._began, self._limits
        bounds = (
            (limits.time_s, used.working_s - began.working_s),
            (limits.model_calls, used.model_calls - began.model_calls),
            (limits.tool_calls, used.tool_calls - began.tool_calls),
            (limits.tokens, used.tokens - began.tokens),
        )
        return any(most is not None and spent >= most for most, spent in bounds)

    def tool_calls_left(self) -> int | None:
        """Tool calls that may be made; None where they are not bounded."""
        if self._limits.tool_calls is None:
            return None
        made = self._meter.tool_calls - self._began.tool_calls
        return max(0, self._limits.tool_calls - made)

    def per_tool_remaining_s(self, cap_s: float | None) -> float | None:
        """How long a call that begins now may take, in seconds.

        Args:
            cap_s: What it may take at most; None for no such bound.

        Returns:
            The smaller of that and what is left of the turn; None where nothing bounds it.
        """
        if self._limits.time_s is None:
            return cap_s
        left_s = self._limits.time_s - (self._meter.working_s - self._began.working_s)
        return left_s if cap_s is None else min(cap_s, left_s)

    def sooner(self, due: Due) -> Due:
        """When a call must end: `due` itself where that bound of its run is first."""
        left_s = self.per_tool_remaining_s(due.seconds)
        return due if left_s == due.seconds else Due(left_s, None)
