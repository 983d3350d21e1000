"""Runs are followed to their ends, also those that are quicker than whoever follows."""

import asyncio

from harness_actors.actors.driver.following import follow
from harness_actors.config import HarnessConfig
from harness_actors.events import InputAwaited, RoundCompleted, RunCompleted, RunEvent, RunParked
from harness_actors.results import HarnessResult
from tests.actors.followers import specs
from tests.actors.test_ends_in_time import endless
from tests.batch.fake_runtime import FakeRuntime, Journal, asking, ended, never_ends


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


async def test_of_several_runs_each_is_followed_until_it_ends_waits_or_is_put_aside() -> None:
    program = endless()
    done, waits, parks, stranger = specs(program, 4, HarnessConfig())
    names = {done.run_id: "done", waits.run_id: "waits", parks.run_id: "parks"}
    runtime = FakeRuntime(Journal(), never_ends)
    code = {spec.code: b"" for spec in (done, stranger)}
    await runtime.submit([stranger], code=code, secrets={})

    async def begin() -> None:
        await runtime.submit([done, waits, parks], code=code, secrets={})

    told: list[tuple[str, type]] = []

    async def follow_all() -> None:
        async for item in follow(runtime, list(names), begin):
            told.append((names[item.run_id], type(getattr(item, "event", item))))

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(follow_all())
        await runtime.until_in_flight(4)
        runtime.wait(waits.run_id, asking(waits, "q1"))
        runtime.end(stranger.run_id, ended(stranger))
        await runtime.stop([parks.run_id], "park")
        await runtime.until_noted(len(runtime.journal.log))
        # Somebody else takes one of them up: that is not what is followed here.
        await runtime.answer(waits.run_id, {"q1": "yes"})
        runtime.end(done.run_id, ended(done))

    assert told == [
        ("waits", RoundCompleted),
        ("waits", InputAwaited),
        ("parks", RunParked),
        ("done", RoundCompleted),
        ("done", RunCompleted),
        ("done", HarnessResult),
    ]
