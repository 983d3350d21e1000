"""How soon does a batch go on in which thousands of tasks are done?

Unit: seconds from the moment at which Ray is up until the first new task asks its model. That is
the start of the cell, and whatever is read of the results and of the journal before. The batch
has a tasks file of 10,000 finished tasks and 10 new ones; each finished one has a line in
`results.jsonl` and a run of 5 rounds in the journal, copied from one that was run. Beside it
stands a batch of the same new tasks with nothing after it: the difference is what the finished
ones cost. Reading the tasks file, which the command does before it starts Ray, is apart.

What would change our mind: more than 5 s. Then a batch that was interrupted late would be slow
to go on, and what was read on the way would have to be read later, or not at all.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.findings import Finding, plain
from benchmarks.finished import finish, write_tasks
from benchmarks.measure import Spread, machine, print_report, versions
from benchmarks.notes import INSTRUCTIONS, KEY, MODEL
from harness_actors import ChatAgent, run_batch, tool
from harness_actors.batch.task_file import TaskFile
from harness_actors.config import HarnessConfig
from harness_actors.models import OpenAIModel
from harness_actors.testing import LoopbackServer, Reply, ScriptedModel

NEW = 10
ROUNDS = 5
DEADLINE_S = 300.0
BAR_S = 5.0


@tool
async def step(number: int) -> str:
    """Do a step of the work.

    Args:
        number: Which.
    """
    return f"step {number} is done, with a result of some length: " + 20 * "and so on, "


SAID: list[Reply] = [
    *(Reply.call("step", {"number": number}) for number in range(ROUNDS)),
    Reply.call("work_complete", {"summary": "all steps are done"}),
]
"""What the model says, one after the other."""


def next_said(body: dict[str, Any]) -> Reply:
    """What a server answers to a request: the next of `SAID`."""
    spoken: int = sum(message["role"] == "assistant" for message in body["messages"])
    return SAID[spoken]


def agent_of(base_url: str) -> ChatAgent:
    model = OpenAIModel(MODEL, base_url=base_url, api_key=KEY)
    return ChatAgent(model=model, instructions=INSTRUCTIONS, tools=[step])


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """One resume.

    Attributes:
        first_call_s: From when Ray was up until a new task asked its model.
        tasks_s: For reading the tasks file, before.
        ended: Tasks that the command brought to their end; the new ones, and no other.
    """

    first_call_s: float
    tasks_s: float
    ended: int


def prepare(folder: Path, finished: int) -> None:
    """Make a tasks file, and a run directory with its first tasks done."""
    tasks = folder / "tasks.jsonl"
    write_tasks(tasks, finished + NEW)
    if finished:
        finish(tasks, folder / "run", ChatAgent(model=ScriptedModel(SAID), tools=[step]), finished)


async def resume(folder: Path) -> Resumed:
    """Do it once: what this process does from the moment at which Ray is up."""
    began = time.perf_counter()
    tasks = TaskFile(folder / "tasks.jsonl")
    tasks_s = time.perf_counter() - began
    # Ray itself is not what is measured, and neither is loading it.
    from harness_actors.actors.joining.connect import connect

    await asyncio.to_thread(connect, "local")
    asked: list[float] = []
    async with LoopbackServer(next_said, faults=lambda *_: asked.append(time.perf_counter())) as s:
        up = time.perf_counter()
        batch = run_batch(
            tasks,
            agent_of(s.base_url),
            run_dir=folder / "run",
            concurrency=NEW,
            config=HarnessConfig(),
            address="local",
            # What is written here to be found was made with no model at all.
            on_change="accept",
        )
        async with aclosing(batch) as outcomes:
            ended = [outcome async for outcome in outcomes]
    if any(outcome.status != "done" for outcome in ended):
        raise RuntimeError(f"not all ended done: {ended}")
    return Resumed(first_call_s=asked[0] - up, tasks_s=tasks_s, ended=len(ended))


def measure(finished: int) -> Resumed:
    """One resume in a process of its own, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="resume-") as name:
        folder = Path(name)
        prepare(folder, finished)
        command = [sys.executable, str(Path(__file__).resolve()), "--folder", name]
        ran = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, timeout=DEADLINE_S, check=True
        )
    found = Resumed(**json.loads(ran.stdout.splitlines()[-1]))
    if found.ended != NEW:
        raise RuntimeError(f"the command ended {found.ended} tasks and not the {NEW} new ones")
    return found


def report(options: argparse.Namespace, found: Mapping[int, Sequence[Resumed]]) -> None:
    """Print what came out."""
    first = {count: Spread.of(one.first_call_s for one in runs) for count, runs in found.items()}
    tasks = {count: Spread.of(one.tasks_s for one in runs) for count, runs in found.items()}
    line = {
        "benchmark": "resume",
        "unit": "s from Ray is up until the first new task asks its model",
        "machine": machine(),
        "versions": versions("ray"),
        "n": options.repeats,
        "rounds": ROUNDS,
        "bar_s": BAR_S,
        "finished": {
            str(count): {"first_call_s": first[count].rounded(), "tasks_s": tasks[count].rounded()}
            for count in found
        },
        "findings": plain(
            [
                Finding(
                    question=f"first model call of a resume with {count} tasks finished",
                    figure=spread,
                    unit="s",
                    at_most=BAR_S if count else None,
                    computing=True,
                )
                for count, spread in first.items()
            ]
        ),
    }
    rows = [(f"{count:,}", str(first[count]), str(tasks[count])) for count in found]
    print_report(line, ("finished tasks", "first call s", "reading tasks s"), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Resume of a batch with many finished tasks.")
    parser.add_argument("--finished", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder is not None:
        found = asyncio.run(resume(options.folder))
        plain = {name: getattr(found, name) for name in Resumed.__slots__}
        print(json.dumps(plain), flush=True)
        return
    if options.smoke:
        options.finished, options.repeats = 200, 1
    # One start of Ray is enough to see that it works.
    counts = (options.finished,) if options.smoke else (0, options.finished)
    report(options, {n: [measure(n) for _ in range(options.repeats)] for n in counts})


if __name__ == "__main__":
    main()
