"""What a command printed, in bounded memory."""

from collections import deque
from contextlib import suppress
from typing import BinaryIO

from harness_actors.errors import ToolError
from harness_actors.ports import ConversationArtifacts

OUTPUT_BYTES = 50_000
"""How much of a command's output a result holds."""


class BoundedOutput:
    """The beginning and the end of a stream of bytes; memory does not grow with it."""

    def __init__(self, most: int = OUTPUT_BYTES) -> None:
        self._half = most // 2
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if data:
            self._tail.append(data[-self._half :])
            self._tail_size += len(self._tail[-1])
        while self._tail and self._tail_size - len(self._tail[0]) >= self._half:
            self._tail_size -= len(self._tail.popleft())

    def all_but_more(self, more: int) -> bytes | None:
        """All of it where it would no longer hold all with so many bytes more; else None."""
        if not self.total <= 2 * self._half < self.total + more:
            return None
        return bytes(self._head) + b"".join(self._tail)

    def text(self) -> str:
        tail = b"".join(self._tail)[-self._half :]
        left_out = self.total - len(self._head) - len(tail)
        if left_out == 0:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        note = f"\n[... {left_out:,} of {self.total:,} bytes left out ...]\n"
        return self._decoded(bytes(self._head)) + note + self._decoded(tail)

    @staticmethod
    def _decoded(data: bytes) -> str:
        # The cut may have gone through a character: its rest is dropped on both sides.
        start = next((i for i, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
        return data[start:].decode("utf-8", "replace").rstrip("\ufffd")


class WholeOutput:
    """All of a stream of bytes, in a file once it is more than `BoundedOutput` holds.

    Its calls block, and none may be made beside another.

    Args:
        artifacts: Where there is a place for it.
    """

    def __init__(self, artifacts: ConversationArtifacts) -> None:
        self._artifacts = artifacts
        self._file: BinaryIO | None = None
        self._room = 0
        self.problem = ""
        """Why it is not there; empty where it is, or nothing was written."""

    def write(self, data: bytes) -> None:
        """Add what comes next."""
        if self.problem:
            return
        try:
            self._write(data)
        except ToolError as error:
            self._give_up(error.text)
        except OSError as error:
            self._give_up(error.strerror or str(error))

    def take(self) -> BinaryIO | None:
        """The file, which is the caller's now; None where there is none."""
        file, self._file = self._file, None
        return file

    def close(self) -> None:
        if (file := self.take()) is not None:
            with suppress(OSError):
                file.close()

    def _write(self, data: bytes) -> None:
        if self._file is None:
            self._room = self._artifacts.room_bytes()
            self._file = self._artifacts.begin()
        self._room -= len(data)
        if self._room < 0:
            cap = self._artifacts.cap_bytes
            raise ToolError(
                "it is more than there is room for, since the artifacts of this conversation may "
                f"take {cap:,} bytes together (artifacts.cap_bytes)"
            )
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]

    def _give_up(self, problem: str) -> None:
        self.problem = problem
        self.close()
