"""The port that every runtime answers: what `harness` and `batch` stand on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from harness_actors.actors.text.streams import Cursor, Spoken
from harness_actors.events import RunEvent
from harness_actors.messages import Message
from harness_actors.records import RunHeading, RunSpec
from harness_actors.results import HarnessResult

RuntimeKind = Literal["ray", "local"]

StopMode = Literal["park", "park_now", "cancel"]
"""`park`: the round in flight is finished and committed, then the run waits to be taken
up again; `park_now`: the same, but the round is cut; `cancel`: the run ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What came to be on disk after a cursor.

    Attributes:
        cursor: To be given to the next call; it survives a death of the coordinator.
        events: Oldest first, of all runs of the store.
        results: How runs ended whose `RunCompleted` is among the events, by run id,
            without their transcripts.
    """

    cursor: int
    events: tuple[RunEvent, ...]
    results: Mapping[str, HarnessResult]


@dataclass(frozen=True, slots=True)
class TextCursor:
    """Where a reader of text is: in which stream actor, and where in what that has."""

    stream: str
    at: Cursor | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """What was said in a run after a cursor.

    Attributes:
        cursor: To be given to the next call.
        spoken: What was said, in its order.
        missed: Characters before it that are lost; None where nobody knows how many.
    """

    cursor: TextCursor | None
    spoken: tuple[Spoken, ...] = ()
    missed: int | None = 0


class Runtime(Protocol):
    """Where runs run. Every method may raise a `HarnessError`, and nothing else.

    `StoreError` means that the cell has stopped and that the same command resumes;
    `ActorLostError` that the cell is gone and could not be started again.
    """

    async def submit(
        self,
        specs: Sequence[RunSpec],
        *,
        code: Mapping[str, bytes],
        secrets: Mapping[str, str],
    ) -> None:
        """Start runs. Those that the store knows already are left as they are.

        Args:
            specs: The runs.
            code: The blobs that they name, by hash.
            secrets: Values of the keys that they name; held in memory only.
        """
        ...

    async def resume(self, run_ids: Sequence[str], *, secrets: Mapping[str, str]) -> None:
        """Take up unfinished runs of the store with the code and settings they have.

        Raises:
            RunNotFoundError: The store does not know one of them.
        """
        ...

    async def wait_for_news(
        self, cursor: int, *, messages: bool = False, at_once: bool = False
    ) -> News:
        """What is on disk after the cursor; returns when there is something.

        Args:
            cursor: From the call before, or from `position`.
            messages: Include the events that the messages of the log imply, and wait for more
                only just after somebody was told. Without it, news that end no run gather for a
                tenth of a second.
            at_once: Wait for no more.
        """
        ...

    async def subscribe(self, run_ids: Sequence[str]) -> None:
        """Have runs tell what their models say, from their next answers on.

        It may be asked for before they are submitted. It is remembered for as long as
        somebody reads, by `texts`.
        """
        ...

    async def texts(self, run_id: str, cursor: TextCursor | None = None) -> Texts:
        """What was said in a run, while it is said; returns when there is something, or nothing
        after a while.

        Whoever calls it in the middle of a run subscribes to it. Text may get lost, and no
        run waits for a reader of it.

        Args:
            run_id: The run.
            cursor: From the call before; None for the first, which is given all there is.
        """
        ...

    async def allow(self, budget_usd: float | None) -> None:
        """Say what all runs of the store may cost together, those of earlier commands included.

        None takes back the bound of an earlier command, whose runs may still go on.

        Where it is spent, each run ends `limit(budget)` after the round that it is in,
        whether the caller is still there or not.
        """
        ...

    async def answer(self, run_id: str, answers: Mapping[str, str]) -> None:
        """Answer a run that waits for its user, by the ids of its questions.

        The answers are on disk when this returns. The run goes on when it is resumed.

        Raises:
            RunNotFoundError: The store does not know it.
            AnswerError: It waits for no such answer, or was given one before.
        """
        ...

    async def compact(self, run_id: str, keep: str = "") -> bool:
        """Ask for a summary of what a run need not see, however full its window is. It goes on
        meanwhile, and is shown the summary before its next model call after that.

        Args:
            run_id: The run; one that is submitted later begins with its summary.
            keep: What is to be kept, in a person's words; empty for nothing of its own.

        Returns:
            Whether one is being made: False where nobody serves the run, its settings have no
            summaries, or there is nothing to summarize.
        """
        ...

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> tuple[str, ...]:
        """Ask runs to stop; `RunParked`, `InputAwaited` or `RunCompleted` tell when.

        A run that is not over can be cancelled whether it is served or not. To park one
        that nobody serves does nothing.

        Returns:
            Those that were to be parked and that nobody serves here: nothing is told of them.

        Raises:
            RunNotFoundError: The store does not know one that is to be cancelled; all
                others were asked.
        """
        ...

    async def position(self) -> int:
        """The cursor of now: `wait_for_news` with it returns only what is still to come."""
        ...

    async def headings(self, beginning: str = "") -> list[RunHeading]:
        """The runs of the store whose ids begin so, oldest first; all of them by default."""
        ...

    async def events(self, run_id: str) -> tuple[RunEvent, ...]:
        """All events of one run, oldest first, those of its messages included."""
        ...

    async def conversation(self, conversation_id: str) -> list[Message]:
        """The messages of a conversation, oldest first."""
        ...

    async def close(self) -> None:
        """Stop what this runtime started. Unfinished runs can be taken up again."""
        ...
