"""Whatever a model writes and a tool does: each call gets one answer, and nothing hangs."""

import asyncio
import hashlib
import json
import math
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_actors.config import ArtifactsConfig
from harness_actors.errors import ToolError
from harness_actors.messages import Message, ToolCall
from harness_actors.ports import DeadlineToken, Tool, ToolContext
from harness_actors.stores.artifacts import ArtifactFolder, FolderArtifacts
from harness_actors.tools import ask_user, coding_tools, tool, work_complete
from harness_actors.tools.artifacts import read_artifact
from harness_actors.tools.command import run_command
from harness_actors.turn.bounds import Due
from harness_actors.turn.one_call import PlannedCall, run_call
from harness_actors.turn.outcomes import ToolOutcome

SECONDS = 30.0
"""More than any of these calls takes, on a machine with other work."""

KEPT = b"line\n" * 10_000
KEPT_ID = f"a{hashlib.sha256(KEPT).hexdigest()[:10]}"
KNOWN = [
    KEPT_ID,
    "a0123456789",
    "../a0123456789",
    "a.txt",
    ".",
    "..",
    "/etc/passwd",
    "folder",
    "a\0b",
    "*",
    "[",
    "(a+)+$",
    "",
    "\ud800",
]


async def answer(function: Tool, context: ToolContext, arguments: str) -> ToolOutcome:
    planned = PlannedCall(call=ToolCall("c", function.spec.name, arguments), tool=function)
    async with asyncio.timeout(SECONDS):
        return await run_call(planned, context, Due(10.0, "time"))


def check(outcome: ToolOutcome) -> None:
    """It can be told to any model."""
    outcome.text.encode()
    assert len(outcome.text) < 110_000
    message = Message.tool_result("c", outcome.text, failure=outcome.failure)
    assert message.text == outcome.text


def values_of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values for a property: those that the schema allows, and those that it does not."""
    kinds = {
        "string": st.sampled_from(KNOWN) | st.text(max_size=20),
        "integer": st.integers(-(2**70), 2**70) | st.integers(-2, 40),
        "number": st.floats(),
        "boolean": st.booleans(),
        "null": st.none(),
        "array": st.lists(st.sampled_from(KNOWN), max_size=3),
    }
    named = [schema, *schema.get("anyOf", ())]
    fitting = [kinds[part["type"]] for part in named if part.get("type") in kinds]
    return st.one_of(*fitting, st.none(), st.integers(), st.text(max_size=5), st.just([{}]))


def arguments_of(function: Tool) -> st.SearchStrategy[str]:
    """Arguments as a model may write them: by the schema, against it, and no JSON at all."""
    properties = function.spec.parameters["properties"]
    drawn = {name: values_of(schema) for name, schema in properties.items()}
    required = {name: drawn[name] for name in function.spec.parameters.get("required", ())}
    optional = {name: value for name, value in drawn.items() if name not in required}
    objects = st.fixed_dictionaries(required, optional=optional).map(json.dumps)
    torn = objects.flatmap(lambda text: st.integers(0, len(text)).map(lambda end: text[:end]))
    noise = st.binary(max_size=40).map(lambda data: data.decode("latin-1"))
    nested = st.integers(1, 5_000).map(lambda depth: "[" * depth)
    return objects | torn | noise | nested | st.text(max_size=20)


SHIPPED: list[Tool] = [*coding_tools(), work_complete, read_artifact]
# A command does what it is told; what a shell may be told is tested with it.
FUZZED = [function for function in SHIPPED if function.spec.name != "run_command"]


@pytest.fixture
def kept(tmp_path_factory: pytest.TempPathFactory) -> FolderArtifacts:
    """Long results of a conversation, of which there is one."""
    store = tmp_path_factory.mktemp("store") / "runs.db"
    store.touch()
    kept = ArtifactFolder(store).of("talk", ArtifactsConfig())
    assert kept.put([KEPT]).id == KEPT_ID
    return kept


@pytest.mark.timeout(300)
@pytest.mark.parametrize("function", FUZZED, ids=lambda function: function.spec.name)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_each_call_of_a_shipped_tool_gets_its_answer(
    function: Tool,
    data: st.DataObject,
    workspace: Path,
    context: ToolContext,
    kept: FolderArtifacts,
) -> None:
    (workspace / "folder").mkdir(exist_ok=True)
    (workspace / "a.txt").write_text("line\n" * 10)
    context = replace(context, artifacts=kept)
    arguments = data.draw(arguments_of(function))

    check(asyncio.run(answer(function, context, arguments)))

    above = sorted(path.name for path in workspace.parent.iterdir())
    assert above == ["workspace"], "something escaped"


@given(data=st.data())
def test_each_question_is_asked_or_refused(data: st.DataObject) -> None:
    arguments = data.draw(arguments_of(ask_user))

    try:
        asked = ask_user.question(ToolCall("c", "ask_user", arguments))
        told = [asked.text, asked.why, *asked.options]
    except ToolError as error:
        told = [error.text]

    for text in told:
        text.encode()
    assert told[0]


BAD_TIMES = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "-1",
    "0",
    "1e-300",
    "true",
    '"60"',
    "[]",
    "null",
]


async def test_a_command_with_any_time_is_answered(context: ToolContext) -> None:
    for time_s in BAD_TIMES:
        given = f'{{"command": "echo hello", "timeout_s": {time_s}}}'
        outcome = await answer(run_command, context, given)

        check(outcome)
        assert outcome.failure in (None, "failed"), time_s
        assert outcome.is_error or "hello" in outcome.text


@given(data=st.binary(max_size=200))
@settings(max_examples=100, deadline=None)
def test_bytes_that_are_no_json_are_answered_with_a_failure(data: bytes) -> None:
    @tool
    def add(a: int, b: int) -> int:
        return a + b

    text = "{" + data.decode("latin-1")
    context = ToolContext(run_id="r", call_id="c", workspace=None, in_thread=asyncio.to_thread)

    outcome = asyncio.run(answer(add, context, text))

    check(outcome)
    assert outcome.failure == "failed"


@tool(timeout_s=0.2)
async def hangs() -> None:
    await asyncio.Event().wait()


@tool(timeout_s=0.2)
async def hangs_on() -> None:
    """Also when it is told to end."""
    ends = asyncio.get_running_loop().time() + 1.0
    while asyncio.get_running_loop().time() < ends:
        try:
            await asyncio.sleep(1.0)
        except asyncio.CancelledError:
            continue


@tool(timeout_s=0.2)
async def late() -> str:
    """Comes with a result after its deadline."""
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    return "made it"


@tool(timeout_s=0.2)
def endless() -> Iterator[int]:
    while True:
        yield 1


@tool(timeout_s=0.2)
async def endless_async() -> AsyncIterator[int]:
    while True:
        yield 1


@tool
def raw() -> bytes:
    return os.urandom(10_000) + b"\xff"


@tool
async def not_a_number() -> list[float]:
    return [math.nan, math.inf, -math.inf]


@tool
async def gigabyte() -> str:
    return "x" * 1_000_000_000


@tool
async def gigabyte_of_bytes() -> memoryview:
    # Zeros that take no memory until somebody reads them.
    return memoryview(bytearray(1_000_000_000))


@tool
def itself() -> list[Any]:
    values: list[Any] = []
    values.append(values)
    return values


class BrokenError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@tool
async def broken() -> None:
    raise BrokenError


@tool
def ends() -> None:
    raise SystemExit(3)


BAD = {
    hangs: ("timed_out", "it ran past its limit of 0.2 s"),
    hangs_on: ("timed_out", "It does not end and was left alone"),
    late: (None, "made it"),
    endless: ("timed_out", "it ran past its limit"),
    endless_async: ("timed_out", "it ran past its limit"),
    raw: ("failed", "10001 bytes that are not UTF-8 text"),
    not_a_number: (None, '["NaN","Infinity","-Infinity"]'),
    gigabyte: (None, "999900000 of 1000000000 characters left out"),
    gigabyte_of_bytes: ("failed", "returned 1000000000 bytes; 67108864 are allowed"),
    itself: ("failed", "cannot be written as JSON"),
    broken: ("failed", "BrokenError: (its text cannot be read: RuntimeError)"),
    ends: ("failed", "'ends' ended with SystemExit: 3"),
}


@pytest.mark.parametrize("function", BAD, ids=lambda function: function.options.name)
async def test_what_a_tool_does_is_answered(function: Any, context: ToolContext) -> None:
    failure, told = BAD[function]

    outcome = await answer(function, context, "{}")

    check(outcome)
    assert (outcome.failure, told in outcome.text) == (failure, True), outcome.text


async def test_what_is_told_after_the_end_of_a_call_is_refused(context: ToolContext) -> None:
    from harness_actors.turn.emission import Emission

    heard: list[object] = []
    run = Reading(heard)
    kept: list[ToolContext] = []

    @tool
    def tells(context: ToolContext) -> bool:
        kept.append(context)
        return context.emit("in time")

    deadline = DeadlineToken()
    emission = Emission(run, 1, ToolCall("c", "tells", "{}"), deadline)  # type: ignore[arg-type]
    told = await tells.run("{}", replace(context, tell=emission.tell))
    await asyncio.sleep(0)
    deadline.cancel("the call is over")

    assert told == "true"
    assert [kept[0].emit("late"), len(heard)] == [False, 1]


class Reading:
    """As much of a run as is needed to read along; also what it is told."""

    def __init__(self, heard: list[object]) -> None:
        self._heard = heard
        self.texts = self

    def get(self, _key: object) -> int:
        return 1

    def announce(self, _turn: int, _round: int, event: object) -> None:
        self._heard.append(event)
