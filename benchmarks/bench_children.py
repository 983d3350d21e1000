"""What does it cost to delegate, and how many may wait at once?

Unit: seconds on the wall between the message by which a run delegates and its next request, which
has all results; milliseconds of CPU, of the actors of the cell and its driver, for one delegation
more, beside a call of a tool that does nothing; proportional set size (PSS) in KB for each child
that waits for its model, or is queued; bytes of what the parent commits as a child ends; seconds
until a tree that is cancelled is over, on disk and in processes. Models are scripted, so no server
takes a part.

A wait of many children much longer than their models take, or a delegation that costs more than a
few rounds, would make people do without; memory for each would end what a thousand of them are for.

    python benchmarks/bench_children.py [--smoke] [--at-once 64] [--waiting 1000] [--queued 10000]
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench_served_memory import actors_of
from benchmarks.command import publish, read_options
from benchmarks.findings import Finding
from benchmarks.measure import own_pss_kb
from harness_actors import AgentHarness, ChatAgent, Limits, tool
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.stores import JournalReader
from harness_actors.stores.codec import pack_delta
from harness_actors.subagents import SubAgentSpec
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools.coding import coding_tools

CHILD_CALLS, CHILD_CALL_S = 3, 0.5
QUEUES = {"max_depth": 2, "max_parallel": 1}
ONE_BY_ONE = 50
FEW = 10
SETTLED_S = 2.0


@tool(effect="read_only", volatile=True, polled=True)
async def noop() -> str:
    """Do nothing."""
    return "done"


@tool(effect="read_only", volatile=True, polled=True)
def stand_still(seconds: float) -> str:
    """Block a thread."""
    time.sleep(seconds)
    return "done"


class TimedModel:
    """Says what it is told by the instructions of its agent, and writes down when.

    Those of the agent at the top are a plan: what it calls, and how often. What children do is in
    their prompts.
    """

    name = "timed"
    key_names: tuple[str, ...] = ()

    def __init__(self, times: Path) -> None:
        self._times = times

    async def complete(self, request: ModelRequest) -> ModelResponse:
        began = time.monotonic()
        talk = request.messages
        at_the_top = talk[0].text.startswith("top")
        reply = await (top(talk) if at_the_top else below(talk))
        answer = await ScriptedModel(lambda _: reply).complete(request)
        if at_the_top:
            # The clock is that of the machine, so that it may be read in another process.
            with self._times.open("a") as file:
                file.write(f"{began} {time.monotonic()}\n")
        return answer

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        yield await self.complete(request)


def spoken_in(talk: Any) -> int:
    return sum(message.role == "assistant" for message in talk)


async def top(talk: Any) -> Reply:
    """By its task: ``NAME PROMPT ROUNDS CALLS``."""
    task = next(message.text for message in talk if message.role == "user")
    name, prompt, rounds, calls = task.split()
    if spoken_in(talk) >= int(rounds):
        return Reply.text("All is done.")
    given = {} if name == "noop" else {"prompt": prompt}
    return Reply.calls([(name, given)] * int(calls))


async def below(talk: Any) -> Reply:
    """By its prompt: `at-once`, `slow`, `waits`, `deep-N`, `command` or `thread`."""
    prompt = next(message.text for message in talk if message.role == "user")
    spoken = spoken_in(talk)
    match prompt.partition("-"):
        case "slow", _, _:
            await asyncio.sleep(CHILD_CALL_S)
            return Reply.call("noop") if spoken < CHILD_CALLS - 1 else Reply.text("Done.")
        case "waits", _, _:
            await asyncio.sleep(3_600)
        case "deep", _, most if spoken == 0:
            leaves = [("child", {"prompt": "waits"})] * int(most)
            odd = [("child", {"prompt": "command"}), ("child", {"prompt": "thread"})]
            return Reply.calls([*leaves, *odd])
        case "command", _, _ if spoken == 0:
            return Reply.call("run_command", {"command": "sleep 3600"})
        case "thread", _, _ if spoken == 0:
            return Reply.call("stand_still", {"seconds": 20.0})
    return Reply.text("Done.")


class Cell:
    """A harness whose agent delegates, in a folder of its own."""

    def __init__(self, folder: Path, runtime: Any, **settings: Any) -> None:
        self.store, self._times = folder / "runs.db", folder / "times"
        leaf = SubAgentSpec(name="child", description="Does it.")
        deep = SubAgentSpec(name="child", description="Does it.", sub_agents=[leaf])
        agent = ChatAgent(
            model=TimedModel(self._times),
            instructions="top",
            tools=[noop, stand_still, *coding_tools()],
            sub_agents=[deep],
        )
        given: dict[str, Any] = {
            "completion": "answer",
            "stall": None,
            "max_rounds_per_turn": 1_000,
            "limits": Limits(model_calls=1_000_000, calls_per_message=100_000),
            "sub_agents": {"max_depth": 2, "max_parallel": 10_000},
        }
        self.harness = AgentHarness(
            agent,
            runtime=runtime,
            address="local" if runtime == "ray" else None,
            store=self.store,
            workspace=folder / "work",
            **{**given, **settings},
        )

    async def run(self, task: str) -> None:
        self.harness.begin_conversation()
        result = await self.harness.run(task)
        if result.status != "done":
            raise RuntimeError(f"a run ended {result.status}: {result.reason.message}")

    def gaps(self, rounds: int) -> list[float]:
        """Seconds between each answer of the newest run's model and its next request."""
        lines = [line.split() for line in self._times.read_text().splitlines()[-rounds - 1 :]]
        pairs = pairwise(lines)
        return [float(later[0]) - float(earlier[1]) for earlier, later in pairs]

    def processes(self) -> dict[str, int]:
        found = actors_of(self.store)
        return found or {"driver": os.getpid()}

    def cpu_s(self) -> float:
        pids = {*self.processes().values(), os.getpid()}
        return sum(_cpu_s(pid) for pid in pids)

    def memory_kb(self) -> int:
        return sum(own_pss_kb(pid) for pid in self.processes().values())

    async def until(self, held: Any) -> None:
        async with asyncio.timeout(300):
            while not held():  # noqa: ASYNC110 - by others
                await asyncio.sleep(0.05)

    def begun(self) -> int:
        return sum(bool(one.root) for one in JournalReader(self.store).headings())


def _cpu_s(pid: int) -> float:
    """Of a process: user and system."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def delegations(folder: Path, options: Any) -> dict[str, list[float]]:
    """What single delegations and many at once take."""
    found: dict[str, list[float]] = {"first": [], "wide": [], "wall_ms": [], "cpu_ms": []}
    for number in range(options.repeats):
        cell = Cell(folder / f"{number}", options.runtime)
        async with cell.harness:
            await cell.run("child at-once 1 1")
            found["first"].append(cell.gaps(1)[0])
            await cell.run(f"child slow 1 {options.at_once}")
            found["wide"].append(cell.gaps(1)[0] / (CHILD_CALLS * CHILD_CALL_S))
            cost: dict[str, float] = {}
            for name in ("noop", "child"):
                before = cell.cpu_s()
                await cell.run(f"{name} at-once {options.one_by_one} 1")
                cost[name] = cell.cpu_s() - before
            gaps = cell.gaps(options.one_by_one)
            found["wall_ms"].append(1e3 * sorted(gaps)[len(gaps) // 2])
            more = cost["child"] - cost["noop"]
            found["cpu_ms"].append(1e3 * more / options.one_by_one)
    return found


async def waiting(folder: Path, options: Any) -> dict[str, float]:
    """What children take in memory that wait for their models, or are queued."""
    found: dict[str, float] = {}
    for name, many, settings in (
        ("waiting_kb", options.waiting, {}),
        # So many calls fill a window, and who makes room in it is an actor of its own.
        ("queued_kb", options.queued, {"sub_agents": QUEUES, "compaction": None}),
    ):
        cell = Cell(folder / name, options.runtime, **settings)
        async with cell.harness:
            await cell.run(f"child at-once 1 {FEW}")
            processes, before = len(cell.processes()), cell.memory_kb()
            running = asyncio.ensure_future(cell.run(f"child waits 1 {many}"))
            await cell.until(lambda cell=cell, many=many: cell.begun() == FEW + many)
            await asyncio.sleep(SETTLED_S)
            found[name] = (cell.memory_kb() - before) / many
            more = len(cell.processes()) - processes
            found["processes"] = max(more, found.get("processes", 0))
            running.cancel()
            await asyncio.wait([running])
    return found


async def commits(folder: Path, options: Any) -> dict[int, float]:
    """Bytes that a parent commits for the end of each child, by how many it has."""
    found: dict[int, float] = {}
    for many in (FEW, options.waiting):
        cell = Cell(folder / f"commits-{many}", "local")
        async with cell.harness:
            await cell.run(f"child at-once 1 {many}")
        journal = JournalReader(cell.store)
        (root,) = [one.run_id for one in journal.headings() if not one.root]
        changes = journal.load_changes(root, limit=100_000)
        sizes = [
            len(pack_delta(change.delta) or b"")
            for change in changes
            if any(event.type == "child_ended" for event in change.delta.events)
        ]
        found[many] = sum(sizes) / len(sizes)
    return found


async def cancelled(folder: Path, options: Any) -> float:
    """Seconds until a tree is over, from the call that cancels it."""
    cell = Cell(folder / "cancelled", options.runtime)
    async with cell.harness:
        await cell.run("child at-once 1 1")
        running = asyncio.ensure_future(cell.run(f"child deep-{options.at_once - 3} 1 1"))
        await cell.until(lambda: cell.begun() == 1 + options.at_once and sleepers())
        runtime = await cell.harness._placed.runtime()
        assert cell.harness.run_id is not None
        began = time.monotonic()
        await runtime.stop([cell.harness.run_id], "cancel")
        journal = JournalReader(cell.store)
        await cell.until(lambda: all(one.end for one in journal.headings()) and not sleepers())
        took = time.monotonic() - began
        # It says that it was cancelled, which it was.
        await asyncio.gather(running, return_exceptions=True)
    return took


def sleepers() -> int:
    """Processes of the command that a child runs."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        # It may be gone by now.
        with suppress(OSError):
            found += path.read_bytes() == b"sleep\0003600\0"
    return found


async def measured(options: Any) -> tuple[list[Finding], Mapping[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="children-") as name:
        folder = Path(name)
        single = await delegations(folder, options)
        memory = await waiting(folder, options)
        sizes = await commits(folder, options)
        over = [await cancelled(folder / f"{n}", options) for n in range(options.repeats)]
    few, many = sizes.values()
    of = f"{options.at_once} children in one message, {CHILD_CALLS} calls of {CHILD_CALL_S} s each"
    findings = [
        Finding.of(f"{of}: wall to {CHILD_CALLS * CHILD_CALL_S} s", single["wide"], at_most=1.3),
        Finding.of(
            "a child that answers at once: CPU",
            single["cpu_ms"],
            unit="ms",
            at_most=5.0,
            computing=True,
        ),
        Finding.of("… wall", single["wall_ms"], unit="ms", at_most=15.0, computing=True),
        Finding.of(
            "… the first one of a cell", single["first"], unit="s", at_most=3.0, computing=True
        ),
        Finding.of(
            f"{options.waiting} children that wait for their models: memory each",
            [memory["waiting_kb"]],
            unit="KB",
            at_most=80.0,
        ),
        Finding.of("… added processes", [memory["processes"]], unit="", at_most=0.0),
        Finding.of(
            f"{options.queued} that are queued: memory each",
            [memory["queued_kb"]],
            unit="KB",
            at_most=8.0,
        ),
        Finding.of(
            f"what a parent commits for the end of a child, of {options.waiting} to of {FEW}",
            [many / few],
            at_most=1.1,
        ),
        Finding.of(
            f"a tree of depth 3 with {options.at_once} children that is cancelled: all over",
            over,
            unit="s",
            at_most=1.0,
            computing=True,
        ),
    ]
    return findings, {
        "delegations": single,
        "memory": memory,
        "commit_bytes": {str(many): size for many, size in sizes.items()},
    }


def main() -> None:
    options = read_options(
        __doc__,
        sizes={"at_once": 64, "one_by_one": ONE_BY_ONE, "waiting": 1_000, "queued": 10_000},
        smoke={"at_once": 5, "one_by_one": 3, "waiting": 12, "queued": 20},
        repeats=3,
    )
    findings, figures = asyncio.run(measured(options))
    publish("children", "s, ms CPU, KB, bytes", options, findings, figures)


if __name__ == "__main__":
    main()
