"""On a Ray that was there before: a journal that is taken away while a cell has it open."""

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from harness_actors.actors.processes import is_alive
from harness_actors.stores import SqliteJournal
from harness_actors.testing import LoopbackServer, over_messages
from tests.actors.joined import Drivers, coordinator, ended, joined_ray
from tests.actors.work import Work, marks_then_completes
from tests.chaos.rays import RayByHand

pytestmark = [pytest.mark.ray, pytest.mark.timeout(240)]

ENDS_WITHIN_S = 30.0
"""A command whose journal is gone; with a margin for a machine that is busy."""


@pytest.fixture(scope="module")
def ray() -> Iterator[RayByHand]:
    with joined_ray() as ray:
        yield ray


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer(over_messages(marks_then_completes)) as server:
        yield server


@pytest.fixture
def work(tmp_path: Path, server: LoopbackServer) -> Work:
    return Work(tmp_path, server)


def removed(run_dir: Path) -> None:
    # What is still at work there may make a file meanwhile.
    while run_dir.exists():
        shutil.rmtree(run_dir, ignore_errors=True)


def removed_a_while_ago(run_dir: Path) -> None:
    served_by = coordinator(run_dir / "runs.db")
    removed(run_dir)
    # Each second it looks by itself, and then stays for those who want to know.
    time.sleep(3.0)
    assert is_alive(served_by)


def moved_away(run_dir: Path) -> None:
    run_dir.rename(run_dir.with_name("moved"))


def moved_and_another_put_there(run_dir: Path) -> None:
    moved_away(run_dir)
    run_dir.mkdir()
    SqliteJournal(run_dir / "runs.db").close()


def brought_back_from_a_copy(run_dir: Path) -> None:
    shutil.copytree(run_dir, run_dir.with_name("copy"))
    shutil.rmtree(run_dir)
    run_dir.with_name("copy").rename(run_dir)


TakeAway = Callable[[Path], None]


@pytest.mark.parametrize(
    "take_away",
    [
        removed,
        moved_and_another_put_there,
        *(pytest.param(one, marks=pytest.mark.long) for one in (removed_a_while_ago, moved_away)),
    ],
)
async def test_the_next_command_begins_anew_and_is_not_answered_from_what_is_gone(
    ray: RayByHand, work: Work, tmp_path: Path, take_away: TakeAway
) -> None:
    drivers = Drivers(ray, tmp_path)
    started = time.monotonic()
    first = await drivers.run(*work.batch("a", "b"))
    first_s = time.monotonic() - started
    served_by = coordinator(work.store)

    take_away(work.run_dir)
    started = time.monotonic()
    second = await drivers.run(*work.batch("a", "b"))
    second_s = time.monotonic() - started

    assert second_s < first_s + 12.0, "it has waited for a cell that only stays to be asked"
    assert (first.status, second.status) == (0, 0), first.error + second.error
    assert not is_alive(served_by)
    assert coordinator(work.store) != served_by
    assert [heading.metadata["task_id"] for heading in work.headings()] == ["a", "b"]
    assert work.results() == {"a": "done", "b": "done"}
    assert sorted(work.lines()) == sorted([*marks("a", "b"), *marks("a", "b")])


async def test_one_that_is_brought_back_is_gone_on_with_by_another_cell(
    ray: RayByHand, work: Work, tmp_path: Path
) -> None:
    drivers = Drivers(ray, tmp_path)
    await drivers.run(*work.batch("a"))
    served_by = coordinator(work.store)

    brought_back_from_a_copy(work.run_dir)
    second = await drivers.run(*work.batch("a", "b"))

    assert second.status == 0, second.error
    assert not is_alive(served_by)
    assert work.results() == {"a": "done", "b": "done"}
    assert sorted(work.lines()) == marks("a", "b")


@pytest.mark.parametrize(
    ("take_away", "where"),
    [
        (removed, "ray"),
        pytest.param(brought_back_from_a_copy, "ray", marks=pytest.mark.long),
        (removed, "local"),
    ],
)
async def test_a_batch_in_progress_ends_with_what_happened_and_touches_nothing_more(
    ray: RayByHand,
    work: Work,
    server: LoopbackServer,
    tmp_path: Path,
    take_away: TakeAway,
    where: str,
) -> None:
    drivers = Drivers(ray, tmp_path)
    server.hold()
    command = [*work.batch("a", "b", "c", rounds=3), "-n", "2", "--runtime", where]
    batch = await drivers.start(*command)
    await server.until_open(2)
    served_by = coordinator(work.store) if where == "ray" else None

    take_away(work.run_dir)
    left = sorted(work.run_dir.rglob("*"))
    async with asyncio.timeout(ENDS_WITHIN_S):
        done = await ended(batch)

    assert done.status == 1, done.error
    assert str(work.run_dir) in done.error
    assert "while it was in use" in done.error
    assert "Traceback" not in done.error
    assert "3/3 done" not in done.out
    assert work.lines() == []
    assert sorted(work.run_dir.rglob("*")) == left
    assert served_by is None or not is_alive(served_by)

    server.release()
    again = await drivers.run(*command)

    assert again.status == 0, again.error
    assert work.results() == dict.fromkeys("abc", "done")
    assert len(work.lines()) == 9, "what was cut had made no call"


async def test_a_coordinator_that_ray_starts_again_makes_no_new_journal_and_says_so(
    ray: RayByHand, work: Work, server: LoopbackServer, tmp_path: Path
) -> None:
    drivers = Drivers(ray, tmp_path)
    server.hold()
    batch = await drivers.start(*work.batch("a", "b"))
    await server.until_open(2)
    served_by = coordinator(work.store)

    # In this order it cannot notice by itself.
    os.kill(served_by.pid, signal.SIGSTOP)
    removed(work.run_dir)
    os.kill(served_by.pid, signal.SIGKILL)
    async with asyncio.timeout(ENDS_WITHIN_S):
        done = await ended(batch)

    assert done.status == 1, done.error
    assert "its folder" in done.error
    assert "was removed or moved away while it was in use" in done.error
    assert not work.run_dir.exists()
    assert work.lines() == []


HARNESS = """
import asyncio, shutil, sys
from pathlib import Path
from harness_actors import AgentHarness, ChatAgent
from harness_actors.errors import StoreError
from harness_actors.testing import Reply, ScriptedModel

def says(messages):
    return Reply.call("work_complete", {"summary": "done"})

async def main(home, runtime):
    async with AgentHarness(ChatAgent(model=ScriptedModel(says)), runtime=runtime) as harness:
        print((await harness.run("one")).status)
        shutil.rmtree(home)
        for _ in range(2):
            try:
                await harness.run("two")
            except StoreError as error:
                print(error)
        harness.begin_conversation()
        print((await harness.run("three")).status)
        print(len(list(home.glob("*.db"))))

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


@pytest.mark.parametrize("where", ["ray", "local"])
async def test_a_harness_says_that_its_home_is_gone_until_it_is_told_to_begin_anew(
    ray: RayByHand, tmp_path: Path, where: str
) -> None:
    home = tmp_path / "home"
    script = (sys.executable, "-c", HARNESS, str(home), where)

    done = await Drivers(ray, home).run(command=script)

    assert done.status == 0, done.error
    first, *problems, third, journals = done.out.splitlines()
    assert (first, third, journals) == ("done", "done", "1")
    assert len(problems) == 2
    for problem in problems:
        assert "was removed or moved away while it was in use" in problem


def marks(*texts: str) -> list[str]:
    return [f"{text}:0 in first, says first" for text in texts]
