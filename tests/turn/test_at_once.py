"""The calls of a wave run at the same time, and the log shows nothing of it."""

import asyncio
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from harness_actors.conversation import UNKNOWN_OUTCOME
from harness_actors.events import Event
from harness_actors.ports import ToolContext
from harness_actors.signals import CompactionComplete, TurnComplete
from harness_actors.state import OPEN_CALLS, USAGE
from harness_actors.testing.scripted import Reply
from tests.executors.driver import (
    Driver,
    ProcessDiedError,
    RecordingModel,
    SimpleAgent,
    SimpleTool,
    a_tool,
    calls,
    finishes,
)


class Floor:
    """Sees which calls run, and lets them end when it is told to.

    Attributes:
        at_once: The most that ran at the same time.
        beside: For each tool, the names of those that ran beside it.
    """

    def __init__(self, *, until: int) -> None:
        self._until = until
        self._running: list[str] = []
        self._full = asyncio.Event()
        self.at_once = 0
        self.beside: dict[str, set[str]] = {}

    def tool(self, name: str, *, reads: bool = True) -> SimpleTool:
        """A tool that ends once `until` calls run, or at once where it may write."""

        async def act(_arguments: str, context: ToolContext) -> str:
            self._running.append(name)
            self.at_once = max(self.at_once, len(self._running))
            for running in self._running:
                self.beside.setdefault(running, set()).update(self._running)
            if len(self._running) >= self._until:
                self._full.set()
            if reads:
                await self._full.wait()
            await asyncio.sleep(0)
            self._running.remove(name)
            return f"{name} {context.call_id}"

        return SimpleTool(name, act, idempotent=reads)


async def one_turn(reply: Reply, *tools: SimpleTool, **settings: Any) -> Driver:
    """A turn of one round with calls, and one without."""
    model = RecordingModel([reply, Reply.text("hm")])
    driver = Driver(SimpleAgent(model, tools), **settings)
    async with asyncio.timeout(10):
        await driver.serve("agent_turn", CompactionComplete())
    driver.check_log()
    return driver


def differing(*wanted: tuple[str, str]) -> Reply:
    """A reply that calls tools, each given as id and name, and no two with the same arguments."""
    return calls(*((call_id, name, f'{{"id": "{call_id}"}}') for call_id, name in wanted))


def texts(driver: Driver) -> list[str]:
    return [result.text for result in driver.results()]


async def test_calls_that_only_read_run_at_once_and_are_answered_in_the_models_order() -> None:
    floor = Floor(until=3)
    reply = differing(("x", "a"), ("y", "b"), ("z", "a"))
    driver = await one_turn(reply, floor.tool("a"), floor.tool("b"))
    assert floor.at_once == 3
    assert texts(driver) == ["a x", "b y", "a z"]
    assert len(driver.deltas) == 3, "begin, round and end, as of any round of idempotent calls"
    assert driver.tool_notices == 1
    assert driver.value(USAGE).tool_calls == 3


async def test_nothing_runs_beside_a_call_that_may_write() -> None:
    floor = Floor(until=2)
    reply = differing(("1", "a"), ("2", "b"), ("3", "w"), ("4", "a"), ("5", "b"))
    tools = (floor.tool("a"), floor.tool("b"), floor.tool("w", reads=False))
    driver = await one_turn(reply, *tools)
    assert floor.beside == {"a": {"a", "b"}, "b": {"a", "b"}, "w": {"w"}}
    assert texts(driver) == ["a 1", "b 2", "w 3", "a 4", "b 5"]


@pytest.mark.parametrize("most", [1, 2, 5])
async def test_no_more_calls_run_at_once_than_the_run_may_have(most: int) -> None:
    floor = Floor(until=most)
    reply = differing(*((str(number), "a") for number in range(12)))
    driver = await one_turn(reply, floor.tool("a"), max_parallel_calls=most)
    assert floor.at_once == most
    assert texts(driver) == [f"a {number}" for number in range(12)]


async def test_a_wave_of_a_fenced_message_is_written_as_one_when_it_has_ended() -> None:
    seen: list[list[str]] = []

    async def look(_arguments: str, context: ToolContext) -> str:
        seen.append([call.call_id for call in driver.value(OPEN_CALLS)])
        await asyncio.sleep(0)
        return context.call_id

    read, write = SimpleTool("read", look, idempotent=True), SimpleTool("write", look)
    reply = differing(("1", "read"), ("2", "read"), ("3", "write"), ("4", "read"), ("5", "read"))
    driver = Driver(SimpleAgent(RecordingModel([reply, Reply.text("hm")]), [read, write]))
    await driver.serve("agent_turn", CompactionComplete())
    driver.check_log()
    results = [[m.text for m in delta.messages if m.role == "tool"] for delta in driver.deltas]
    assert [some for some in results if some] == [["1", "2"], ["3"], ["4", "5"]]
    assert seen == [list("12345")] * 2 + [list("345")] + [list("45")] * 2
    assert driver.value(OPEN_CALLS) == ()


async def test_a_call_that_fails_and_one_that_must_not_run_keep_their_places_in_a_wave() -> None:
    reply = differing(("1", "a"), ("2", "no"), ("3", "fails"), ("4", "a"), ("5", "work_complete"))
    fails = a_tool("fails", ValueError("no"), idempotent=True)
    driver = await one_turn(reply, a_tool("a", idempotent=True), fails)
    told = [result.disposition for result in driver.results()]
    assert told == ["done", "refused", "failed", "done", "refused"]


async def test_a_turn_that_is_cancelled_stops_its_whole_wave_and_writes_nothing_of_it() -> None:
    started, stopped, all_started = 0, 0, asyncio.Event()

    async def hang(_arguments: str, _context: ToolContext) -> str:
        nonlocal started, stopped
        started += 1
        if started == 3:
            all_started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped += 1
        return "never"

    script = [differing(("a", "hang"), ("b", "hang"), ("c", "hang"))]
    driver = Driver(
        SimpleAgent(RecordingModel(script), [SimpleTool("hang", hang, idempotent=True)])
    )
    context = driver.open_context("agent_turn")
    turn = asyncio.ensure_future(
        driver.executors["agent_turn"].handle(CompactionComplete(), context)
    )
    await all_started.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    assert stopped == 3
    assert context.log[-1].role == "assistant"


async def test_the_time_of_a_run_ends_every_call_of_a_wave() -> None:
    async def hang(_arguments: str, _context: ToolContext) -> str:
        await asyncio.Event().wait()
        return "never"

    hangs = SimpleTool("hang", hang, idempotent=True)
    model = RecordingModel([differing(("a", "hang"), ("b", "quick"), ("c", "hang"))])
    driver = Driver(
        SimpleAgent(model, [hangs, a_tool("quick", idempotent=True)]), limits={"time_s": 0.05}
    )
    async with asyncio.timeout(10):
        outcome = await driver.serve("agent_turn", CompactionComplete())
    assert isinstance(outcome, TurnComplete)
    assert (outcome.ending, outcome.limit) == ("limit", "time")
    assert [result.disposition for result in driver.results()] == ["timed_out", "done", "timed_out"]


async def test_the_time_of_calls_that_run_at_once_is_worked_once() -> None:
    async def takes_a_second(_arguments: str, _context: ToolContext) -> str:
        if not waiting:
            driver.clock.advance(1.0)
        waiting.append(1)
        return "done"

    waiting: list[int] = []
    reply = differing(*((str(number), "a") for number in range(4)))
    model = RecordingModel([reply, Reply.text("hm")])
    driver = Driver(SimpleAgent(model, [SimpleTool("a", takes_a_second, idempotent=True)]))
    await driver.serve("agent_turn", CompactionComplete())
    assert len(waiting) == 4
    assert driver.value(USAGE).working_s == 1.0


async def test_what_was_open_when_the_process_died_in_a_wave_runs_again_and_writes_do_not() -> None:
    dies = asyncio.Event()

    async def read(_arguments: str, context: ToolContext) -> str:
        if context.call_id == "2" and not dies.is_set():
            dies.set()
            driver.crash.steps_left = 0
            await driver.step()
        return context.call_id

    reader = SimpleTool("read", read, idempotent=True)
    writer = a_tool("write", "wrote")
    reply = differing(("0", "write"), ("1", "read"), ("2", "read"), ("3", "write"), ("4", "read"))
    driver = Driver(SimpleAgent(RecordingModel([reply, finishes()]), [reader, writer]))
    with pytest.raises(ProcessDiedError):
        await driver.run()
    driver.crash.steps_left = None

    await driver.run(resumed=True)

    driver.check_log()
    by_call = {result.tool_call_id: result.text for result in driver.results()}
    assert {name: by_call[name] for name in "01234"} == {
        "0": "wrote",
        "1": "1",
        "2": "2",
        "3": UNKNOWN_OUTCOME,
        "4": "4",
    }
    assert len(writer.calls) == 1


class Announced:
    """Remembers what a reader is told before it is on disk."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.on_event: Callable[[], None] = lambda: None

    def begin(self, turn: int, round: int) -> None: ...
    def say(self, text: str) -> None: ...
    def end(self) -> None: ...
    def announce(self, turn: int, round: int, event: Event) -> None:
        self.events.append(event)


async def test_readers_are_told_of_each_call_of_a_wave_when_it_begins() -> None:
    told: list[list[str]] = []

    async def read(_arguments: str, context: ToolContext) -> str:
        told.append([getattr(event, "call_id", "answer") for event in heard.events])
        await asyncio.sleep(0)
        return "done"

    heard = Announced()
    reply = differing(("1", "read"), ("2", "read"), ("3", "read"))
    model = RecordingModel([reply, Reply.text("hm")])
    tool = SimpleTool("read", read, idempotent=True)
    driver = Driver(SimpleAgent(model, [tool]), max_parallel_calls=2)
    driver.texts = heard
    await driver.serve("agent_turn", CompactionComplete())
    assert all("3" not in begun for begun in told[:2])
    assert told[2] == ["answer", "1", "2", "3"]


def test_ctrl_c_while_a_wave_is_being_stopped_is_the_users() -> None:
    async def interrupted(_arguments: str, context: ToolContext) -> str:
        try:
            await asyncio.Event().wait()
        finally:
            if context.call_id == "1":
                os.kill(os.getpid(), signal.SIGINT)
        return "never"

    tool = SimpleTool("slow", interrupted, idempotent=True, timeout_s=0.01)
    reply = differing(("0", "slow"), ("1", "slow"), ("2", "slow"))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    loop = asyncio.new_event_loop()
    turn = loop.create_task(one_turn(reply, tool))
    try:
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(turn)
        turn.cancel()
        with pytest.raises((KeyboardInterrupt, asyncio.CancelledError)):
            loop.run_until_complete(turn)
    finally:
        loop.close()
        signal.signal(signal.SIGINT, before)
