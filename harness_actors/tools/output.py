"""What a command printed, in bounded memory."""

from collections import deque

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
