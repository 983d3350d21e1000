"""Results that are too long for the conversation: kept whole, and named to the model."""

from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from harness_actors.errors import ToolError
from harness_actors.ports import (
    Artifact,
    ConversationArtifacts,
    LargeResult,
    ToolContext,
    ToolOutput,
)
from harness_actors.ports.artifacts import pieces_of
from harness_actors.turn.outcomes import (
    ToolArtifactReference,
    ToolExecutionResult,
    ToolFailure,
    ToolOutcome,
)
from harness_actors.turn.texts import shortened, well_formed

HEAD_SHARE, TAIL_SHARE, REST_SHARE = 6, 12, 4
"""Of the longest text that stands in the conversation: what is shown of the beginning and of the
end of a longer one, and of one that could not be kept."""

REFERENCE = (
    "[The result of {tool} has {chars:,} characters in {lines:,} lines, too many for the "
    "conversation. It is kept whole as artifact {id}; below are its beginning and its end. Read "
    'on with read_artifact(id="{id}", start={start}), or search it with a pattern.]\n'
)
LEFT_OUT = "\n[… characters {start:,} to {end:,} left out …]\n"
NOT_KEPT = (
    "[The call of {tool} was made, but its result is too long for the conversation and could not "
    "be kept: {problem}. Below is what is left of it; the rest is lost. Where that matters, find "
    "a way that answers with less.]\n"
)


async def keep_large(outcome: ToolOutcome, tool: str, context: ToolContext) -> ToolOutcome:
    """The outcome as it enters the log: what is too long is kept, and the model is told where.

    Args:
        outcome: What came of a call, whatever hooks made of it included.
        tool: What was called.
        context: With which.

    Returns:
        The same where it is short enough; else one with a text of at most
        `ArtifactsConfig.inline_chars`. One that could not be kept is a failure.
    """
    text, artifacts = outcome.text, context.artifacts
    if artifacts is None:
        if isinstance(text, LargeResult):
            text.close()
        return outcome
    if not isinstance(text, LargeResult) and len(text) <= artifacts.inline_chars:
        return outcome
    try:
        kept: ToolOutcome = await context.in_thread(_keep, text, tool, artifacts)
    except ToolError as error:
        words = NOT_KEPT.format(tool=tool[:64], problem=shortened(error.text, 300))
        rest = well_formed(shortened(str(text), artifacts.inline_chars // REST_SHARE))
        kept = ToolFailure(text=words + rest)
    finally:
        if isinstance(text, LargeResult):
            with suppress(OSError):
                text.close()
    if outcome.is_error:
        return replace(outcome, text=kept.text)
    if isinstance(kept, ToolArtifactReference | ToolExecutionResult):
        return replace(kept, output=_besides(outcome))
    return kept


class Extent:
    """How long a text is, and its ends; seen while it passes, piece by piece.

    Args:
        head_chars: How much of its beginning is kept.
        tail_chars: How much of its end.
    """

    def __init__(self, head_chars: int, tail_chars: int) -> None:
        self._head_chars = head_chars
        self._tail_chars = tail_chars
        self._newlines = 0
        self.chars = 0
        self.head = self.tail = ""

    @property
    def lines(self) -> int:
        return self._newlines + (not self.tail.endswith("\n"))

    def passing(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces, which are UTF-8, as they are."""
        decoder = getincrementaldecoder("utf-8")("replace")
        for piece in pieces:
            self._see(decoder.decode(piece))
            yield piece
        self._see(decoder.decode(b"", final=True))

    def _see(self, text: str) -> None:
        self.chars += len(text)
        self._newlines += text.count("\n")
        self.head += text[: self._head_chars - len(self.head)]
        self.tail = (self.tail + text[-self._tail_chars :])[-self._tail_chars :]


def _besides(outcome: ToolOutcome) -> ToolOutput | None:
    """What belongs to a result besides its text, without that."""
    if not isinstance(outcome, ToolExecutionResult) or outcome.output is None:
        return None
    return outcome.output.with_text("")


def _keep(text: str, tool: str, artifacts: ConversationArtifacts) -> ToolOutcome:
    most = artifacts.inline_chars
    if isinstance(text, LargeResult) and (short := _short_text(text, most)) is not None:
        return ToolExecutionResult(text=short)
    extent = Extent(most // HEAD_SHARE, most // TAIL_SHARE)
    artifact = artifacts.put(extent.passing(pieces_of(text)))
    return ToolArtifactReference(
        text=_reference(artifact, extent, tool), artifact_id=artifact.id, size_chars=extent.chars
    )


def _short_text(large: LargeResult, most_chars: int) -> str | None:
    """What is in a file, where that is not so long after all."""
    read = b""
    for piece in large.pieces():
        read += piece
        if len(read) > 4 * most_chars:
            return None
    text = read.decode("utf-8", "replace")
    return text if len(text) <= most_chars else None


def _reference(artifact: Artifact, extent: Extent, tool: str) -> str:
    start, end = len(extent.head), extent.chars - len(extent.tail)
    words = REFERENCE.format(
        tool=tool[:64], chars=extent.chars, lines=extent.lines, id=artifact.id, start=start
    )
    return words + extent.head + LEFT_OUT.format(start=start, end=end) + extent.tail
