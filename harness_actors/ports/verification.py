"""What a contract is verified on: the workspace, commands, a judge, results of tools."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol


@dataclass(frozen=True, slots=True)
class InFile:
    """A file of the workspace, where a text could be as well.

    Attributes:
        path: Relative to its top folder.
    """

    path: str


@dataclass(frozen=True, slots=True)
class Exists:
    """What is at a path?

    Attributes:
        path: Relative to the top folder of the workspace.
    """

    path: str


@dataclass(frozen=True, slots=True)
class Find:
    """Has a file or a text a match of a pattern?

    Attributes:
        pattern: For Python's `re`; ``^`` and ``$`` are those of lines.
        where: The file, or the text.
        is_plain: The pattern stands for its own text, but for flags before it.
    """

    pattern: str
    where: InFile | str
    is_plain: bool = False


@dataclass(frozen=True, slots=True)
class Validate:
    """Is a file or a text JSON that a schema allows?

    Attributes:
        schema: The schema.
        where: The file, or the text.
    """

    schema: Mapping[str, Any]
    where: InFile | str


FileQuestion = Exists | Find | Validate


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFact:
    """What is at a path of the workspace.

    Attributes:
        found: What it is; `refused` where it may not be looked at.
        size_bytes: Of a file.
        problem: Why it is refused.
    """

    found: Literal["file", "folder", "missing", "refused"]
    size_bytes: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """What came of looking at something.

    Attributes:
        holds: Whether it is so; None where that could not be told.
        told: What is there instead, or why it could not be told; where it is so, what shows it.
    """

    holds: bool | None
    told: str


class ContractFiles(Protocol):
    """Looks at a workspace as it is now; never outside of it."""

    async def glance(self, questions: Sequence[FileQuestion]) -> Sequence[FileFact | Look | None]:
        """What can be told at once, of all questions at one moment; None of what needs time.

        A `FileFact` of `Exists`, and a `Look` of all others.
        """

    async def look(self, question: Find | Validate, *, time_s: float) -> Look:
        """What needs time.

        Args:
            question: The question.
            time_s: How long it may take, in seconds.
        """

    async def read(self, path: str, most_chars: int) -> Look:
        """The beginning of a text file, in `told`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEnd:
    """How a command of a contract ended.

    Attributes:
        exit_code: None where its time was up.
        output: The beginning and the end of what it printed.
        stopped: Why it was killed before its end, if not for the time.
    """

    exit_code: int | None
    output: str
    stopped: str = ""


class ContractCommands(Protocol):
    """Runs commands in a workspace."""

    async def run(self, command: str, *, timeout_s: float) -> CommandEnd:
        """Run one to its end; after `timeout_s` it is killed with all that it started.

        Raises:
            OSError: It could not be started.
        """


class Judge(Protocol):
    """A model that is asked what it thinks of the work of another."""

    async def ask(self, text: str, *, model: str | None) -> str:
        """Its answer, in its own words.

        Args:
            text: The question.
            model: Which model; None for that of the run.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestResult:
    """The newest result of a tool in a run.

    Attributes:
        call_id: The call.
        is_error: It failed, or was not made.
        text: What it gave, or a beginning of that.
    """

    call_id: str
    is_error: bool
    text: str


class ToolResults(Protocol):
    """What the calls of a run came to."""

    def newest(self, tool_name: str) -> NewestResult | None:
        """Of one tool; None where it was never called."""
