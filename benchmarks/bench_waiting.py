"""What do thousands of runs cost that wait for their users, and how soon do they go on?

Unit: processes, and proportional set size (PSS, without mapped files) in KB of the actors of a cell
on Ray, for each run that waits, over the second half of 10,000; seconds of
`harness ctl run list --status waiting --json` beside the cell; milliseconds until one answer is on
disk; seconds from the call that takes up 1,000 answered runs until the last of them has asked its
model. Each run has made one model call, in which it asked its user, or called a tool that a person
must approve of and then does; at most 200 are in flight. The model server is in the process of the
driver, whose memory is in no figure.

A process or more than 1 KB for each run would mean that a run that waits is not data alone, and a
team that answers next week would keep a machine busy until then. A list of more than a second, an
answer of more than 50 ms or more than 10 s for 1,000 runs would be felt by whoever answers.

    python benchmarks/bench_waiting.py [--smoke] [--runs 10000] [--answered 1000]
        [--only questions|approvals]
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
from harness_actors.policies import ApprovalRule, Approvals, Approve
from harness_actors.policies.decisions import decision_text
from harness_actors.testing import LoopbackServer, Reply
from harness_actors.tools import ask_user, tool

IN_FLIGHT = 200
WARM_UP = 200
SINGLE_ANSWERS = 100
LISTS = 5
ANSWERS_AT_ONCE = 50
QUESTION = "Which of the two versions is to be kept?"
ANSWER = "The newer one; the other may go."


@tool(effect="network")
async def refund(order: str, usd: float) -> str:
    """Refund an order.

    Args:
        order: Its number.
        usd: How much.
    """
    return f"refunded {usd:g} USD of {order}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """What runs wait for.

    Attributes:
        name: As on the command line.
        asks: What a model says by which its run waits.
        agent: Further facts of the agent.
        answer: What goes on with it.
    """

    name: str
    asks: Reply
    agent: Mapping[str, Any]
    answer: str


WAITS = (
    Wait(
        name="questions",
        asks=Reply.call("ask_user", {"question": QUESTION, "why": "to go on"}),
        agent={"tools": [ask_user]},
        answer=ANSWER,
    ),
    Wait(
        name="approvals",
        asks=Reply.call("refund", {"order": "2025-0017", "usd": 120.0}),
        agent={
            "tools": [refund],
            "approvals": Approvals(
                rules=[ApprovalRule(decide="ask", tools=["refund"], why="it is our money")]
            ),
        },
        answer=decision_text(Approve()),
    ),
)


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

    Args:
        asks: How it does.

    Attributes:
        went_on: Model calls that had an answer of a user in them.
        last_at: When the newest of these came.
    """

    def __init__(self, asks: Reply) -> None:
        self._asks = asks
        self.went_on = 0
        self.last_at = 0.0
        self._all = asyncio.Event()
        self._wanted = 0

    def reply(self, body: dict[str, Any]) -> Reply:
        if all(message["role"] != "tool" for message in body["messages"]):
            return self._asks
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


async def answer(runtime: Runtime, run_ids: Sequence[str], said: str) -> None:
    """Answer runs, several at once."""
    room = asyncio.Semaphore(ANSWERS_AT_ONCE)

    async def one(run_id: str) -> None:
        async with room:
            await runtime.answer(run_id, {"q1": said})

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


async def measure(folder: Path, wait: Wait, runs: int, answered: int, lists: int) -> Found:
    """All of it, in one cell."""
    store = folder / "runs.db"
    model = AskingModel(wait.asks)
    async with LoopbackServer(model.reply, keep=0) as server:
        provider = OpenAIModel(MODEL, base_url=server.base_url, api_key=KEY)
        agent = ChatAgent(model=provider, instructions=INSTRUCTIONS, **wait.agent)
        program = Program.of(agent)
        runtime = await open_runtime("ray", store=store, address="local", command=uuid4().hex)
        try:
            warm = await have_asked(runtime, program, min(WARM_UP, runs))
            await answer(runtime, warm, wait.answer)
            await runtime.resume(warm, secrets=program.secrets)
            await model.until(len(warm))
            waiting = await have_asked(runtime, program, runs // 2)
            at_half = Reading.of(store)
            waiting += await have_asked(runtime, program, runs - runs // 2)
            at_end = Reading.of(store)
            lists_s = [await list_waiting(store, runs) for _ in range(lists)]
            single, many = waiting[:SINGLE_ANSWERS], waiting[-answered:]
            answers_s = [await timed_answer(runtime, run_id, wait.answer) for run_id in single]
            others = [run_id for run_id in many if run_id not in single]
            await answer(runtime, others, wait.answer)
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


async def timed_answer(runtime: Runtime, run_id: str, said: str) -> float:
    began = time.perf_counter()
    await answer(runtime, [run_id], said)
    return time.perf_counter() - began


def findings_of(name: str, found: Found, runs: int, answered: int) -> list[Finding]:
    """What was found of those that wait for one thing, beside what it may be."""
    grown_kb = (found.at_end.memory_kb - found.at_half.memory_kb) / (runs - runs // 2)
    added = len(found.at_end.by_role) - len(found.at_half.by_role)
    answers_ms = [1000 * s for s in found.answers_s]
    return [
        Finding.of(f"{name}: processes for {runs} runs that wait", [added], unit="", at_most=0),
        Finding.of(
            f"{name}: memory of the cell for each of them", [grown_kb], unit="KB", at_most=1.0
        ),
        Finding.of(
            f"{name}: ctl run list --status waiting --json",
            found.lists_s,
            unit="s",
            at_most=1.0,
            computing=True,
        ),
        Finding.of(
            f"{name}: one answer on disk", answers_ms, unit="ms", at_most=50.0, computing=True
        ),
        Finding.of(
            f"{name}: {answered} answered runs taken up",
            [found.taken_up_s],
            unit="s",
            at_most=10.0,
            computing=True,
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Runs that wait for their users.")
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--answered", type=int, default=1_000)
    parser.add_argument("--only", choices=[wait.name for wait in WAITS])
    options = parser.parse_args()
    runs, answered = (300, 100) if options.smoke else (options.runs, options.answered)
    lists = 1 if options.smoke else LISTS
    facts = machine()
    findings: list[Finding] = []
    memory_kb: dict[str, Any] = {}
    for wait in WAITS:
        if options.only not in (None, wait.name):
            continue
        with tempfile.TemporaryDirectory(prefix="waiting-") as folder:
            found = asyncio.run(measure(Path(folder), wait, runs, answered, lists))
        findings += findings_of(wait.name, found, runs, answered)
        memory_kb[wait.name] = [found.at_half.by_role, found.at_end.by_role]
    report: dict[str, Any] = {
        "benchmark": "waiting",
        "unit": "processes; KB PSS per run; s; ms",
        "machine": facts,
        "versions": versions("ray"),
        "n": 1,
        "runs": runs,
        "answered": answered,
        "memory_kb": memory_kb,
        "findings": plain(findings),
    }
    rows = [(one.question, str(one.figure), one.unit) for one in findings]
    print_report(report, ("question", "figure", "unit"), rows)


if __name__ == "__main__":
    main()
