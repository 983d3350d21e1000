"""What do thousands of runs cost that wait for their users, and how soon do they go on?

Unit: processes, and proportional set size (PSS, without mapped files) in KB of the actors of a cell
on Ray, for each run that waits, over the second half of 10,000; seconds of
`harness ctl run list --status waiting --json` beside the cell; milliseconds until one answer is on
disk; seconds from the call that takes up 1,000 answered runs until the last of them has asked its
model. Each run has made one model call, in which it asked its user; at most 200 are in flight. The
model server is in the process of the driver, whose memory is in no figure.

A process or more than 1 KB for each run would mean that a run that waits is not data alone, and a
team that answers next week would keep a machine busy until then. A list of more than a second, an
answer of more than 50 ms or more than 10 s for 1,000 runs would be felt by whoever answers.

    python benchmarks/bench_waiting.py [--smoke] [--runs 10000] [--answered 1000]
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench_served_memory import actors_of
from benchmarks.findings import Finding, plain
from benchmarks.measure import machine, own_pss_kb, print_report, versions
from benchmarks.notes import INSTRUCTIONS, KEY, MODEL
from harness_actors.actors import Runtime, open_runtime
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig
from harness_actors.events import InputAwaited
from harness_actors.messages import Message
from harness_actors.models import OpenAIModel
from harness_actors.testing import LoopbackServer, Reply
from harness_actors.tools import ask_user

IN_FLIGHT = 200
WARM_UP = 200
SINGLE_ANSWERS = 100
LISTS = 5
ANSWERS_AT_ONCE = 50
QUESTION = "Which of the two versions is to be kept?"
ANSWER = "The newer one; the other may go."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A cell at a moment.

    Attributes:
        by_role: What each of its processes holds, in KB.
    """

    by_role: Mapping[str, int]

    @classmethod
    def of(cls, store: Path) -> "Reading":
        return cls(by_role={role: own_pss_kb(pid) for role, pid in actors_of(store).items()})

    @property
    def memory_kb(self) -> int:
        """What they hold together."""
        return sum(self.by_role.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What came out.

    Attributes:
        at_half: The cell with half of the runs.
        at_end: With all of them.
        lists_s: How long the command took that lists them, each time.
        answers_s: How long single answers took, each.
        taken_up_s: How long all those that were answered took to ask their models.
    """

    at_half: Reading
    at_end: Reading
    lists_s: Sequence[float]
    answers_s: Sequence[float]
    taken_up_s: float


class AskingModel:
    """Asks its user first, and is done when it is answered.

    Attributes:
        went_on: Model calls that had an answer of a user in them.
        last_at: When the newest of these came.
    """

    def __init__(self) -> None:
        self.went_on = 0
        self.last_at = 0.0
        self._all = asyncio.Event()
        self._wanted = 0

    def reply(self, body: dict[str, Any]) -> Reply:
        if all(message["role"] != "tool" for message in body["messages"]):
            return Reply.call("ask_user", {"question": QUESTION, "why": "to go on"})
        self.went_on, self.last_at = self.went_on + 1, time.perf_counter()
        if self.went_on >= self._wanted:
            self._all.set()
        return Reply.text("It is done.")

    async def until(self, count: int) -> None:
        """Return when so many have gone on."""
        self._wanted = count
        self._all.clear()
        if self.went_on < count:
            await self._all.wait()


async def have_asked(runtime: Runtime, program: Program, runs: int) -> list[str]:
    """Submit runs as others wait, until so many do; their ids."""
    config = HarnessConfig(completion="answer")
    cursor = await runtime.position()
    waiting: list[str] = []
    submitted = 0
    while len(waiting) < runs:
        free = min(IN_FLIGHT - (submitted - len(waiting)), runs - submitted)
        if free:
            specs = [program.spec((Message.user("Tidy up."),), config) for _ in range(free)]
            code = {program.code: program.blob}
            await runtime.submit(specs, code=code, secrets=program.secrets)
            submitted += free
        news = await runtime.wait_for_news(cursor)
        cursor = news.cursor
        waiting += [one.run_id for one in news.events if isinstance(one.event, InputAwaited)]
    return waiting


async def answer(runtime: Runtime, run_ids: Sequence[str]) -> None:
    """Answer runs, several at once."""
    room = asyncio.Semaphore(ANSWERS_AT_ONCE)

    async def one(run_id: str) -> None:
        async with room:
            await runtime.answer(run_id, {"q1": ANSWER})

    await asyncio.gather(*map(one, run_ids))


async def list_waiting(store: Path, expected: int) -> float:
    """Seconds of the command that lists what waits."""
    command = [sys.executable, "-m", "harness_actors", "ctl", "run", "list", "--limit", "0"]
    command += ["--status", "waiting", "--json", "--store", str(store)]
    began = time.perf_counter()
    ran = await asyncio.to_thread(subprocess.run, command, stdout=subprocess.PIPE, check=True)
    took_s = time.perf_counter() - began
    if (listed := len(json.loads(ran.stdout))) != expected:
        raise RuntimeError(f"{listed} runs are listed, and {expected} wait")
    return took_s


async def measure(folder: Path, runs: int, answered: int) -> Found:
    """All of it, in one cell."""
    store = folder / "runs.db"
    model = AskingModel()
    async with LoopbackServer(model.reply, keep=0) as server:
        provider = OpenAIModel(MODEL, base_url=server.base_url, api_key=KEY)
        program = Program.of(ChatAgent(model=provider, instructions=INSTRUCTIONS, tools=[ask_user]))
        runtime = await open_runtime("ray", store=store, address="local", command=uuid4().hex)
        try:
            warm = await have_asked(runtime, program, min(WARM_UP, runs))
            await answer(runtime, warm)
            await runtime.resume(warm, secrets=program.secrets)
            await model.until(len(warm))
            waiting = await have_asked(runtime, program, runs // 2)
            at_half = Reading.of(store)
            waiting += await have_asked(runtime, program, runs - runs // 2)
            at_end = Reading.of(store)
            lists_s = [await list_waiting(store, runs) for _ in range(LISTS)]
            single, many = waiting[:SINGLE_ANSWERS], waiting[-answered:]
            answers_s = [await timed_answer(runtime, run_id) for run_id in single]
            await answer(runtime, [run_id for run_id in many if run_id not in single])
            began, before = time.perf_counter(), model.went_on
            taking_up = asyncio.create_task(runtime.resume(many, secrets=program.secrets))
            await model.until(before + len(many))
            await taking_up
            return Found(
                at_half=at_half,
                at_end=at_end,
                lists_s=lists_s,
                answers_s=answers_s,
                taken_up_s=model.last_at - began,
            )
        finally:
            await runtime.close()


async def timed_answer(runtime: Runtime, run_id: str) -> float:
    began = time.perf_counter()
    await answer(runtime, [run_id])
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs that wait for their users.")
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--answered", type=int, default=1_000)
    options = parser.parse_args()
    runs, answered = (300, 100) if options.smoke else (options.runs, options.answered)
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="waiting-") as folder:
        found = asyncio.run(measure(Path(folder), runs, answered))
    grown_kb = (found.at_end.memory_kb - found.at_half.memory_kb) / (runs - runs // 2)
    added = len(found.at_end.by_role) - len(found.at_half.by_role)
    findings = [
        Finding.of(f"processes for {runs} more runs that wait", [added], unit="", at_most=0),
        Finding.of("memory of the cell for each of them", [grown_kb], unit="KB", at_most=1.0),
        Finding.of("ctl run list --status waiting --json", found.lists_s, unit="s", at_most=1.0),
        Finding.of(
            "one answer on disk", [1000 * s for s in found.answers_s], unit="ms", at_most=50.0
        ),
        Finding.of(
            f"{answered} answered runs taken up", [found.taken_up_s], unit="s", at_most=10.0
        ),
    ]
    report: dict[str, Any] = {
        "benchmark": "waiting",
        "unit": "processes; KB PSS per run; s; ms",
        "machine": facts,
        "versions": versions("ray"),
        "n": 1,
        "runs": runs,
        "answered": answered,
        "memory_kb": [found.at_half.by_role, found.at_end.by_role],
        "findings": plain(findings),
    }
    rows = [(one.question, str(one.figure), one.unit) for one in findings]
    print_report(report, ("question", "figure", "unit"), rows)


if __name__ == "__main__":
    main()
