"""Runs that left service while others worked beside them, made again from their journals."""

import asyncio
from pathlib import Path

import pytest

from harness_actors.errors import RunParkedError
from harness_actors.replay.recording import load_recording
from harness_actors.results import HarnessResult
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply
from harness_actors.tools import ask_user, tool
from tests.subagents.team import DONE, Team
from tests.subagents.test_background import (
    a_team,
    replays_as_it_was,
    send,
    steps,
    until,
)

WAIT = Reply.call("agent_wait", {})
SHORT_WAIT = Reply.call("agent_wait", {"timeout_s": 0.3})


@tool(effect="read_only", volatile=True)
async def nap(seconds: float) -> str:
    """Sleep.

    Args:
        seconds: How long.
    """
    await asyncio.sleep(seconds)
    return "napped"


def naps(seconds: float) -> Reply:
    return Reply.call("nap", {"seconds": seconds})


async def parked(
    team: Team, store: Path, times: int, *, changes: int, later_s: float = 0.0
) -> HarnessResult:
    """A run that is put aside so often: when it has so many changes, and when it goes on."""

    def is_there() -> bool:
        journal = JournalReader(store)
        top = journal.headings()[:1]
        return any(len(load_recording(journal, run.run_id).changes) >= changes for run in top)

    run_id = ""
    for time in range(times + 1):
        async with team.harness(store) as harness:
            run = asyncio.ensure_future(harness.resume(run_id) if run_id else harness.run("Go."))
            if time < times:
                if not run_id:
                    await until(store.exists)
                    # A moment later it has done more.
                    await until(is_there, look_s=0.001)
                    await asyncio.sleep(later_s)
                await harness.park()
            try:
                return await run
            except RunParkedError as error:
                run_id = error.run_id
    raise AssertionError("it goes on after the last time")


async def test_one_that_asked_its_user_meanwhile(tmp_path: Path) -> None:
    asks = Reply.call("ask_user", {"question": "Colour?"})
    team = a_team(steps(send("a"), asks, WAIT, DONE), steps(naps(0.2), naps(0.2), Reply.text("x")))
    team.given = {"tools": [nap, ask_user]}
    store = tmp_path / "runs.db"
    async with team.harness(store) as harness:
        asked = await harness.run("Go.")
        assert asked.status == "awaiting_input"
        result = await harness.resume(asked.run_id, answers={"q1": "blue"})
    assert result.status == "done"
    await replays_as_it_was(JournalReader(store), result.run_id, f"{result.run_id}.1")


@pytest.mark.parametrize("changes", range(3, 7))
async def test_one_that_is_put_aside_when_it_has_just_sent_somebody_out(
    changes: int, tmp_path: Path
) -> None:
    team = a_team(steps(send("a"), WAIT, DONE), steps(naps(0.2), naps(0.2), Reply.text("x")))
    team.given = {"tools": [nap]}
    store = tmp_path / "runs.db"
    result = await parked(team, store, 1, changes=changes)
    assert result.status == "done"
    await replays_as_it_was(JournalReader(store), result.run_id, f"{result.run_id}.1")


@pytest.mark.parametrize("later_s", [0.0, 0.1, 0.2])
async def test_one_whose_wait_is_over_while_it_is_put_aside_twice(
    later_s: float, tmp_path: Path
) -> None:
    team = a_team(
        steps(send("a"), SHORT_WAIT, WAIT, DONE), steps(naps(0.6), naps(0.6), Reply.text("x"))
    )
    team.given = {"tools": [nap]}
    store = tmp_path / "runs.db"
    result = await parked(team, store, 2, changes=4, later_s=later_s)
    assert result.status == "done"
    await replays_as_it_was(JournalReader(store), result.run_id, f"{result.run_id}.1")
