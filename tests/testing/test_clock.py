"""The clock that is moved by hand."""

import asyncio

import pytest

from harness_actors.ports import Clock
from harness_actors.testing import ManualClock


async def test_sleepers_wake_in_the_order_of_their_time() -> None:
    clock = ManualClock()
    woken: list[float] = []

    async def sleep(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    sleepers = [asyncio.create_task(sleep(seconds)) for seconds in (3.0, 1.0, 2.0)]
    await clock.until_sleeping(3)
    clock.advance(2.0)
    await asyncio.gather(sleepers[1], sleepers[2])
    assert woken == [1.0, 2.0]
    assert clock.sleeping == 1
    clock.advance(1.0)
    await sleepers[0]
    assert woken == [1.0, 2.0, 3.0]


async def test_a_sleeper_that_is_cancelled_is_forgotten() -> None:
    clock = ManualClock()
    sleeper = asyncio.create_task(clock.sleep(1.0))
    await clock.until_sleeping()
    sleeper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeper

    assert clock.sleeping == 0
    clock.advance(2.0)


async def test_no_time_passes_by_itself() -> None:
    clock: Clock = ManualClock(start=5.0)
    await clock.sleep(0)

    assert (clock.now(), clock.monotonic()) == (5.0, 0.0)


def test_time_does_not_pass_backwards() -> None:
    with pytest.raises(ValueError, match="backwards"):
        ManualClock().advance(-1)
