"""Recorded runs that are cut, put aside, taken up again, or go on in one conversation."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness_actors.actors.local import LocalRuntime
from harness_actors.actors.runtime import StopMode
from harness_actors.agents import Program
from harness_actors.config import HarnessConfig
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.coordination.protocol import Slot
from harness_actors.events import Event, ExecutorLost, RunParked, ToolCalled
from harness_actors.messages import Message
from harness_actors.models import OpenAIModel
from harness_actors.models.backoff import Backoff
from harness_actors.records import CodeStored
from harness_actors.replay import load_recording, plan_fork
from harness_actors.results import HarnessResult
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.testing import LoopbackServer, Reply, ScriptedModel, an_agent
from harness_actors.testing.faults import OVERLOADED, rate_limited
from harness_actors.testing.scripts import over_messages
from tests.actors.followers import results, until
from tests.data.corpus.agents import (
    CORPUS_TOOLS,
    CUES,
    HeldModel,
    OwnTurn,
    endless,
    two_lookups,
)
from tests.data.corpus.scripts import PEEK, READ, WRITE
from tests.replay.recorded_runs import CountingModel, done, opened_locally, write_journal

HANGS = Reply.calls([("read", {"text": "1"}), ("hang", {}), ("write", {"text": "2"})])
PORT = 28_431
"""Of a model server on this machine: a free one would be in the code of the run."""


def program(said: Any) -> Program:
    """An agent on a model, on a script or on a list of replies; or a program as it is."""
    if isinstance(said, Program):
        return said
    model = ScriptedModel(said) if isinstance(said, list) or callable(said) else said
    return Program.of(an_agent(model, CORPUS_TOOLS))


@dataclass
class Take:
    """One run on the journal of all of them."""

    store: Path
    name: str
    agent: Any
    settings: dict[str, Any] | None = None
    task: str | tuple[Message, ...] = "the task"
    talk: str | None = None
    metadata: dict[str, Any] | None = None

    @asynccontextmanager
    async def opened(self, command: str = "first") -> AsyncIterator[LocalRuntime]:
        """A runtime whose command is of this run alone; its time stands still."""
        CUES.clear()
        CUES.clock.advance(10.0)
        name = f"{self.name}, {command}"
        async with opened_locally(self.store, name, CUES.clock) as runtime, asyncio.timeout(30):
            yield runtime

    async def submit(self, runtime: LocalRuntime) -> None:
        agent = program(self.agent)
        spec = agent.spec(
            self.task,
            HarnessConfig.from_mapping(self.settings or {}),
            run_id=self.name,
            conversation_id=self.talk or self.name,
            metadata=self.metadata or {},
        )
        await runtime.submit([spec], code=agent.stored, secrets=agent.secrets)

    async def to_its_end(self) -> HarnessResult:
        async with self.opened() as runtime:
            await self.submit(runtime)
            return await self.end(runtime)

    async def taken_up(self, command: str = "second") -> HarnessResult:
        async with self.opened(command) as runtime:
            await runtime.resume([self.name], secrets={})
            return await self.end(runtime)

    async def end(self, runtime: LocalRuntime) -> HarnessResult:
        return (await results(runtime, [self.name]))[self.name]

    async def until(self, runtime: LocalRuntime, wanted: Callable[[Event], bool]) -> None:
        await until(runtime, self.name, wanted)

    async def stopped(self, runtime: LocalRuntime, mode: StopMode) -> None:
        await runtime.stop([self.name], mode)
        kind = "run_completed" if mode == "cancel" else RunParked.type
        await self.until(runtime, lambda event: event.type == kind)


def hangs(event: Event) -> bool:
    return isinstance(event, ToolCalled) and event.tool_name == "hang"


async def _cut_in_a_call(take: Take, mode: StopMode) -> None:
    async with take.opened() as runtime:
        await take.submit(runtime)
        await take.until(runtime, hangs)
        await take.stopped(runtime, mode)


async def _cut_when_begun(take: Take, mode: StopMode) -> None:
    """Cut where something of the agent says that it has begun."""
    async with take.opened() as runtime:
        await take.submit(runtime)
        await CUES.begun.wait()
        await runtime.stop([take.name], mode)
        CUES.go.set()
        kind = "run_completed" if mode == "cancel" else RunParked.type
        await take.until(runtime, lambda event: event.type == kind)


# ---- cancelled --------------------------------------------------------------------------


async def cancelled(store: Path) -> None:
    await _cut_in_a_call(Take(store, "cancelled-in-a-fenced-call", [WRITE, HANGS]), "cancel")
    await _cut_when_begun(Take(store, "cancelled-in-an-idempotent-call", [WRITE, PEEK]), "cancel")
    silent = HeldModel([READ, WRITE], 1)
    await _cut_when_begun(Take(store, "cancelled-between-rounds", silent), "cancel")
    first = HeldModel([READ], 0)
    await _cut_when_begun(Take(store, "cancelled-before-its-first-round", first), "cancel")
    parked = Take(store, "cancelled-while-parked", [WRITE, HANGS])
    await _cut_in_a_call(parked, "park_now")
    async with parked.opened("second") as runtime:
        await runtime.resume([parked.name], secrets={})
        await runtime.stop([parked.name], "cancel")
        await parked.end(runtime)


# ---- parked -----------------------------------------------------------------------------


async def parked(store: Path) -> None:
    async def after_its_round(name: str, replies: list[Reply]) -> None:
        take = Take(store, name, HeldModel([*replies, done()], 0))
        await _cut_when_begun(take, "park")
        async with take.opened("second") as runtime:
            await runtime.resume([name], secrets={})
            await take.end(runtime)

    await after_its_round("parked-behind-its-round", [READ])
    await after_its_round("parked-behind-its-turn", [Reply.text("hm")])
    fenced = Take(store, "parked-in-a-fenced-call", [WRITE, HANGS, done()])
    await _cut_in_a_call(fenced, "park_now")
    await fenced.taken_up()
    silent = Take(store, "parked-while-the-model-was-asked", HeldModel([READ, WRITE, done()], 1))
    await _cut_when_begun(silent, "park_now")
    async with silent.opened("second") as runtime:
        CUES.go.set()
        await runtime.resume([silent.name], secrets={})
        await silent.end(runtime)
    idempotent = Take(store, "parked-in-an-idempotent-call", [WRITE, PEEK, done()])
    await _cut_when_begun(idempotent, "park_now")
    await _parked_twice(store)
    await _cut_in_a_call(Take(store, "still-parked", [WRITE, HANGS, done()]), "park_now")
    own = HarnessWorkflowBuilder(an_agent()).replace("agent_turn", OwnTurn(parks=True)).build()
    take = Take(store, "parked-by-an-own-turn", Program.of(own))
    async with take.opened() as runtime:
        await take.submit(runtime)
        await take.until(runtime, lambda event: isinstance(event, RunParked))
    await take.taken_up()


async def _parked_twice(store: Path) -> None:
    take = Take(store, "parked-twice", [WRITE, Reply.call("hang"), Reply.call("hang"), done()])
    await _cut_in_a_call(take, "park_now")
    async with take.opened("second") as runtime:
        cursor = await runtime.position()
        await runtime.resume([take.name], secrets={})
        cursor = await until(runtime, take.name, hangs, cursor=cursor)
        await runtime.stop([take.name], "park_now")
        await until(runtime, take.name, lambda e: isinstance(e, RunParked), cursor=cursor)
    await take.taken_up("third")


# ---- deaths -----------------------------------------------------------------------------


async def _kill(runtime: LocalRuntime, take: Take, slot: Slot) -> None:
    """Kill the process of a turn whose tool runs, as the coordinator knows by now."""
    run = runtime._coordinator._coordinator.runs[take.name]
    while run.busy_since is None and not run.state.values.get("harness.open_calls"):  # noqa: ASYNC110 - nobody tells it
        await asyncio.sleep(0)
    losses = run.losses
    runtime.starter.hosts[slot].kill()
    await take.until(
        runtime, lambda event: isinstance(event, ExecutorLost) and event.losses == losses + 1
    )


async def died(store: Path) -> None:
    fenced = Take(store, "host-died-in-a-fenced-call", [WRITE, HANGS, done()])
    async with fenced.opened() as runtime:
        await fenced.submit(runtime)
        await fenced.until(runtime, hangs)
        await _kill(runtime, fenced, Slot("agent_turn"))
        await fenced.end(runtime)
    again = Take(store, "host-died-again-and-again", [READ, Reply.call("peek"), done()])
    async with again.opened() as runtime:
        await again.submit(runtime)
        for slot in (Slot("agent_turn"), Slot("agent_turn"), Slot("agent_turn", index=-1)):
            await CUES.begun.wait()
            CUES.begun.clear()
            await _kill(runtime, again, slot)
        await again.end(runtime)
    once = Take(store, "host-died-in-an-idempotent-call", [WRITE, PEEK, done()])
    async with once.opened() as runtime:
        await once.submit(runtime)
        await CUES.begun.wait()
        CUES.begun.clear()
        await _kill(runtime, once, Slot("agent_turn"))
        # It is called again, in the next process.
        await CUES.begun.wait()
        await once.stopped(runtime, "cancel")


async def cells_died(store: Path) -> None:
    """A cell that is closed in the middle of a turn leaves what one leaves that is killed."""
    for name, command in (("cell-died", "first"), ("cell-died-and-another-goes-on", "second")):
        take = Take(store, name, [WRITE, HANGS, done()])
        async with take.opened() as runtime:
            await take.submit(runtime)
            await take.until(runtime, hangs)
        if command == "first":
            # The same command goes on by itself.
            async with take.opened() as runtime:
                await take.end(runtime)
        else:
            await take.taken_up()
    asked = Take(store, "cell-died-while-the-model-was-asked", HeldModel([READ, WRITE, done()], 1))
    async with asked.opened() as runtime:
        await asked.submit(runtime)
        await CUES.begun.wait()
    async with asked.opened("second") as runtime:
        CUES.go.set()
        await runtime.resume([asked.name], secrets={})
        await asked.end(runtime)
    flying = Take(store, "in-flight", [WRITE, READ, HANGS])
    async with flying.opened() as runtime:
        await flying.submit(runtime)
        await flying.until(runtime, hangs)


async def died_at_each_commit(store: Path) -> None:
    """A run is taken up from each of its commits, as if there its cell had died."""
    replies = [
        Reply.calls([("write", {"text": "1"}), ("read", {"text": "2"}), ("delete", {})]),
        Reply.text("hm"),
        Reply.calls([("read", {"text": "3"}), ("read", {"text": "4"})]),
        done(),
    ]
    with TemporaryDirectory() as folder:
        apart = Take(Path(folder) / "apart.db", "died-at-commit", replies)
        await apart.to_its_end()
        whole = load_recording(JournalReader(apart.store), apart.name)
    # The last two changes are one commit: what was decided, and the end.
    for commits in range(1, len(whole.changes) - 1):
        name = f"died-at-commit-{commits}"
        spec = replace(whole.spec, run_id=name, conversation_id=name)
        left = replace(whole, spec=spec, changes=whole.changes[:commits], end=None)
        write_journal(left, store)
        await _keep_code(store, replies)
        await Take(store, name, replies).taken_up()


async def _keep_code(store: Path, replies: list[Reply]) -> None:
    agent = program(replies)
    journal = SqliteJournal(store)
    journal.commit(journal.begin_term(), [CodeStored(code=agent.code, blob=agent.blob)])
    journal.close()


# ---- conversations, budgets, forks, retries ---------------------------------------------


async def conversations(store: Path) -> None:
    agent = ScriptedModel(endless(done()))
    for number in (1, 2, 3):
        name = f"talk-{number}"
        await Take(store, name, agent, task=f"part {number}", talk="talk").to_its_end()


async def pictures(store: Path) -> None:
    """A task of several parts, and with words of the system's."""
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:image/gif;base64,R0lGODlhAQABAAAAACw="}},
    ]
    task = (Message.system("Be brief."), Message.from_wire({"role": "user", "content": parts}))
    replies = [READ, Reply.text("a dot")]
    await Take(store, "picture", replies, {"completion": "answer"}, task).to_its_end()


async def budgets(store: Path) -> None:
    """The last of the money is spent by one run, and the other ends after its round."""
    take = Take(store, "budget-spent", CountingModel(endless(READ)))
    async with take.opened() as runtime:
        await runtime.allow(await _spent(store) + 0.045)
        await take.submit(runtime)
        await take.end(runtime)


async def _spent(store: Path) -> float:
    ends = [heading.end for heading in JournalReader(store).headings()]
    return sum(end.usage.cost_usd for end in ends if end is not None)


async def forks(store: Path) -> None:
    replies = [Reply.text("hm"), WRITE, Reply.text("so"), done()]
    origin = Take(store, "fork-origin", replies)
    await origin.to_its_end()
    fork = plan_fork(load_recording(JournalReader(store), origin.name), 2)
    take = Take(store, "fork", replies, task=fork.messages, metadata=dict(fork.metadata))
    await take.to_its_end()


async def retries(store: Path) -> None:
    """A model that answers when it is asked again; what it says costs what is on the list."""
    faults = {1: rate_limited(0.01), 3: OVERLOADED, 4: OVERLOADED}
    script = two_lookups()

    def reply(messages: Sequence[Message]) -> Reply:
        return script[sum(message.role == "assistant" for message in messages)]

    server = LoopbackServer(
        over_messages(reply), faults=lambda number, _: faults.get(number), port=PORT
    )
    async with server:
        model = OpenAIModel(
            "gpt-4.1", base_url=server.base_url, api_key="a key", backoff=Backoff(first_s=0.01)
        )
        await Take(store, "model-asked-again", model).to_its_end()


INTERRUPTED: tuple[Callable[[Path], Awaitable[None]], ...] = (
    cancelled,
    parked,
    died,
    cells_died,
    died_at_each_commit,
    conversations,
    pictures,
    budgets,
    forks,
    retries,
)
