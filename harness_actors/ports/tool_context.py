"""What a tool is told of the call that it serves, and finds in the process that it runs in."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from harness_actors.ports.artifacts import ConversationArtifacts, ConversationMessages
from harness_actors.ports.child_copies import ChildCopies
from harness_actors.ports.clock import Clock
from harness_actors.ports.deadlines import DeadlineToken

if TYPE_CHECKING:
    # It takes long, and worker processes do not need it.
    from harness_actors.records import FolderId

MOST_TOLD = 1_000
"""How often a call may tell how it goes on."""
TOLD_CHARS = 2_000
"""Characters that it tells each time, at most."""


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


def _nobody(_: str) -> bool:
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
        messages: The conversation so far, where its model may ask for parts of it; else None.
        tell: Where `emit` goes.
        want_summary: Asks for a summary of the conversation in which what it is given is kept,
            from any thread of the call; answers False where nobody makes one, and in a process of
            the tool's own.
        clock: Time; None for that of the event loop.
        resources: What is open in this process; None where nothing stays open between calls.
        workers: Processes for tools that ask for one; None where they run like all others.
        copies: Those in which others work for the run; None where none is to.
        read_only: The run is to write nothing in its workspace.
    """

    run_id: str
    call_id: str
    workspace: Path | None
    in_thread: Callable[..., Awaitable[Any]]
    workspace_id: "FolderId | None" = None
    environment: Mapping[str, str] = field(default_factory=dict)
    processes: ToolProcesses | None = None
    cover: Cover | None = None
    deadline: DeadlineToken = field(default_factory=DeadlineToken)
    artifacts: ConversationArtifacts | None = None
    messages: ConversationMessages | None = None
    tell: Callable[[str], bool] = _nobody
    want_summary: Callable[[str], bool] = _nobody
    clock: Clock | None = None
    resources: ToolResources | None = None
    workers: ToolWorkers | None = None
    copies: ChildCopies | None = None
    read_only: bool = False

    def emit(self, text: str) -> bool:
        """Tell whoever reads along how the call goes on. It is not stored, and may be lost.

        From any thread of the call. Where nobody reads, it costs next to nothing.

        Args:
            text: A line or some; cut after 2,000 characters.

        Returns:
            False where it is not told: nobody reads, the call has told 1,000 times already, it
            is over, or middleware leaves nothing of the text.
        """
        return self.tell(text)
