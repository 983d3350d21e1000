"""Carries bytes to a provider and back: on the connections of openai's client.

The client's own `chat.completions.create` walks the whole conversation on every call. Here
the body goes as it is; authentication, proxies and time limits stay the client's. Retries
are made by the caller, so the client makes none.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import aiohttp
import openai

# The client's own HTTP library, whose types its options and answers are.
from httpx2 import HTTPError, Limits, Response, Timeout

from harness_actors.errors import ModelBusyError
from harness_actors.models.body import RequestBody
from harness_actors.models.direct import direct_way
from harness_actors.models.failures import AttemptFailedError, Endpoint, status_failure
from harness_actors.models.gathering import gathered
from harness_actors.models.sockets import sockets_at_most

CONNECT_TIMEOUT_S = 10.0
KEEPALIVE_S = 30.0
PATH = "/chat/completions"

_MEDIA_TYPE = {"Content-Type": "application/json"}
_ELSEWHERE = (301, 302, 303, 307, 308)
_BROKEN = (openai.OpenAIError, HTTPError, aiohttp.ClientError, OSError)
"""What a call may raise. A time limit that is over is an `OSError`."""


@dataclass(frozen=True, slots=True)
class StreamedBody:
    """An answer that is still coming.

    Attributes:
        is_events: It is an event stream; some servers answer whole though asked for one.
        pieces: Its bytes, as they come.
    """

    is_events: bool
    pieces: AsyncIterator[bytes]


class WireClient:
    """One provider's connections. Belongs to the event loop that made it.

    Args:
        endpoint: Who is asked, with its key.
        timeout_s: Longest time of one attempt, or between two pieces of a stream.
        max_connections: Sockets at most; calls beyond wait for one. None: as many as the
            process may have.
    """

    def __init__(
        self, endpoint: Endpoint, *, timeout_s: float, max_connections: int | None
    ) -> None:
        allowed = sockets_at_most()
        sockets = allowed if max_connections is None else max_connections
        self.endpoint = endpoint
        self._timeout_s = timeout_s
        self._url = endpoint.base_url.rstrip("/") + PATH
        # Both must be given: the transport's own default is 100, and the client's 1,000.
        limits = Limits(
            max_connections=sockets,
            max_keepalive_connections=sockets,
            keepalive_expiry=KEEPALIVE_S,
        )
        connect_s = min(CONNECT_TIMEOUT_S, timeout_s)
        timeout = Timeout(timeout_s, connect=connect_s)
        http = openai.DefaultAioHttpClient(limits=limits, timeout=timeout)
        self._client = openai.AsyncOpenAI(
            api_key=endpoint.key,
            base_url=endpoint.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=http,
        )
        self._direct = direct_way(self._client, http, self._url)
        self._for_whole = aiohttp.ClientTimeout(total=timeout_s, sock_connect=connect_s)
        self._for_pieces = aiohttp.ClientTimeout(
            connect=timeout_s, sock_connect=connect_s, sock_read=timeout_s
        )

    async def post(self, body: RequestBody) -> bytes:
        """Send one request.

        Returns:
            The answer's body, whole.

        Raises:
            AttemptFailedError: No usable answer came.
        """
        try:
            if self._direct is not None:
                async with await self._direct.post(body, self._for_whole) as answer:
                    content = await answer.read()
                if answer.status < 300:
                    return content
                if answer.status not in _ELSEWHERE:
                    raise self._refused(answer.status, answer.headers, content)
            async with asyncio.timeout(self._timeout_s):
                return (await self._through_client(body)).content
        except _BROKEN as error:
            raise self._failure(error) from None

    @asynccontextmanager
    async def stream(self, body: RequestBody) -> AsyncIterator[StreamedBody]:
        """Send one request whose answer comes in pieces.

        Raises:
            AttemptFailedError: No answer came, or it broke off.
        """
        try:
            if self._direct is not None:
                async with await self._direct.post(body, self._for_pieces) as answer:
                    if answer.status < 300:
                        yield _streamed(answer.headers, gathered(answer))
                        return
                    if answer.status not in _ELSEWHERE:
                        raise self._refused(answer.status, answer.headers, await answer.read())
            response = await self._through_client(body, stream=True)
            try:
                yield _streamed(response.headers, response.aiter_bytes())
            finally:
                await response.aclose()
        except _BROKEN as error:
            raise self._failure(error) from None

    async def close(self) -> None:
        await self._client.close()

    async def _through_client(self, body: RequestBody, *, stream: bool = False) -> Response:
        """Send a request with the client's own means: it follows where an answer sends it."""
        answer = await self._client.post(
            # Absolute: joining it to the base costs the client a tenth of the call.
            self._url,
            content=bytes(body),
            cast_to=Response,
            options={"headers": _MEDIA_TYPE},
            stream=stream,
            stream_cls=openai.AsyncStream[Any],
        )
        # Asked for a response, the client returns that and no stream, which it has no type for.
        return cast(Response, answer)

    def _failure(self, error: BaseException) -> AttemptFailedError:
        """Whatever the client and its transport raise."""
        match error:
            case openai.APIStatusError():
                answer = error.response
                return self._refused(error.status_code, answer.headers, answer.content)
            case openai.OpenAIError() if not isinstance(error, openai.APIConnectionError):
                return self._busy(f"the client gave up: {error}")
        return self._connection_failure(error)

    def _refused(
        self, status: int, headers: Mapping[str, str], content: bytes
    ) -> AttemptFailedError:
        lower = {name.lower(): value for name, value in headers.items()}
        return AttemptFailedError(status_failure(self.endpoint, status, lower, content))

    def _connection_failure(self, error: BaseException) -> AttemptFailedError:
        causes = _chain(error)
        for cause in causes:
            # The client's transport reports each of aiohttp's connection errors as a time-out,
            # so what really happened is read from the cause at the end.
            if isinstance(cause, aiohttp.ConnectionTimeoutError | aiohttp.ClientConnectorError):
                return self._busy(f"no connection: {_words(cause)}", unreachable=True)
            if isinstance(cause, aiohttp.InvalidURL):
                return self._busy("base_url is no HTTP address", unreachable=True)
            if isinstance(cause, TimeoutError):
                return self._busy(f"no answer within {self._timeout_s:g} s")
        return self._busy(f"the connection broke: {_words(causes[-1])}")

    def _busy(self, problem: str, *, unreachable: bool = False) -> AttemptFailedError:
        busy = ModelBusyError(self.endpoint.model, self.endpoint.clean(problem))
        return AttemptFailedError(busy, unreachable)


def _streamed(headers: Mapping[str, str], pieces: AsyncIterator[bytes]) -> StreamedBody:
    return StreamedBody("event-stream" in headers.get("content-type", ""), pieces)


def _chain(error: BaseException) -> list[BaseException]:
    """The error and what caused it, the outermost first."""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) and cause not in chain:
        chain.append(cause)
    return chain


def _words(error: BaseException) -> str:
    return str(error).strip() or type(error).__name__
