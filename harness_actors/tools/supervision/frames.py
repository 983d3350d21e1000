"""How a supervisor, its keepers and its actor talk: messages on a stream."""

import marshal

# Not `socket`, which takes 5 ms to import.
from _socket import CMSG_LEN, MSG_CMSG_CLOEXEC, SCM_RIGHTS, SOL_SOCKET
from _socket import socket as Socket  # noqa: N812
from typing import Any

READ_BYTES = 1 << 16
DESCRIPTORS_AT_ONCE = 64

Message = tuple[Any, ...]
"""A verb and what belongs to it; see `Supervisor` for the verbs."""


def framed(message: Message) -> bytes:
    """A message as it goes over a stream: its length, then its parts.

    >>> frames = Frames()
    >>> frames.add(framed(("exited", 1, 0)) + framed(("gone", 1, 2))[:5])
    >>> frames.take(), frames.take()
    (('exited', 1, 0), None)
    """
    body = marshal.dumps(message)
    return len(body).to_bytes(4, "little") + body


class Frames:
    """Puts messages together from the pieces in which a stream hands them over."""

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        self._data += data

    def take(self) -> Message | None:
        """The next message; None until it is there as a whole."""
        end = 4 + int.from_bytes(self._data[:4], "little")
        if len(self._data) < end:
            return None
        message: Message = marshal.loads(self._data[4:end])
        del self._data[:end]
        return message


def received(stream: Socket) -> tuple[bytes, list[int]]:
    """What has come over a stream, and the descriptors that came with it."""
    data, controls, _, _ = stream.recvmsg(
        READ_BYTES, CMSG_LEN(4 * DESCRIPTORS_AT_ONCE), MSG_CMSG_CLOEXEC
    )
    descriptors: list[int] = []
    for level, kind, content in controls:
        if (level, kind) == (SOL_SOCKET, SCM_RIGHTS):
            descriptors += memoryview(content).cast("i")
    return data, descriptors
