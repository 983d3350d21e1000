"""The program of a supervisor process: it starts tool processes, and leaves none behind.

It runs beside one actor, with a channel from it as descriptor 3 and a pidfd of it as
descriptor 4. It and what it imports import little, so that it starts quickly and stays small,
and it has one thread, so that it may fork.

For each command it forks, a little ahead, a *keeper*: a child subreaper that reports the
end of the command, counts what the command has started, and kills all of it when it is told
to, or when the supervisor is gone. The supervisor is a subreaper as well, for what a killed
keeper leaves.

When the actor closes the channel or dies, whatever is still unread in the channel is not
started: the run may go on elsewhere.
"""

import gc
import os
import select
import signal
import sys
import time

# Not `socket`: see `frames`.
from _socket import (
    AF_UNIX,
    SCM_RIGHTS,
    SOCK_STREAM,
    SOL_SOCKET,
    socketpair,
)
from _socket import socket as Socket  # noqa: N812
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NoReturn

from harness_actors.tools.supervision.descendants import (
    become_subreaper,
    drain,
    go_first,
    is_stopped,
    kill_below,
    reap,
    woken_by_children,
)
from harness_actors.tools.supervision.frames import READ_BYTES, Frames, framed, received
from harness_actors.tools.supervision.keeper import FIRST_KILL_S, LONGEST_KILL_S, Keeper

CHANNEL, ACTOR, CARRIED = 3, 4, 5
"""Descriptors that a supervisor is started with."""
KEEPER_GRACE_S = 1.0
"""How long a keeper may take to end its command before it is killed itself where it is stopped."""


class Kept:
    """A keeper, as the supervisor knows it."""

    def __init__(self, pid: int, control: Socket) -> None:
        self.pid = pid
        self.control = control
        self.command = 0
        self.frames = Frames()
        self.over = False
        """It has said that nothing of its command is left."""
        self.kill_at: float | None = None

    def hand_over(self, request: bytes, output: int) -> None:
        """Give it its command; raises OSError if it is dead, and has not begun."""
        descriptor = output.to_bytes(4, sys.byteorder)
        sent = self.control.sendmsg([request], [(SOL_SOCKET, SCM_RIGHTS, descriptor)])
        # Whoever has all of it may be done and gone by now, and to send nothing would fail.
        if left := memoryview(request)[sent:]:
            self.control.sendall(left)


class Supervisor:
    """Serves one actor until it is gone.

    Args:
        mark: Entry that processes carry in their environment which the actor started
            itself; empty for none.
        inode: Of the actor's end of the channel, which its own forks have open.
    """

    def __init__(self, mark: bytes, inode: bytes) -> None:
        self._mark = mark
        self._inode = inode
        self._channel = Socket(AF_UNIX, SOCK_STREAM, 0, CHANNEL)
        self._frames = Frames()
        self._outputs: deque[int] = deque()
        self._keepers: dict[int, Kept] = {}
        """The keepers, by the descriptor of their controls."""
        self._spare: Kept | None = None
        """Forked ahead, so that a command need not wait for it."""
        self._wake = woken_by_children()
        self._poll = select.poll()
        for descriptor in (CHANNEL, ACTOR, self._wake):
            os.set_inheritable(descriptor, False)
            self._poll.register(descriptor, select.POLLIN)
        with suppress(OSError):
            # Where there is one: it shows whose supervisor this is, and not whose commands.
            os.set_inheritable(CARRIED, False)
        # A hangup is told at once, before what is unread.
        self._death = select.poll()
        self._death.register(CHANNEL, 0)
        self._death.register(ACTOR, select.POLLIN)
        self._strays = False

    def run(self) -> None:
        """Serve; returns when the actor is gone, and everything that it had started."""
        try:
            self._make_spare()
            while self._serve():
                pass
        except (BrokenPipeError, ConnectionResetError):
            # It died while it was told something.
            pass
        finally:
            self._end_all()

    def _serve(self) -> bool:
        """Do what is to be done now; False when the actor is gone."""
        wait_ms = 5 if self._strays else 100 if self._has_deadlines() else None
        ready = {descriptor for descriptor, _ in self._poll.poll(wait_ms)}
        if self._death.poll(0):
            return False
        if self._wake in ready:
            drain(self._wake)
            with suppress(ChildProcessError):
                for _ in reap():
                    pass
        if CHANNEL in ready and not self._read():
            return False
        for descriptor in ready & self._keepers.keys():
            self._hear(self._keepers[descriptor])
        self._kill_late_keepers()
        if self._strays:
            spared = {kept.pid for kept in self._keepers.values()}
            self._strays = bool(kill_below(spared))
        return True

    def _read(self) -> bool:
        data, descriptors = received(self._channel)
        self._outputs.extend(descriptors)
        self._frames.add(data)
        while (message := self._frames.take()) is not None:
            if self._death.poll(0):
                return False
            self._do(*message)
        return bool(data)

    def _do(self, verb: str, command: int, *arguments: Any) -> None:
        if verb == "start":
            self._start(command, self._outputs.popleft(), *arguments)
            return
        for kept in self._keepers.values():
            if kept.command == command and kept.kill_at is None:
                kept.kill_at = time.monotonic() + KEEPER_GRACE_S
                with suppress(OSError):
                    # It may have been stopped by its own command.
                    os.kill(kept.pid, signal.SIGCONT)
                    kept.control.send(b"e")

    def _start(self, command: int, output: int, *request: Any) -> None:
        try:
            kept = self._handed_over(framed(request), output)
        except OSError as error:
            self._tell("refused", command, error.errno, error.strerror)
            return
        finally:
            os.close(output)
        kept.command = command
        self._keepers[kept.control.fileno()] = kept
        self._poll.register(kept.control, select.POLLIN)
        self._make_spare()

    def _make_spare(self) -> None:
        # If it cannot be made now, the next command says why.
        with suppress(OSError):
            self._spare = self._fork()

    def _handed_over(self, request: bytes, output: int) -> Kept:
        """The keeper that was given a command."""
        spare, self._spare = self._spare, None
        if spare is not None:
            try:
                spare.hand_over(request, output)
                return spare
            except OSError:
                # Somebody has killed it.
                spare.control.close()
        kept = self._fork(output)
        kept.hand_over(request, output)
        return kept

    def _fork(self, *outputs: int) -> Kept:
        control, theirs = socketpair()
        pid = os.fork()
        if pid == 0:
            # Only the supervisor may hold the other ends: their closing is its death.
            inherited = (CHANNEL, ACTOR, self._wake, *self._keepers, *self._outputs, *outputs)
            _become_keeper(theirs, (control.fileno(), *inherited))
        theirs.close()
        return Kept(pid, control)

    def _hear(self, kept: Kept) -> None:
        try:
            data = kept.control.recv(READ_BYTES)
        except ConnectionResetError:
            # It was killed with something unread.
            data = b""
        kept.frames.add(data)
        while (message := kept.frames.take()) is not None:
            verb, *facts = message
            kept.over = kept.over or verb in ("gone", "refused")
            self._tell(verb, kept.command, *facts)
        if not data:
            self._poll.unregister(kept.control)
            del self._keepers[kept.control.fileno()]
            kept.control.close()
            if not kept.over:
                # What was below it is below us now.
                self._strays = True
                go_first()
                self._tell("lost", kept.command)

    def _has_deadlines(self) -> bool:
        return any(kept.kill_at is not None for kept in self._keepers.values())

    def _kill_late_keepers(self) -> None:
        for kept in self._keepers.values():
            late = kept.kill_at is not None and time.monotonic() > kept.kill_at
            # One that works on, however slowly, has all of its command below it.
            if late and is_stopped(kept.pid):
                with suppress(OSError):
                    os.kill(kept.pid, signal.SIGKILL)

    def _tell(self, *message: Any) -> None:
        self._channel.sendall(framed(message))

    # ---- the end --------------------------------------------------------------------------

    def _end_all(self) -> None:
        """Kill what is below, keepers included, and what the dead actor started itself."""
        go_first()
        pauses = _pauses()
        while self._is_something_left():
            time.sleep(next(pauses))
        dead = select.poll()
        dead.register(ACTOR, select.POLLIN)
        # The channel of a dying process is closed a moment before it is dead.
        if self._mark and dead.poll(1000):
            pauses = _pauses()
            while self._end_left_overs():
                time.sleep(next(pauses))

    def _is_something_left(self) -> bool:
        """Kill what is seen below now; False when nothing is."""
        try:
            kill_below()
            for _ in reap():
                pass
        except ChildProcessError:
            return False
        except (OSError, MemoryError):
            # The machine has nothing to give now, and may have when these are gone.
            pass
        return True

    def _end_left_overs(self) -> int:
        return sum(self._end_if_left_over(name) for name in os.listdir("/proc"))

    def _end_if_left_over(self, name: str) -> bool:
        """Kill a process if the actor started it, or is a fork of the actor."""
        if not name.isdigit() or int(name) == os.getpid():
            return False
        with suppress(OSError):
            with open(f"/proc/{name}/environ", "rb") as file:
                theirs = self._mark in file.read().split(b"\0")
            if theirs or self._holds_channel(name):
                os.kill(int(name), signal.SIGKILL)
                return True
        return False

    def _holds_channel(self, name: str) -> bool:
        for descriptor in os.listdir(f"/proc/{name}/fd"):
            with suppress(OSError):
                if os.readlink(f"/proc/{name}/fd/{descriptor}".encode()) == self._inode:
                    return True
        return False


def _become_keeper(control: Socket, inherited: Sequence[int]) -> NoReturn:
    try:
        for descriptor in inherited:
            os.close(descriptor)
        Keeper(control).run()
    except BaseException:  # noqa: BLE001 - nothing may go on into the supervisor's own loop
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    os._exit(0)


def _pauses() -> Iterator[float]:
    pause_s = FIRST_KILL_S
    while True:
        yield pause_s
        pause_s = min(1.5 * pause_s, LONGEST_KILL_S)


def main() -> None:
    """The program; its arguments are those of `Supervisor`."""
    # Whoever means to end it closes the channel; a key on a terminal is for others.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    become_subreaper()
    gc.freeze()
    Supervisor(os.fsencode(sys.argv[-2]), b"socket:[%s]" % os.fsencode(sys.argv[-1])).run()
