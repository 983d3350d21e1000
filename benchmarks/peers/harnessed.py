"""The conversations of the peers as one batch of the harness, through what a user calls.

One batch holds the warm-up and the measured runs, so that its actors are up when the window
begins, as the other contenders' clients are. Each run is journalled, with a pending record
before its tool, and has an outcome on disk: the others keep nothing.
"""

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable

from benchmarks.peers import mortal
from benchmarks.peers.conversations import (
    AGENT,
    DELEGATES,
    DESCRIPTION,
    INSTRUCTIONS,
    KEY,
    MODEL,
    Work,
    window,
)
from harness_actors import ChatAgent, HarnessConfig, OpenAIModel, run_batch, tool
from harness_actors.actors import RuntimeKind
from harness_actors.ports import Tool
from harness_actors.subagents import SubAgentSpec

NOTES = SubAgentSpec(name=AGENT, description=DESCRIPTION, instructions=INSTRUCTIONS)


async def on_ray(work: Work) -> None:
    # A Ray of its own, whose processes are all counted.
    await _contend(work, "ray", address="local")


async def in_one_process(work: Work) -> None:
    await _contend(work, "local")


async def be_killed(work: Work) -> None:
    """For `bench_killed`: the same call on the same run directory goes on."""
    await _run(work, work.tasks(), mortal.note, "local")


async def _contend(work: Work, runtime: RuntimeKind, address: str | None = None) -> None:
    flow = _Flow(work)
    await _run(work, flow.tasks(), work.tool, runtime, address=address, on_end=flow.ended)


async def _run(
    work: Work,
    tasks: Iterable[str] | AsyncIterable[str],
    call: Callable[..., Awaitable[str]],
    runtime: RuntimeKind,
    *,
    address: str | None = None,
    on_end: Callable[[], None] = lambda: None,
) -> None:
    model = OpenAIModel(MODEL, base_url=work.base_url, api_key=KEY)
    outcomes = run_batch(
        tasks,
        ChatAgent(
            model=model,
            instructions=DELEGATES if work.children else INSTRUCTIONS,
            tools=[_as_tool(call, work)],
            sub_agents=[NOTES] if work.children else [],
        ),
        # The other frameworks' conversations end with an answer, too.
        config=HarnessConfig(completion="answer"),
        concurrency=max(work.conversations, len(work.warm_up())),
        run_dir=work.folder / "batch",
        runtime=runtime,
        address=address,
    )
    async for outcome in outcomes:
        if outcome.status != "done":
            raise RuntimeError(f"task {outcome.id!r} ended {outcome.status}: {outcome.reason}")
        on_end()


def _as_tool(call: Callable[..., Awaitable[str]], work: Work) -> Tool:
    # What is declared to write is made alone, and fenced by a record on disk; what only reads is
    # made beside its neighbours.
    writes = work.calls == 1 and not work.children
    return tool(effect="local_write" if writes else "read_only")(call)


class _Flow:
    """Gives out the warm-up, then the work, and marks the windows between them."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._left = 0
        self._none_left = asyncio.Event()

    async def tasks(self) -> AsyncIterator[str]:
        async for task in self._until_ended(self._work.warm_up()):
            yield task
        began = time.perf_counter()
        with window("work"):
            async for task in self._until_ended(self._work.tasks()):
                yield task
        took_s = time.perf_counter() - began
        with window("idle"):
            await asyncio.sleep(took_s)

    async def _until_ended(self, tasks: list[str]) -> AsyncIterator[str]:
        self._left = len(tasks)
        self._none_left.clear()
        for task in tasks:
            yield task
        await self._none_left.wait()

    def ended(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._none_left.set()
