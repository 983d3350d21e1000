"""A model's server that sends whatever bytes it likes, in threads of this process."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Self


@dataclass(frozen=True, slots=True)
class Bytes:
    """An answer, as it goes over the wire until the other end has enough of it."""

    pieces: Iterable[bytes]
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200


Respond = Callable[[bytes, str], Bytes]
"""What to answer to a request's body that came with a key."""


class HostileServer:
    """Answers with any bytes, for as long as it is entered.

    Args:
        respond: What to answer.

    Attributes:
        base_url: Where it is, once it is entered.
        requests: How often it was asked.
    """

    def __init__(self, respond: Respond) -> None:
        self.base_url = ""
        self.requests = 0
        self._respond = respond

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_port}/v1"
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.requests += 1
                body = self.rfile.read(int(self.headers["Content-Length"]))
                key = self.headers.get("Authorization", "").removeprefix("Bearer ")
                answer = server._respond(body, key)
                # The other end leaves when it has enough.
                with suppress(OSError):
                    self.send_response(answer.status)
                    for name, value in answer.headers.items():
                        self.send_header(name, value)
                    self.send_header("Connection", "close")
                    self.end_headers()
                    for piece in answer.pieces:
                        self.wfile.write(piece)
                self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing: the attacks print for themselves."""

        return Handler
