"""Waits of a model that are given up, as by Ctrl-C."""

import asyncio

import pytest

from harness_actors.models.waits import NotAskedAgainError, metered, waiting


async def test_no_wait_begins_after_they_were_given_up() -> None:
    begun = False
    with metered() as meter:
        # The call is in flight; it is refused afterwards.
        meter.give_up()
        with pytest.raises(NotAskedAgainError), waiting():
            begun = True
    assert not begun


async def test_each_of_several_waits_at_once_is_given_up() -> None:
    async def waits() -> None:
        with waiting():
            await asyncio.Event().wait()

    with metered() as meter:
        tasks = [asyncio.create_task(waits()) for _ in range(3)]
        await asyncio.sleep(0)
        meter.give_up()
        async with asyncio.timeout(5.0):
            ends = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(end) for end in ends] == [NotAskedAgainError] * 3
    assert not meter.is_waiting


async def test_a_call_that_is_in_flight_behind_its_wait_is_left_alone() -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def asks_again() -> str:
        with waiting():
            await asyncio.sleep(0)
        asked.set()
        await answered.wait()
        return "an answer"

    with metered() as meter:
        call = asyncio.create_task(asks_again())
        await asked.wait()
        meter.give_up()
        answered.set()

        assert await call == "an answer"


async def test_a_task_whose_wait_was_given_up_can_wait_for_something_else() -> None:
    async def goes_on() -> str:
        with pytest.raises(NotAskedAgainError), waiting():
            await asyncio.Event().wait()
        async with asyncio.timeout(5.0):
            await asyncio.sleep(0)
        return "went on"

    with metered() as meter:
        task = asyncio.create_task(goes_on())
        await asyncio.sleep(0)
        meter.give_up()

        assert await task == "went on"
    assert not task.cancelling()
