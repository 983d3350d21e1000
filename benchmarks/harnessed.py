"""The same conversations as runs of the harness: durable, fenced and bounded."""

import asyncio
import time
from pathlib import Path
from uuid import uuid4

from benchmarks.notes import INSTRUCTIONS, KEY, MODEL, Work, note
from benchmarks.windows import window
from harness_actors.actors import Runtime, RuntimeKind, open_runtime
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig
from harness_actors.models import OpenAIModel


async def run_harness(kind: RuntimeKind, work: Work, warm_up: Work) -> None:
    """On a runtime of its own, which is warm when the window begins."""
    # The hand-written loops end with an answer too, and offer no further tool.
    config = HarnessConfig(completion="answer", max_rounds_per_turn=work.rounds + 1)
    model = OpenAIModel(MODEL, base_url=work.base_url, api_key=KEY)
    program = Program.of(ChatAgent(model=model, instructions=INSTRUCTIONS, tools=[note]))
    runtime = await open_runtime(
        kind, store=work.folder / "runs.db", address="local", command=uuid4().hex
    )
    try:
        await _all(runtime, program, config, warm_up, warm_up.folder / "warm-up")
        began = time.perf_counter()
        with window("work"):
            await _all(runtime, program, config, work, work.log)
        took_s = time.perf_counter() - began
        with window("idle"):
            await asyncio.sleep(took_s)
    finally:
        await runtime.close()


async def _all(
    runtime: Runtime, program: Program, config: HarnessConfig, work: Work, log: Path
) -> None:
    cursor = await runtime.position()
    specs = [program.spec(work.task(number, log), config) for number in range(work.conversations)]
    await runtime.submit(specs, code={program.code: program.blob}, secrets=program.secrets)
    waiting = {spec.run_id for spec in specs}
    while waiting:
        happened = await runtime.happened(cursor)
        cursor = happened.cursor
        for run_id, result in happened.results.items():
            if result.status != "done":
                raise RuntimeError(f"run {run_id!r} ended {result.status}: {result.reason.message}")
        waiting -= set(happened.results)
