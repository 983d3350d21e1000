"""Carries bytes to a provider and back: on the connections of openai's client.

The client's own `chat.completions.create` walks the whole conversation on every call. Here
the body goes as it is; authentication, proxies and time limits stay the client's. Retries
are made by the caller, so the client makes none.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import aiohttp
import openai

# The client's own HTTP library, whose types its options and answers are.
from httpx2 import URL, AsyncByteStream, HTTPError, Limits, Request, Response, Timeout

from harness_actors.errors import ModelBusyError, ModelSetupError
from harness_actors.models.body import RequestBody
from harness_actors.models.bounded import (
    ANSWER_BYTES,
    OutOfBoundsError,
    read_at_most,
    read_start,
    too_large,
)
from harness_actors.models.direct import direct_way
from harness_actors.models.failures import AttemptFailedError, Endpoint, status_failure
from harness_actors.models.gathering import gathered
from harness_actors.models.sockets import sockets_at_most

CONNECT_TIMEOUT_S = 10.0
KEEPALIVE_S = 30.0
PATH = "/chat/completions"

_MEDIA_TYPE = {"Content-Type": "application/json"}
_ELSEWHERE = (301, 302, 303, 307, 308)


class _SentElsewhereError(Exception):
    """An answer sends a request to another host or port."""

    def __init__(self, origin: str) -> None:
        super().__init__(origin)
        self.origin = origin


_BROKEN = (_SentElsewhereError, openai.OpenAIError, HTTPError, aiohttp.ClientError, OSError)
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
        most_bytes: Of a whole answer.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        timeout_s: float,
        max_connections: int | None,
        most_bytes: int = ANSWER_BYTES,
    ) -> None:
        allowed = sockets_at_most()
        sockets = allowed if max_connections is None else max_connections
        self.endpoint = endpoint
        self._timeout_s = timeout_s
        self._most_bytes = most_bytes
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
        http.event_hooks = {"response": [_shorten_refusal]}
        self._client = openai.AsyncOpenAI(
            api_key=endpoint.key,
            base_url=endpoint.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=http,
        )
        # Asked of each request, those that the client makes to follow an answer included.
        http.event_hooks["request"].append(_staying_with(URL(self._url)))
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
            OutOfBoundsError: It is too large.
        """
        try:
            if self._direct is not None:
                async with await self._direct.post(body, self._for_whole) as answer:
                    if answer.status < 300:
                        return await self._read(answer)
                    if answer.status not in _ELSEWHERE:
                        raise await self._read_refusal(answer)
            async with asyncio.timeout(self._timeout_s):
                response = await self._through_client(body)
                try:
                    return await read_at_most(response.aiter_bytes(), self._most_bytes)
                finally:
                    await response.aclose()
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
                        raise await self._read_refusal(answer)
            response = await self._through_client(body)
            try:
                yield _streamed(response.headers, response.aiter_bytes())
            finally:
                await response.aclose()
        except _BROKEN as error:
            raise self._failure(error) from None

    async def close(self) -> None:
        await self._client.close()

    async def _read(self, answer: aiohttp.ClientResponse) -> bytes:
        try:
            if (answer.content_length or 0) > self._most_bytes:
                raise too_large("the answer", self._most_bytes)
            return await read_at_most(answer.content.iter_any(), self._most_bytes)
        except OutOfBoundsError:
            # With the connection: what is left on it is not read.
            answer.close()
            raise

    async def _read_refusal(self, answer: aiohttp.ClientResponse) -> AttemptFailedError:
        content = await read_start(answer.content.iter_any())
        if not answer.content.at_eof():
            answer.close()
        return self._refused(answer.status, answer.headers, content)

    async def _through_client(self, body: RequestBody) -> Response:
        """Send a request with the client's own means.

        It follows where an answer sends it, but to no other host or port: the conversation would
        go there, whoever that is.
        """
        answer = await self._client.post(
            # Absolute: joining it to the base costs the client a tenth of the call.
            self._url,
            content=bytes(body),
            cast_to=Response,
            options={"headers": _MEDIA_TYPE},
            stream=True,
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
            if isinstance(cause, _SentElsewhereError):
                return self._sent_elsewhere(cause.origin)
            # The client's transport reports each of aiohttp's connection errors as a time-out,
            # so what really happened is read from the cause at the end.
            if isinstance(cause, aiohttp.ConnectionTimeoutError | aiohttp.ClientConnectorError):
                return self._busy(f"no connection: {_words(cause)}", unreachable=True)
            if isinstance(cause, aiohttp.InvalidURL):
                return self._busy("base_url is no HTTP address", unreachable=True)
            if isinstance(cause, TimeoutError):
                return self._busy(f"no answer within {self._timeout_s:g} s")
        return self._busy(f"the connection broke: {_words(causes[-1])}")

    def _sent_elsewhere(self, origin: str) -> AttemptFailedError:
        problem = (
            f"{self.endpoint.base_url} sends requests on to {origin}, which is not followed: the "
            "conversation would go there; if that is meant, give its address as the base_url"
        )
        return AttemptFailedError(
            ModelSetupError(self.endpoint.model, self.endpoint.clean(problem))
        )

    def _busy(self, problem: str, *, unreachable: bool = False) -> AttemptFailedError:
        busy = ModelBusyError(self.endpoint.model, self.endpoint.clean(problem))
        return AttemptFailedError(busy, unreachable)


class _Start(AsyncByteStream):
    """The first bytes of a body."""

    def __init__(self, body: AsyncByteStream) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield await read_start(aiter(self._body))

    async def aclose(self) -> None:
        await self._body.aclose()


async def _shorten_refusal(response: Response) -> None:
    # The client reads the whole body of an error before it raises it, and that of an answer that
    # sends it elsewhere before it goes there.
    if response.status_code >= 300 and isinstance(response.stream, AsyncByteStream):
        response.stream = _Start(response.stream)
        # Shown as it is rather than unpacked: nobody knows to how much.
        response.headers.pop("content-encoding", None)


def _staying_with(endpoint: URL) -> Callable[[Request], Awaitable[None]]:
    """Refuses requests to another host or port, but a host's own way from HTTP to HTTPS."""
    secured = endpoint.copy_with(scheme="https") if endpoint.scheme == "http" else endpoint
    allowed = {_origin(endpoint), _origin(secured)}

    async def check(request: Request) -> None:
        if (origin := _origin(request.url)) not in allowed:
            raise _SentElsewhereError(origin)

    return check


def _origin(url: URL) -> str:
    port = url.port or {"http": 80, "https": 443}.get(url.scheme)
    return f"{url.scheme}://{url.host}:{port}"


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
