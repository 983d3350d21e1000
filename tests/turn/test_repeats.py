"""A call that was made before is answered from the log, as long as nothing may have changed."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.messages import COMPARED_CHARS, Message, ToolCall
from harness_actors.ports import ToolContext, ToolSpec
from harness_actors.signals import CompactionComplete, Parked
from harness_actors.state import OPEN_CALLS, TURN_COUNT, USAGE
from harness_actors.testing.scripted import Reply
from harness_actors.tools import ask_user
from harness_actors.turn.repeats import REMEMBERED
from tests.executors.driver import (
    Driver,
    RecordingModel,
    SimpleAgent,
    SimpleTool,
    a_tool,
    calls,
    finishes,
)

KINDS = ("read", "read", "stale", "put", "add", "fails", "unknown")


@dataclass
class World:
    """What tools read and change.

    Attributes:
        volatile: Each call is made.
        made: Calls that were made, as name and arguments.
    """

    volatile: bool = False
    made: list[tuple[str, str]] = field(default_factory=list)
    values: dict[str, int] = field(default_factory=dict)

    def tools(self) -> list["WorldTool"]:
        return [WorldTool(name, self) for name in ("read", "stale", "put", "add", "fails")]


@dataclass
class WorldTool:
    """`read` and `stale` (volatile) give a value, `put` sets it, `add` adds to it."""

    name: str
    world: World

    @property
    def spec(self) -> ToolSpec:
        reads = self.name in ("read", "stale", "fails")
        return ToolSpec(
            name=self.name,
            description="A tool.",
            parameters={"type": "object"},
            effect="read_only" if reads else "local_write",
            idempotent=self.name != "add",
            volatile=self.world.volatile or self.name == "stale",
        )

    async def run(self, arguments: str, context: ToolContext) -> str:
        given = json.loads(arguments)
        self.world.made.append((self.name, json.dumps(given, sort_keys=True)))
        await asyncio.sleep(0)
        key, values = given["key"], self.world.values
        match self.name:
            case "put":
                values[key] = given["value"]
            case "add":
                values[key] = values.get(key, 0) + 1
            case "fails":
                raise ValueError(key)
        return f"{key} is {values.get(key, 0)}"


@st.composite
def a_call(draw: st.DrawFn) -> tuple[str, str]:
    name = draw(st.sampled_from(KINDS))
    given: dict[str, Any] = {"key": draw(st.sampled_from("ab"))}
    if name == "put":
        given["value"] = draw(st.integers(5, 6))
    return name, _spelled(given, draw(st.booleans()))


def _spelled(given: dict[str, Any], backwards: bool) -> str:
    """One value in two ways of writing it."""
    if backwards:
        return json.dumps(dict(reversed(given.items())), indent=1)
    return json.dumps(given)


MESSAGES = st.lists(st.lists(a_call(), min_size=1, max_size=4), min_size=1, max_size=8)


async def ran(
    messages: Sequence[Sequence[tuple[str, str]]], world: World, *, parks: bool = False
) -> Driver:
    """A run that makes these calls, and is perhaps put aside after each round."""
    replies = [Reply.calls(list(message)) for message in messages]

    async def park() -> None:
        if parks and driver.context is not None:
            driver.context.parking = True

    model = RecordingModel([*replies, finishes()], before=park)
    driver = Driver(SimpleAgent(model, world.tools()))
    end = await driver.run()
    while end == Parked():
        end = await driver.run(resumed=True)
    driver.check_log()
    return driver


@given(MESSAGES, st.booleans())
def test_the_log_is_that_of_a_run_that_makes_each_call(
    messages: list[list[tuple[str, str]]], parks: bool
) -> None:
    guarded, plain = World(), World(volatile=True)
    one = asyncio.run(ran(messages, guarded, parks=parks))
    other = asyncio.run(ran(messages, plain))
    assert list(one.state.log) == list(other.state.log)
    assert guarded.values == plain.values
    assert one.value(USAGE).tool_calls == other.value(USAGE).tool_calls


@given(MESSAGES)
def test_no_call_is_made_again_before_something_may_have_written(
    messages: list[list[tuple[str, str]]],
) -> None:
    # Of a run that was put aside, the log does not say which calls were answered from it: one that
    # writes and was not made again makes those before it old.
    world = World()
    asyncio.run(ran(messages, world))
    fresh: set[tuple[str, str]] = set()
    for call in world.made:
        if call[0] in ("put", "add"):
            assert call not in fresh
            fresh.clear()
        if call[0] in ("read", "put"):
            assert call not in fresh
            fresh.add(call)
    asked = {call for message in messages for call in message}
    assert {name for name, _ in world.made} == {name for name, _ in asked} - {"unknown"}


async def made_of(*arguments: str, **tool: Any) -> list[str]:
    """Which of these calls of one tool, a message each, were made."""
    look = replace(a_tool("look", idempotent=True), **tool)
    replies = [calls((str(at), "look", given)) for at, given in enumerate(arguments)]
    driver = Driver(SimpleAgent(RecordingModel([*replies, finishes()]), [look]))
    await driver.run()
    return look.calls


@pytest.mark.parametrize(
    "same", [('{"a": 1, "b": 2}', '{"b":2,"a":1}'), ('["x"]', '[ "x" ]'), ('{"a":"é"}',) * 2]
)
async def test_arguments_are_compared_as_values(same: tuple[str, str]) -> None:
    assert await made_of(*same) == [same[0]]


@pytest.mark.parametrize(
    "others",
    [
        ('{"a": 1}', '{"a": "1"}'),
        ('{"a": 1}', '{"a": true}'),
        ('{"a": 18446744073709551617}', '{"a": 18446744073709551618}'),
        ('{"a": [1, 2]}', '{"a": [2, 1]}'),
        ("not json", "not json"),
        ("[" * 5_000, "[" * 5_000),
        (json.dumps("x" * COMPARED_CHARS),) * 2,
    ],
)
async def test_what_is_not_known_to_be_the_same_is_made(others: tuple[str, str]) -> None:
    assert await made_of(*others) == list(others)


async def test_a_volatile_tool_is_called_each_time() -> None:
    assert await made_of("{}", "{}", volatile=True) == ["{}", "{}"]


async def test_of_equal_calls_of_one_message_one_is_made_and_all_are_answered() -> None:
    look = a_tool("look", "seen", idempotent=True)
    reply = calls(*((str(at), "look") for at in range(5)))
    driver = Driver(SimpleAgent(RecordingModel([reply, finishes()]), [look]))
    await driver.run()
    assert len(look.calls) == 1
    assert [result.text for result in driver.results()][:5] == ["seen"] * 5
    assert driver.value(USAGE).tool_calls == 5


async def test_a_failure_is_tried_again_by_the_next_call_of_its_message() -> None:
    async def second_time(_arguments: str, context: ToolContext) -> str:
        if len(look.calls) == 1:
            raise ValueError("not yet")
        return f"seen by {context.call_id}"

    look = SimpleTool("look", second_time, idempotent=True)
    reply = calls(("1", "look"), ("2", "look"), ("3", "look"))
    driver = Driver(SimpleAgent(RecordingModel([reply, finishes()]), [look]))
    await driver.run()
    texts = [result.text for result in driver.results()][:3]
    assert texts == ["ValueError: not yet", "seen by 2", "seen by 2"]


async def test_what_was_read_before_the_user_was_asked_is_read_again() -> None:
    look = a_tool("look", "seen", idempotent=True)
    ask = calls(("q", "ask_user", '{"question": "Is it done?"}'))
    replies = [calls(("1", "look")), ask, calls(("2", "look")), finishes()]
    driver = Driver(SimpleAgent(RecordingModel(replies), [look, ask_user]))
    driver.answer = lambda _question: "now it is"
    await driver.run()
    assert len(look.calls) == 2


async def test_what_another_run_of_the_conversation_has_read_is_read_again() -> None:
    look = a_tool("look", "seen", idempotent=True)
    before = [
        Message.user("the task before"),
        Message.assistant(None, [ToolCall("1", "look", "{}")]),
        Message.tool_result("1", "seen by another run"),
        Message.assistant("So it is."),
    ]
    model = RecordingModel([Reply.text("unused")] * 2 + [calls(("2", "look")), finishes()])
    driver = Driver(SimpleAgent(model, [look]), log=before)
    await driver.run()
    assert len(look.calls) == 1


@pytest.mark.parametrize(("between", "made"), [("look", 1), ("write", 2)])
async def test_what_an_earlier_turn_has_read_is_as_old_as_what_this_one_has(
    between: str, made: int
) -> None:
    look, write = a_tool("look", "seen", idempotent=True), a_tool("write")
    replies = [
        *(calls(("1", "look")), Reply.text("a moment")),
        *(calls(("2", between)), calls(("3", "look")), finishes()),
    ]
    driver = Driver(SimpleAgent(RecordingModel(replies), [look, write]))
    await driver.run()
    assert driver.value(TURN_COUNT) == 2
    assert len(look.calls) == made


async def test_a_guard_remembers_so_many_calls_and_no_more() -> None:
    look = a_tool("look", "seen", idempotent=True)
    rounds = [[f'{{"at": {at}}}'] for at in range(REMEMBERED + 1)]
    replies = [calls(("c", "look", one)) for (one,) in [*rounds, rounds[0], rounds[-1]]]
    model = RecordingModel([*replies, finishes()])
    driver = Driver(
        SimpleAgent(model, [look]), limits={"model_calls": 1000}, max_rounds_per_turn=1000
    )
    await driver.serve("agent_turn", CompactionComplete())
    assert len(look.calls) == REMEMBERED + 2, "the oldest was made again, the newest was not"
    assert driver.value(OPEN_CALLS) == ()
