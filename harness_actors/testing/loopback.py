"""A real model server on this machine that speaks Chat Completions from a script.

As a process of its own: ``python -m harness_actors.testing.loopback --script module:function``
prints its address as the first line.
"""

import argparse
import asyncio
import resource
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self

import orjson
from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from harness_actors.testing.completions import completion, event_stream
from harness_actors.testing.faults import BreakOff, Faults, NeverAnswer, Raw, Refuse, Slow
from harness_actors.testing.scripts import ReplyTo, load_script, says_ok


@dataclass(frozen=True, slots=True)
class SeenRequest:
    """A request as it came over the wire.

    Attributes:
        body: Its bytes.
        headers: Their names in lower case.
        port: The client's end: the same for requests on one connection.
    """

    body: bytes
    headers: Mapping[str, str]
    port: int


@dataclass(eq=False)
class LoopbackServer:
    """A model server on 127.0.0.1, for as long as it is entered.

    Args:
        reply: What to answer.
        faults: Which fault a request meets.
        key: The key that it takes; None takes any.
        models: The models that it has; None has any.
        latency_s: Seconds that each answer takes.
        piece_s: Seconds between two pieces of an answer that is streamed, 0.0 sends each by
            itself without a pause; None sends all at once.
        port: Where it listens; 0 finds a free one.
        keep: How many of the last requests are kept in `seen`.

    Attributes:
        requests: Requests for completions so far.
        open_now: Those being answered.
        peak: The most that were at once.
        bytes_received: Sum of their bodies.
        bytes_sent: Sum of the bodies of the answers.
        seen: The last requests, the oldest first.
    """

    reply: ReplyTo = says_ok
    _: KW_ONLY
    faults: Faults | None = None
    key: str | None = None
    models: Sequence[str] | None = None
    latency_s: float = 0.0
    piece_s: float | None = None
    port: int = 0
    keep: int = 100
    requests: int = field(default=0, init=False)
    open_now: int = field(default=0, init=False)
    peak: int = field(default=0, init=False)
    bytes_received: int = field(default=0, init=False)
    bytes_sent: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.seen: deque[SeenRequest] = deque(maxlen=self.keep)
        self._changed = asyncio.Condition()
        self._released = asyncio.Event()
        self._released.set()
        self._closing = asyncio.Event()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def __aenter__(self) -> Self:
        # No router and no middleware: a benchmark must not measure its server.
        server = web.Server(
            self._handle, request_factory=_as_request, handler_cancellation=True, access_log=None
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, backlog=4096)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        self._released.set()
        await self._runner.cleanup()

    def hold(self) -> None:
        """Answer nothing until `release`."""
        self._released.clear()

    def release(self) -> None:
        self._released.set()

    async def until_open(self, requests: int) -> None:
        """Wait until that many requests are open at once."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.open_now >= requests)

    async def until_idle(self) -> None:
        """Wait until no request is open."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.open_now == 0)

    async def until_asked(self, requests: int) -> None:
        """Wait until that many requests have come."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.requests >= requests)

    def stats(self) -> dict[str, int]:
        """The counts, by name."""
        names = ("requests", "open_now", "peak", "bytes_received", "bytes_sent")
        return {name: getattr(self, name) for name in names}

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        match request.method, request.path:
            case "POST", "/v1/chat/completions":
                return await self._complete(request)
            case "GET", "/v1/models":
                models = [{"id": name, "object": "model"} for name in self.models or ("scripted",)]
                return self._send({"object": "list", "data": models})
            case "GET", "/stats":
                return self._send(self.stats())
            case "POST", "/hold":
                self.hold()
                return self._send(self.stats())
            case "POST", "/release":
                self.release()
                return self._send(self.stats())
            case _:
                return self._refuse(Refuse(404, "not_found", f"no such path: {request.path}"))

    async def _complete(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.read()
        self.bytes_received += len(raw)
        if self.seen.maxlen:
            self.seen.append(_as_seen(request, raw))
        await self._count(1)
        try:
            return await self._answer(request, raw)
        finally:
            await self._count(-1)

    async def _count(self, step: int) -> None:
        self.requests += max(0, step)
        self.open_now += step
        self.peak = max(self.peak, self.open_now)
        async with self._changed:
            self._changed.notify_all()

    async def _answer(self, request: web.BaseRequest, raw: bytes) -> web.StreamResponse:
        try:
            body = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            return self._refuse(Refuse(400, "invalid_json", str(error)))
        if refusal := self._refusal(request, body):
            return self._refuse(refusal)
        fault = self.faults(self.requests, body) if self.faults else None
        await self._released.wait()
        match fault:
            case Refuse():
                return self._refuse(fault)
            case Raw():
                return self._send_bytes(fault.body, fault.media_type)
            case NeverAnswer():
                await self._closing.wait()
            case Slow():
                await self._pause(fault.seconds)
            case BreakOff("before_headers"):
                _hang_up(request)
                return web.Response()
            case _:
                await self._pause(self.latency_s)
        answer = completion(self.reply(body), body, len(raw))
        payload = event_stream(answer) if body.get("stream") else orjson.dumps(answer)
        media_type = "text/event-stream" if body.get("stream") else "application/json"
        if isinstance(fault, BreakOff):
            return await self._send_half(request, payload, media_type)
        if body.get("stream") and self.piece_s is not None:
            return await self._send_pieces(request, payload, self.piece_s)
        return self._send_bytes(payload, media_type)

    def _refusal(self, request: web.BaseRequest, body: dict[str, Any]) -> Refuse | None:
        if self.key is not None and request.headers.get("Authorization") != f"Bearer {self.key}":
            given = request.headers.get("Authorization", "")
            return Refuse(401, "invalid_api_key", f"Incorrect API key provided: {given}")
        if self.models is not None and body.get("model") not in self.models:
            return Refuse(404, "model_not_found", f"The model `{body.get('model')}` does not exist")
        return None

    async def _pause(self, seconds: float) -> None:
        if seconds > 0:
            try:
                await asyncio.wait_for(self._closing.wait(), seconds)
            except TimeoutError:
                return

    def _refuse(self, refusal: Refuse) -> web.Response:
        error = {"message": refusal.message, "type": "error", "code": refusal.code or None}
        return self._send({"error": error}, refusal.status, refusal.headers)

    def _send(
        self, value: Any, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> web.Response:
        return self._send_bytes(orjson.dumps(value), status=status, headers=headers)

    def _send_bytes(
        self,
        payload: bytes,
        media_type: str = "application/json",
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> web.Response:
        self.bytes_sent += len(payload)
        return web.Response(body=payload, status=status, content_type=media_type, headers=headers)

    async def _send_pieces(
        self, request: web.BaseRequest, payload: bytes, piece_s: float
    ) -> web.StreamResponse:
        """Send an event stream, each event when it is due."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number, event in enumerate(payload.split(b"\n\n")[:-1]):
            # By the clock, so that what the pauses take more does not add up.
            await self._pause(began + number * piece_s - loop.time())
            await response.write(event + b"\n\n")
            self.bytes_sent += len(event) + 2
        await response.write_eof()
        return response

    async def _send_half(
        self, request: web.BaseRequest, payload: bytes, media_type: str
    ) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": media_type, "Content-Length": str(len(payload))}
        )
        await response.prepare(request)
        await response.write(payload[: len(payload) // 2])
        _hang_up(request)
        return response


def _as_request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    # Without a limit: a long conversation is more than the megabyte that is the default.
    return web.BaseRequest(
        message, payload, protocol, writer, task, asyncio.get_running_loop(), client_max_size=0
    )


def _as_seen(request: web.BaseRequest, raw: bytes) -> SeenRequest:
    headers = {name.lower(): value for name, value in request.headers.items()}
    peer = request.transport.get_extra_info("peername") if request.transport else None
    return SeenRequest(raw, headers, peer[1] if peer else 0)


def _hang_up(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.close()


async def serve(arguments: argparse.Namespace) -> None:
    """Serve until the process is told to stop, or standard input ends where that was asked."""
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Each connection is a file, and the usual limit is 1,024.
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))
    server = LoopbackServer(
        load_script(arguments.script),
        key=arguments.key,
        latency_s=arguments.latency,
        piece_s=arguments.piece,
        port=arguments.port,
        keep=0,
    )
    async with server:
        print(server.base_url, flush=True)
        if arguments.until_stdin_closes:
            await asyncio.to_thread(sys.stdin.read)
        else:
            await asyncio.Event().wait()


def parse_arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m harness_actors.testing.loopback")
    parser.add_argument("--script", default="harness_actors.testing.scripts:says_ok")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", default=None)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds per answer")
    parser.add_argument("--piece", type=float, default=None, help="seconds between its pieces")
    parser.add_argument("--until-stdin-closes", action="store_true")
    return parser.parse_args(given)


if __name__ == "__main__":
    try:
        asyncio.run(serve(parse_arguments()))
    except KeyboardInterrupt:
        sys.exit(130)
