"""What a command does about a Ray that it loses: another one, or the same when it is back."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import NoReturn

from harness_actors.actors.joining.connect import connect
from harness_actors.actors.joining.connection import Connection
from harness_actors.actors.joining.starter import on_starter_thread
from harness_actors.errors import ActorLostError, CellError

ATTEMPTS = 3
"""How often Ray may be lost without a round of any run between."""
RETURNS_WITHIN_S = 60.0
"""How long a Ray that was there before may take to come back at its address."""
AGAIN_S = 0.5

Tell = Callable[[str], None]


class Losses:
    """Replaces each Ray that is lost, and gives up where that helps nobody.

    One of our own is started again, and one that was there before is waited for.

    Args:
        tell: Told in a line what is done; None where a loss is not ours to mend, for the cell is
            another's.
        connect: Connects this process to the Ray at an address; blocks, and raises a `CellError`
            where there is none.
    """

    def __init__(self, tell: Tell | None, connect: Callable[..., Connection] = connect) -> None:
        self._tell = tell
        self._connect = connect
        self._count = 0

    def made_good(self) -> None:
        """Work was done that is on disk: the losses before do not count any more."""
        self._count = 0

    async def replace(self, lost: Connection) -> Connection:
        """Connect to another Ray in the place of one that is lost.

        Raises:
            ActorLostError: There is none, or this is not for us to do.
            CellError: None of our own could be started.
        """
        tell = self._tell
        if tell is None or not lost.is_ours:
            _give_up(lost, "" if tell is None else "call ray.shutdown(), ")
        self._count += 1
        if self._count > ATTEMPTS:
            _give_up(lost, f"and nothing was done since it was lost {ATTEMPTS} times before; ")
        if lost.own is not None:
            tell(
                f"Ray was lost: {lost.problem}; another one is started, and what was in progress "
                f"goes on (attempt {self._count} of {ATTEMPTS})"
            )
            return await self._restart(lost, tell)
        tell(
            f"Ray at {lost.address} was lost: {lost.problem}; waiting until it is back, for "
            f"{RETURNS_WITHIN_S:.0f} s"
        )
        return await self._rejoin(lost, tell)

    async def _restart(self, lost: Connection, tell: Tell) -> Connection:
        # What is left of the old one is ended first.
        await asyncio.wait([asyncio.wrap_future(lost.left)])
        while True:
            try:
                return await on_starter_thread(self._connect, "local")
            except CellError as error:
                self._count += 1
                if self._count > ATTEMPTS:
                    raise
                tell(f"{error}; trying again (attempt {self._count} of {ATTEMPTS})")

    async def _rejoin(self, lost: Connection, tell: Tell) -> Connection:
        until = time.monotonic() + RETURNS_WITHIN_S
        again = partial(self._connect, lost.address, is_named=lost.is_named)
        await asyncio.wait([asyncio.wrap_future(lost.left)])
        while True:
            try:
                back = await on_starter_thread(again)
            except CellError:
                if time.monotonic() > until:
                    _give_up(lost, f"and it is not back after {RETURNS_WITHIN_S:.0f} s; ")
                await asyncio.sleep(AGAIN_S)
            else:
                tell("Ray is back, and what was in progress goes on")
                return back


def _give_up(lost: Connection, what: str) -> NoReturn:
    problem = (
        f"{lost.problem}; {what}start it again if it is yours, and give the same command again"
    )
    raise ActorLostError("Ray", problem)
