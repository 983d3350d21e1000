"""On a Ray that was there before: cells that outlive their commands, and serve the next ones."""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest

from harness_actors.actors.processes import is_alive
from harness_actors.messages import Message
from harness_actors.records import ProcessMark, RunHeading
from harness_actors.stores import JournalReader
from harness_actors.testing import LoopbackServer, Reply, over_messages
from tests.actors.joined import Drivers, coordinator, ended, joined_ray
from tests.chaos.rays import RayByHand

pytestmark = [pytest.mark.ray, pytest.mark.timeout(240)]

AGENT = """
model: {id: scripted}
environment: {tools: ["work:mark"]}
"""
HELPER = """
def said(text):
    return f"{text}, says VERSION"
"""
TOOL = """
import os
from harness_actors.tools import tool
import helping

@tool
def mark(path: str, text: str) -> str:
    \"\"\"Write a line.\"\"\"
    with open(path, "a") as file:
        file.write(helping.said(f"{text} in VERSION") + "\\n")
    return "marked"
"""


def marks_then_completes(messages: Sequence[Message]) -> Reply:
    """Calls the tool as often as the task says, then is done."""
    task = next(message.text for message in messages if message.role == "user")
    path, text, rounds = task.split()
    spoken = sum(message.role == "assistant" for message in messages)
    if spoken < int(rounds):
        return Reply.call("mark", {"path": path, "text": f"{text}:{spoken}"})
    return Reply.call("work_complete", {"summary": text})


@pytest.fixture(scope="module")
def ray() -> Iterator[RayByHand]:
    with joined_ray() as ray:
        yield ray


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer(over_messages(marks_then_completes)) as server:
        yield server


class Work:
    """A folder with an agent, its tool and its tasks."""

    def __init__(self, folder: Path, server: LoopbackServer) -> None:
        self.folder = folder
        self.log = folder / "log"
        self.run_dir = folder / "out"
        self.store = self.run_dir / "runs.db"
        self._model = ("--model-base-url", server.base_url)
        (folder / "agent.yaml").write_text(AGENT)
        self.edit("first")

    def edit(self, version: str) -> None:
        """Change the tool's module, and the one that it imports."""
        for name, text in (("work.py", TOOL), ("helping.py", HELPER)):
            (self.folder / name).write_text(text.replace("VERSION", version))
        shutil.rmtree(self.folder / "__pycache__", ignore_errors=True)

    def task(self, text: str, rounds: int = 1) -> str:
        return f"{self.log} {text} {rounds}"

    def run(self, text: str) -> list[str]:
        return ["run", self.task(text), "--agent", str(self.folder / "agent.yaml"), *self._model]

    def batch(self, *texts: str, rounds: int = 1) -> list[str]:
        tasks = self.folder / "tasks.jsonl"
        lines = [{"id": text, "task": self.task(text, rounds)} for text in texts]
        tasks.write_text("".join(json.dumps(line) + "\n" for line in lines))
        agent = ("--agent", str(self.folder / "agent.yaml"))
        return ["batch", str(tasks), "--run-dir", str(self.run_dir), *agent, *self._model]

    def lines(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def results(self) -> dict[str, str]:
        path = self.run_dir / "results.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return {line["id"]: line["status"] for line in lines}

    def headings(self) -> list[RunHeading]:
        return JournalReader(self.store).headings()

    def coordinators(self) -> list[ProcessMark]:
        """All that ever served its runs."""
        marks = JournalReader(self.store).load_processes()
        return [mark for mark in marks if mark.role == "coordinator"]


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
    idle = await drivers.run("ctl", "cell", "stop", str(store))
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


async def test_without_a_ray_that_can_be_reached_a_list_says_so(
    ray: RayByHand, tmp_path: Path
) -> None:
    listed = await Drivers(ray, tmp_path).run("ctl", "cell", "list", "--address", "127.0.0.1:1")

    assert listed.status == 2
    assert "127.0.0.1:1" in listed.error
    assert "Traceback" not in listed.error


async def kill_in_flight(
    drivers: Drivers, command: Sequence[str], server: LoopbackServer, calls: int
) -> None:
    """Begin a command, and kill it when its model was called so often; nothing is answered."""
    server.hold()
    killed = await drivers.start(*command)
    await server.until_open(calls)
    killed.kill()
    await ended(killed)
