"""A keeper: the process that has one command below it, and ends with the last of it."""

import errno
import os
import select
import signal
import time
from _socket import socket as Socket  # noqa: N812 - see `frames`
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from harness_actors.tools.supervision.covering import cover
from harness_actors.tools.supervision.descendants import (
    become_subreaper,
    count_below,
    drain,
    go_first,
    kill_below,
    reap,
    woken_by_children,
)
from harness_actors.tools.supervision.frames import Frames, Message, framed, received

FIRST_COUNT_S, LONGEST_COUNT_S = 0.05, 0.25
"""Pauses between two counts of a command's processes; longer while their number stays."""
FIRST_KILL_S, LONGEST_KILL_S = 0.002, 0.1
"""Pauses between two looks at what is to be killed; longer for what the kernel holds."""

BEHIND = 10
"""How much nicer a command is than the process that asks for it; 19 is the most there is."""
_SIGNALS = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
NO_SUCH_CHARACTER = "a character that no shell takes"
"""A NUL, or half of a surrogate pair."""


class Keeper:
    """Has one command below it; lives as long as anything of the command does.

    It is sent how many processes the command may have, its program, its environment, what is to
    be covered, and the descriptor that it prints to; whatever comes after that, the end of the
    supervisor included, means that the command is to be killed. It tells ``refused`` with errno
    and text, or ``exited`` with the exit code of the command, minus the signal where one ended
    it; ``overrun`` with how many processes it may have; and at last ``gone`` with the number of
    those that it killed.

    Args:
        control: To the supervisor.
    """

    def __init__(self, control: Socket) -> None:
        self._control = control
        self._wake = woken_by_children()
        self._poll = select.poll()
        self._poll.register(self._wake, select.POLLIN)
        self._poll.register(control, select.POLLIN)
        self._most = 0
        self._command = 0
        self._count = 0
        self._pause_s = FIRST_COUNT_S
        self._look_at = 0.0
        self._ending = False
        self._killed: set[int] = set()

    def run(self) -> None:
        """Wait for the command and start it; returns when nothing of it is left."""
        become_subreaper()
        request = self._request()
        if request is None or not self._started(*request):
            return
        self._wait(self._pause_s)
        while self._serves():
            pass
        self._tell("gone", len(self._killed))

    def _request(self) -> Message | None:
        """What to start, the output last; None if the supervisor is gone."""
        frames, outputs = Frames(), list[int]()
        while (message := frames.take()) is None:
            data, descriptors = received(self._control)
            if not data:
                return None
            frames.add(data)
            outputs += descriptors
        hangup = select.poll()
        hangup.register(self._control, 0)
        return None if hangup.poll(0) else (*message, outputs[0])

    def _started(
        self,
        most: int,
        program: Sequence[bytes],
        environment: dict[bytes, bytes],
        covered: tuple[bytes, bytes, bool] | None,
        output: int,
    ) -> bool:
        self._most = most
        try:
            if covered is not None:
                cover(*covered)
            # Who carries messages stands before what computes.
            os.nice(BEHIND)
            self._command = spawn(program, environment, output)
            # At once: when there are many, its turn to see them may come too late. Not before, so
            # that the command does not go first, too.
            go_first()
        except OSError as error:
            self._tell("refused", error.errno, error.strerror)
        except ValueError:
            self._tell("refused", errno.EINVAL, NO_SUCH_CHARACTER)
        # Who reads it must see the end of it when the command has closed it.
        os.close(output)
        return self._command != 0

    def _serves(self) -> bool:
        """Do what is to be done now; False when nothing of the command is left."""
        try:
            self._serve()
        except ChildProcessError:
            return False
        except (OSError, MemoryError):
            # A command that uses up what the machine has must not get rid of its keeper by that.
            time.sleep(FIRST_KILL_S)
        return True

    def _serve(self) -> None:
        left_s = max(0.0, self._look_at - time.monotonic())
        ready = {descriptor for descriptor, _ in self._poll.poll(1000 * left_s)}
        if self._wake in ready:
            drain(self._wake)
        for pid, status in reap():
            if pid == self._command:
                self._tell("exited", status)
        if self._control.fileno() in ready:
            self._end()
        elif time.monotonic() >= self._look_at:
            self._kill() if self._ending else self._measure()

    def _measure(self) -> None:
        count = count_below(os.getpid(), self._most)
        if count > self._most:
            self._tell("overrun", self._most)
            self._end()
            return
        pause_s = 1.5 * self._pause_s if count == self._count else FIRST_COUNT_S
        self._count = count
        self._wait(min(pause_s, LONGEST_COUNT_S))

    def _end(self) -> None:
        self._ending = True
        self._poll.unregister(self._control)
        self._pause_s = FIRST_KILL_S
        self._kill()

    def _kill(self) -> None:
        self._killed |= kill_below()
        self._wait(min(1.5 * self._pause_s, LONGEST_KILL_S))

    def _wait(self, pause_s: float) -> None:
        self._pause_s = pause_s
        self._look_at = time.monotonic() + pause_s

    def _tell(self, *message: Any) -> None:
        # Nobody listens any more when the supervisor was killed.
        with suppress(OSError):
            self._control.sendall(framed(message))


def spawn(program: Sequence[bytes], environment: dict[bytes, bytes], output: int) -> int:
    """Start a command in a session of its own, without input; returns its pid."""
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    actions = [
        (os.POSIX_SPAWN_DUP2, nothing, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
    ]
    return os.posix_spawn(
        program[0],
        list(program),
        environment,
        file_actions=actions,
        setsid=True,
        setsigmask=(),
        setsigdef=_SIGNALS,
    )
