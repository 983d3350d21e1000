"""Whether an actor that says nothing is alive: it is asked first, then killed.

A call that fails may mean a broken connection, and a call to a stopped process never
fails. So doubt is not settled by a clock alone: an actor that answers lives, and one that
does not answer in time is made dead.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from harness_actors.actors.mailbox import Suspect, UnreachableError
from harness_actors.actors.processes import COMPANION_S, Processes
from harness_actors.errors import ActorLostError
from harness_actors.records import ProcessMark

SUSPECT_S = 10.0
"""Silence after which an actor is killed that was asked in the middle of it."""
TICKS = 10
"""Looks at an actor within `SUSPECT_S`."""
WATCH_AGAIN_S = 0.1
GONE_DEADLINE_S = 30.0


@dataclass(frozen=True, slots=True)
class Death:
    """How an actor came to be gone.

    Attributes:
        silent: It was killed, for it did not answer.
        left: A process of it that does not end; None where all are gone.
    """

    silent: bool
    left: ProcessMark | None = None


class Liveness:
    """What is known of how alive an actor is.

    Silence is counted in ticks and not by the clock: whoever counts may have been stopped
    itself, and must then not take its own pause for the other's.
    """

    def __init__(self) -> None:
        self._heard = True
        self._silent = 0

    def heard(self) -> None:
        """The actor said something, whatever it was."""
        self._heard = True

    def doubted(self) -> None:
        """The connection broke: ask at the next tick."""
        self._silent = max(self._silent, TICKS // 2)

    def tick(self) -> None:
        """A tick has passed: count it as silent if nothing was heard in it."""
        self._silent = 0 if self._heard else self._silent + 1
        self._heard = False

    @property
    def is_doubtful(self) -> bool:
        return self._silent >= TICKS // 2

    @property
    def is_gone(self) -> bool:
        """It had all the time that it gets to answer."""
        return self._silent >= TICKS


async def until_gone(
    peer: Suspect,
    marks: Sequence[ProcessMark],
    signs: Liveness,
    processes: Processes,
    *,
    suspect_s: float = SUSPECT_S,
) -> Death:
    """Return when an actor is dead and its processes are gone: nothing of it can happen now.

    Args:
        peer: The actor.
        marks: Its processes, its own first; the others end by themselves with it.
        signs: To be told whenever it is heard of.
        processes: Those of its machine.
        suspect_s: How long it may be silent, in seconds.
    """
    silent = await until_dead(peer, signs, suspect_s=suspect_s)
    if silent:
        peer.kill()
        # Ray takes its time with a process that is stopped.
        processes.kill(marks[0])
    for number, mark in enumerate(marks):
        if number and not await processes.gone(mark, timeout_s=COMPANION_S):
            processes.kill(mark)
        if not await processes.gone(mark, timeout_s=GONE_DEADLINE_S):
            return Death(silent, left=mark)
    return Death(silent)


async def until_dead(peer: Suspect, signs: Liveness, *, suspect_s: float = SUSPECT_S) -> bool:
    """Return when an actor is dead, or must be killed for its silence.

    Args:
        peer: The actor.
        signs: To be told whenever it is heard of.
        suspect_s: How long it may be silent, in seconds.

    Returns:
        Whether it fell silent: the caller must kill it, for it may be stopped and go on
        at any moment. False where it is dead by itself.
    """
    watching = asyncio.create_task(_watched(peer, signs))
    asking = asyncio.create_task(_fell_silent(peer, signs, suspect_s / TICKS))
    try:
        await asyncio.wait((watching, asking), return_when=asyncio.FIRST_COMPLETED)
        return not watching.done() and asking.result()
    finally:
        watching.cancel()
        asking.cancel()


async def _watched(peer: Suspect, signs: Liveness) -> None:
    while True:
        try:
            await peer.watch()
            return
        except ActorLostError:
            return
        except UnreachableError:
            # A broken connection is no death, but a reason to ask.
            signs.doubted()
            await asyncio.sleep(WATCH_AGAIN_S)


async def _fell_silent(peer: Suspect, signs: Liveness, tick_s: float) -> bool:
    asking: asyncio.Task[bool] | None = None
    try:
        while not signs.is_gone:
            await asyncio.sleep(tick_s)
            if asking is not None and asking.done():
                if not asking.result():
                    return False
                asking = None
            signs.tick()
            if signs.is_doubtful and asking is None:
                asking = asyncio.create_task(_answers(peer, signs))
        return True
    finally:
        if asking is not None:
            asking.cancel()


async def _answers(peer: Suspect, signs: Liveness) -> bool:
    """Ask once; False where the actor is known to be dead."""
    try:
        with suppress(UnreachableError):
            await peer.hello()
            signs.heard()
        return True
    except ActorLostError:
        return False
