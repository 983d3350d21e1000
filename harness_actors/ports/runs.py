"""What an executor sees of a run, and what the harness expects of an executor."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from harness_actors.conversation import Conversation
from harness_actors.events import Event, TextSink
from harness_actors.messages import Message
from harness_actors.ports.models import Agent
from harness_actors.records import RunSpec
from harness_actors.signals import Outcome, Signal
from harness_actors.state import StateKey

T = TypeVar("T")


class RunContext(Protocol):
    """What an executor sees of a run, and through which it changes it.

    What is written is collected and committed with the executor's answer, or earlier
    by `flush`.
    """

    @property
    def spec(self) -> RunSpec: ...
    @property
    def agent(self) -> Agent: ...
    @property
    def log(self) -> Conversation:
        """The conversation, what this executor added included.

        Raises:
            WorkflowError: The executor does not declare `reads_log`.
        """

    @property
    def parking(self) -> bool:
        """The user asked the run to stop at the next round."""

    def when_parking(self, tell: Callable[[], None] | None) -> None:
        """Be told once the user does, at once if that was before; None: of that no longer."""

    @property
    def started_at(self) -> float:
        """When the run was first started, in seconds since the epoch."""

    @property
    def texts(self) -> TextSink | None:
        """Where the text of answers goes as it comes; None where nobody reads it."""

    def get(self, key: StateKey[T]) -> T:
        """The value of an entry that the executor declares in `reads` or has set.

        Raises:
            WorkflowError: It did neither.
        """

    def set(self, key: StateKey[T], value: T) -> None: ...
    def drop(self, key: StateKey[Any], count: int = 1) -> None: ...
    def append(self, key: StateKey[Any], item: Any) -> None: ...
    def increment(self, key: StateKey[T], amount: T) -> None: ...
    def add_message(self, message: Message) -> None: ...
    def emit(self, event: Event) -> None: ...

    def flush(self) -> Awaitable[None]:
        """Send what was written so far.

        Returns:
            Something to await until it is on disk. Not awaiting it is allowed.
        """

    def tools_started(self, names: Sequence[str] = ()) -> None:
        """Tell that tools begin to run which no committed entry announces; of none, an answer.

        It is not committed, and over with the next flush or answer: should the process
        die before, the run is suspected of having killed it.
        """


class Executor(Protocol):
    """One step of the workflow. One instance serves many runs at once.

    Attributes:
        name: Its name in the workflow.
        reads: The entries that it is sent with each signal.
        reads_log: Whether it needs the conversation; it is then sent what is new in it.
    """

    @property
    def name(self) -> str: ...
    @property
    def reads(self) -> Sequence[StateKey[Any]]: ...
    @property
    def reads_log(self) -> bool: ...

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        """Serve one signal of one run.

        Raises:
            Exception: Ends the run as `failed(agent_error)`.
        """
