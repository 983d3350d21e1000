"""Recorded trees: runs that delegate to others, which end, fail, are held, put aside and cut."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_actors.actors.local import LocalRuntime
from harness_actors.actors.runtime import StopMode
from harness_actors.coordination.protocol import Slot
from harness_actors.events import (
    Event,
    ExecutorLost,
    InputAwaited,
    RunCompleted,
    RunParked,
)
from harness_actors.results import HarnessResult
from harness_actors.testing import Reply
from tests.actors.followers import until
from tests.data.corpus.agents import CUES
from tests.data.corpus.interrupted import Take
from tests.data.corpus.trees import (
    ASKS_TO_WRITE,
    COLOUR,
    DOORS,
    LEFT,
    WAIT,
    WRITE,
    researches,
    scout,
    scouts,
    tree,
)

READ = ("read", {"text": "r"})
DEEP = {"sub_agents": {"max_depth": 2}}


@dataclass
class TreeTake(Take):
    """A tree on the journal of all of them, whose runs go through doors."""

    @asynccontextmanager
    async def opened(self, command: str = "first") -> AsyncIterator[LocalRuntime]:
        DOORS.clear()
        async with super().opened(command) as runtime:
            yield runtime

    async def one_by_one(self, runtime: LocalRuntime, **ends: str) -> None:
        """Open doors, each when the run behind the one before is over: by where that is below."""
        for below, door in ends.items():
            DOORS.open(door)
            await self.over(runtime, below)

    async def over(self, runtime: LocalRuntime, below: str = "") -> None:
        await until(runtime, self._below(below), lambda event: isinstance(event, RunCompleted))

    async def put_aside(self, runtime: LocalRuntime, mode: StopMode = "park", *doors: str) -> None:
        """Put the whole tree aside; its runs finish their rounds behind these doors."""
        cursor = await runtime.position()
        await runtime.stop([self.name], mode)
        DOORS.open(*doors)
        await until(runtime, self.name, is_parked, cursor=cursor)

    def _below(self, below: str) -> str:
        """The id of a run, by its numbers: ``_1_2`` is the second below the first."""
        return self.name + below.replace("_", ".")


def is_parked(event: Event) -> bool:
    return isinstance(event, RunParked)


def asks(event: Event) -> bool:
    return isinstance(event, InputAwaited)


async def _to_its_end(take: TreeTake, **ends: str) -> HarnessResult:
    """A tree that nobody cuts, whose runs are held at doors and end in an order."""
    async with take.opened() as runtime:
        DOORS.close(*ends.values())
        await take.submit(runtime)
        await DOORS.stood_at(*ends.values())
        await take.one_by_one(runtime, **ends)
        return await take.end(runtime)


# ---- what children come to --------------------------------------------------------------


async def waited_for(store: Path) -> None:
    """Children for which their parent waits."""
    three = TreeTake(store, "several-in-one-message", tree(scouts("look a", "write b", "look c")))
    await _to_its_end(three, _3="look c/1", _1="look a/1", _2="write b/1")

    calls = [WRITE, scout("look a"), scout("look b"), WRITE, scout("look c"), READ]
    mixed = TreeTake(store, "between-other-calls", tree(Reply.calls(calls)))
    async with mixed.opened() as runtime:
        DOORS.close("look a/0", "look b/0")
        await mixed.submit(runtime)
        await mixed.one_by_one(runtime, _2="look b/0", _1="look a/0")
        await mixed.end(runtime)

    refused = tree(scouts("look a", " ", "look b"), Reply.calls([WRITE, scout(""), WRITE]))
    await _to_its_end(TreeTake(store, "refused-between-two", refused), _1="look a/0", _2="look b/0")
    queued = TreeTake(
        store,
        "queued",
        tree(scouts("look a", "look b", "look c")),
        {"sub_agents": {"max_parallel": 1}},
    )
    await queued.to_its_end()


async def nested(store: Path) -> None:
    """As deep as they may: whoever is at the limit has no such tool."""
    deep = tree(scouts("ask look a and ask look b", "look c"))
    take = TreeTake(store, "nested-to-the-limit", deep, DEEP)
    await _to_its_end(take, _1_1="look a/0", _1_2="ask look b/0", _2="look c/0")


async def otherwise(store: Path) -> None:
    """Children that come to nothing, or to too much."""
    calls = [scout("look a"), ("faller", {"prompt": "look"}), scout("look b")]
    failing = TreeTake(store, "one-that-fails", tree(Reply.calls(calls)))
    async with failing.opened() as runtime:
        DOORS.close("look a/0", "look b/0")
        await failing.submit(runtime)
        await DOORS.stood_at("look a/0", "look b/0")
        await failing.over(runtime, "_2")
        await failing.one_by_one(runtime, _1="look a/0", _3="look b/0")
        await failing.end(runtime)
    idle = tree(Reply.call("idler", {"prompt": "idle"}))
    await TreeTake(store, "over-its-own-limit", idle, {"stall": None}).to_its_end()
    talk = [("talker", {"prompt": f"talk {words}"}) for words in ("3 0", "9 4", "9 8")]
    long = TreeTake(store, "too-long-an-answer", tree(Reply.calls(talk)))
    await _to_its_end(long, _1="talk 3 0/0", _2="talk 9 4/0", _3="talk 9 8/0")


async def held(store: Path) -> None:
    """Children that are to come to a value, or have a contract, and do or do not."""
    for name, agent, verb in (
        ("typed", "critic", "value"),
        ("held-to-a-contract", "signer", "sign"),
    ):
        calls = [(agent, {"prompt": f"{verb} {what}"}) for what in ("well", "never")]
        take = TreeTake(store, name, tree(Reply.calls(calls)))
        await _to_its_end(take, _2=f"{verb} never/0", _1=f"{verb} well/0")


async def forked(store: Path) -> None:
    tasks = ("say a", "fork", "say b")
    forks = Reply.calls([("aside", {"prompt": one}) for one in tasks])
    take = TreeTake(store, "forks", tree(Reply.calls([READ]), forks))
    await _to_its_end(take, _3="say b/0", _1="say a/0", _2="fork/0")


# ---- beside them ------------------------------------------------------------------------


async def beside(store: Path) -> None:
    """In the background: all that there is to ask, each end told by mail."""
    everything = tree(
        researches("listen", "look b", "look c"),
        Reply.calls([("agent_list", {}), ("agent_status", {"agent": "research-1"})]),
        Reply.calls([("agent_send", {"agent": "research-1", "message": "left – 左"})]),
        Reply.calls([("agent_wait", {"until": "any"}), READ]),
        Reply.calls([("agent_cancel", {"agents": ["research-2"]})]),
        Reply.calls([("agent_wait", {"agents": ["research-3"]}), ("agent_list", {})]),
        Reply.calls([("agent_result", {"agent": f"research-{number}"}) for number in (1, 2, 3)]),
        Reply.calls(
            [
                ("agent_send", {"agent": "research-1", "message": "too late"}),
                ("agent_status", {"agent": "research-9"}),
                WAIT,
            ]
        ),
    )
    take = TreeTake(store, "beside-and-asked", everything)
    async with take.opened() as runtime:
        doors = ["listen/1", "look b/1", "look c/1"]
        DOORS.close(*doors, "the task/1", "the task/5")
        await take.submit(runtime)
        await DOORS.stood_at(*doors, "the task/1")
        DOORS.open("the task/1")
        await until_waiting(runtime, take.name)
        await take.one_by_one(runtime, _1="listen/1")
        await DOORS.stood_at("the task/5")
        DOORS.open("the task/5")
        await until_waiting(runtime, take.name)
        await take.one_by_one(runtime, _3="look c/1")
        await take.end(runtime)

    late = tree(
        researches("look a"), Reply.calls([("agent_wait", {"timeout_s": 30})]), Reply.calls([WAIT])
    )
    take = TreeTake(store, "beside-a-wait-that-is-over", late)
    async with take.opened() as runtime:
        DOORS.close("look a/1", "the task/1", "the task/2")
        await take.submit(runtime)
        await DOORS.stood_at("look a/1", "the task/1")
        DOORS.open("the task/1")
        await until_waiting(runtime, take.name)
        _pass_time(runtime, 30.0)
        await DOORS.stood_at("the task/2")
        DOORS.open("the task/2")
        await until_waiting(runtime, take.name)
        await take.one_by_one(runtime, _1="look a/1")
        await take.end(runtime)

    gone = TreeTake(store, "beside-when-its-parent-ends", tree(researches("look a")))
    async with gone.opened() as runtime:
        DOORS.close("look a/1", "the task/1")
        await gone.submit(runtime)
        await DOORS.stood_at("look a/1", "the task/1")
        DOORS.open("the task/1")
        await gone.end(runtime)

    calls = [("research", {"prompt": "look a"}), scout("look b"), WRITE, WAIT, READ]
    both = TreeTake(store, "beside-and-waited-for", tree(Reply.calls(calls)))
    await _to_its_end(both, _1="look a/0", _2="look b/0")

    below = TreeTake(store, "beside-a-child", tree(scouts("send look a")), DEEP)
    async with below.opened() as runtime:
        DOORS.close("look a/1", "send look a/1")
        await below.submit(runtime)
        await DOORS.stood_at("look a/1", "send look a/1")
        DOORS.open("send look a/1")
        await until_waiting(runtime, f"{below.name}.1")
        await below.one_by_one(runtime, _1_1="look a/1")
        await below.end(runtime)


async def until_waiting(runtime: LocalRuntime, run_id: str) -> None:
    """Until a run waits for those beside it."""
    cursor = 0
    while not runtime._coordinator._coordinator.runs[run_id].state.values.get(
        "harness.child_waits"
    ):
        cursor = (await runtime.wait_for_news(cursor, messages=True)).cursor


def _pass_time(runtime: LocalRuntime, seconds: float) -> None:
    """Time passes, and the coordinator looks at it; its alarm goes by the time of the machine."""
    CUES.clock.advance(seconds)
    runtime._coordinator._time_passed()


# ---- bounds, and those who stop them ----------------------------------------------------


async def bounded(store: Path) -> None:
    calls = TreeTake(
        store,
        "limit-of-the-root",
        tree(scouts("look a", "look b", "look c")),
        {"limits": {"model_calls": 4}},
    )
    async with calls.opened() as runtime:
        DOORS.close("look a/0", "look b/0", "look c/0", "look a/1")
        await calls.submit(runtime)
        await DOORS.stood_at("look a/0", "look b/0", "look c/0")
        DOORS.open("look a/0")
        await DOORS.stood_at("look a/1")
        await calls.one_by_one(runtime, _2="look b/0", _3="look c/0", _1="look a/1")
        await calls.end(runtime)
    spent = TreeTake(
        store,
        "nothing-left-for-the-second",
        tree(*[scouts("look a")] * 2),
        {"limits": {"model_calls": 4}},
    )
    await spent.to_its_end()
    timely = TreeTake(
        store, "time-of-the-root", tree(scouts("look a", "look b")), {"limits": {"time_s": 60}}
    )
    async with timely.opened() as runtime:
        DOORS.close("look a/1", "look b/1")
        await timely.submit(runtime)
        await DOORS.stood_at("look a/1", "look b/1")
        await timely.one_by_one(runtime, _1="look a/1")
        _pass_time(runtime, 61.0)
        await timely.end(runtime)


async def cancelled(store: Path) -> None:
    root = TreeTake(
        store, "cancelled-at-the-root", tree(scouts("look a", "ask look b and look c")), DEEP
    )
    async with root.opened() as runtime:
        DOORS.close("look a/0", "look b/1", "look c/1")
        await root.submit(runtime)
        await DOORS.stood_at("look a/0", "look b/1", "look c/1")
        await root.one_by_one(runtime, _1="look a/0", _2_1="look b/1")
        await runtime.stop([root.name], "cancel")
        await root.end(runtime)
    child = TreeTake(store, "a-child-is-cancelled", tree(scouts("look a", "look b")))
    async with child.opened() as runtime:
        DOORS.close("look a/1", "look b/1")
        await child.submit(runtime)
        await DOORS.stood_at("look a/1", "look b/1")
        await runtime.stop([f"{child.name}.1"], "cancel")
        await child.over(runtime, "_1")
        await child.one_by_one(runtime, _2="look b/1")
        await child.end(runtime)
    aside = TreeTake(store, "cancelled-while-parked", tree(scouts("look a")))
    async with aside.opened() as runtime:
        DOORS.close("look a/0")
        await aside.submit(runtime)
        await DOORS.stood_at("look a/0")
        await aside.put_aside(runtime, "park", "look a/0")
    async with aside.opened("second") as runtime:
        await runtime.stop([aside.name], "cancel")
        await aside.end(runtime)


# ---- put aside --------------------------------------------------------------------------


async def parked(store: Path) -> None:
    """In the middle of a child, and of a wait; and taken up again."""
    modes: tuple[StopMode, ...] = ("park", "park_now")
    for mode in modes:
        name = f"{mode.replace('_', '-')}-in-a-child"
        take = TreeTake(store, name, tree(scouts("look a", "look b")))
        async with take.opened() as runtime:
            DOORS.close("look a/1", "look b/0")
            await take.submit(runtime)
            await DOORS.stood_at("look a/1", "look b/0")
            await take.one_by_one(runtime, _1="look a/1")
            await take.put_aside(runtime, mode, "look b/0")
        await take.taken_up()
    waiting = TreeTake(store, "park-in-a-wait", tree(researches("look a"), Reply.calls([WAIT])))
    await _parked_in_a_wait(waiting)
    await waiting.taken_up()


async def _parked_in_a_wait(take: TreeTake, *ended: str) -> None:
    async with take.opened() as runtime:
        DOORS.close("look a/0", "look b/0", "the task/1")
        await take.submit(runtime)
        await DOORS.stood_at("look a/0", *ended, "the task/1")
        DOORS.open("the task/1")
        await until_waiting(runtime, take.name)
        for door in ended:
            await take.one_by_one(runtime, _2=door)
        await take.put_aside(runtime, "park", "look a/0")


async def asking(store: Path) -> None:
    """They ask their user: with others beside them, and behind what those came to."""
    colour = tree(researches("look a"), Reply.calls([COLOUR]), Reply.calls([WAIT]))
    take = TreeTake(store, "asks-with-one-beside-it", colour)
    await _asks_with_others(take)
    async with take.opened("second") as runtime:
        await runtime.answer(take.name, {"q1": "blue"})
    async with take.opened("third") as runtime:
        # It waits, and what it waits for goes on with it.
        DOORS.close("look a/1")
        await runtime.resume([take.name], secrets={})
        await DOORS.stood_at("look a/1")
        await until_waiting(runtime, take.name)
        await take.one_by_one(runtime, _1="look a/1")
        await take.end(runtime)
    calls = [scout("look a"), WRITE, scout("look b")]
    approved = tree(Reply.calls(calls), approvals=ASKS_TO_WRITE)
    take = TreeTake(store, "approved-behind-a-child", approved)
    async with take.opened() as runtime:
        await take.submit(runtime)
        await take.until(runtime, asks)
    async with take.opened("second") as runtime:
        await runtime.answer(take.name, {"q1": "approve"})
    await take.taken_up("third")


async def _asks_with_others(take: TreeTake, *ended: str) -> None:
    async with take.opened() as runtime:
        DOORS.close("look a/0", "look b/0", "the task/1")
        await take.submit(runtime)
        await DOORS.stood_at("look a/0", *ended, "the task/1")
        for door in ended:
            await take.one_by_one(runtime, _2=door)
        DOORS.open("the task/1")
        # It asks when what is beside it was put aside, after its round.
        run = runtime._coordinator._coordinator.runs[take.name]
        while run.held is None:  # noqa: ASYNC110 - nobody tells it
            await asyncio.sleep(0)
        DOORS.open("look a/0")
        await take.until(runtime, asks)


async def alone(store: Path) -> None:
    """Children have nobody to ask, and nobody who would approve."""
    agent = tree(scouts("wonder", "write b"), approvals=ASKS_TO_WRITE)
    take = TreeTake(store, "a-child-has-no-user", agent)
    await _to_its_end(take, _1="wonder/0", _2="write b/0")


# ---- deaths -----------------------------------------------------------------------------


async def died(store: Path) -> None:
    """A cell that is closed while children are at work, and a process of one, thrice."""
    for name, command in (("cell-died", "first"), ("cell-died-and-another-goes-on", "second")):
        take = TreeTake(store, f"{name}-beside-children", tree(scouts("look a", "look b")))
        await _left_at_work(take)
        async with take.opened(command) as runtime:
            DOORS.close("look b/1")
            if command != "first":
                await runtime.resume([take.name], secrets={})
            await DOORS.stood_at("look b/1")
            await take.one_by_one(runtime, _2="look b/1")
            await take.end(runtime)
    lost = TreeTake(store, "a-child-is-lost", tree(scouts("peek", "look b")))
    async with lost.opened() as runtime:
        DOORS.close("look b/0")
        await lost.submit(runtime)
        await DOORS.stood_at("look b/0")
        await lost.one_by_one(runtime, _2="look b/0")
        for losses, index in enumerate((0, 0, -1), start=1):
            await CUES.begun.wait()
            CUES.begun.clear()
            await _killed(runtime, f"{lost.name}.1", index, losses)
        await lost.end(runtime)


async def _killed(runtime: LocalRuntime, run_id: str, index: int, losses: int) -> None:
    """The process of a child whose tool runs is killed."""
    slot = Slot("agent_turn", index=index, pool="" if index else "sub_agent")
    runtime.starter.hosts[slot].kill()
    await until(runtime, run_id, lambda e: isinstance(e, ExecutorLost) and e.losses == losses)


async def _left_at_work(take: TreeTake) -> None:
    """Closed when one child is over and another one asks its model."""
    async with take.opened() as runtime:
        DOORS.close("look a/1", "look b/1")
        await take.submit(runtime)
        await DOORS.stood_at("look a/1", "look b/1")
        await take.one_by_one(runtime, _1="look a/1")


# ---- left -------------------------------------------------------------------------------


async def left(store: Path) -> None:
    """Not over: whoever has the journal can take them up."""

    def take(name: str, **settings: Any) -> TreeTake:
        return TreeTake(store, name, LEFT[name].program(), settings)

    one = take("left-parked-in-children")
    async with one.opened() as runtime:
        DOORS.close("look a/1", "look b/0")
        await one.submit(runtime)
        await DOORS.stood_at("look a/1", "look b/0")
        await one.one_by_one(runtime, _1="look a/1")
        await one.put_aside(runtime, "park", "look b/0")
    await _parked_in_a_wait(take("left-parked-in-a-wait"), "look b/0")
    deep = take("left-parked-when-nested", **DEEP)
    async with deep.opened() as runtime:
        DOORS.close("look a/0", "look b/0")
        await deep.submit(runtime)
        await DOORS.stood_at("look a/0", "look b/0")
        await deep.one_by_one(runtime, _1_2="look b/0")
        await deep.put_aside(runtime, "park", "look a/0")
    await _asks_with_others(take("left-asking"), "look b/0")
    await _left_at_work(take("left-in-flight"))


DELEGATING: tuple[Callable[[Path], Awaitable[None]], ...] = (
    waited_for,
    nested,
    otherwise,
    held,
    forked,
    beside,
    bounded,
    cancelled,
    parked,
    asking,
    alone,
    died,
    left,
)
