"""The channel to a supervisor: what is on its way, and its end."""

import os
import socket
from contextlib import suppress

from harness_actors.tools.supervision.launch import Launched


class Outgoing:
    """A message on its way, perhaps with a descriptor of ours that goes with it."""

    def __init__(self, data: bytes, descriptor: int | None) -> None:
        self._data = memoryview(data)
        self._descriptor = descriptor

    def send(self, channel: socket.socket) -> bool:
        """Send some of it; True when all of it is sent."""
        if self._descriptor is None:
            count = channel.send(self._data)
        else:
            count = socket.send_fds(channel, [self._data], [self._descriptor])
            self.sent()
        self._data = self._data[count:]
        return not self._data

    def sent(self) -> None:
        """The descriptor is not needed any more."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


_leaving: set[int] = set()
"""Supervisors that were told to end, or have died, and are children of this process."""


def hang_up(launched: Launched) -> None:
    """Tell a supervisor to end, and reap those that have."""
    with launched.channel as channel, suppress(OSError):
        # A fork of this process may have it open as well.
        channel.shutdown(socket.SHUT_RDWR)
    if launched.is_child:
        _leaving.add(launched.pid)
    for pid in list(_leaving):
        try:
            ended, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            ended = pid
        if ended:
            _leaving.discard(pid)
