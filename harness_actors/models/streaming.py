"""Answers that come in pieces: the event stream, and the answer it adds up to."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from harness_actors.messages import ToolCall, encode_json
from harness_actors.models.failures import AttemptFailedError, Endpoint, reported_failure
from harness_actors.models.prices import Price
from harness_actors.models.wire import (
    UnusableAnswerError,
    count_of,
    parse_object,
    text_of,
    usage_of,
)
from harness_actors.ports import ModelResponse

DRAIN_S = 0.5


@dataclass
class StreamedAnswer:
    """Puts an answer together from the chunks of a stream."""

    sent_bytes: int
    price: Price
    finished: bool = False
    """The provider said that the answer is complete."""
    _texts: list[str] = field(default_factory=list)
    _calls: dict[int, dict[str, str]] = field(default_factory=dict)
    _begun: bool = False
    _finish_reason: str = "stop"
    _usage: Any = None

    def take(self, chunk: dict[str, Any]) -> str:
        """Take one chunk in.

        Returns:
            The text that it adds; empty where it adds none.
        """
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return ""
        self._begun = True
        reason = choices[0].get("finish_reason")
        if reason:
            self.finished, self._finish_reason = True, str(reason)
        delta = choices[0].get("delta")
        if not isinstance(delta, dict):
            return ""
        for position, call in enumerate(delta.get("tool_calls") or ()):
            self._take_call(position, call)
        text = text_of(delta.get("content")) or text_of(delta.get("refusal")) or ""
        if text:
            self._texts.append(text)
        return text

    def _take_call(self, position: int, piece: Any) -> None:
        if not isinstance(piece, dict):
            raise UnusableAnswerError("the stream has a tool call that is no object")
        index = count_of(piece.get("index"))
        call = self._calls.setdefault(
            position if index is None else index, {"id": "", "name": "", "arguments": ""}
        )
        function = piece.get("function") or {}
        # The id and the name come whole, once; the arguments in pieces.
        call["id"] = call["id"] or str(piece.get("id") or "")
        call["name"] = call["name"] or str(function.get("name") or "")
        arguments = function.get("arguments")
        if arguments is not None:
            call["arguments"] += (
                arguments if isinstance(arguments, str) else encode_json(arguments).decode()
            )

    def response(self) -> ModelResponse:
        """The whole answer.

        Raises:
            UnusableAnswerError: The stream held no choice at all.
        """
        if not self._begun:
            raise UnusableAnswerError("the stream has no choices")
        calls = tuple(ToolCall(**call) for _, call in sorted(self._calls.items()))
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
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that `piece` completes, in order."""
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
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
    """
    events = EventParser()
    async for piece in pieces:
        for data in events.feed(piece):
            if data == b"[DONE]":
                answer.finished = True
                await _drain(pieces)
                return
            chunk = parse_object(data)
            if error := chunk.get("error"):
                raise AttemptFailedError(reported_failure(endpoint, error))
            if text := answer.take(chunk):
                yield text
    if not answer.finished:
        raise UnusableAnswerError("the stream broke off before its end")


async def _drain(pieces: AsyncIterator[bytes]) -> None:
    """Read what comes behind the end mark: a connection is used again only when it is read out."""
    with suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_S):
            async for _ in pieces:
                pass
