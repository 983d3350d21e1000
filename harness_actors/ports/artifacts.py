"""What the harness expects of the place where results are kept that are too long for a log."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, Self

if TYPE_CHECKING:
    from harness_actors.ports.tools import ToolOutput

PIECE_BYTES = 1 << 20
"""How much of a long result is in memory at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A result that is kept whole.

    Attributes:
        id: By which its conversation reads it: ``a`` and 10 hex digits of its content's hash.
        size_bytes: Its length in UTF-8.
    """

    id: str
    size_bytes: int


class ConversationArtifacts(Protocol):
    """The artifacts of one conversation. All calls block; any thread may make them."""

    @property
    def inline_chars(self) -> int:
        """Longest result that is no artifact, in characters."""

    @property
    def cap_bytes(self) -> int:
        """What they may take together."""

    def put(self, pieces: Iterable[bytes]) -> Artifact:
        """Keep a result; what is kept already is not kept twice.

        Args:
            pieces: Its content, UTF-8, each short enough to be held in memory.

        Returns:
            The artifact; it is on disk.

        Raises:
            ToolError: There is no room, or it cannot be written; nothing of it is left.
        """

    def take(self, conversation_id: str, texts: Iterable[str]) -> None:
        """Have those of another conversation that the beginning of this one names.

        Args:
            conversation_id: The other one, from which this one was forked.
            texts: What they have in common.

        Raises:
            ToolError: There is no room for them.
        """

    def open(self, artifact_id: str) -> BinaryIO:
        """The content of an artifact, which is what was kept.

        Args:
            artifact_id: As the model wrote it.

        Raises:
            ToolError: This conversation has none of that id, or its file is damaged.
        """

    def begin(self) -> BinaryIO:
        """An empty file without a name, for a result that is being made.

        Raises:
            ToolError: It cannot be made.
        """

    def room_bytes(self) -> int:
        """How much more may be kept; 0 for nothing.

        Raises:
            ToolError: Nobody can see that.
        """


class ConversationMessages(Protocol):
    """The messages of one conversation, also those that its model is not shown any more."""

    def open(self, message_id: str) -> BinaryIO:
        """The text of a message, UTF-8, with the calls in it; blocks.

        Args:
            message_id: As the model wrote it: ``m`` and the position of the message.

        Raises:
            ToolError: There is none of that id.
        """


def pieces_of(text: str) -> Iterator[bytes]:
    """The whole of a result as UTF-8, each piece short enough to be held in memory.

    Args:
        text: The result; of a `LargeResult`, what is in its file.
    """
    if isinstance(text, LargeResult):
        yield from text.pieces()
        return
    for start in range(0, len(text), PIECE_BYTES):
        # Bit by bit: there must not be a second copy of 200 MB.
        yield text[start : start + PIECE_BYTES].encode("utf-8", "replace")


class LargeResult(str):
    """A tool's result that is in a file, and as a text its beginning and its end.

    It is a text like any other to whoever only shows it. Where artifacts are kept, the whole is
    taken from the file, so that it is never in memory; elsewhere the text is all that is left.
    The harness closes the file.

    Args:
        shown: The text.
        file: The content, UTF-8, from its beginning.
        before: What stands before it in the result.
        after: And after it.
        besides: What belongs to the result besides its text, a `ToolOutput`; None for nothing.
    """

    def __new__(
        cls,
        shown: str,
        file: BinaryIO,
        *,
        before: str = "",
        after: str = "",
        besides: "ToolOutput | None" = None,
    ) -> Self:
        made = super().__new__(cls, shown.encode("utf-8", "replace").decode())
        made._file = file
        made.before, made.after, made.besides = before, after, besides
        return made

    _file: BinaryIO
    before: str
    after: str
    besides: "ToolOutput | None"

    def pieces(self) -> Iterator[bytes]:
        """The whole result."""
        yield self.before.encode("utf-8", "replace")
        self._file.seek(0)
        while piece := self._file.read(PIECE_BYTES):
            yield piece
        yield self.after.encode("utf-8", "replace")

    def followed_by(self, text: str) -> Self:
        """The same result with a text at its end; it has the same file."""
        return type(self)(
            str(self) + text,
            self._file,
            before=self.before,
            after=self.after + text,
            besides=self.besides,
        )

    def beside(self, output: "ToolOutput") -> Self:
        """The same result with what else belongs to it; it has the same file."""
        return type(self)(
            str(self), self._file, before=self.before, after=self.after, besides=output
        )

    def close(self) -> None:
        """Let the file go."""
        self._file.close()

    def __reduce__(self) -> tuple[Any, ...]:
        # A file does not travel.
        return (str, (str(self),))
