"""Answers that come in pieces: the event stream, and the answer it adds up to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from harness_actors.messages import ToolCall, encode_json
from harness_actors.models.bounded import ANSWER_BYTES, STREAM_FACTOR, OutOfBoundsError, too_large
from harness_actors.models.failures import AttemptFailedError, Endpoint, reported_failure
from harness_actors.models.prices import Price
from harness_actors.models.wire import (
    UnusableAnswerError,
    count_of,
    finish_reason_of,
    list_of,
    parse_object,
    text_of,
    usage_of,
)
from harness_actors.ports import ModelResponse

DRAIN_S = 0.5
BYTES_PER_LINE = 4
"""Of the largest answer, which bounds its lines: a token takes two. Empty ones cost time, too."""
CALL_BYTES = 200
"""What a call takes besides its texts."""
BREATH_BYTES = 64 * 1024
"""What is taken in at most before others on the event loop have their turn: of a connection that
always has more, reading never waits."""


@dataclass(slots=True)
class CallInPieces:
    """A call of which pieces have come."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def whole(self) -> ToolCall:
        return ToolCall(self.id, self.name, "".join(self.arguments))


@dataclass
class StreamedAnswer:
    """Puts an answer together from the chunks of a stream."""

    sent_bytes: int
    price: Price
    most_bytes: int = ANSWER_BYTES
    """What may be kept of it, in bytes, at most."""
    finished: bool = False
    """The provider said that the answer is complete."""
    _texts: list[str] = field(default_factory=list)
    _calls: dict[int, CallInPieces] = field(default_factory=dict)
    _size: int = 0
    _begun: bool = False
    _finish_reason: str = "stop"
    _usage: Any = None

    def take(self, chunk: dict[str, Any]) -> str:
        """Take one chunk in.

        Returns:
            The text that it adds; empty where it adds none.

        Raises:
            UnusableAnswerError: It holds a call that is none.
            OutOfBoundsError: The answer becomes too large with it.
        """
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return ""
        self._begun = True
        if reason := finish_reason_of(choices[0]):
            self.finished, self._finish_reason = True, reason
        delta = choices[0].get("delta")
        if not isinstance(delta, dict):
            return ""
        for position, call in enumerate(list_of(delta.get("tool_calls"))):
            self._take_call(position, call)
        text = text_of(delta.get("content")) or text_of(delta.get("refusal")) or ""
        if text:
            self._keep(text)
            self._texts.append(text)
        return text

    def _take_call(self, position: int, piece: Any) -> None:
        function = piece.get("function") or {} if isinstance(piece, dict) else None
        if not isinstance(function, dict):
            raise UnusableAnswerError("the stream has a tool call that is not an object")
        index = count_of(piece.get("index"))
        place = position if index is None else index
        call = self._calls.get(place)
        if call is None:
            self._size += CALL_BYTES
            call = self._calls[place] = CallInPieces()
        # The id and the name come whole, once; the arguments in pieces.
        call.id = call.id or self._keep(str(piece.get("id") or ""))
        call.name = call.name or self._keep(str(function.get("name") or ""))
        arguments = function.get("arguments")
        if arguments is not None:
            text = arguments if isinstance(arguments, str) else encode_json(arguments).decode()
            call.arguments.append(self._keep(text))

    def _keep(self, text: str) -> str:
        self._size += len(text)
        if self._size > self.most_bytes:
            raise too_large("the answer", self.most_bytes)
        return text

    def response(self) -> ModelResponse:
        """The whole answer.

        Raises:
            UnusableAnswerError: The stream held no choice at all.
        """
        if not self._begun:
            raise UnusableAnswerError("the stream has no choices")
        calls = tuple(call.whole() for _, call in sorted(self._calls.items()))
        text = "".join(self._texts) or None
        spoken = (text or "") + "".join(call.name + call.arguments for call in calls)
        return ModelResponse(
            text=text,
            tool_calls=calls,
            finish_reason=self._finish_reason,
            usage=usage_of(self._usage, self.sent_bytes, spoken, self.price),
        )


class EventParser:
    """Splits the bytes of a server-sent event stream into the data of its events.

    Source: HTML standard, 9.2.6, of which Chat Completions uses ``data:`` lines only.

    Args:
        most_bytes: Longest line; and of these, one in `BYTES_PER_LINE` is a line at most.
    """

    def __init__(self, most_bytes: int = ANSWER_BYTES) -> None:
        self._most_bytes = most_bytes
        # In pieces: joined anew with each, a long line would take quadratic time.
        self._rest: list[bytes] = []
        self._rest_bytes = 0
        self._lines_left = most_bytes // BYTES_PER_LINE

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that `piece` completes, in order.

        Raises:
            OutOfBoundsError: A line is too long, or there are too many.
        """
        lines = piece.split(b"\n")
        rest = lines.pop()
        self._lines_left -= len(lines)
        if self._lines_left < 0:
            raise OutOfBoundsError(f"more than {self._most_bytes // BYTES_PER_LINE:,} lines")
        if lines:
            if self._rest:
                lines[0] = b"".join((*self._rest, lines[0]))
            self._rest, self._rest_bytes = [], 0
        if rest:
            self._rest.append(rest)
            self._rest_bytes += len(rest)
            if self._rest_bytes > self._most_bytes:
                raise too_large("a line of the stream", self._most_bytes)
        return [
            line[5:].strip() for line in lines if line.startswith(b"data:") and line[5:].strip()
        ]


async def read_events(
    pieces: AsyncIterator[bytes], answer: StreamedAnswer, endpoint: Endpoint
) -> AsyncIterator[str]:
    """Take a whole event stream into `answer`, and yield its text as it comes.

    Raises:
        AttemptFailedError: The provider reports an error in mid-stream.
        UnusableAnswerError: The stream breaks off, or holds something that is no chunk.
        OutOfBoundsError: It, or something in it, is too large.
    """
    events, most = EventParser(answer.most_bytes), STREAM_FACTOR * answer.most_bytes
    size, breath = 0, BREATH_BYTES
    async for piece in pieces:
        size += len(piece)
        if size > breath:
            breath = size + BREATH_BYTES
            if size > most:
                raise too_large("the stream", most)
            await asyncio.sleep(0)
        for data in events.feed(piece):
            if data == b"[DONE]":
                answer.finished = True
                await _drain(pieces)
                return
            chunk = parse_object(data, answer.most_bytes)
            if error := chunk.get("error"):
                raise AttemptFailedError(reported_failure(endpoint, error))
            if text := answer.take(chunk):
                yield text
    if not answer.finished:
        raise UnusableAnswerError("the stream broke off before its end")


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Read what comes after the end mark: a connection is used again only when it is read out."""
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in pieces:
                await asyncio.sleep(0)
