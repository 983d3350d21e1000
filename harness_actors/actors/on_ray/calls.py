"""Calls of a coordinator on Ray, which may be away for a while, or stopped, or gone."""

import asyncio
import logging
import os
import signal
import time
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, TypeVar, TypeVarTuple

import ray
import ray._private.state  # see `_kill_starting`
from ray.actor import ActorHandle
from ray.exceptions import ActorUnavailableError, RayActorError, RayError, RayTaskError

from harness_actors.actors.cell_calls import CellCalls
from harness_actors.actors.cell_lifetime import GoneError
from harness_actors.actors.hosted import ActorCall
from harness_actors.actors.joining.connection import Connection, RayLostError
from harness_actors.actors.joining.current import current_connection
from harness_actors.actors.joining.withheld import keys_here
from harness_actors.actors.liveness import SUSPECT_S, TICKS
from harness_actors.actors.processes import kill_process
from harness_actors.errors import ActorLostError, HarnessError
from harness_actors.records import ProcessMark

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

logger = logging.getLogger(__name__)

RETURN_DEADLINE_S = 120.0
START_DEADLINE_S = 30.0
"""How long an incarnation may take to answer for the first time, its journal read included;
the next one is given twice as much."""
LOSS_SHOWS_S = 3.0
"""How long it may take until what Ray reports of an actor shows as the death of Ray."""


class CoordinatorCalls:
    """Calls the coordinator of a cell, whichever incarnation serves.

    When it dies, Ray starts its next incarnation, and calls wait for that. One that does
    not answer is killed first, so that there is a next one.

    Args:
        coordinator: Its actor.
        process: Its process, where it is known to be up; None for one that may be starting.
        connection: That over which it was found; None for what this process has now.
    """

    def __init__(
        self,
        coordinator: "ActorHandle[Any]",
        process: ProcessMark | None = None,
        *,
        connection: Connection | None = None,
    ) -> None:
        # Ray's types know no method of an actor.
        self.coordinator: Any = coordinator
        self.connection = connection or current_connection()
        own = self.connection.own is not None
        self.secrets = keys_here() if own else dict[str, str]()
        """The keys of its runs, which each incarnation must be given anew."""
        self.budget_usd: float | None = None
        """What its runs may cost together, which each incarnation must be told anew; None for
        no bound."""
        self._served = True
        """It has been there since it was last known to be away."""
        self.process = process
        """Of the incarnation that has answered; None while it is away or starting."""

    @property
    def is_connected(self) -> bool:
        """This process has still the connection over which the coordinator was found."""
        return self.connection.is_current

    async def call(self, call: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        """One call; made again if the coordinator dies meanwhile.

        Raises:
            HarnessError: What the coordinator raised, or `ActorLostError`: it has not come
                back in time, or this process was disconnected from Ray.
            GoneError: It is gone for good.
            RayLostError: Ray is, too.
        """
        away_since: float | None = None
        kills = 0
        while True:
            # Only an incarnation that was given its keys and budget is asked for more.
            if self._served:
                try:
                    return await self.once(call, *arguments)
                except AwayError:
                    # It was there: a call that waits for news takes as long as these do.
                    away_since, kills = time.monotonic(), 0
                    self._served = False
            now = time.monotonic()
            away_since = now if away_since is None else away_since
            if now - away_since > RETURN_DEADLINE_S:
                problem = f"it has not come back for {RETURN_DEADLINE_S:.0f} s"
                raise ActorLostError("the coordinator", problem)
            if now - away_since > START_DEADLINE_S * (2 ** (kills + 1) - 1):
                # Stopped while it was starting, as the one before it perhaps: it neither
                # answers nor dies.
                kills += 1
                await self.connection.unless_lost(asyncio.to_thread(self._kill_starting))
            await asyncio.sleep(0.1)
            await self._await_next()

    async def _await_next(self) -> None:
        """Attach to the next incarnation, if it comes up."""
        # What is dead by Ray's own word alone, such as a node that is cut off, is not seen here.
        await self.connection.unless_lost(asyncio.to_thread(self.connection.ask_head))
        with suppress(AwayError, TimeoutError):
            async with asyncio.timeout(START_DEADLINE_S):
                await self.attach()
                self._served = True

    def _kill_starting(self) -> None:
        # It never told where it is, but Ray knows. What is public of this asks the dashboard,
        # which a Ray of our own does not have.
        known = ray._private.state.actors(self.coordinator._actor_id.hex())
        logger.warning("the coordinator in process %s did not come up and is killed", known["Pid"])
        self._kill_actor()
        # Ray leaves one alone that is stopped.
        with suppress(ProcessLookupError):
            os.kill(known["Pid"], signal.SIGKILL)

    async def attach(self) -> None:
        """Give its keys and budget to an incarnation, and learn where it is."""
        # Where it is comes first: what falls silent after that is asked, and killed.
        marks: tuple[ProcessMark, ...] = await self.connection.unless_lost(self._hello())
        self.process = marks[0]
        await self.once(CellCalls.attach, self.secrets, self.budget_usd)

    async def once(self, call: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        """One call; fails if the coordinator is away."""
        begun: Awaitable[T] = self._begin("call", call.__name__, *arguments)
        answer = asyncio.ensure_future(begun)
        loss = self.connection.loss()
        try:
            while not await _within(SUSPECT_S / 2, answer, loss):
                # One that starts has much to read, and may take its time.
                if self.process is not None and not await self._is_alive(answer):
                    await self._kill(self.process)
                self._check_connected()
            if not answer.done():
                raise RayLostError(str(self.connection.problem))
            return answer.result()
        except AwayError:
            self.process = None
            raise
        finally:
            answer.cancel()

    async def _is_alive(self, answer: "asyncio.Future[Any]") -> bool:
        """Whether the coordinator answers, whatever it is, when it is asked."""
        asked = asyncio.ensure_future(self._hello())
        try:
            # In pieces: had this process been stopped meanwhile, one of them was too long.
            for _ in range(TICKS // 2):
                if await _within(SUSPECT_S / TICKS, asked, answer):
                    # That it is away is known to Ray, and no silence.
                    return True
            return False
        finally:
            asked.cancel()
            await asyncio.wait((asked,))
            if not asked.cancelled():
                asked.exception()  # told to whoever waits for `answer`

    async def _kill(self, process: ProcessMark) -> None:
        logger.warning(
            "the coordinator in process %d did not answer for %g s and is killed",
            process.pid,
            SUSPECT_S,
        )
        await self.connection.unless_lost(asyncio.to_thread(self._kill_actor))
        # Ray takes its time with a process that is stopped.
        kill_process(process)

    def _kill_actor(self) -> None:
        with self.connection.in_use():
            # no_restart=False: else there is no next incarnation.
            ray.kill(self.coordinator, no_restart=False)

    async def _hello(self) -> tuple[ProcessMark, ...]:
        marks: tuple[ProcessMark, ...] = await self._begin("hello")
        return marks

    def _begin(self, method: str, *arguments: Any) -> Awaitable[Any]:
        with self.connection.in_use():
            self._check_connected()
            reference = getattr(self.coordinator, method).remote(*arguments)
        return self._answer(reference)

    def _check_connected(self) -> None:
        if self.connection.problem is None and not self.is_connected:
            # Ray would connect anew by itself, in this thread, to whatever it finds.
            problem = "this process has disconnected from it (ray.shutdown()); begin anew"
            raise ActorLostError("Ray", problem)

    async def _answer(self, reference: Any) -> Any:
        try:
            return await reference
        except RayTaskError as error:
            cause = error.cause
            if isinstance(cause, HarnessError | GoneError):
                raise cause from None
            raise
        except ActorUnavailableError:
            raise AwayError from None
        except RayActorError as error:
            raise GoneError(str(error).splitlines()[0]) from None
        except RayError as error:
            if await self.connection.is_lost(within_s=LOSS_SHOWS_S):
                raise RayLostError(str(self.connection.problem)) from None
            raise ActorLostError("Ray", str(error).splitlines()[0]) from None


async def _within(seconds: float, *awaited: "asyncio.Future[Any]") -> bool:
    """Whether one of them is done within a time, and else leave them as they are."""
    done, _ = await asyncio.wait(awaited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    return bool(done)


class AwayError(Exception):
    """The coordinator is between two incarnations, or the connection to it broke."""
