"""On a Ray that was there before: cells that outlive their commands, and serve the next ones."""

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from harness_actors.actors.processes import is_alive
from harness_actors.records import ProcessMark
from harness_actors.testing import LoopbackServer, over_messages
from tests.actors.joined import Drivers, coordinator, ended, gone, joined_ray
from tests.actors.work import Work, kill_in_flight, marks_then_completes
from tests.chaos.rays import RayByHand

pytestmark = [pytest.mark.ray, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def ray() -> Iterator[RayByHand]:
    with joined_ray() as ray:
        yield ray


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer(over_messages(marks_then_completes)) as server:
        yield server


@pytest.fixture
async def slow() -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer(over_messages(marks_then_completes)) as server:
        yield server


@pytest.fixture
def work(tmp_path: Path, server: LoopbackServer) -> Work:
    return Work(tmp_path, server)


async def test_the_next_command_finds_the_cell_warm_and_its_tools_as_they_are_now(
    ray: RayByHand, work: Work, tmp_path: Path
) -> None:
    drivers = Drivers(ray, tmp_path)

    first = await drivers.run(*work.batch("a"))
    served_by = coordinator(work.store)
    work.edit("second")
    second = await drivers.run(*work.batch("a", "b"))

    assert (first.status, second.status) == (0, 0), first.error + second.error
    assert coordinator(work.store) == served_by
    assert work.lines() == ["a:0 in first, says first", "b:0 in second, says second"]

    third = await drivers.run(*work.batch("a", "b", "c"), "--runtime", "local")

    assert third.status == 0, third.error
    assert not is_alive(served_by), "it made way, for nothing was in progress"
    assert work.results() == dict.fromkeys("abc", "done")


async def test_a_batch_whose_command_is_killed_goes_on_and_the_next_one_collects(
    ray: RayByHand, work: Work, server: LoopbackServer, tmp_path: Path
) -> None:
    drivers, texts = Drivers(ray, tmp_path), ("a", "b", "c", "d")
    command = work.batch(*texts, rounds=3)
    await kill_in_flight(drivers, [*command, "-n", "3"], server, 3)
    served_by = coordinator(work.store)

    listed, stop, local = await asyncio.gather(
        drivers.run("ctl", "cell", "list", "--json"),
        drivers.run("ctl", "cell", "stop", str(work.run_dir)),
        drivers.run(*command, "--runtime", "local"),
    )

    cells = {cell["store"]: cell for cell in json.loads(listed.out)}
    cell = cells[str(work.store)]
    assert (cell["status"], cell["pid"]) == ("serving", served_by.pid)
    assert (len(cell["in_progress"]), cell["held"], cell["term"]) == (3, 0, 1)
    assert stop.status == 1
    assert "3 runs are in progress" in stop.out
    assert local.status == 2
    assert "harness ctl cell stop" in local.error

    collecting = await drivers.start(*command, "-n", "3", HARNESS_CELL_IDLE_S="0")
    server.release()
    done = await ended(collecting)

    assert done.status == 0, done.error
    assert work.results() == dict.fromkeys(texts, "done")
    assert len(work.headings()) == len(texts), "nothing was run twice"
    assert set(Counter(work.lines()).values()) == {1}, "no call began twice"
    assert len(work.lines()) == 3 * len(texts)
    assert work.coordinators() == [served_by], "there was never another"
    assert not is_alive(served_by), "it ended with its command, as it was told"


async def test_a_stopped_cell_is_found_out_and_replaced_or_ended(
    ray: RayByHand, work: Work, tmp_path: Path
) -> None:
    drivers, store = Drivers(ray, tmp_path), tmp_path / "runs.db"
    await asyncio.gather(drivers.run(*work.run("a")), drivers.run(*work.batch("b")))
    stopped, silent = coordinator(store), coordinator(work.store)
    for one in (stopped, silent):
        os.kill(one.pid, signal.SIGSTOP)

    done, ending = await asyncio.gather(
        drivers.run(*work.run("c")),
        drivers.run("ctl", "cell", "stop", str(work.run_dir), "--json"),
    )

    assert done.status == 0, done.error
    assert ending.status == 0, ending.out + ending.error
    assert json.loads(ending.out)["pid"] == silent.pid
    assert not is_alive(stopped)
    assert not is_alive(silent)
    assert len(work.lines()) == 3

    fresh = coordinator(store)
    # Of its own Ray alone: others of this machine are not ours to stop.
    address = (Path(ray.variables["RAY_TMPDIR"]) / "ray/ray_current_cluster").read_text().strip()
    every = ("ctl", "cell", "stop", "--all", "--address", address)
    left = await drivers.run(*every, HARNESS_HOME=str(tmp_path / "other"))
    assert (left.status, left.out) == (0, "nothing to stop\n")
    assert f"left out: {store}: a command with HARNESS_HOME={tmp_path} started it" in left.error
    assert is_alive(fresh)
    idle = await drivers.run(*every)
    assert (idle.status, idle.out) == (0, f"{store}: stopped\n")
    assert not is_alive(fresh)


BETWEEN = """
import asyncio, sys
from pathlib import Path
from harness_actors import AgentHarness, ChatAgent
from harness_actors.testing import Reply, ScriptedModel
from tests.actors.joined import coordinator, gone

def says(messages):
    return Reply.call("work_complete", {"summary": "done"})

async def main(store):
    async with AgentHarness(ChatAgent(model=ScriptedModel(says)), store=store) as harness:
        for _ in range(2):
            result = await harness.run("something")
            print(result.status, coordinator(store).pid)
            await gone(store)

asyncio.run(main(Path(sys.argv[1])))
"""


async def test_a_driver_does_not_notice_that_its_idle_cell_has_left(
    ray: RayByHand, tmp_path: Path
) -> None:
    drivers = Drivers(ray, tmp_path, idle_s=0.5)
    script = (sys.executable, "-c", BETWEEN, str(tmp_path / "runs.db"))

    done = await drivers.run(command=script)

    assert done.status == 0, done.error
    said = [line.split() for line in done.out.splitlines()]
    assert [status for status, _ in said] == ["done", "done"]
    assert said[0][1] != said[1][1]


PAUSES = """
import asyncio, os, sys
from pathlib import Path
from harness_actors import AgentHarness, ChatAgent
from harness_actors.testing import Reply, ScriptedModel

def says(messages):
    return Reply.call("work_complete", {"summary": "done"})

async def main(store, pipe):
    async with AgentHarness(ChatAgent(model=ScriptedModel(says)), store=store) as harness:
        for _ in range(2):
            print((await harness.run("something")).status, flush=True)
            await asyncio.to_thread(Path(pipe).read_text)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


SHORT_OF_MEMORY = """
import asyncio
from harness_actors.actors.joining.connect import connect
from harness_actors.actors.on_ray.neighbours import make_room
from harness_actors.actors.on_ray.placement import node_of_driver

connect(None)
asyncio.run(make_room(node_of_driver(), short=True))
"""


async def test_idle_cells_leave_when_newer_ones_are_warm_but_none_that_is_of_use(
    ray: RayByHand, work: Work, slow: LoopbackServer, tmp_path: Path
) -> None:
    drivers, served_by = Drivers(ray, tmp_path), []
    for number in range(3):
        run_dir = tmp_path / f"out-{number}"
        done = await drivers.run(*work.batch(f"t{number}", run_dir=run_dir))
        assert done.status == 0, done.error
        served_by.append(coordinator(run_dir / "runs.db"))
    await until_gone(served_by[0])
    assert all(map(is_alive, served_by[1:])), "the newest, and one besides"

    held, pipe, busy = tmp_path / "held.db", tmp_path / "pipe", Work(tmp_path / "busy", slow)
    os.mkfifo(pipe)
    pausing = await drivers.start(str(held), str(pipe), command=(sys.executable, "-c", PAUSES))
    assert pausing.stdout is not None
    assert await pausing.stdout.readline() == b"done\n"
    await kill_in_flight(drivers, busy.batch("busy"), slow, 1)
    in_use = [coordinator(held), coordinator(busy.store)]
    await until_gone(served_by[1])

    listed = await drivers.run("ctl", "cell", "list", "--json")
    cells = {cell["pid"]: cell for cell in json.loads(listed.out)}
    assert cells.keys() == {mark.pid for mark in [*in_use, served_by[2]]}
    assert cells[served_by[2].pid]["status"] == "warm"
    assert [cells[mark.pid]["status"] for mark in in_use] == ["serving", "serving"]
    assert all(len(cell["processes"]) >= 3 for cell in cells.values())
    assert all(cell["memory_mb"] > 100 for cell in cells.values())

    short = await drivers.run(command=(sys.executable, "-c", SHORT_OF_MEMORY))
    assert short.status == 0, short.error
    await until_gone(served_by[2])

    # By the number that its own command named.
    command = work.batch("t2", "more", run_dir=tmp_path / "out-2")
    assert (await drivers.run(*command, HARNESS_WARM_CELLS="0")).status == 0
    await gone(tmp_path / "out-2" / "runs.db")
    assert all(map(is_alive, in_use))

    pipe.write_text("go on")
    assert await pausing.stdout.readline() == b"done\n"
    assert coordinator(held) == in_use[0]
    pipe.write_text("that is all")
    assert (await ended(pausing)).status == 0


TOGETHER = """
import asyncio, sys
from harness_actors import AgentHarness, ChatAgent
from harness_actors.testing import Reply, ScriptedModel

def says(messages):
    return Reply.call("work_complete", {"summary": "done"})

async def main(stores):
    agent = ChatAgent(model=ScriptedModel(says))
    harnesses = [AgentHarness(agent, store=store) for store in stores]
    runs = await asyncio.gather(*(harness.run("something") for harness in harnesses))
    print({run.status for run in runs})
    await asyncio.gather(*(harness.close() for harness in harnesses))

asyncio.run(main(sys.argv[1:]))
"""


async def test_cells_leave_at_the_same_moment_though_they_ask_each_other(
    ray: RayByHand, tmp_path: Path
) -> None:
    # They look around when they have been idle for a second, and leave right after it.
    drivers = Drivers(ray, tmp_path, idle_s=1.1)
    stores = [tmp_path / f"{number}.db" for number in range(4)]
    script = (sys.executable, "-c", TOGETHER, *map(str, stores))

    done = await drivers.run(command=script)

    assert (done.status, done.out) == (0, "{'done'}\n"), done.error
    await asyncio.gather(*map(gone, stores))


async def until_gone(*marks: ProcessMark) -> None:
    async with asyncio.timeout(60):
        while any(map(is_alive, marks)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_without_a_ray_that_can_be_reached_a_list_says_so(
    ray: RayByHand, tmp_path: Path
) -> None:
    listed = await Drivers(ray, tmp_path).run("ctl", "cell", "list", "--address", "127.0.0.1:1")

    assert listed.status == 2
    assert "127.0.0.1:1" in listed.error
    assert "Traceback" not in listed.error
