"""Conversations that several runs share: begun, parked, continued by others, taken up again."""

import asyncio
from random import Random
from typing import TYPE_CHECKING

from harness_actors.actors.runtime import StopMode
from harness_actors.errors import ConversationBusyError, ConversationMovedOnError
from tests.simulation.workload import PlannedRun

if TYPE_CHECKING:
    from tests.simulation.driver import Driver

PATIENCE_S = 20.0
"""How long a user looks at one run before it goes on with another."""
STOPS: tuple[StopMode, ...] = ("park", "park_now", "park_now", "cancel")


class Talk:
    """What a user does with the runs of one conversation, one thing after the other.

    It follows no order, so that whatever may be asked is asked: a run is begun or taken up while
    another one is served, parked, cut in the middle or over. What is refused must be so.

    Args:
        driver: Asks for it.
        plans: The runs.
        chance: The talk's own.
    """

    def __init__(self, driver: "Driver", plans: list[PlannedRun], chance: Random) -> None:
        self._driver = driver
        self._plans = plans
        self._chance = chance

    async def live(self) -> None:
        """Do this and that, and then have every run end."""
        for _ in range(self._chance.choice((3, 5, 7, 9))):
            left = await self._left()
            if not left:
                return
            await self._move(self._chance.choice(left))
            await asyncio.sleep(self._chance.choice((0.0, 0.05, 0.3, 1.0, 3.0)))
        while left := await self._left():
            self._chance.shuffle(left)
            for plan in left:
                await self._see_through(plan)

    async def _left(self) -> list[PlannedRun]:
        return [plan for plan in self._plans if not await self._driver.is_over(plan)]

    async def _move(self, plan: PlannedRun) -> None:
        known = plan.run_id in self._driver.known
        if known and self._chance.random() < 0.5:
            await self._driver.request(plan.run_id, self._chance.choice(STOPS))
        else:
            await self._go_on(plan)

    async def _go_on(self, plan: PlannedRun) -> bool:
        """Submit a run, or take it up; whether it is served now."""
        try:
            await self._driver.submit_or_resume(plan)
        except ConversationBusyError:
            return False
        except ConversationMovedOnError:
            # Its user gives it up: it would answer what was said to another.
            if self._chance.random() < 0.5:
                await self._driver.request(plan.run_id, "cancel")
            return False
        return True

    async def _see_through(self, plan: PlannedRun) -> None:
        """Have a run served until it ends, parks, or takes too long."""
        if await self._go_on(plan):
            await self._driver.until_it_stops(plan.run_id, PATIENCE_S)
            if self._driver.waits(plan.run_id):
                await self._driver.people.done(plan.run_id)
        else:
            await asyncio.sleep(0.5)
