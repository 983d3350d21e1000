"""Resource keys that calls wait for: apart where they must be, in order, and never forever."""

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_actors.stores import key_locks
from harness_actors.stores.key_files import KeyFiles, key_files_of
from harness_actors.stores.key_locks import KeyLocks
from tests.stores.test_key_files import holder, told

ALONE = ["key"]


def locks_at(folder: Path) -> KeyLocks:
    return KeyLocks(KeyFiles(folder / "runs.db"))


async def soon() -> None:
    """Until everybody who can go on has done so."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_call_waits_until_another_one_is_over_whatever_became_of_it(
    tmp_path: Path,
) -> None:
    here, there = locks_at(tmp_path), locks_at(tmp_path)
    order: list[str] = []

    async def second() -> None:
        async with there.held("tree", ALONE, reads=False):
            order.append("second")

    async def first() -> None:
        async with here.held("tree", ALONE, reads=False):
            await asyncio.sleep(0.02)
            order.append("first")
            raise ValueError("failed")

    calls = asyncio.gather(first(), second(), return_exceptions=True)
    failed, _ = await asyncio.wait_for(calls, 5)
    assert isinstance(failed, ValueError)
    assert order == ["first", "second"]


async def test_what_is_free_is_held_at_once(tmp_path: Path) -> None:
    locks = locks_at(tmp_path)
    entering = locks.held("tree", ["a", "b", "a"], reads=False).__aenter__()
    with pytest.raises(StopIteration):
        entering.__await__().__next__()


async def test_who_reads_comes_behind_who_writes_and_was_there_first(tmp_path: Path) -> None:
    locks = locks_at(tmp_path)
    order: list[str] = []

    async def call(name: str, *, reads: bool) -> None:
        async with locks.held("tree", ALONE, reads=reads):
            order.append(name)
            await soon()

    async with locks.held("tree", ALONE, reads=True):
        calls = [asyncio.ensure_future(call("writes", reads=False))]
        await soon()
        calls += [asyncio.ensure_future(call(f"reads {n}", reads=True)) for n in range(3)]
        await asyncio.sleep(0.01)
        assert order == []
    await asyncio.wait_for(asyncio.gather(*calls), 5)
    assert order == ["writes", "reads 0", "reads 1", "reads 2"]


async def test_a_process_whose_calls_always_want_a_key_lets_others_look_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_locks, "TURN_S", 0.2)
    locks, now = locks_at(tmp_path), asyncio.get_running_loop().time
    over = now() + 1.0
    free_since: list[float] = []
    gaps: list[float] = []

    async def again_and_again() -> None:
        while now() < over:
            async with locks.held("tree", ALONE, reads=False):
                gaps.append(now() - free_since[-1] if free_since else 0.0)
                await asyncio.sleep(0.02)
                free_since.append(now())

    await asyncio.gather(*(again_and_again() for _ in range(3)))
    longer = [gap for gap in gaps if gap >= key_locks.LONGEST_PAUSE_S]
    # Each time for as long as it takes the others to look, and most of the time not at all.
    assert 2 <= len(longer) < len(gaps) / 2
    assert locks._queues == {}


async def test_calls_that_name_the_same_keys_in_other_orders_do_not_wait_for_each_other(
    tmp_path: Path,
) -> None:
    locks = locks_at(tmp_path)

    async def call(*keys: str) -> None:
        async with locks.held("tree", keys, reads=False):
            await soon()

    async with locks.held("tree", ["a", "b"], reads=False):
        calls = asyncio.gather(call("a", "b"), call("b", "a"))
        await soon()
    await asyncio.wait_for(calls, 5)


async def test_a_call_that_is_cancelled_while_it_waits_holds_nothing_and_lets_others_by(
    tmp_path: Path,
) -> None:
    locks = locks_at(tmp_path)

    async def call(*keys: str) -> str:
        async with locks.held("tree", keys, reads=False):
            return "held"

    async with locks.held("tree", ["b"], reads=False):
        cut = asyncio.ensure_future(call("a", "b"))
        behind = asyncio.ensure_future(call("b"))
        await asyncio.sleep(0.01)
        cut.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cut
        assert await asyncio.wait_for(call("a"), 5) == "held"
    assert await asyncio.wait_for(behind, 5) == "held"
    assert locks._queues == {}
    assert list(key_files_of(tmp_path / "runs.db").iterdir()) == []


async def test_who_waits_goes_on_when_the_process_that_holds_the_key_was_killed(
    tmp_path: Path,
) -> None:
    locks = locks_at(tmp_path)
    with holder(tmp_path / "runs.db") as process:
        assert await asyncio.to_thread(told, process) == "held"

        async def call() -> str:
            async with locks.held("tree", ALONE, reads=False):
                return "held"

        waiting = asyncio.ensure_future(call())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        process.send_signal(signal.SIGKILL)
        assert await asyncio.wait_for(waiting, 5) == "held"


CALLS = st.tuples(
    st.sets(st.sampled_from("abc"), min_size=1),
    st.booleans(),
    st.integers(0, 2),
    st.sampled_from((None, None, None, 0, 2, 5)),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(CALLS, min_size=2, max_size=12))
async def test_whoever_comes_all_are_served_and_none_beside_one_who_writes(
    tmp_path_factory: pytest.TempPathFactory,
    calls: Sequence[tuple[set[str], bool, int, int | None]],
) -> None:
    folder = tmp_path_factory.mktemp("keys")
    places = [locks_at(folder) for _ in range(3)]
    at_work: list[tuple[set[str], bool]] = []

    async def call(keys: set[str], reads: bool, place: int) -> None:
        async with places[place].held("tree", keys, reads=reads):
            for others, they_read in at_work:
                assert keys.isdisjoint(others) or (reads and they_read)
            at_work.append((keys, reads))
            try:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            finally:
                at_work.remove((keys, reads))

    async def cut(task: "asyncio.Task[None]", after: int) -> None:
        for _ in range(after):
            await asyncio.sleep(0)
        task.cancel()

    tasks = [asyncio.create_task(call(keys, reads, place)) for keys, reads, place, _ in calls]
    cuts = [
        cut(task, after)
        for task, (*_, after) in zip(tasks, calls, strict=True)
        if after is not None
    ]
    await asyncio.gather(*cuts)
    async with asyncio.timeout(20):
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(one is None or isinstance(one, asyncio.CancelledError) for one in ended), ended
    assert [
        one for one, (*_, after) in zip(ended, calls, strict=True) if one and after is None
    ] == []
    assert all(locks._queues == {} for locks in places)
    assert list(key_files_of(folder / "runs.db").iterdir()) == []
