"""The bounds of a run: what is left of them, and which is reached."""

import asyncio
from dataclasses import dataclass

from harness_actors.config import Limits
from harness_actors.ports import Clock
from harness_actors.results import LimitKind, Usage


@dataclass(frozen=True, slots=True)
class Due:
    """When a piece of work must end, and by which bound."""

    seconds: float | None
    """From now on; None where nothing bounds it."""
    kind: LimitKind = "time"

    @property
    def over(self) -> bool:
        return self.seconds is not None and self.seconds <= 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of one run.

    Attributes:
        limits: What its user allows.
        started_at: When it was first started, in seconds since the epoch.
        clock: Time.
    """

    limits: Limits
    started_at: float
    clock: Clock

    def reached(self, usage: Usage) -> LimitKind | None:
        """The bound that forbids another model call; None where none does.

        That of tool calls does not: a run that has used all of them may still say what
        came of it. A message that asks for more of them ends it (`tool_calls_left`).
        """
        limits = self.limits
        if usage.model_calls >= limits.model_calls:
            return "model_calls"
        if limits.tokens is not None and usage.tokens >= limits.tokens:
            return "tokens"
        if limits.cost_usd is not None and usage.cost_usd >= limits.cost_usd:
            return "cost"
        due = self.work_due(usage)
        return due.kind if due.over else None

    def tool_calls_left(self, usage: Usage) -> int | None:
        """Tool calls that may still be made; None where they are not bounded."""
        if self.limits.tool_calls is None:
            return None
        return max(0, self.limits.tool_calls - usage.tool_calls)

    def model_due(self) -> Due:
        """When a model call must end.

        By wall time only: waits on rate limits happen inside it and are not work, but
        how long they were is known only when it ends.
        """
        if self.limits.time_s is None:
            return Due(None)
        return Due(self.started_at + self.limits.time_s - self.clock.now())

    def work_due(self, usage: Usage) -> Due:
        """When a tool must end, by wall time or working time, whichever is first."""
        wall = self.model_due()
        if self.limits.working_s is None:
            return wall
        left = self.limits.working_s - usage.working_s
        if wall.seconds is not None and wall.seconds <= left:
            return wall
        return Due(left, "working_time")


def is_cancelled_from_outside() -> bool:
    """Whether a `CancelledError` at hand is meant for the task that runs.

    A tool or model may also raise one by itself, from a task or scope of its own; that
    one is its failure and must not look as if the run was cut.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
