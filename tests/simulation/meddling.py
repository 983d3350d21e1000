"""People who stop runs of a tree, whichever these are just then."""

import asyncio
from random import Random
from typing import TYPE_CHECKING

from tests.simulation.workload import PlannedRun

if TYPE_CHECKING:
    from tests.simulation.driver import Driver


async def meddle(driver: "Driver", plan: PlannedRun, chance: Random) -> None:
    """Do what is planned to a tree, each time to one of its runs that is not over."""
    book = driver.book
    for stop in plan.meddles[book.meddled.setdefault(plan.run_id, 0) :]:
        await asyncio.sleep(stop.after_s)
        book.meddled[plan.run_id] += 1
        tree = driver.tree_of(plan.run_id)
        if not tree:
            continue
        run_id = chance.choice(tree)
        await driver.request(run_id, stop.mode)
        if stop.resume and stop.mode != "cancel":
            await driver.request(chance.choice((run_id, plan.run_id)), "resume")
