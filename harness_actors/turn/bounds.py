"""The bounds of a run: what is left of them, and which is reached."""

from dataclasses import dataclass, replace

from harness_actors.config import HarnessConfig, Limits
from harness_actors.ports import Clock
from harness_actors.results import LimitKind, Usage

ROUNDING_USD = 1e-9
"""What sums of costs may lack: ten times 0.1 USD adds up to a little less than 1 USD."""

INSTANT_S = 1e-9
"""Less time than this is none: a clock that is read as a sum may not even show it."""


def is_spent(spent_usd: float, limit_usd: float) -> bool:
    """Whether nothing is left of a sum, in US dollars."""
    return spent_usd >= limit_usd - ROUNDING_USD


def out_of_turns(config: HarnessConfig, turns: int) -> bool:
    """Whether a run that has had so many turns may begin no other one."""
    return turns >= config.max_turns


def words_of(kind: LimitKind, config: HarnessConfig) -> str:
    """What is said of a run that ended because it reached a bound."""
    limits = config.limits
    match kind:
        case "max_turns":
            return f"all {config.max_turns} turns were used and the task is not completed"
        case "model_calls":
            return f"the run's {limits.model_calls} model calls were used"
        case "tool_calls":
            return f"the model asked for more than the run's {limits.tool_calls} tool calls"
        case "tokens":
            return f"the run's {limits.tokens} tokens were used"
        case "cost":
            return f"the run's {limits.cost_usd:g} USD were spent"
        case "time":
            return f"the run's {limits.time_s:g} s of wall time were over"
        case "working_time":
            return f"the run's {limits.working_s:g} s of working time were over"
        case "context":
            return "the conversation is larger than the model's context window"
        case "budget":
            return "what all runs together may cost was spent"


@dataclass(frozen=True, slots=True)
class Due:
    """When a piece of work must end, and by which bound."""

    seconds: float | None
    """From now on; None where nothing bounds it."""
    kind: LimitKind | None = "time"
    """Of its run; None for one of the call's own, or of its turn."""

    @property
    def over(self) -> bool:
        return self.seconds is not None and self.seconds <= INSTANT_S


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of one run.

    Attributes:
        limits: What its user allows.
        started_at: When it was first started, in seconds since the epoch.
        clock: Time.
        children: What its children have used; None where it has none.
    """

    limits: Limits
    started_at: float
    clock: Clock
    children: Usage | None = None

    def with_children(self, usage: Usage) -> Usage:
        """What a run has used together with its children. How long these worked is their own."""
        below = self.children
        return usage if below is None else usage + replace(below, working_s=0.0)

    def reached(self, usage: Usage) -> LimitKind | None:
        """The bound that forbids another model call; None where none does.

        That of tool calls does not: a run that has used all of them may still say what
        came of it. A message that asks for more of them ends it (`tool_calls_left`).
        """
        limits, usage = self.limits, self.with_children(usage)
        if usage.model_calls >= limits.model_calls:
            return "model_calls"
        if limits.tokens is not None and usage.tokens >= limits.tokens:
            return "tokens"
        if limits.cost_usd is not None and is_spent(usage.cost_usd, limits.cost_usd):
            return "cost"
        due = self.work_due(usage.working_s)
        return due.kind if due.over else None

    def tool_calls_left(self, tool_calls: int) -> int | None:
        """Tool calls that may be made after so many; None where they are not bounded."""
        if self.limits.tool_calls is None:
            return None
        below = 0 if self.children is None else self.children.tool_calls
        return max(0, self.limits.tool_calls - tool_calls - below)

    def wall_due(self) -> Due:
        """When the run's wall time is over."""
        if self.limits.time_s is None:
            return Due(None)
        return Due(self.started_at + self.limits.time_s - self.clock.now())

    def working_left(self, working_s: float) -> float | None:
        """Seconds of work that are left after so many; None where they are not bounded."""
        if self.limits.working_s is None:
            return None
        return self.limits.working_s - working_s

    def work_due(self, working_s: float) -> Due:
        """When work must end that waits on nothing, by whichever bound is first.

        Args:
            working_s: Seconds of work so far.
        """
        wall, left = self.wall_due(), self.working_left(working_s)
        if left is None or (wall.seconds is not None and wall.seconds <= left):
            return wall
        return Due(left, "working_time")
