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
user, kind, host, ray = sys.argv[1:]
if user:
    os.setgroups([]); os.setgid(int(user)); os.setuid(int(user))
def frame(what, flags, stream, payload):
    head = len(payload).to_bytes(3, "big") + bytes((what, flags)) + stream.to_bytes(4, "big")
    return head + payload
def status(number):
    text = str(number).encode()
    return b"\x00\x0bgrpc-status" + bytes((len(text),)) + text
def answer():
    if kind == "locked":
        return frame(1, 5, 1, b"\x88" + status(16))
    versions = json.dumps({"ray_version": ray, "python_version": platform.python_version()})
    reply = b"\x12" + bytes((len(versions),)) + versions.encode()
    body = b"\0" + len(reply).to_bytes(4, "big") + reply
    return frame(1, 4, 1, b"\x88") + frame(0, 0, 1, body) + frame(1, 5, 1, status(0))
def serve(one):
    one.sendall(frame(4, 0, 0, b""))
    sent = False
    while heard := one.recv(65536):
        sys.stdout.buffer.write(heard)
        sys.stdout.flush()
        if not sent and b"InternalKVGet" in heard:
            sent = True
            one.sendall(answer())
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
