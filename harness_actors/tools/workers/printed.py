"""What a worker process prints, told where the caller of its call prints."""

import asyncio
import codecs
import os
import sys
from contextlib import suppress
from contextvars import Context

READ_BYTES = 1 << 16
MOST_READS = 64
"""Reads at the end of a call, at most: a worker may print without end."""


class Printed:
    """One of its streams.

    Args:
        stream: ``"stdout"`` or ``"stderr"``.
    """

    def __init__(self, stream: str) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._loop = asyncio.get_running_loop()
        self._pipe, self.write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self.write_end, True)
        self.context: Context | None = None
        """That of the call which it prints for."""
        self._closed = False
        self._loop.add_reader(self._pipe, self._read)

    def close_write_end(self) -> None:
        os.close(self.write_end)

    def catch_up(self) -> None:
        """Take what is there already."""
        for _ in range(MOST_READS):
            if self._closed or not self._read():
                return

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.remove_reader(self._pipe)
            os.close(self._pipe)

    def _read(self) -> bool:
        try:
            data = os.read(self._pipe, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self.close()
            return False
        if self.context is not None and (text := self._decoder.decode(data)):
            self.context.run(self._write, text)
        return True

    def _write(self, text: str) -> None:
        stream = getattr(sys, self._stream)
        # Nobody may have one, or not any more.
        with suppress(OSError, ValueError, AttributeError):
            stream.write(text)
