"""Asking a model so that its text is told while it comes."""

from contextlib import AsyncExitStack, aclosing
from typing import Any

from harness_actors.errors import ModelError, ModelSetupError
from harness_actors.events import TextSink
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

    async def speak(self, model: Model, request: ModelRequest) -> Any:
        """Answer one request, in pieces where the model can.

        A stream that breaks off when something was said is made up for by a whole answer,
        with the retries of that: a run that is listened to must not be less reliable.

        Returns:
            The answer; or whatever else a user's own model came to, which nobody has checked.

        Raises:
            Exception: What the model raised.
        """
        try:
            response = await self._streamed(model, request)
        except _RefusedError:
            response = await model.complete(request)
            self.tell(response)
        return response

    def tell(self, response: object) -> None:
        """Tell an answer that came in one piece."""
        if isinstance(response, ModelResponse) and isinstance(response.text, str):
            self._sink.begin(self._turn, self._round)
            self._sink.say(response.text)
            self._sink.end()

    async def _streamed(self, model: Model, request: ModelRequest) -> Any:
        """Ask for the answer as a stream.

        Raises:
            _RefusedError: It is to be asked for whole.
        """
        stream = getattr(model, "stream", None)
        if stream is None:
            raise _RefusedError
        sink, said = self._sink, False
        sink.begin(self._turn, self._round)
        try:
            async with AsyncExitStack() as leaving:
                parts = stream(request)
                if hasattr(parts, "aclose"):
                    await leaving.enter_async_context(aclosing(parts))
                async for part in parts:
                    if not isinstance(part, str):
                        sink.end()
                        return part
                    sink.say(part)
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


class _RefusedError(Exception):
    """The model does not stream, or did not to the end."""
