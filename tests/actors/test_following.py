"""Runs are followed to their ends, also those that are quicker than whoever follows."""

import asyncio

from harness_actors.actors.driver.following import follow
from harness_actors.config import HarnessConfig
from harness_actors.events import RoundCompleted, RunCompleted, RunEvent
from tests.actors.followers import specs
from tests.actors.test_ends_in_time import endless
from tests.batch.fake_runtime import FakeRuntime, Journal, ended


async def test_a_run_that_ends_as_it_begins_has_all_of_it_told() -> None:
    program = endless()
    (spec,) = specs(program, 1, HarnessConfig())
    runtime = FakeRuntime(Journal())

    async def begin() -> None:
        await runtime.submit([spec], code={spec.code: b""}, secrets={})

    async with asyncio.timeout(10):
        told = [told async for told in follow(runtime, [spec.run_id], begin)]

    *events, result = told
    assert result == ended(spec)
    kinds = [type(event.event) for event in events if isinstance(event, RunEvent)]
    assert kinds == [RoundCompleted, RunCompleted]
