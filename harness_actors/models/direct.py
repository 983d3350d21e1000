"""The shortest way from bytes to a provider: the session of openai's client, used directly.

A call through the client's `post` copies options, headers and the address several times:
0.5 ms of CPU, of which sending takes 0.1. What a request carries besides its body never
changes, so the client is asked for it once: authentication and all other headers, the proxy,
and the session with its limits and the certificates that it trusts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
import openai
from aiohttp.abc import AbstractStreamWriter
from httpx2 import AsyncClient, Headers, Proxy
from yarl import URL

from harness_actors.models.body import PIECE_BYTES, RequestBody

OWN_HEADERS = ("accept-encoding", "content-length", "host")
"""Headers that the session writes itself: it knows the body, and what it can unpack."""


@dataclass(frozen=True, slots=True)
class DirectWay:
    """A session, and what each request on it carries besides its body.

    Attributes:
        session: Sends; it belongs to the client, which closes it.
        url: Where to.
        extras: Further arguments of the session's `post`.
    """

    session: aiohttp.ClientSession
    url: URL
    extras: Mapping[str, Any]

    async def post(
        self, body: RequestBody, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """Send a request.

        Returns:
            Its answer, as soon as the headers are there; to be entered, so that its
            connection becomes free. Where it sends elsewhere, that is not followed.
        """
        # Bytes take a shorter way through the session, which small bodies gain more by.
        data = bytes(body) if len(body) <= PIECE_BYTES else _Pieces(body)
        return await self.session.post(
            self.url, data=data, timeout=timeout, allow_redirects=False, **self.extras
        )


class _Pieces(aiohttp.Payload):
    """A body that is joined piece by piece, as the connection takes them."""

    _value: RequestBody

    def __init__(self, body: RequestBody) -> None:
        super().__init__(body, content_type="application/json")
        self._size = len(body)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return bytes(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        for piece in self._value.pieces():
            await writer.write(piece)


def direct_way(client: openai.AsyncOpenAI, http: AsyncClient, url: str) -> DirectWay | None:
    """The way that requests of a client take.

    Args:
        client: The client.
        http: What it sends with.
        url: Where its requests go.

    Returns:
        None where its transport is not the one over aiohttp that this knows, as in a release
        that builds it otherwise. Requests then go through the client.
    """
    request = http.build_request("POST", url, headers=_headers(client))
    # Neither has a public name: the transport for an address, by the proxies of the
    # environment, and the session that it opens with its first request.
    try:
        transport: Any = http._transport_for_url(request.url)
        transport.client = session = transport.get_client()
        proxy: Proxy | None = transport.proxy
    except AttributeError:
        return None
    extras: dict[str, Any] = {
        "headers": [pair for pair in request.headers.multi_items() if pair[0] not in OWN_HEADERS]
    }
    if proxy is not None:
        extras |= {"proxy": _with_login(proxy), "proxy_headers": dict(proxy.headers)}
    return DirectWay(session, URL(url), extras)


def _headers(client: openai.AsyncOpenAI) -> Headers:
    headers = Headers(client.auth_headers)
    for name, value in client.default_headers.items():
        if isinstance(value, str):
            headers[name] = value
        else:
            # It stands for a header that is not to be sent.
            headers.pop(name, None)
    headers["Content-Type"] = "application/json"
    return headers


def _with_login(proxy: Proxy) -> URL:
    # The transport's own way of naming it is deprecated in aiohttp.
    user, password = proxy.auth or (None, None)
    return URL(str(proxy.url)).with_user(user).with_password(password)
