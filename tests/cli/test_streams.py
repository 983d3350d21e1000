"""Runs that a command takes up, as whoever watches sees them, and what Ctrl-C does to them."""

import asyncio
import io
import os
import signal
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest

from harness_actors.actors.driver.following import follow
from harness_actors.actors.runtime import StopMode
from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.streams import show_runs
from harness_actors.config import HarnessConfig
from harness_actors.events import TurnStarted
from harness_actors.results import HarnessResult
from harness_actors.stores.logs import log_of
from tests.actors.followers import specs
from tests.actors.test_ends_in_time import endless
from tests.batch.fake_runtime import FakeRuntime, Journal, Script, asking, ended, never_ends

FIRST, SECOND = specs(endless(), 2, HarnessConfig())
IDS = [FIRST.run_id, SECOND.run_id]


class Watched:
    """A command that shows runs of a runtime in memory."""

    def __init__(self, store: Path, script: Script = never_ends) -> None:
        self.runtime = Noting(Journal(), script)
        self.out = io.StringIO()
        self.store = store

    async def show(self, run_ids: Sequence[str] = tuple(IDS)) -> dict[str, HarnessResult]:
        chosen = [spec for spec in (FIRST, SECOND) if spec.run_id in run_ids]
        code = {spec.code: b"" for spec in chosen}
        begin = partial(self.runtime.submit, chosen, code=code, secrets={})
        lines = EventLines(out=self.out)
        async with (
            asyncio.timeout(10),
            aclosing(follow(self.runtime, run_ids, begin)) as stream,
        ):
            return await show_runs(
                stream, self.runtime, run_ids, lines, store=self.store, where="local", verbose=False
            )

    @property
    def said(self) -> str:
        return self.out.getvalue()


class Noting(FakeRuntime):
    """Notes what is asked of it, and parks nothing by itself."""

    def __init__(self, journal: Journal, script: Script) -> None:
        super().__init__(journal, script)
        self.stops: list[tuple[list[str], StopMode]] = []
        self.asked = asyncio.Event()

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> tuple[str, ...]:
        self.stops.append((list(run_ids), mode))
        self.asked.set()
        return ()

    async def park(self, *run_ids: str) -> None:
        await super().stop(run_ids, "park")


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "runs.db")


async def test_each_is_shown_to_its_end(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "runs.db", lambda spec: ended(spec))

    results = await watched.show()

    assert {run_id: result.status for run_id, result in results.items()} == dict.fromkeys(
        IDS, "done"
    )
    assert watched.said.count("done(completed)") == 2
    assert "interrupted" not in watched.said


@pytest.mark.parametrize("several", [True, False])
async def test_of_several_each_line_says_whose_it_is_and_where_something_was_printed(
    watched: Watched, several: bool
) -> None:
    run_ids = IDS if several else IDS[:1]
    log = log_of(watched.store, FIRST.run_id)
    log.parent.mkdir()
    log.write_text("2026-01-31T23:59:59.999 [say] of an earlier command\n")
    async with asyncio.TaskGroup() as group:
        group.create_task(watched.show(run_ids))
        await watched.runtime.until_in_flight(len(run_ids))
        watched.runtime.journal.write(FIRST.run_id, TurnStarted(turn=1, max_turns=2))
        with log.open("a") as file:
            file.write("2026-01-31T23:59:59.999 [say] now\n")
        for spec in (FIRST, SECOND)[: len(run_ids)]:
            watched.runtime.end(spec.run_id, ended(spec))

    lines = watched.said.splitlines()
    assert (f"{FIRST.run_id[:6]} turn 1" if several else "turn 1") in lines
    assert [line for line in lines if "printed something" in line] == [
        f"your code printed something: {log}; -v shows it at once"
    ]


async def test_what_was_printed_before_a_run_was_taken_up_was_told_then(watched: Watched) -> None:
    log = log_of(watched.store, FIRST.run_id)
    log.parent.mkdir()
    log.write_text("2026-01-31T23:59:59.999 [say] of an earlier command\n")
    watched.runtime.script = lambda spec: ended(spec)
    await watched.show()
    assert "printed something" not in watched.said


async def test_one_that_asks_is_told_with_what_it_asks_while_the_other_goes_on(
    watched: Watched,
) -> None:
    async with asyncio.TaskGroup() as group:
        showing = group.create_task(watched.show())
        await watched.runtime.until_in_flight(2)
        watched.runtime.wait(FIRST.run_id, asking(FIRST, "q1"))
        await watched.runtime.until_noted(len(watched.runtime.journal.log))
        assert not showing.done()
        watched.runtime.end(SECOND.run_id, ended(SECOND))

    results = showing.result()
    assert results[FIRST.run_id].status == "awaiting_input"
    assert [asked.id for asked in results[FIRST.run_id].questions] == ["q1"]
    assert results[SECOND.run_id].status == "done"
    assert "interrupted" not in watched.said


async def test_ctrl_c_puts_all_aside_and_says_how_those_go_on_that_are_not_over(
    watched: Watched,
) -> None:
    async with asyncio.TaskGroup() as group:
        showing = group.create_task(watched.show())
        await watched.runtime.until_in_flight(2)
        watched.runtime.wait(FIRST.run_id, asking(FIRST, "q1"))
        await watched.runtime.until_noted(len(watched.runtime.journal.log))
        os.kill(os.getpid(), signal.SIGINT)
        await watched.runtime.asked.wait()
        await watched.runtime.park(SECOND.run_id)

    assert list(showing.result()) == [FIRST.run_id]
    assert watched.runtime.stops == [(IDS, "park")]
    assert "stopping after this round" in watched.said
    assert f"resume {SECOND.run_id} --store" in watched.said
    assert watched.said.rstrip().endswith("goes on with it")


async def test_ctrl_c_before_anybody_served_them_is_said_again_when_somebody_does(
    watched: Watched,
) -> None:
    async with asyncio.TaskGroup() as group:
        showing = group.create_task(watched.show())
        await watched.runtime.until_in_flight(2)
        os.kill(os.getpid(), signal.SIGINT)
        await watched.runtime.asked.wait()
        assert watched.runtime.stops == [(IDS, "park")]
        watched.runtime.asked.clear()
        watched.runtime.wait(FIRST.run_id, asking(FIRST, "q1"))
        await watched.runtime.asked.wait()
        await watched.runtime.park(SECOND.run_id)

    assert list(showing.result()) == [FIRST.run_id]
    assert watched.runtime.stops == [(IDS, "park")] * 2


async def test_a_second_ctrl_c_cuts_their_rounds_and_leaves(watched: Watched) -> None:
    showing = asyncio.create_task(watched.show())
    await watched.runtime.until_in_flight(2)
    os.kill(os.getpid(), signal.SIGINT)
    await watched.runtime.asked.wait()
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.wait([showing], timeout=10)

    assert showing.cancelled()
    assert watched.runtime.stops == [(IDS, "park"), (IDS, "park_now")]
    assert watched.said.rstrip().endswith("goes on with them")
