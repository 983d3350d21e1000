"""Runs that outgrew their windows come out the same from their journals, byte for byte."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness_actors.agents import ChatAgent, Program
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.errors import ContextOverflowError
from harness_actors.events import ContextCompacted, StrategyFailed
from harness_actors.executors import Compaction
from harness_actors.plan import Span
from harness_actors.ports import Candidate, ModelRequest, ModelResponse
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


class SpareCards:
    """Drops pages, the newest of them first, and no cards."""

    name, action = "spare_cards", "drop"

    def choose(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        return [one for one in reversed(candidates) if "draw" not in one.tools]


class Broken:
    """Fails whenever it is asked."""

    name, action = "broken", "clear"

    def choose(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        raise LookupError(f"{len(candidates)} are too many")


def strategic(store: Path, *own: Any, **more: Any) -> Session:
    agent = ChatAgent(model=Reader(), tools=[*TOOLS, page, draw], strategies=own)
    settings = {"max_input_tokens": WINDOW, "max_rounds_per_turn": 200, "stall": None}
    return Session(store, Program.of(agent), {**settings, **more})


@pytest.mark.parametrize("settings", [{}, {"max_rounds_per_turn": 1}])
async def test_a_run_with_strategies_of_its_own_comes_out_the_same(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    compaction = {"summaries": False, "strategies": ["spare_cards"]}
    run = strategic(tmp_path / "runs.db", SpareCards(), compaction=compaction, **settings)
    check_done(await run.to_its_end())
    assert sum(one.dropped > 0 for one in compactions(run)) >= 3
    plan = JournalReader(run.store).load_plan("run")
    assert plan is not None
    log = run.recording().messages
    dropped = [at for span in plan.spans if span.action == "drop" for at in range(*of(span))]
    cards = [at for at, message in enumerate(log) if message.text.startswith("card ")]
    assert any(at not in dropped for at in cards if at < max(dropped))
    # As it is taken from the journal, and made again by those strategies.
    check(await run.replayed())
    check(await replay(run.recording(), [Compaction([SpareCards()])]))


def of(span: Span) -> tuple[int, int]:
    return span.start, span.end


async def test_a_run_with_strategies_of_its_own_is_summarized_beside(tmp_path: Path) -> None:
    run = strategic(tmp_path / "runs.db", SpareCards(), compaction=SUMMARIES)
    check_done(await run.to_its_end())
    assert sum(one.summarized > 0 for one in compactions(run)) >= 2
    check(await run.replayed())
    check(await replay(run.recording(), [Compaction([SpareCards()])]))


async def test_a_strategy_that_fails_is_told_and_costs_nothing_else(tmp_path: Path) -> None:
    compaction = {"summaries": False}
    run = strategic(tmp_path / "runs.db", Broken(), compaction=compaction)
    check_done(await run.to_its_end())
    events = [event for change in run.recording().changes for event in change.delta.events]
    failed = [event for event in events if isinstance(event, StrategyFailed)]
    assert len(failed) == len(compactions(run)) >= 3
    assert failed[0].strategy == "broken"
    assert "are too many" in failed[0].problem
    check(await run.replayed())


async def test_a_run_whose_compaction_is_a_users_own_comes_out_the_same(tmp_path: Path) -> None:
    agent = ChatAgent(model=Reader(), tools=[*TOOLS, page, draw])
    replaced = HarnessWorkflowBuilder(agent).replace("compaction", Compaction()).build()
    settings = {"max_input_tokens": WINDOW, "max_rounds_per_turn": 200, "stall": None}
    run = Session(tmp_path / "runs.db", Program.of(replaced), settings)
    check_done(await run.to_its_end())
    assert len(compactions(run)) >= 3
    check(await run.replayed())
    check(await replay(run.recording(), [Compaction()]))
