"""Calls of a coordinator on Ray, which may be away for a while, or stopped, or gone."""

import asyncio
import logging
import time
from contextlib import suppress
from typing import Any

import ray
from ray.actor import ActorHandle
from ray.exceptions import ActorUnavailableError, RayActorError, RayError, RayTaskError

from harness_actors.actors.doubt import SUSPECT_S, TICKS
from harness_actors.actors.processes import kill_process
from harness_actors.errors import ActorLostError, HarnessError
from harness_actors.records import ProcessMark

logger = logging.getLogger(__name__)

RETURN_DEADLINE_S = 90.0


class CoordinatorCalls:
    """Calls the coordinator of a cell, whichever incarnation serves.

    When it dies, Ray starts its next incarnation, and calls wait for that. One that does
    not answer is killed first, so that there is a next one.
    """

    def __init__(self, coordinator: "ActorHandle[Any]") -> None:
        # Ray's types know no method of an actor.
        self._coordinator: Any = coordinator
        self.secrets: dict[str, str] = {}
        """The keys of its runs, which each incarnation must be given anew."""
        self.budget_usd: float | None = None
        """The same of what its runs may cost together; None for no bound."""
        self._process: ProcessMark | None = None
        """Of the incarnation that has answered; None while it is away or starting."""

    async def call(self, method: str, *arguments: Any) -> Any:
        """One call; made again if the coordinator dies meanwhile.

        Raises:
            HarnessError: What the coordinator raised, or `ActorLostError`: it is gone for
                good, or has not come back in time.
        """
        deadline = time.monotonic() + RETURN_DEADLINE_S
        while True:
            try:
                return await self.once(method, *arguments)
            except _AwayError:
                if time.monotonic() > deadline:
                    problem = f"it has not come back for {RETURN_DEADLINE_S:.0f} s"
                    raise ActorLostError("the coordinator", problem) from None
                await asyncio.sleep(0.1)
                with suppress(_AwayError, TimeoutError):
                    async with asyncio.timeout(RETURN_DEADLINE_S):
                        await self.attach()

    async def attach(self) -> None:
        """Give its keys and budget to an incarnation, and learn where it is."""
        await self._answer(self._coordinator.call.remote("attach", self.secrets, self.budget_usd))
        marks: tuple[ProcessMark, ...] = await self._answer(self._coordinator.hello.remote())
        self._process = marks[0]

    async def once(self, method: str, *arguments: Any) -> Any:
        """One call; fails if the coordinator is away."""
        answer = asyncio.ensure_future(
            self._answer(self._coordinator.call.remote(method, *arguments))
        )
        try:
            while not await _within(SUSPECT_S / 2, answer):
                # One that starts has much to read, and may take its time.
                if self._process is not None and not await self._is_alive(answer):
                    await self._kill(self._process)
            return answer.result()
        except _AwayError:
            self._process = None
            raise
        finally:
            answer.cancel()

    async def _is_alive(self, answer: "asyncio.Future[Any]") -> bool:
        """Whether the coordinator answers, whatever it is, when it is asked."""
        asked = asyncio.ensure_future(self._answer(self._coordinator.hello.remote()))
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
        # no_restart=False: else there is no next incarnation.
        await asyncio.to_thread(ray.kill, self._coordinator, no_restart=False)
        # Ray takes its time with a process that is stopped.
        kill_process(process)

    async def _answer(self, reference: Any) -> Any:
        try:
            return await reference
        except RayTaskError as error:
            cause = error.cause
            if isinstance(cause, HarnessError):
                raise cause from None
            raise
        except ActorUnavailableError:
            raise _AwayError from None
        except RayActorError as error:
            raise ActorLostError("the coordinator", str(error).splitlines()[0]) from None
        except RayError as error:
            raise ActorLostError("Ray", str(error).splitlines()[0]) from None


async def _within(seconds: float, *awaited: "asyncio.Future[Any]") -> bool:
    """Whether one of them is done within a time, and else leave them as they are."""
    done, _ = await asyncio.wait(awaited, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    return bool(done)


class _AwayError(Exception):
    """The coordinator is between two incarnations, or the connection to it broke."""
