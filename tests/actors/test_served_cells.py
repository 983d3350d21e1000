"""Calls of a cell survive it: another one is in its place, and is started once for all of them."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from harness_actors.actors.cell_lifetime import GoneError
from harness_actors.actors.joining.connection import Connection, RayLostError
from harness_actors.actors.on_ray import serving
from harness_actors.actors.on_ray.calls import CoordinatorCalls
from harness_actors.actors.on_ray.serving import ServedCell
from harness_actors.errors import CellError


class Ray:
    """A connection to a Ray that is there."""

    problem: str | None = None

    async def unless_lost(self, awaitable: Any) -> Any:
        return await awaitable


class Calls:
    """Calls of one cell, which is gone, or has gone when it is called."""

    def __init__(self, gone: Exception | None = None) -> None:
        self._gone = gone
        self.called = 0
        self.connection = Ray()
        self.secrets: dict[str, str] = {}
        self.budget_usd: float | None = None
        self.attached_with: tuple[dict[str, str], float | None] | None = None

    async def call(self, method: str) -> "Calls":
        await asyncio.sleep(0)
        self.called += 1
        assert self.called < 100, "it is called again and again, and nothing is done"
        if self._gone is not None:
            raise type(self._gone)(*self._gone.args)
        return self

    async def attach(self) -> None:
        self.attached_with = dict(self.secrets), self.budget_usd


class Cell(ServedCell):
    """A cell of which it is known what it is replaced by."""

    def __init__(self, store: Path, first: Calls, replaced_by: Sequence[Calls | Exception]) -> None:
        super().__init__(store, "command")
        self.calls = cast(CoordinatorCalls, first)
        self.idle_s = 60.0
        self._replaced_by = list(replaced_by)
        self.opened = asyncio.Event()
        """Whether another cell may come up."""
        self.opened.set()
        self.begun = 0
        self.begins = asyncio.Event()

    async def _serve(self, connection: Connection) -> CoordinatorCalls:
        self.begun += 1
        self.begins.set()
        await self.opened.wait()
        match self._replaced_by.pop(0):
            case Exception() as error:
                raise error
            case fresh:
                return cast(CoordinatorCalls, fresh)


@pytest.fixture(autouse=True)
def strange_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "is_own_ray", lambda: False)


async def who_answers(_: Any) -> Calls:
    """A call that `Calls` answer with themselves."""
    raise NotImplementedError


GONE = GoneError("it had nothing to do")
LOST = RayLostError("its raylet has ended")


@pytest.mark.parametrize("why", [GONE, LOST], ids=["gone", "lost"])
async def test_a_cell_is_replaced_as_often_as_it_goes(tmp_path: Path, why: Exception) -> None:
    last = Calls()
    cell = Cell(tmp_path / "runs.db", Calls(why), [Calls(why), Calls(why), last])
    async with asyncio.timeout(30):
        assert await cell.call(who_answers) is last


async def test_calls_that_fail_together_have_one_cell_started_for_all(tmp_path: Path) -> None:
    last = Calls()
    cell = Cell(tmp_path / "runs.db", Calls(GONE), [last])
    async with asyncio.timeout(30):
        assert await asyncio.gather(*(cell.call(who_answers) for _ in range(5))) == 5 * [last]
    assert cell.begun == 1


async def test_a_call_that_is_cut_while_it_starts_a_cell_leaves_that_to_the_next(
    tmp_path: Path,
) -> None:
    last = Calls()
    cell = Cell(tmp_path / "runs.db", Calls(GONE), [last])
    cell.opened.clear()
    calls = [asyncio.create_task(cell.call(who_answers)) for _ in range(2)]
    async with asyncio.timeout(30):
        await cell.begins.wait()
        calls[0].cancel()
        cell.opened.set()
        assert await calls[1] is last
    assert calls[0].cancelled()
    assert cell.begun == 2


async def test_a_call_after_one_that_found_no_cell_tries_again(tmp_path: Path) -> None:
    last = Calls()
    cell = Cell(tmp_path / "runs.db", Calls(GONE), [CellError("the coordinator", "no room"), last])
    with pytest.raises(CellError, match="no room"):
        await cell.call(who_answers)
    async with asyncio.timeout(30):
        assert await cell.call(who_answers) is last


async def test_a_call_that_only_waited_for_news_starts_no_cell_and_hears_of_the_next(
    tmp_path: Path,
) -> None:
    last = Calls()
    cell = Cell(tmp_path / "runs.db", Calls(GoneError("idle", waited=True)), [last])
    waiting = asyncio.create_task(cell.call(who_answers))
    async with asyncio.timeout(30):
        for _ in range(20):
            await asyncio.sleep(0)
        assert cell.begun == 0
        await cell._replace(cell.calls, GONE)
        assert await waiting is last


async def test_the_next_cell_is_given_the_keys_and_the_budget(tmp_path: Path) -> None:
    first, last = Calls(GONE), Calls()
    first.secrets["KEY"], first.budget_usd = "a secret", 2.5
    cell = Cell(tmp_path / "runs.db", first, [last])
    await cell.call(who_answers)
    assert last.attached_with == ({"KEY": "a secret"}, 2.5)
