"""What the harness expects of tools, and they of the process that they run in."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from harness_actors.messages import ToolCall, encode_json
from harness_actors.pickling import unpickled_with_defaults
from harness_actors.ports.artifacts import ConversationArtifacts
from harness_actors.ports.clock import Clock
from harness_actors.ports.deadlines import DeadlineToken
from harness_actors.records import FolderId

Effect = Literal["read_only", "local_write", "network", "destructive"]

MOST_TOLD = 1_000
"""How often a call may tell how it goes on."""
TOLD_CHARS = 2_000
"""Characters that it tells each time, at most."""


@unpickled_with_defaults
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
        volatile: What an idempotent call gives may change though the run writes nothing, as the
            time of day does. Else a call that succeeded is not made again with the same
            arguments, until something was called that may write.
        needs: Capabilities that an agent must have to be offered it, such as ``"shell"``.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    effect: Effect = "local_write"
    idempotent: bool = False
    resource_keys: tuple[str, ...] = ()
    timeout_s: float | None = None
    volatile: bool = False
    needs: tuple[str, ...] = ()

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """What a process is not to see: all of a folder but one inside.

    Attributes:
        folder: The folder, by a path without symlinks.
        spared: The one inside, which is seen where it is.
        required: Where it cannot be done the process does not start; else it sees all. And a
            user namespace is taken where nothing less will do.
    """

    folder: Path
    spared: Path
    required: bool = False


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
        cover: Cover | None = None,
    ) -> ToolProcess:
        """Start a program in a session of its own, without input.

        Args:
            program: Its path and its arguments.
            environment: All its variables, except for a mark that is added.
            output: Descriptor that it prints to; the caller's to close.
            run_id: The run that it is for.
            cover: What neither it nor what it starts is to see; None for nothing.

        Raises:
            OSError: It could not be started; or `wait` of what this returns raises it.
        """

    def end_run(self, run_id: str) -> None:
        """Begin to end what was started for a run up to now."""

    def close(self) -> None:
        """Begin to end everything; nothing more can be started."""


class ToolOutput(str):
    """The text of a result, with what belongs to it besides; to all who know nothing of that, a
    text.

    Args:
        text: For the model, and for people.
        images: Images for the model, each as a ``data:`` URL.
        image_tokens: What these add to a request.
        tries: How often it was tried.
    """

    def __new__(
        cls, text: str, *, images: tuple[str, ...] = (), image_tokens: int = 0, tries: int = 1
    ) -> "ToolOutput":
        self = super().__new__(cls, text)
        self.images, self.image_tokens, self.tries = images, image_tokens, tries
        return self

    images: tuple[str, ...]
    image_tokens: int
    tries: int

    def with_text(self, text: str) -> "ToolOutput":
        """The same with another text."""
        return ToolOutput(
            text, images=self.images, image_tokens=self.image_tokens, tries=self.tries
        )


class ToolResources(Protocol):
    """What is opened once per process for the tools that run in it."""

    async def get(self, resource: Any, in_thread: Callable[..., Awaitable[Any]]) -> Any:
        """What a resource opens; opened now where it is not open.

        Args:
            resource: The resource.
            in_thread: Runs a blocking function, as that of a `ToolContext`.

        Raises:
            Exception: What it raised; it is opened anew for the next call.
        """


class ToolWorkers(Protocol):
    """Processes for calls that must be killed to be ended."""

    async def run(self, tool: Any, arguments: str, context: "ToolContext") -> str:
        """Do a call of a tool in one of them, when one is free.

        When the caller is cancelled, the process is killed with all that it started.

        Args:
            tool: A tool of a function.
            arguments: As for `Tool.run`.
            context: The same.

        Raises:
            ToolError: What the tool raised, in words; or its process died, or none starts.
        """


def _nobody_reads(_: str) -> bool:
    return False


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
        cover: What processes of this call are not to see; None for nothing.
        deadline: How long the call may still take, and whether anybody waits for it.
        artifacts: Where results are kept that are too long; None where they are cut.
        tell: Where `emit` goes.
        clock: Time; None for that of the event loop.
        resources: What is open in this process; None where nothing stays open between calls.
        workers: Processes for tools that ask for one; None where they run like all others.
    """

    run_id: str
    call_id: str
    workspace: Path | None
    in_thread: Callable[..., Awaitable[Any]]
    workspace_id: FolderId | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    processes: ToolProcesses | None = None
    cover: Cover | None = None
    deadline: DeadlineToken = field(default_factory=DeadlineToken)
    artifacts: ConversationArtifacts | None = None
    tell: Callable[[str], bool] = _nobody_reads
    clock: Clock | None = None
    resources: ToolResources | None = None
    workers: ToolWorkers | None = None

    def emit(self, text: str) -> bool:
        """Tell whoever reads along how the call goes on. It is not stored, and may be lost.

        From any thread of the call. Where nobody reads, it costs next to nothing.

        Args:
            text: A line or some; cut after 2,000 characters.

        Returns:
            False where it is not told: nobody reads, the call has told 1,000 times already, or
            it is over.
        """
        return self.tell(text)


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
            The result for the model; a `LargeResult` where it is in a file, and a `ToolOutput`
            where more than a text belongs to it.

        Raises:
            ToolError: The call failed in a way the model can act on. Any other
                exception is answered to the model with its type and text.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """What a call asks the user of its run.

    Attributes:
        text: The question.
        options: The answers that may be given; empty where any may.
        why: What the answer is needed for; empty where that is not said.
    """

    text: str
    options: tuple[str, ...] = ()
    why: str = ""


class AskingTool(ABC):
    """A tool whose calls are not made: the user of the run answers them, and it waits for that.

    To be derived from, so that no other tool is taken for one.
    """

    @property
    @abstractmethod
    def spec(self) -> ToolSpec: ...

    @abstractmethod
    def question(self, call: ToolCall) -> AskedQuestion:
        """What a call asks.

        Args:
            call: The call; its arguments are what the model wrote, and are checked here.

        Raises:
            ToolError: Nobody can be asked that; said to the model.
        """

    async def run(self, arguments: str, context: ToolContext) -> str:
        """Never called where the tool is offered to a model by an agent turn of ours."""
        raise NotImplementedError(f"{self.spec.name} is answered by the user of a run")


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
