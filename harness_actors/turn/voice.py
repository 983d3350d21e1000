"""Asking a model so that its text is told while it comes."""

from collections.abc import Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any

from harness_actors.errors import ModelError, ModelSetupError
from harness_actors.events import TextSink
from harness_actors.policies import TextFilter
from harness_actors.ports import Model, ModelRequest, ModelResponse

NO_STREAMS = (400, 422, 501)
"""How servers refuse to stream that can only answer whole; or a request that is bad anyway."""


class Voice:
    """Tells the text of the answers of one round.

    Args:
        sink: Where to.
        turn: The turn.
        round: The round, which is the one that is being asked for.
    """

    def __init__(self, sink: TextSink, turn: int, round: int) -> None:
        self._sink = sink
        self._turn = turn
        self._round = round

    async def speak(
        self, model: Model, request: ModelRequest, filters: Callable[[], list[TextFilter]] = list
    ) -> Any:
        """Answer one request, in pieces where the model can.

        A stream that breaks off when something was said is made up for by a whole answer,
        with the retries of that: a run that is listened to must not be less reliable.

        Args:
            model: Who answers.
            request: The request.
            filters: Makes what the text passes through before it is told, in their order.

        Returns:
            The answer; or whatever else a user's own model came to, which nobody has checked.

        Raises:
            Exception: What the model raised.
        """
        try:
            response = await self._streamed(model, request, _Filtered(self._sink, filters()))
        except _RefusedError:
            response = await model.complete(request)
            self._tell(response, _Filtered(self._sink, filters()))
        return response

    def tell(self, response: object) -> None:
        """Tell an answer that came in one piece."""
        self._tell(response, _Filtered(self._sink, []))

    def _tell(self, response: object, filtered: "_Filtered") -> None:
        if isinstance(response, ModelResponse) and isinstance(response.text, str):
            self._sink.begin(self._turn, self._round)
            filtered.say(response.text)
            filtered.end()

    async def _streamed(self, model: Model, request: ModelRequest, filtered: "_Filtered") -> Any:
        """Ask for the answer as a stream.

        Raises:
            _RefusedError: It is to be asked for whole.
        """
        stream = getattr(model, "stream", None)
        if stream is None:
            raise _RefusedError
        said = False
        self._sink.begin(self._turn, self._round)
        try:
            async with AsyncExitStack() as leaving:
                parts = stream(request)
                if hasattr(parts, "aclose"):
                    await leaving.enter_async_context(aclosing(parts))
                async for part in parts:
                    if not isinstance(part, str):
                        filtered.end()
                        return part
                    filtered.say(part)
                    said = True
        except NotImplementedError:
            raise _RefusedError from None
        except ModelError as error:
            if said and error.retryable:
                raise _RefusedError from None
            if not said and isinstance(error, ModelSetupError) and error.status in NO_STREAMS:
                raise _RefusedError from None
            raise
        return None


class _Filtered:
    """Tells text as far as filters let it pass."""

    def __init__(self, sink: TextSink, filters: list[TextFilter]) -> None:
        self._sink = sink
        self._filters = filters

    def say(self, text: str) -> None:
        for one in self._filters:
            text = one.feed(text)
        if text or not self._filters:
            self._sink.say(text)

    def end(self) -> None:
        left = ""
        for one in self._filters:
            left = (one.feed(left) if left else "") + one.end()
        if left:
            self._sink.say(left)
        self._sink.end()


class _RefusedError(Exception):
    """The model does not stream, or did not to the end."""
