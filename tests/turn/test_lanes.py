import asyncio
from functools import partial

import pytest

from harness_actors.turn.lanes import in_lanes

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize("lanes", [1, 2, 5, 100])
async def test_results_come_in_order_and_never_more_is_done_at_once(lanes: int) -> None:
    running, most, begun = 0, 0, []

    async def piece(number: int) -> int:
        nonlocal running, most
        begun.append(number)
        running += 1
        most = max(most, running)
        await asyncio.sleep(1.0 / (number + 1))
        running -= 1
        return number * 10

    numbers = range(9)
    assert await in_lanes([partial(piece, n) for n in numbers], lanes) == [n * 10 for n in numbers]
    assert most == min(lanes, 9)
    assert begun == list(numbers)


async def test_a_caller_that_is_cancelled_waits_until_all_have_cleaned_up() -> None:
    cleaned: list[int] = []

    async def piece(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.1)
            cleaned.append(number)

    work = asyncio.ensure_future(in_lanes([partial(piece, n) for n in range(5)], 3))
    await asyncio.sleep(1)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert sorted(cleaned) == [0, 1, 2], "those that had begun, and no other began"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), ValueError("no")])
async def test_what_one_raises_is_raised_once_and_the_others_have_ended(
    error: BaseException,
) -> None:
    cleaned = []

    async def piece(number: int) -> None:
        try:
            await asyncio.sleep(number)
        finally:
            cleaned.append(number)
        if number == 1:
            raise error

    with pytest.raises(type(error)):
        await in_lanes([partial(piece, n) for n in (3, 1, 2, 4)], 3)
    assert sorted(cleaned) == [1, 2, 3], "no other began"
