"""Events of a run as a whole: begun, put aside, moved, repaired, over."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from harness_actors.events.event import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    type: ClassVar[str] = "run_started"

    task_preview: str
    """The first 100 characters of the task."""
    stop_policy: str
    max_turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed(Event):
    """A run goes on after its process died or its command was stopped."""

    type: ClassVar[str] = "run_resumed"

    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParked(Event):
    """A run was put aside by its user; the same command takes it up again."""

    type: ClassVar[str] = "run_parked"

    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InputAwaited(Event):
    """A run waits for answers of its user; it goes on when it is taken up with them."""

    type: ClassVar[str] = "input_awaited"

    turn: int
    questions: tuple[Mapping[str, Any], ...]
    """Those that are open: ``id``, ``text``, ``options`` and ``why`` of each; of one that a run
    below asks also the ``path`` of its agent; of a call that waits for approval also ``kind``,
    ``tool``, ``arguments`` and, if it has an end, ``expires_at``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionAnswered(Event):
    """An answer is on record. The first one counts."""

    type: ClassVar[str] = "question_answered"

    question_id: str
    decision: str = ""
    """What becomes of a call that waited for approval: ``approve``, ``deny`` or ``respond``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired(Event):
    """A call that was open got the result that its outcome is unknown."""

    type: ClassVar[str] = "repaired"

    kind: str
    call_id: str
    tool_name: str
    turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorLost(Event):
    """The process that worked on the run died."""

    type: ClassVar[str] = "executor_lost"

    executor: str
    losses: int
    cause: str = ""
    """Why the process was killed; empty where it died by itself."""
    tools: tuple[str, ...] = ()
    """The tools that were called and had not answered; of several, the first ran first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCompleted(Event):
    """The run is over. Always the last event of a run."""

    type: ClassVar[str] = "run_completed"

    status: str
    reason: str
    message: str
    traceback: str = ""
    """Where code of a user failed, if that ended the run."""
