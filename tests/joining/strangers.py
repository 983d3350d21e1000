"""Those who may answer at an address where one looks for a Ray."""

import http.server
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def http_server() -> Iterator[str]:
    """A web server, as Ray's dashboard is one; gives its address."""

    class Silent(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


@contextmanager
def silent_server() -> Iterator[str]:
    """It takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def black_hole() -> Iterator[str]:
    """What is sent there gets lost: its queue of connections is full, so the kernel drops more."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield f"127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def closed_port(family: socket.AddressFamily = socket.AF_INET) -> Iterator[str]:
    """A port that is ours, so nobody else can come to listen there."""
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.socket(family) as held:
        held.bind((host, 0))
        port = held.getsockname()[1]
        yield f"{host}:{port}" if family == socket.AF_INET else f"[{host}]:{port}"
