"""Recorded runs that say what became of each call, and whose executors observe."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from harness_actors.agents import Program
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.events import CustomEvent
from harness_actors.ports import RunContext
from harness_actors.signals import Outcome, Signal
from harness_actors.state import AGENT_TURN, StateKey
from harness_actors.testing import Reply, ScriptedModel, an_agent
from tests.data.corpus.agents import CORPUS_TOOLS, CUES
from tests.data.corpus.interrupted import HANGS, Take, hangs
from tests.data.corpus.scripts import LIMITS, READ, WRITE
from tests.data.corpus.waiting import COLOUR, NOTHING, asking
from tests.replay.recorded_runs import done

SEEN: StateKey[list[Any]] = StateKey("corpus.seen", list[Any], "watch", "set", [])
GAUGE: Iterator[int] = count(1)
"""What the executor below looks at: it shows another number each time."""

EVERY_WAY = [
    Reply.calls([("write", {"wrong": 1}), ("slow", {}), ("send", {"to": "nobody"})]),
    Reply.calls([("unknown", {}), ("write", {"text": "a"}), ("long", {"characters": 150_000})]),
    Reply.calls([("work_complete", {"summary": "too early"}), ("read", {"text": "b"})]),
    Reply.calls([COLOUR, NOTHING, ("read", "no json"), ("work_complete", {"summary": "no"})]),
    Reply.calls([("read", {"text": "c"}), ("write", '{"text": "cu')]),
]


@dataclass
class Watch:
    """An executor of a user, which looks at the gauge and acts on what it saw.

    Attributes:
        held: Once it has looked for the first time it waits, as often as nobody lets it go.
    """

    held: bool = False
    name: str = "watch"
    reads: tuple[StateKey[Any], ...] = (SEEN,)
    reads_log: bool = False

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        seen = [await context.observe("gauge", {"of": "watch"}, look)]
        if self.held:
            await self._hold(context)
        # The same again, and something else.
        seen.append(await context.observe("gauge", {"of": "watch"}, look))
        seen.append(await context.observe("listing", ["/", {"länge": 1.5}], listing))
        context.emit(CustomEvent(name="watch.saw", data={"seen": seen}))
        context.set(SEEN, [*context.get(SEEN), seen])
        return signal

    async def _hold(self, context: RunContext) -> None:
        from tests.data.corpus.agents import CUES

        await context.flush()
        CUES.begun.set()
        await CUES.go.wait()


async def look() -> int:
    from tests.data.corpus.observing import GAUGE

    return next(GAUGE)


async def listing() -> list[Any]:
    return [{"name": "ü.txt", "size": None}, await look()]


def watched(watch: Watch) -> Program:
    agent = an_agent(ScriptedModel([WRITE, Reply.text("more"), READ, done()]), CORPUS_TOOLS)
    return Program.of(HarnessWorkflowBuilder(agent).insert_after(AGENT_TURN, watch).build())


async def dispositions(store: Path) -> None:
    model = ScriptedModel([*EVERY_WAY[:-1], _cut_short(EVERY_WAY[-1]), done()])
    agent = asking()
    tools = agent.workflow.agent.tools
    every = Take(store, "every-way", Program.of(an_agent(model, tools)), {"on_question": "deny"})
    await every.to_its_end()
    for name in (
        "limit-tool-calls",
        "limit-time-in-a-fenced-call",
        "limit-working-time-in-a-call",
    ):
        agent_, settings = LIMITS[name]
        await Take(store, f"{name}-with-data", agent_, settings).to_its_end()


async def cut(store: Path) -> None:
    """In the middle of a call: what came of it is not known."""
    take = Take(store, "cut-in-a-call", [WRITE, HANGS, done()])
    async with take.opened() as runtime:
        await take.submit(runtime)
        await take.until(runtime, hangs)
    async with take.opened() as runtime:
        await take.end(runtime)


def _cut_short(reply: Reply) -> Reply:
    return Reply(said=reply.said, asked=reply.asked, finish_reason="length")


async def observations(store: Path) -> None:
    await Take(store, "observed", watched(Watch())).to_its_end()
    held = Take(store, "observed-in-two-processes", watched(Watch(held=True)))
    async with held.opened() as runtime:
        await held.submit(runtime)
        await CUES.begun.wait()
    # The same command goes on by itself, where the first observation is on disk.
    async with held.opened() as runtime:
        CUES.go.set()
        await held.end(runtime)


OBSERVING: tuple[Callable[[Path], Awaitable[None]], ...] = (dispositions, cut, observations)
