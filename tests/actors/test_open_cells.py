"""The cells that a process has open, and the stores that it keeps for them."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from harness_actors.actors.driver.open_cells import close_cell, open_cell
from harness_actors.errors import ActorLostError, BadInputError, StoreError, StoreInUseError
from harness_actors.stores.lock import is_held
from tests.stores.test_expiry import held_by_another_process


async def test_a_cell_that_does_not_start_leaves_its_store_to_others(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    store.write_text("none of ours" * 100)
    with pytest.raises(StoreError):
        await open_cell(store, "local", None)
    assert not is_held(store)

    store.unlink()
    await open_cell(store, "local", None)
    assert is_held(store)
    await close_cell(store, "local")
    assert not is_held(store)


async def test_all_who_open_a_store_share_its_cell_until_it_is_closed(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    one, other = await asyncio.gather(*(open_cell(store, "local", None) for _ in range(2)))
    assert one is other
    assert await open_cell(store, "local", None) is one
    await close_cell(store, "local")
    await close_cell(store, "local")
    assert not is_held(store)
    with pytest.raises(ActorLostError, match="its command has ended"):
        await one.headings()

    again = await open_cell(store, "local", None)
    assert again is not one
    assert await again.headings() == []
    await close_cell(store, "local")


async def test_a_cell_that_does_not_start_is_told_to_all_who_wait_for_it(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    store.write_text("none of ours" * 100)
    opening = [open_cell(store, "local", None) for _ in range(2)]
    failures = await asyncio.gather(*opening, return_exceptions=True)
    assert [type(failure) for failure in failures] == [StoreError, StoreError]
    assert not is_held(store)


async def test_whoever_waits_for_a_cell_opens_it_when_the_first_one_leaves(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    first, second = (asyncio.create_task(open_cell(store, "local", None)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert await (await second).headings() == []
    await close_cell(store, "local")
    assert not is_held(store)


async def test_two_may_close_a_cell_that_is_still_on_its_way(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    opening = asyncio.create_task(open_cell(store, "local", None))
    await asyncio.sleep(0)
    await asyncio.gather(close_cell(store, "local"), close_cell(store, "local"))
    assert opening.done()
    assert not is_held(store)


async def test_a_cell_is_left_alone_by_those_who_cannot_share_it(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    runtime = await open_cell(store, "local", None)
    with pytest.raises(StoreInUseError, match="with runtime 'local'"):
        await open_cell(store, "ray", None)
    await close_cell(store, "ray")

    def elsewhere() -> None:
        with pytest.raises(StoreInUseError, match="in another event loop"):
            asyncio.run(open_cell(store, "local", None))
        asyncio.run(close_cell(store, "local"))

    await asyncio.to_thread(elsewhere)
    assert is_held(store)
    assert await runtime.headings() == []
    await close_cell(store, "local")


# In a process of its own, for it leaves behind what nobody closes.
TWO_LOOPS = """
import asyncio, sys
from pathlib import Path
from harness_actors.actors.driver.open_cells import close_cell, open_cell
from harness_actors.stores.lock import is_held
from tests.stores.test_expiry import held_by_another_process

store = Path(sys.argv[1])

async def opens(closes):
    assert await (await open_cell(store, "local", None)).headings() == []
    if closes:
        await close_cell(store, "local")

asyncio.run(opens(closes=False))
assert is_held(store)
asyncio.run(opens(closes=True))
assert not is_held(store)
"""


def test_a_cell_that_ended_with_its_loop_makes_room_for_the_next(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TWO_LOOPS, str(tmp_path / "runs.db")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 0, ended.stderr


async def test_a_place_that_takes_no_journal_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadInputError, match="HARNESS_HOME"):
        await open_cell(tmp_path / "file" / "runs.db", "local", None)


async def test_a_store_is_waited_for_that_another_process_has_for_a_moment(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    with held_by_another_process(store):
        opening = asyncio.create_task(open_cell(store, "local", None))
        # It has looked, and was refused.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not opening.done()
    assert await (await opening).headings() == []
    await close_cell(store, "local")


async def test_a_store_that_another_process_keeps_is_refused_with_its_name(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    with (
        held_by_another_process(store) as pid,
        pytest.raises(StoreInUseError, match=f"process {pid} works on it"),
    ):
        await open_cell(store, "local", None, wait_s=0.1)
    assert await (await open_cell(store, "local", None)).headings() == []
    await close_cell(store, "local")
