"""Carries bytes to a provider and back: openai's client on its aiohttp transport.

The client's own `chat.completions.create` walks the whole conversation on every call;
its `post` takes the body as it is, and keeps authentication, proxies and time limits.
Retries are made by the caller, so the client makes none.
"""

import asyncio
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import aiohttp
import openai

# The client's own HTTP library, whose types its options and answers are.
from httpx2 import HTTPError, Limits, Response, Timeout

from harness_actors.errors import ModelBusyError, ModelError
from harness_actors.models.failures import AttemptFailedError, Endpoint, status_failure

CONNECT_TIMEOUT_S = 10.0
KEEPALIVE_S = 30.0
PATH = "/chat/completions"

_MEDIA_TYPE = {"Content-Type": "application/json"}


class WireClient:
    """One provider's connections. Belongs to the event loop that made it.

    Args:
        endpoint: Who is asked, with its key.
        timeout_s: Longest time of one attempt, or between two pieces of a stream.
        max_connections: Sockets at most; calls beyond wait for one.
    """

    def __init__(self, endpoint: Endpoint, *, timeout_s: float, max_connections: int) -> None:
        raise_file_limit()
        self.endpoint = endpoint
        self._timeout_s = timeout_s
        # Absolute: joining it to the base costs the client a tenth of the call.
        self._url = endpoint.base_url.rstrip("/") + PATH
        # Both must be given: the transport's own default is 100, and the client's 1,000.
        limits = Limits(
            max_connections=max_connections,
            max_keepalive_connections=max_connections,
            keepalive_expiry=KEEPALIVE_S,
        )
        timeout = Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s))
        self._client = openai.AsyncOpenAI(
            api_key=endpoint.key,
            base_url=endpoint.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=openai.DefaultAioHttpClient(limits=limits, timeout=timeout),
        )

    async def post(self, body: bytes) -> bytes:
        """Send one request.

        Returns:
            The answer's body, whole.

        Raises:
            AttemptFailedError: No usable answer came.
        """
        async with self._failures_told():
            async with asyncio.timeout(self._timeout_s):
                response: Response = await self._client.post(
                    self._url, content=body, cast_to=Response, options={"headers": _MEDIA_TYPE}
                )
            return response.content

    @asynccontextmanager
    async def stream(self, body: bytes) -> AsyncIterator["StreamedBody"]:
        """Send one request whose answer comes in pieces.

        Raises:
            AttemptFailedError: No answer came, or it broke off.
        """
        async with self._failures_told():
            # Asked for a response, the client returns that and no stream, which it has no
            # type for.
            response = cast(
                Response,
                await self._client.post(
                    self._url,
                    content=body,
                    cast_to=Response,
                    options={"headers": _MEDIA_TYPE},
                    stream=True,
                    stream_cls=openai.AsyncStream[Any],
                ),
            )
            try:
                yield StreamedBody(response)
            finally:
                await response.aclose()

    async def close(self) -> None:
        await self._client.close()

    @asynccontextmanager
    async def _failures_told(self) -> AsyncIterator[None]:
        """Turn whatever the client and its transport raise into an `AttemptFailedError`."""
        try:
            yield
        except openai.APIStatusError as error:
            raise AttemptFailedError(self._status_error(error)) from None
        except (openai.APIConnectionError, HTTPError, aiohttp.ClientError, OSError) as error:
            raise self._connection_failure(error) from None
        except openai.OpenAIError as error:
            raise self._busy(f"the client gave up: {error}") from None

    def _status_error(self, error: openai.APIStatusError) -> ModelError:
        headers = {name.lower(): value for name, value in error.response.headers.items()}
        return status_failure(self.endpoint, error.status_code, headers, error.response.content)

    def _connection_failure(self, error: BaseException) -> AttemptFailedError:
        causes = _chain(error)
        for cause in causes:
            # The transport reports each of aiohttp's connection errors as a time-out, so
            # what really happened is read from the cause at the end.
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


class StreamedBody:
    """An answer that is still coming."""

    def __init__(self, response: Response) -> None:
        self._response = response

    @property
    def is_events(self) -> bool:
        """It is an event stream; some servers answer whole though asked for one."""
        return "event-stream" in self._response.headers.get("content-type", "")

    def pieces(self) -> AsyncIterator[bytes]:
        return self._response.aiter_bytes()


def _chain(error: BaseException) -> list[BaseException]:
    """The error and what caused it, the outermost first."""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) and cause not in chain:
        chain.append(cause)
    return chain


def _words(error: BaseException) -> str:
    return str(error).strip() or type(error).__name__


def raise_file_limit() -> None:
    """Let this process open as many sockets as it may: the usual soft limit is 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (ValueError, OSError):
        # Some systems refuse an unlimited one. Calls then fail as broken connections
        # when the sockets run out, which is said where it happens.
        return
