"""How the tests of the runtimes submit runs and wait for them."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

from harness_actors.actors import Runtime, open_runtime
from harness_actors.actors.local import LocalRuntime
from harness_actors.agents import Program
from harness_actors.config import HarnessConfig
from harness_actors.events import Event, RunEvent
from harness_actors.ports import Clock
from harness_actors.records import RunSpec
from harness_actors.results import HarnessResult


@asynccontextmanager
async def opened(
    kind: str, store: Path, *, command: str | None = None, clock: Clock | None = None
) -> AsyncIterator[Runtime]:
    """A runtime on a journal, closed afterwards; only the local one takes a clock."""
    command = command or uuid4().hex
    runtime: Runtime
    if kind == "local":
        # Through pickle, as between processes, so that aliasing hides nothing.
        runtime = await LocalRuntime.open(store, command, copies=True, clock=clock)
    else:
        runtime = await open_runtime("ray", store=store, address="local", command=command)
    try:
        yield runtime
    finally:
        await runtime.close()


def specs(program: Program, count: int, config: HarnessConfig | None = None) -> tuple[RunSpec, ...]:
    """Runs of a program that are alike."""
    settings = config or HarnessConfig()
    return tuple(program.spec(f"task {number}", settings) for number in range(count))


async def submit(runtime: Runtime, program: Program, runs: Sequence[RunSpec]) -> None:
    await runtime.submit(runs, code={program.code: program.blob}, secrets=program.secrets)


async def results(
    runtime: Runtime,
    run_ids: Iterable[str],
    *,
    cursor: int = 0,
    seen: Callable[[RunEvent], None] | None = None,
) -> dict[str, HarnessResult]:
    """Follow runs until all of them are over; `seen` gets their events."""
    followed = frozenset(run_ids)
    waiting = set(followed)
    ended: dict[str, HarnessResult] = {}
    while waiting:
        happened = await runtime.wait_for_news(cursor, messages=seen is not None)
        cursor = happened.cursor
        for event in happened.events:
            if seen is not None and event.run_id in followed:
                seen(event)
        for run_id, result in happened.results.items():
            ended[run_id] = result
            waiting.discard(run_id)
    return ended


async def until(
    runtime: Runtime, run_id: str, wanted: Callable[[Event], bool], *, cursor: int = 0
) -> int:
    """Follow a run until an event of it is as wanted; returns the cursor after it."""
    while True:
        happened = await runtime.wait_for_news(cursor, messages=True)
        cursor = happened.cursor
        for event in happened.events:
            if event.run_id == run_id and wanted(event.event):
                return cursor
