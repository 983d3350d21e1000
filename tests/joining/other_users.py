"""Another user of the machine, who listens where one looks for a Ray and notes what is said."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

STRANGER = 65534
"""The user id of `nobody`, whose processes stand for those of a stranger."""

Kind = Literal["open", "locked"]

_LISTENS = r"""
import json, os, platform, socket, sys, threading
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived
user, kind, host, ray = sys.argv[1:]
if user:
    os.setgroups([]); os.setgid(int(user)); os.setuid(int(user))
def answer(http, stream):
    if kind == "locked":
        http.send_headers(stream, [(":status", "200"), ("grpc-status", "16")], end_stream=True)
        return
    versions = json.dumps({"ray_version": ray, "python_version": platform.python_version()})
    reply = b"\x12" + bytes((len(versions),)) + versions.encode()
    http.send_headers(stream, [(":status", "200")])
    http.send_data(stream, b"\0" + len(reply).to_bytes(4, "big") + reply)
    http.send_headers(stream, [("grpc-status", "0")], end_stream=True)
def serve(one):
    http = H2Connection(H2Configuration(client_side=False, header_encoding="latin-1"))
    http.initiate_connection()
    one.sendall(http.data_to_send())
    while heard := one.recv(65536):
        sys.stdout.buffer.write(heard)
        for event in http.receive_data(heard):
            if isinstance(event, RequestReceived):
                # As it was meant: on the wire it is compressed.
                lines = (f"{name}: {value}\n" for name, value in event.headers)
                sys.stdout.buffer.write("".join(lines).encode())
                answer(http, event.stream_id)
        sys.stdout.flush()
        one.sendall(http.data_to_send())
family = socket.AF_INET6 if ":" in host else socket.AF_INET
listening = socket.create_server((host, 0), family=family)
print(listening.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
"""


class Listener:
    """A process that answers as a Ray would.

    Attributes:
        address: Where.
    """

    def __init__(self, process: "subprocess.Popen[bytes]", address: str) -> None:
        self._process = process
        self.address = address

    def heard(self) -> bytes:
        """All that it was sent. It ends with this."""
        self._process.kill()
        return self._process.communicate(timeout=60)[0]


@contextmanager
def listener(
    kind: Kind, *, user: int | None = None, host: str = "127.0.0.1", ray: str = "2.60.0"
) -> Iterator[Listener]:
    """A Ray that asks for a token, or none, in a process of a user; None for this one's."""
    process = subprocess.Popen(
        # It changes its user by itself: another one may not be let in to this interpreter.
        [sys.executable, "-I", "-c", _LISTENS, str(user or ""), kind, host, ray],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        port = process.stdout.readline().decode().strip()
        name = f"[{host}]" if ":" in host else host
        yield Listener(process, f"{name}:{port}")
    finally:
        process.kill()
        process.communicate(timeout=60)


def can_be_another() -> bool:
    """Whether this process may start processes of another user."""
    return os.geteuid() == 0


def note(folder: Path, text: str, *, user: int | None = None) -> Path:
    """Leave a note as `ray start` does, as a user."""
    path = folder / "ray" / "ray_current_cluster"
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)
    if user is not None:
        os.chown(path, user, user)
    return path
