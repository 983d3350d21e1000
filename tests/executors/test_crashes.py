"""A run that dies at any step goes on from what was committed."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness_actors.conversation import UNKNOWN_OUTCOME, repaired
from harness_actors.errors import ToolError
from harness_actors.events import (
    Event,
    RunResumed,
    RunStarted,
    StopDecided,
    TurnCompleted,
    TurnStarted,
)
from harness_actors.messages import Message
from harness_actors.ports import ToolContext
from harness_actors.signals import Parked, RunEnd
from harness_actors.state import OPEN_CALLS, REQUEST_TOKENS, TURN, TURN_COUNT, USAGE
from harness_actors.testing.scripted import Reply
from harness_actors.tools import ask_user
from tests.executors.driver import (
    Driver,
    ProcessDiedError,
    RecordingModel,
    SimpleAgent,
    SimpleTool,
    calls,
    finishes,
)

TOOLS = ("read", "write", "read_fails", "write_fails", "unknown", "work_complete", "ask_user")
IDEMPOTENT = ("read", "read_fails")


@dataclass
class Scenario:
    """A run over a script of replies, each a list of tool names; an empty one is a text."""

    replies: Sequence[Sequence[str]]
    same_ids: bool = False
    lag: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def start(self) -> Driver:
        self.tools = [self._tool(name) for name in TOOLS[:4]]
        self.model = RecordingModel(self._reply, before=self._step)
        self.driver = Driver(
            SimpleAgent(self.model, [*self.tools, ask_user]),
            lag=self.lag,
            **{"max_rounds_per_turn": 3, "continuation": {"max_prompts": 10}, **self.settings},
        )
        self.driver.answer = lambda question: f"answer to {question}"
        return self.driver

    def _reply(self, messages: Sequence[Message]) -> Reply:
        spoken = sum(message.role == "assistant" for message in messages)
        if spoken >= len(self.replies):
            return Reply.call("work_complete", {"summary": "done"})
        names = self.replies[spoken]
        if not names:
            return Reply.text("thinking")
        return Reply.calls(
            [(name, self._arguments(name, spoken, i)) for i, name in enumerate(names)],
            said=f"round {spoken + 1}" if spoken % 2 else None,
            ids=["same"] * len(names) if self.same_ids else [],
        )

    def _arguments(self, name: str, spoken: int, position: int) -> dict[str, object]:
        match name:
            case "work_complete":
                return {"summary": "done"}
            case "ask_user":
                return {"question": str([spoken, position])}
            case _:
                return {"at": [spoken, position]}

    def _tool(self, name: str) -> SimpleTool:
        async def act(arguments: str, _context: ToolContext) -> str:
            await self._step()
            if name.endswith("fails"):
                raise ToolError("it did not work")
            return arguments

        return SimpleTool(name, act, idempotent=name in IDEMPOTENT)

    async def _step(self) -> None:
        await asyncio.sleep(0)
        await self.driver.step()


async def count_steps(scenario: Scenario) -> int:
    driver = scenario.start()
    await driver.run()
    return driver.crash.steps


def check(scenario: Scenario, end: object) -> None:
    driver = scenario.driver
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("done", "completed")
    driver.check_log()
    for request in scenario.model.requests:
        assert repaired(request.messages)[1] == 0
    assert [message.text for message in driver.state.log].count("the task") == 1
    assert driver.value(OPEN_CALLS) == ()
    assert driver.value(TURN) is None
    _check_counts(scenario)
    _check_effects(scenario)


def _check_counts(scenario: Scenario) -> None:
    driver = scenario.driver
    log = driver.state.log
    turns = driver.value(TURN_COUNT)
    assert driver.value(USAGE).model_calls == sum(m.role == "assistant" for m in log)
    assert [event.turn for event in driver.happened(TurnStarted)] == list(range(1, turns + 1))
    assert [event.turn for event in driver.happened(TurnCompleted)] == list(range(1, turns + 1))
    assert [event.turn for event in driver.happened(StopDecided)] == list(range(1, turns + 1))
    assert len(driver.happened(RunStarted)) == 1
    request = scenario.model.requests[-1]
    overhead = request.messages[0].tokens + len(request.tools.encoded.decode().split())
    assert driver.value(REQUEST_TOKENS) == overhead + log.tokens


def _check_effects(scenario: Scenario) -> None:
    """What is not idempotent started once at most, and what the log says of it is true."""
    for tool in scenario.tools:
        if tool.name not in IDEMPOTENT:
            started = Counter(tool.calls)
            assert max(started.values(), default=0) <= 1
    started = Counter(call for tool in scenario.tools for call in tool.calls)
    log = scenario.driver.state.log
    for at, message in enumerate(log):
        for position, call in enumerate(message.tool_calls):
            results = log[at + 1 : at + 1 + len(message.tool_calls)]
            (result,) = [r for r in results if r.tool_call_id == call.id]
            if call.name == "ask_user":
                question = json.loads(call.arguments)["question"]
                assert result.text == f"answer to {question}"
            if call.name in TOOLS[:4] and result.text != UNKNOWN_OUTCOME:
                assert json.loads(call.arguments)["at"][1] == position
                assert started[call.arguments] >= 1


MIXED = Scenario(
    [
        ["read"],
        ["write", "read", "write"],
        [],
        ["read", "write", "ask_user", "write", "ask_user", "read"],
        ["ask_user"],
        ["read", "read_fails"],
        ["write", "work_complete"][::-1],
        ["write_fails", "unknown"],
        [],
        ["write", "work_complete"],
    ]
)


async def test_a_run_may_die_once_at_every_step() -> None:
    steps = await count_steps(MIXED)
    assert steps > 40
    for step in range(steps):
        driver = MIXED.start()
        check(MIXED, await driver.run_through_crashes(step))


async def test_a_run_may_die_a_second_time_while_it_is_repaired() -> None:
    steps = await count_steps(MIXED)
    for step in range(0, steps, 3):
        for after in range(6):
            driver = MIXED.start()
            check(MIXED, await driver.run_through_crashes(step, after))


@given(
    replies=st.lists(st.lists(st.sampled_from(TOOLS), max_size=4), max_size=6),
    same_ids=st.booleans(),
    lag=st.integers(0, 4),
    crashes=st.lists(st.integers(0, 40), max_size=4),
)
def test_no_call_is_lost_or_doubled_whatever_the_model_does_and_wherever_it_dies(
    replies: list[list[str]], same_ids: bool, lag: int, crashes: list[int]
) -> None:
    async def scenario() -> None:
        run = Scenario(replies, same_ids=same_ids, lag=lag)
        driver = run.start()
        check(run, await driver.run_through_crashes(*crashes))

    asyncio.run(scenario())


class Paused(Scenario):
    """A run that is put aside after each round and taken up again, in one process."""

    async def _step(self) -> None:
        await super()._step()
        if self.driver.context is not None:
            self.driver.context.parking = True

    async def run(self) -> object:
        end: object = await self.driver.run()
        while end == Parked():
            end = await self.driver.run(resumed=True)
        return end


def _told_of_the_run(driver: Driver) -> list[Event]:
    return [event for event in driver.events if not isinstance(event, RunResumed)]


@given(
    replies=st.lists(st.lists(st.sampled_from(TOOLS), max_size=4), min_size=1, max_size=6),
    settings=st.sampled_from(
        [
            {"continuation": {"max_prompts": 1}},
            {"continuation": {"max_prompts": 2}, "stop_policy": "interactive"},
            {"limits": {"model_calls": 3}},
            {"limits": {"tool_calls": 3}},
            {"max_turns": 2},
        ]
    ),
)
@example(replies=[["read"], [], [], []], settings={"continuation": {"max_prompts": 1}})
@example(replies=[[], ["read"], [], []], settings={"continuation": {"max_prompts": 1}})
def test_a_run_that_is_put_aside_after_each_round_is_the_same_run(
    replies: list[list[str]], settings: dict[str, Any]
) -> None:
    async def scenario() -> None:
        at_once, paused = Scenario(replies, settings=settings), Paused(replies, settings=settings)
        one, other = at_once.start(), paused.start()
        assert await paused.run() == await one.run()
        assert list(other.state.log) == list(one.state.log)
        assert _told_of_the_run(other) == _told_of_the_run(one)
        assert other.state.values == one.state.values

    asyncio.run(scenario())


async def test_an_effect_is_announced_on_disk_before_it_starts() -> None:
    seen: list[tuple[int, list[str]]] = []

    async def write(_arguments: str, _context: ToolContext) -> str:
        open_now = [call.call_id for call in driver.value(OPEN_CALLS)]
        seen.append((len(driver.state.log), open_now))
        return "ok"

    script = [calls(("a", "write"), ("b", "write")), finishes()]
    driver = Driver(SimpleAgent(RecordingModel(script), [SimpleTool("write", write)]))
    await driver.run()
    assert seen[0] == (2, ["a", "b"])


async def test_what_died_in_flight_is_unknown_to_the_model_and_what_ended_before_is_not() -> None:
    scenario = Scenario([["write", "write", "write"]])
    driver = scenario.start()
    inner = scenario.tools[1].act

    async def dies_in_the_second(arguments: str, context: ToolContext) -> str:
        if "1]" in arguments and driver.crash.steps_left is None:
            await asyncio.sleep(0)
            driver.crash.steps_left = 0
        return str(await inner(arguments, context))

    scenario.tools[1].act = dies_in_the_second
    with pytest.raises(ProcessDiedError):
        await driver.run()
    driver.crash.steps_left = None
    scenario.tools[1].act = inner

    end = await driver.run(resumed=True)

    check(scenario, end)
    texts = [result.text for result in driver.results()[:3]]
    assert texts == ['{"at":[0,0]}', UNKNOWN_OUTCOME, UNKNOWN_OUTCOME]
    assert len(scenario.tools[1].calls) == 2


async def test_idempotent_calls_left_open_are_run_before_the_model_is_asked() -> None:
    scenario = Scenario([["write", "read"]])
    steps = await count_steps(scenario)
    reruns = 0
    for step in range(steps):
        driver = scenario.start()
        await driver.run_through_crashes(step)
        reads = scenario.tools[0].calls
        (read,) = [r for r in driver.results() if r.text == '{"at":[0,1]}']
        assert not read.is_error
        reruns += len(reads) > 1
    assert reruns
