"""What runs say is read while they say it, wherever the actors live; whatever dies, they go on."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest
import pytest_asyncio

from harness_actors.actors import Runtime
from harness_actors.actors.driver.following import follow
from harness_actors.actors.kinds import STREAMS
from harness_actors.actors.local import LocalRuntime
from harness_actors.actors.text.hearing import HeardItem, with_texts
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig
from harness_actors.coordination.protocol import Slot
from harness_actors.events import (
    AgentResponse,
    RoundCompleted,
    RunEvent,
    RunStarted,
    TextDelta,
    TextGap,
    ToolCalled,
    ToolReturned,
    TurnStarted,
)
from harness_actors.messages import Message
from harness_actors.ports import ModelRequest
from harness_actors.records import RunSpec
from harness_actors.results import HarnessResult
from harness_actors.stores import SqliteJournal
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool
from tests.actors.followers import opened, results, submit
from tests.actors.tasks import look, replies

KINDS = ["local", pytest.param("ray", marks=pytest.mark.ray)]
ANSWERING = HarnessConfig(completion="answer")
WORDS = 200
WITHIN_S = 60.0

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(params=KINDS, scope="module", loop_scope="module")
async def cell(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[Runtime, Path]]:
    """One cell, and its journal, serve all of these tests."""
    store = tmp_path_factory.mktemp(request.param) / "runs.db"
    async with opened(request.param, store) as runtime:
        yield runtime, store


@pytest.fixture
def runtime(cell: tuple[Runtime, Path]) -> Runtime:
    return cell[0]


def long_answer() -> str:
    return " ".join(str(number) for number in range(WORDS))


def looks_then_answers(*, word_s: float = 0.0) -> Program:
    """An agent that says something, looks, and gives a long answer, word by word."""
    answer = long_answer()

    def script(messages: Sequence[Message]) -> Reply:
        if not replies(messages):
            return Reply.call("look", {"topic": "it"}, said="I look it up.")
        return Reply.text(answer)

    return Program.of(ChatAgent(model=ScriptedModel(script, word_s=word_s), tools=[look]))


def heard(
    runtime: Runtime, program: Program, spec: RunSpec, *, subscribed: bool = True
) -> AsyncGenerator[HeardItem]:
    """A run from its beginning, with its text."""

    async def begin() -> None:
        if subscribed:
            await runtime.subscribe([spec.run_id])
        await submit(runtime, program, [spec])

    return with_texts(runtime, spec.run_id, follow(runtime, [spec.run_id], begin))


def text_of(items: Sequence[HeardItem]) -> str:
    return "".join(item.text for item in items if isinstance(item, TextDelta))


async def test_the_text_of_each_round_comes_before_its_events_and_the_result_last(
    runtime: Runtime,
) -> None:
    program = looks_then_answers(word_s=0.005)
    spec = program.spec("go", ANSWERING)

    async with asyncio.timeout(WITHIN_S), aclosing(heard(runtime, program, spec)) as stream:
        items = [item async for item in stream]

    assert isinstance(items[-1], HarnessResult)
    answered = [
        place
        for place, item in enumerate(items)
        if isinstance(item, RunEvent) and isinstance(item.event, AgentResponse)
    ]
    first, second = answered
    assert text_of(items[:first]) == "I look it up."
    assert text_of(items[first:second]) == long_answer()
    assert text_of(items[second:]) == ""
    deltas = [item for item in items if isinstance(item, TextDelta)]
    assert {(delta.turn, delta.round, delta.attempt) for delta in deltas} == {
        (1, 1, 1),
        (1, 2, 1),
    }
    assert len(deltas) > 3
    assert not any(isinstance(item, TextGap) for item in items)


@tool(effect="read_only")
async def gaze(folder: str) -> str:
    """Look for a long time.

    Args:
        folder: It ends when the file `seen` is in there, and makes `began` before.
    """
    (Path(folder) / "began").touch()
    while not (Path(folder) / "seen").exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    return "nothing new"


def gazes_then_answers(folder: Path) -> Program:
    path = str(folder)

    def script(messages: Sequence[Message]) -> Reply:
        if not replies(messages):
            return Reply.call("gaze", {"folder": path}, said="I look.")
        return Reply.text("Nothing.")

    return Program.of(ChatAgent(model=ScriptedModel(script, word_s=0.001), tools=[gaze]))


async def test_a_call_is_told_while_its_tool_is_at_work_after_the_text_of_its_answer(
    runtime: Runtime, tmp_path: Path
) -> None:
    program = gazes_then_answers(tmp_path)
    spec = program.spec("go", ANSWERING)
    items: list[HeardItem] = []

    async with asyncio.timeout(WITHIN_S), aclosing(heard(runtime, program, spec)) as stream:
        async for item in stream:
            items.append(item)
            if isinstance(item, RunEvent) and isinstance(item.event, ToolCalled):
                # Before it is told, the tool does not end; nor is its round on disk.
                assert text_of(items) == "I look."
                (tmp_path / "seen").touch()

    events = [item for item in items if isinstance(item, RunEvent)]
    kinds = [type(item.event) for item in events]
    assert kinds[:6] == [
        *(RunStarted, TurnStarted, AgentResponse, ToolCalled, ToolReturned, RoundCompleted)
    ]
    assert [item.position == 0 for item in events[:6]] == [False, False, True, True, False, False]
    stored = [item.event for item in await runtime.events(spec.run_id)]
    assert [item.event for item in events] == stored
    begins = next(at for at, item in enumerate(items) if isinstance(item, TextDelta))
    assert items.index(events[1]) < begins


async def test_a_call_of_a_run_that_nobody_reads_is_told_with_its_round_alone(
    runtime: Runtime, tmp_path: Path
) -> None:
    program = gazes_then_answers(tmp_path)
    spec = program.spec("go", ANSWERING)
    await submit(runtime, program, [spec])
    while not (tmp_path / "began").exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.01)
    at_work = [type(item.event) for item in await runtime.events(spec.run_id)]
    (tmp_path / "seen").touch()
    await results(runtime, [spec.run_id])

    assert at_work == [RunStarted, TurnStarted]


async def test_a_reader_may_come_in_the_middle_of_a_run(runtime: Runtime, tmp_path: Path) -> None:
    program = gazes_then_answers(tmp_path)
    spec = program.spec("go", ANSWERING)
    await submit(runtime, program, [spec])

    async with asyncio.timeout(WITHIN_S):
        await runtime.subscribe([spec.run_id])
        # Only now, for who tells the text may take longer to start than a run to end.
        (tmp_path / "seen").touch()
        texts = await runtime.texts(spec.run_id)
        while not (texts.spoken and texts.spoken[-1].ended and texts.spoken[-1].round == 2):
            texts = await runtime.texts(spec.run_id, texts.cursor)
        (await results(runtime, [spec.run_id]))[spec.run_id]


class NeverStreams(ScriptedModel):
    """A model that ends the run where it is asked for pieces."""

    def stream(self, request: ModelRequest):  # type: ignore[no-untyped-def]
        raise AssertionError("nobody reads, so nothing is to be streamed")


async def test_where_nobody_reads_no_model_is_asked_to_stream(runtime: Runtime) -> None:
    program = Program.of(ChatAgent(model=NeverStreams([Reply.text("done")])))
    spec = program.spec("go", ANSWERING)

    await submit(runtime, program, [spec])

    assert (await results(runtime, [spec.run_id]))[spec.run_id].status == "done"


async def test_a_run_goes_on_without_its_stream_actor_and_is_heard_again(
    cell: tuple[Runtime, Path],
) -> None:
    runtime, store = cell
    # Long enough for another actor to come up, where others keep the machine busy.
    program = looks_then_answers(word_s=0.01 if isinstance(runtime, LocalRuntime) else 0.06)
    spec = program.spec("go", ANSWERING)
    before = after = ""
    gaps = 0
    last: HeardItem | None = None

    async with asyncio.timeout(WITHIN_S), aclosing(heard(runtime, program, spec)) as stream:
        async for item in stream:
            if isinstance(item, TextGap):
                gaps += 1
            elif isinstance(item, TextDelta) and item.round == 2:
                if not before:
                    await kill_streams(runtime, store)
                if gaps:
                    after += item.text
                else:
                    before += item.text
            last = item

    assert isinstance(last, HarnessResult)
    assert (last.status, last.output_text) == ("done", long_answer())
    assert gaps
    assert long_answer().startswith(before)
    assert after
    assert long_answer().endswith(after)


async def kill_streams(runtime: Runtime, store: Path) -> None:
    """Kill the stream actor: the process that it has to itself, or what stands for it."""
    if isinstance(runtime, LocalRuntime):
        runtime.starter.hosts[Slot(STREAMS)].kill()
        return
    marks = await asyncio.to_thread(processes_in, store)
    os.kill(marks["streams"], 9)


def processes_in(store: Path) -> dict[str, int]:
    """The processes of a cell by what they are, of several the newest."""
    journal = SqliteJournal(store)
    try:
        return {mark.role: mark.pid for mark in journal.load_processes()}
    finally:
        journal.close()


@pytest.mark.ray
async def test_an_answer_whose_process_dies_is_void_and_begins_again(
    cell: tuple[Runtime, Path],
) -> None:
    runtime, store = cell
    if isinstance(runtime, LocalRuntime):
        # There its process is this one.
        return
    program = looks_then_answers(word_s=0.01)
    spec = program.spec("go", ANSWERING)
    attempts: dict[int, str] = {}
    last: HeardItem | None = None

    async with asyncio.timeout(WITHIN_S), aclosing(heard(runtime, program, spec)) as stream:
        async for item in stream:
            if isinstance(item, TextDelta) and item.round == 2:
                if not attempts:
                    marks = await asyncio.to_thread(processes_in, store)
                    os.kill(marks["agent_turn"], 9)
                attempts[item.attempt] = attempts.get(item.attempt, "") + item.text
            last = item

    assert isinstance(last, HarnessResult)
    assert last.status == "done"
    assert list(attempts) == [1, 2]
    assert long_answer().startswith(attempts[1])
    assert attempts[2] == long_answer()
