"""What an executor sees of a run, and what the harness expects of an executor."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeVar

from harness_actors.conversation import Conversation
from harness_actors.events import Event, TextSink
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan, View
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
    def plan(self) -> CompactionPlan | None:
        """How the conversation is shown to its model; None for as it is."""

    @property
    def view(self) -> View | None:
        """The conversation as its model is shown it; None where that is the log itself.

        Raises:
            WorkflowError: As `log`.
        """

    @property
    def offer(self) -> tuple[CompactionPlan, int] | None:
        """A plan that whoever makes room may take, and by how many tokens the next request is
        smaller by it; None for none."""

    @property
    def offered(self) -> int:
        """Version of a plan that is offered to the run; 0 for none."""

    def adopt(self, plan: CompactionPlan) -> None:
        """Have the conversation shown so from here on; the plan must follow the one there is."""

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
    def put(self, key: StateKey[Any], name: str, item: Any) -> None: ...
    def append(self, key: StateKey[Any], item: Any) -> None: ...
    def increment(self, key: StateKey[T], amount: T) -> None: ...
    def add_message(self, message: Message) -> None: ...
    def emit(self, event: Event) -> None: ...

    async def observe(self, kind: str, question: Any, make: Callable[[], Awaitable[Any]]) -> Any:
        """Learn something from elsewhere than the log and the state, so that it is on record.

        Whatever an executor acts on must come from there or pass here: a verdict of code of a
        user, a listing, a random choice. The observation is part of the change, so it is on disk
        no later than what follows from it in the run; what follows outside must wait for `flush`.

        An executor that comes again in the same place is given what is on disk, and `make` is not
        called. A *place* begins when an executor is sent a signal, and ends when its answer is
        on disk, however many processes die meanwhile; that of an agent turn is one of its rounds,
        and goes on while the run waits for its user. In it the n-th observation of a kind and a
        question is the same one each time. So ask by a question that says what it is about, such
        as the id of a call, and not by the order in which things happen to come.

        Args:
            kind: What sort of thing it is, such as ``"verdict"``.
            question: What exactly; a plain JSON value.
            make: Awaited where the observation is not on disk; returns a plain JSON value. What
                it raises is raised here, and nothing is kept.

        Returns:
            The answer as JSON has it, whoever made it: tuples are lists.

        Raises:
            WorkflowError: Question or answer is no plain JSON value; or the observation has more
                than 64 KB, or all of one place more than 1 MB.
        """

    def close_place(self) -> None:
        """What was observed so far will not be asked for again: a round is over.

        Done for whoever answers; see `observe`.
        """

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

    def want_summary(self, keep: str) -> bool:
        """Ask for a summary of the conversation, however full its window is. It is made beside the
        run, and shown before one of its next model calls.

        Args:
            keep: What is to be kept, in the words of whoever asks; empty for nothing of its own.

        Returns:
            False where nobody makes summaries for this run.
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
