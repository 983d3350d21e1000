"""The conversations of the benchmarks as runs of the harness: durable, fenced and bounded."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

from benchmarks.notes import INSTRUCTIONS, KEY, MODEL, TOOLS, Work
from benchmarks.windows import window
from harness_actors.actors import Runtime, RuntimeKind, open_runtime
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig, Limits
from harness_actors.models import OpenAIModel
from harness_actors.stores import JournalReader

STORES = "runs-*.db"
LONGEST_IDLE_S = 10.0


async def run_harness(kind: RuntimeKind, work: Work, warm_up: Work) -> None:
    """On a runtime of its own, which is warm when the window begins."""
    async with opened(kind, work) as runtimes:
        await converse(runtimes, warm_up, warm_up.folder / "warm-up")
        began = time.perf_counter()
        with window("work"):
            await converse(runtimes, work, work.log)
        took_s = time.perf_counter() - began
        with window("idle"):
            await asyncio.sleep(min(took_s, LONGEST_IDLE_S))


async def run_counted(kind: RuntimeKind, work: Work, warm_up: Work) -> None:
    """As `run_harness`, with coordinators that count: see `counts` in the folder."""
    from benchmarks.counting import count_messages, counts_of

    count_messages(kind)
    async with opened(kind, work) as runtimes:
        await converse(runtimes, warm_up, warm_up.folder / "warm-up")
        before = [await counts_of(runtime) for runtime in runtimes]
        with window("work"):
            await converse(runtimes, work, work.log)
        after = [await counts_of(runtime) for runtime in runtimes]
    counted = [
        {name: now[name] - then[name] for name in now}
        for then, now in zip(before, after, strict=True)
    ]
    (work.folder / "counts").write_text(json.dumps(counted))


@asynccontextmanager
async def opened(kind: RuntimeKind, work: Work) -> AsyncIterator[list[Runtime]]:
    """The cells of some work, each with a journal in its folder."""
    runtimes: list[Runtime] = []
    try:
        for number in range(work.cells):
            store = work.folder / STORES.replace("*", str(number))
            command = uuid4().hex
            # A second one joins the Ray that the first one has started.
            runtime = await open_runtime(kind, store=store, address="local", command=command)
            runtimes.append(runtime)
        yield runtimes
    finally:
        for runtime in runtimes:
            await runtime.close()


def roles(folder: Path) -> Mapping[int, str]:
    """What the processes were, by pid, of the cells that have their journals in a folder."""
    found: dict[int, str] = {}
    for store in sorted(folder.glob(STORES)):
        journal = JournalReader(store)
        try:
            found |= {mark.pid: mark.role for mark in journal.load_processes()}
        finally:
            journal.close()
    return found


def program_of(work: Work) -> Program:
    """The agent of every conversation."""
    model = OpenAIModel(MODEL, base_url=work.base_url, api_key=KEY)
    tools = [TOOLS[work.tool]]
    return Program.of(ChatAgent(model=model, instructions=INSTRUCTIONS, tools=tools))


def config_of(work: Work) -> HarnessConfig:
    """Settings that bound what the work takes, and no less."""
    calls = work.rounds + 1
    return HarnessConfig(
        # The hand-written loops end with an answer too, and offer no further tool.
        completion="answer",
        max_rounds_per_turn=work.rounds_per_turn,
        max_turns=calls // work.rounds_per_turn + 1,
        limits=Limits(model_calls=calls),
        # Nor do they ever send less than all.
        compaction=None,
    )


async def converse(runtimes: Sequence[Runtime], work: Work, log: Path) -> None:
    """Hold all conversations; each cell has its share.

    Raises:
        RuntimeError: A run did not end well.
    """
    program = program_of(work)
    shares = [range(at, work.conversations, len(runtimes)) for at in range(len(runtimes))]
    pairs = zip(runtimes, shares, strict=True)
    await asyncio.gather(*(_converse(cell, program, work, log, part) for cell, part in pairs))


async def _converse(
    runtime: Runtime, program: Program, work: Work, log: Path, numbers: Sequence[int]
) -> None:
    cursor = await runtime.position()
    waiting: set[str] = set()
    begun = 0
    while begun < len(numbers) or waiting:
        free = (work.at_once or len(numbers)) - len(waiting)
        if free and begun < len(numbers):
            waiting |= await submit(runtime, program, work, log, numbers[begun : begun + free])
            begun += free
        happened = await runtime.wait_for_news(cursor)
        cursor = happened.cursor
        for run_id, result in happened.results.items():
            if result.status != "done":
                raise RuntimeError(f"run {run_id!r} ended {result.status}: {result.reason.message}")
        waiting -= set(happened.results)


async def submit(
    runtime: Runtime, program: Program, work: Work, log: Path, numbers: Sequence[int]
) -> set[str]:
    """Begin conversations; the ids of their runs."""
    config = config_of(work)
    specs = [program.spec(work.task(number, log), config) for number in numbers]
    await runtime.submit(specs, code={program.code: program.blob}, secrets=program.secrets)
    return {spec.run_id for spec in specs}
