"""The seams of the program on one screen: what the rooms expect of one another.

The port of the runtimes, which only the entry points use, is `actors/runtime.py`.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from harness_actors.conversation import Conversation
from harness_actors.events import Event, RunEvent, TextSink
from harness_actors.messages import Message, ToolCall, encode_json
from harness_actors.records import Entry, FolderId, ProcessMark, RunHeading, RunSpec, StoredRun
from harness_actors.results import HarnessResult, Usage
from harness_actors.signals import Outcome, Signal
from harness_actors.state import StateKey

T = TypeVar("T")

Effect = Literal["read_only", "local_write", "network", "destructive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """What the model and the harness know of a tool.

    Attributes:
        name: Unique in an agent; letters, digits, ``_`` and ``-``.
        description: For the model.
        parameters: JSON schema of the arguments, an object.
        effect: What a call may change. `read_only` implies `idempotent`.
        idempotent: A call may run twice with the same outcome; only such calls are
            run again after a crash. Whatever is not declared is not idempotent.
        resource_keys: Templates of what a call touches, such as ``"crm:{customer_id}"``.
        timeout_s: Longest time of one call, in seconds; None leaves it to the tool.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect = "local_write"
    idempotent: bool = False
    resource_keys: tuple[str, ...] = ()
    timeout_s: float | None = None

    def as_wire(self) -> dict[str, Any]:
        """The tool in the Chat Completions format."""
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters,
            },
        }


class ToolProcess(Protocol):
    """A process that was started for a tool, with everything that it starts in turn."""

    @property
    def stopped(self) -> str:
        """Why it was killed though nobody here asked for it; empty where it was not."""

    async def wait(self) -> int:
        """Wait until it has ended; what it started may go on.

        Returns:
            Its exit code, or minus the signal that ended it.

        Raises:
            OSError: It could not be started.
        """

    async def end(self) -> int:
        """Kill what is left of it, and return when that is gone: how many there were."""


class ToolProcesses(Protocol):
    """Starts the processes of tools."""

    def start(
        self,
        program: Sequence[str],
        *,
        environment: Mapping[str, str],
        output: int,
        run_id: str,
    ) -> ToolProcess:
        """Start a program in a session of its own, without input.

        Args:
            program: Its path and its arguments.
            environment: All its variables, beside a mark of its own.
            output: Descriptor that it prints to; the caller's to close.
            run_id: The run that it is for.

        Raises:
            OSError: It could not be started; or `wait` of what this returns raises it.
        """

    def end_run(self, run_id: str) -> None:
        """Begin to end what was started for a run up to now."""

    def close(self) -> None:
        """Begin to end everything; nothing more can be started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool is told of the call that it serves.

    Attributes:
        run_id: The run.
        call_id: The call, unique within its assistant message.
        workspace: The folder that the run works in; None where it has none.
        in_thread: Runs a blocking function in the pool for such tools.
        workspace_id: What that folder is known by, so that no other one is worked in; or None.
        environment: Variables that processes of this call must carry.
        processes: Starts processes that do not outlive their run, nor this process; None
            where there is nothing but to start them as children.
    """

    run_id: str
    call_id: str
    workspace: Path | None
    in_thread: Callable[..., Awaitable[Any]]
    workspace_id: FolderId | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    processes: ToolProcesses | None = None


class Tool(Protocol):
    """Something a model can call."""

    @property
    def spec(self) -> ToolSpec: ...

    async def run(self, arguments: str, context: ToolContext) -> str:
        """Do one call.

        Args:
            arguments: What the model wrote; checked here against the schema.
            context: The call that is served.

        Returns:
            The result for the model.

        Raises:
            ToolError: The call failed in a way the model can act on. Any other
                exception is answered to the model with its type and text.
        """


@dataclass(frozen=True, slots=True)
class ToolSet:
    """The tools of one agent, their wire format encoded once.

    Attributes:
        specs: The tools.
        encoded: JSON array of the tools in the Chat Completions format.
    """

    specs: tuple[ToolSpec, ...]
    encoded: bytes

    @classmethod
    def of(cls, specs: Iterable[ToolSpec]) -> "ToolSet":
        ordered = tuple(specs)
        return cls(ordered, encode_json([spec.as_wire() for spec in ordered]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One question to a model.

    Attributes:
        messages: The conversation, the system prompt first; joined on the wire from
            their encoded bytes.
        tools: What the model may call.
    """

    messages: Sequence[Message]
    tools: ToolSet


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResponse:
    """One answer of a model.

    Attributes:
        text: What it says; None where it only calls tools.
        tool_calls: What it asks for, with ids as the provider gave them.
        finish_reason: As the provider says it, such as ``"stop"`` or ``"length"``.
        usage: Of this call alone: `model_calls` is 1, `tool_calls` and `working_s` are 0.
        waited_s: Seconds spent waiting for the provider to accept a retry.
    """

    text: str | None
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=lambda: Usage(model_calls=1))
    waited_s: float = 0.0


class Model(Protocol):
    """Whatever answers a conversation. It is pickled with its agent, without its secrets."""

    @property
    def name(self) -> str: ...

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request.

        Raises:
            ModelError: The subclass says what to do next. Retries have been made.
        """

    def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        """The same, with the text in pieces; the whole response comes last."""


class TokenCounter(Protocol):
    """Counts the tokens of a text, each message once."""

    async def count(self, text: str) -> int: ...


class Agent(Protocol):
    """A model with instructions and tools. Never changed by the harness."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> Model: ...
    @property
    def instructions(self) -> str: ...
    @property
    def tools(self) -> Sequence[Tool]: ...


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


class Journal(Protocol):
    """Where runs survive. All calls block; one thread makes them.

    Raises, from every call:
        StoreError: The file cannot be read or written; names file and cause.
    """

    def begin_term(self) -> int:
        """Begin the next term; commits of earlier ones are refused from here on."""

    def commit(self, term: int, entries: Sequence[Entry]) -> list[int]:
        """Write entries in one transaction.

        Returns:
            The journal position of each entry, growing; on disk when this returns.

        Raises:
            StaleTermError: `term` is not the newest.
        """

    def known(self, run_ids: Sequence[str]) -> set[str]:
        """Those of these runs that the journal has, over or not."""

    def load_run(self, run_id: str) -> StoredRun | None: ...
    def load_result(self, run_id: str) -> HarnessResult | None:
        """How a run ended; None while it is unfinished, or where nobody knows it."""

    def load_unfinished(self, command: str) -> list[StoredRun]:
        """The runs of a command that are not over, oldest first; costs by these alone."""

    def load_conversation(self, conversation_id: str) -> list[Message]: ...
    def load_code(self, code: str) -> bytes | None: ...
    def load_processes(self) -> list[ProcessMark]:
        """The processes of all earlier terms that were marked and not forgotten."""

    def forget_processes(self, term: int) -> None:
        """Drop the marks of the terms before `term`: their processes are gone."""

    def load_events(
        self, after: int, *, run_id: str | None = None, limit: int = 1000
    ) -> list[RunEvent]:
        """Events behind a position, oldest first; those of one change are never split."""

    def headings(self) -> list[RunHeading]: ...
    def removed_cost_usd(self) -> float: ...
    def position(self) -> int: ...
    def close(self) -> None: ...


class Clock(Protocol):
    """Time, so that tests and the simulation can move it."""

    def now(self) -> float:
        """Seconds since the epoch."""

    def monotonic(self) -> float: ...
    async def sleep(self, seconds: float) -> None: ...
