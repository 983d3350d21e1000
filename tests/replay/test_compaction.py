"""Runs that outgrew their windows come out the same from their journals, byte for byte."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness_actors.agents import ChatAgent, Program
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.errors import ContextOverflowError
from harness_actors.events import ContextCompacted
from harness_actors.executors import Compaction
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.replay import load_recording, replay
from harness_actors.results import HarnessResult
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool
from tests.replay.recorded_runs import TOOLS, Session, done, program
from tests.replay.test_replay import check

ROUNDS = 40
WINDOW = 3_000


@tool(effect="read_only", volatile=True)
async def page(number: int) -> str:
    """A page of a book.

    Args:
        number: Which.
    """
    return f"page {number}: " + f"{number} words " * 150


@tool(durability="non_replayable", keep=("number",))
async def draw(number: int) -> str:
    """Draw a card, which is gone then.

    Args:
        number: Which.
    """
    return f"card {number}: " + f"{number} hearts " * 150


class Reader:
    """Reads on behind the newest page that it is shown, and refuses what is too large.

    Args:
        most_tokens: How large a request may be, by a rough count; None for any size.
        takes_s: For each answer, in seconds.
    """

    name = "reader"
    key_names: tuple[str, ...] = ()

    def __init__(self, most_tokens: int | None = None, takes_s: float = 0.0) -> None:
        self._most_tokens = most_tokens
        self._takes_s = takes_s

    async def complete(self, request: ModelRequest) -> ModelResponse:
        await asyncio.sleep(self._takes_s)
        size = sum(message.tokens for message in request.messages)
        if self._most_tokens is not None and size > self._most_tokens:
            raise ContextOverflowError(self.name, "too large", 400)
        return await ScriptedModel(next_page).complete(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        yield await self.complete(request)


def next_page(conversation: Any) -> Reply:
    calls = [call for message in conversation for call in message.tool_calls]
    number = 1 + orjson.loads(calls[-1].arguments).get("number", ROUNDS) if calls else 1
    if number > ROUNDS:
        return done()
    return Reply.call("draw" if number % 5 == 0 else "page", {"number": number})


def session(store: Path, model: Reader, **more: Any) -> Session:
    settings = {
        "max_input_tokens": WINDOW,
        "max_rounds_per_turn": 200,
        "stall": None,
        "compaction": {"summaries": False},
    }
    return Session(store, program(model, [*TOOLS, page, draw]), {**settings, **more})


def compactions(one: Session) -> list[ContextCompacted]:
    changes = one.recording().changes
    events = [event for change in changes for event in change.delta.events]
    return [event for event in events if isinstance(event, ContextCompacted)]


def check_done(end: HarnessResult) -> None:
    assert (end.status, end.reason.kind) == ("done", "completed"), end.reason


@pytest.mark.parametrize("settings", [{}, {"max_rounds_per_turn": 7}, {"max_rounds_per_turn": 1}])
async def test_a_run_of_many_windows_comes_out_the_same(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    run = session(tmp_path / "runs.db", Reader(), **settings)
    check_done(await run.to_its_end())
    assert len(compactions(run)) >= 3
    check(await run.replayed())


SUMMARIES = {"soft": 0.6}


@pytest.mark.parametrize("takes_s", [0.0, 0.02])
@pytest.mark.parametrize("settings", [{}, {"max_rounds_per_turn": 7}, {"max_rounds_per_turn": 1}])
async def test_a_run_that_is_summarized_beside_comes_out_the_same(
    tmp_path: Path, settings: dict[str, Any], takes_s: float
) -> None:
    model = Reader(takes_s=takes_s)
    run = session(tmp_path / "runs.db", model, compaction=SUMMARIES, **settings)
    check_done(await run.to_its_end())
    assert sum(one.summarized > 0 for one in compactions(run)) >= 2
    check(await run.replayed())


async def test_what_a_provider_refused_is_refused_again(tmp_path: Path) -> None:
    run = session(tmp_path / "runs.db", Reader(1_500))
    check_done(await run.to_its_end())
    recording = run.recording()
    assert recording.end is not None
    assert recording.end.usage.model_calls == ROUNDS + 2
    check(await replay(recording))


async def test_a_run_that_cannot_fit_comes_out_the_same(tmp_path: Path) -> None:
    run = session(tmp_path / "runs.db", Reader(1))
    end = await run.to_its_end()
    assert (end.status, end.reason.kind) == ("limit", "context")
    check(await run.replayed())


async def test_the_next_run_of_a_conversation_comes_out_the_same(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    first = session(store, Reader())
    check_done(await first.to_its_end())
    journal = JournalReader(store)
    plan = journal.load_plan("run")
    assert plan is not None
    second = session(store, Reader(WINDOW))
    second.run_id, second.task = "second", "read it once more"
    check_done(await second.to_its_end())

    check(await replay(load_recording(journal, "second")))
    check(await replay(load_recording(journal, "run")))


async def test_a_run_whose_compaction_is_a_users_own_comes_out_the_same(tmp_path: Path) -> None:
    agent = ChatAgent(model=Reader(), tools=[*TOOLS, page, draw])
    replaced = HarnessWorkflowBuilder(agent).replace("compaction", Compaction()).build()
    settings = {"max_input_tokens": WINDOW, "max_rounds_per_turn": 200, "stall": None}
    run = Session(tmp_path / "runs.db", Program.of(replaced), settings)
    check_done(await run.to_its_end())
    assert len(compactions(run)) >= 3
    check(await run.replayed())
    check(await replay(run.recording(), [Compaction()]))
