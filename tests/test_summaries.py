"""Runs whose agents bring a summarizer of their own: what it costs, and what it must not break."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness_actors import AgentHarness, ChatAgent, HarnessWorkflowBuilder
from harness_actors.actors.host import compaction_worker
from harness_actors.errors import ConfigError, ModelBusyError
from harness_actors.events import ContextCompacted, RunEvent, SummaryFailed
from harness_actors.plan import Decision, Summary
from harness_actors.ports import MadeSummary, SummaryRequest, Tool, ToolContext
from harness_actors.replay import load_recording, replay
from harness_actors.results import HarnessResult, Usage
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import compact_conversation, tool
from tests.replay.test_compaction import ROUNDS, WINDOW, Reader, draw, page

KEY = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
Answers = Callable[[SummaryRequest], Awaitable[Any]]


@dataclass
class Own:
    """A summarizer of a user's own.

    Attributes:
        answer: What it answers.
    """

    answer: Answers
    name: str = "own"
    most_tokens: int = 1_000

    async def summarize(self, request: SummaryRequest) -> MadeSummary:
        answer: MadeSummary = await self.answer(request)
        return answer


async def told(store: Path, answer: Answers, **more: Any) -> tuple[HarnessResult, list[Any]]:
    """How a run ends that is summarized so, and its events."""
    agent = ChatAgent(model=Reader(), tools=[page, draw], summarizer=Own(answer))
    settings: dict[str, Any] = {"max_rounds_per_turn": 200, "stall": None, **more}
    events: list[Any] = []
    result: HarnessResult | None = None
    async with AgentHarness(
        agent,
        store=store,
        runtime="local",
        max_input_tokens=WINDOW,
        compaction={"soft": 0.6},
        **settings,
    ) as harness:
        async for item in harness.run_stream("Read the book.", text=False):
            if isinstance(item, RunEvent):
                events.append(item.event)
            elif isinstance(item, HarnessResult):
                result = item
    assert result is not None
    assert (result.status, result.reason.kind) == ("done", "completed"), result.reason
    return result, events


async def costs(request: SummaryRequest) -> MadeSummary:
    first = request.messages[0][0]
    said = Summary(facts=(f"From m{first} on there are pages.",))
    return MadeSummary(summary=said, usage=Usage(model_calls=1, input_tokens=7, cost_usd=0.25))


async def test_what_summaries_cost_is_the_runs_and_they_are_no_calls_of_its_own(
    tmp_path: Path,
) -> None:
    result, events = await told(tmp_path / "runs.db", costs)
    assert sum(isinstance(one, ContextCompacted) and one.summarized > 0 for one in events) >= 2
    stored = JournalReader(tmp_path / "runs.db").load_run(result.run_id)
    assert stored is not None
    aside = stored.state.values["harness.side_usage"]
    assert aside["model_calls"] >= 2
    assert result.usage.cost_usd == pytest.approx(0.25 * aside["model_calls"])
    assert result.usage.model_calls == ROUNDS + 1
    assert stored.state.plan is not None
    assert stored.state.plan.summary is not None
    assert all(fact.startswith("From m") for fact in stored.state.plan.summary.facts)
    assert len(stored.state.plan.summary.facts) >= 2


async def is_busy(_: SummaryRequest) -> MadeSummary:
    raise ModelBusyError("own", "too many requests", 429)


async def breaks(_: SummaryRequest) -> MadeSummary:
    raise ZeroDivisionError("its own fault")


async def answers_junk(_: SummaryRequest) -> Any:
    return {"facts": ["it is fine"]}


async def answers_nonsense(_: SummaryRequest) -> Any:
    return MadeSummary(summary="fine")  # type: ignore[arg-type]


async def hangs(_: SummaryRequest) -> MadeSummary:
    await asyncio.sleep(1_000)
    raise AssertionError("it is cut before")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (is_busy, "too many requests"),
        (breaks, "its own fault"),
        (answers_junk, "must answer MadeSummary"),
        (answers_nonsense, ""),
        (hangs, "no answer within"),
    ],
)
async def test_a_run_goes_on_whatever_its_summarizer_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Answers, problem: str
) -> None:
    monkeypatch.setattr(compaction_worker, "BLOCK_S", 0.2)
    result, events = await told(tmp_path / "runs.db", answer)
    failed = [one for one in events if isinstance(one, SummaryFailed)]
    assert failed
    assert all(problem in one.problem for one in failed)
    # The ladder made room, and nothing was left out of the log.
    assert any(isinstance(one, ContextCompacted) for one in events)
    assert result.usage.model_calls == ROUNDS + 1


async def leaks(request: SummaryRequest) -> MadeSummary:
    decided = Decision(what=f"We log in by {KEY}.", at=request.messages[0][0])
    return MadeSummary(summary=Summary(facts=(f"The key is {KEY}.",), decisions=(decided,)))


async def test_secrets_are_in_no_summary(tmp_path: Path) -> None:
    result, _ = await told(tmp_path / "runs.db", leaks)
    stored = JournalReader(tmp_path / "runs.db").load_run(result.run_id)
    assert stored is not None
    assert stored.state.plan is not None
    said = str(stored.state.plan.summary)
    assert KEY not in said
    assert "The key is [redacted]" in said


def test_what_is_no_summarizer_is_refused() -> None:
    with pytest.raises(ConfigError, match="ChatClientSummarizer"):
        ChatAgent(model=Reader(), summarizer="gpt-4.1-mini")  # type: ignore[arg-type]


# ---- what a model asks for ---------------------------------------------------------------


def asks(name: str, at: int, keep: str) -> Callable[[Any], Reply]:
    """Reads on, and asks for a summary once, in a round."""

    def reply(conversation: Any) -> Reply:
        rounds = sum(bool(message.tool_calls) for message in conversation)
        asked = any(call.name == name for message in conversation for call in message.tool_calls)
        shown = any("were summarized" in message.text for message in conversation)
        if rounds == at and not asked and not shown:
            return Reply.call(name, {"keep": keep})
        return Reply.call("work_complete", {"summary": "ok"}) if shown else Reply.call("nap")

    return reply


ASK = compact_conversation.spec.name


@tool(effect="read_only", volatile=True, polled=True)
async def nap() -> str:
    """Wait a moment."""
    await asyncio.sleep(0.05)
    return "It is quiet. " * 60


@tool(effect="read_only", volatile=True)
def tidy(context: ToolContext, keep: str) -> str:
    """Ask for a summary, in a thread."""
    return str(context.want_summary(keep))


@pytest.mark.parametrize("asking", [compact_conversation, tidy])
async def test_a_model_asks_for_a_summary_and_is_shown_it_while_its_window_is_empty(
    tmp_path: Path, asking: Tool
) -> None:
    async def answers(request: SummaryRequest) -> MadeSummary:
        return MadeSummary(summary=Summary(facts=(f"Asked for {request.keep}.",)))

    model = ScriptedModel(asks(asking.spec.name, 8, "how quiet it was"))
    agent = ChatAgent(model=model, tools=[nap, asking], summarizer=Own(answers))
    async with AgentHarness(
        agent, store=tmp_path / "runs.db", runtime="local", max_rounds_per_turn=200, stall=None
    ) as harness:
        result = await harness.run("Be quiet.")
    assert (result.status, result.reason.kind) == ("done", "completed"), result.reason
    journal = JournalReader(tmp_path / "runs.db")
    plan = journal.load_plan(result.run_id)
    assert plan is not None
    assert plan.summary is not None
    assert plan.summary.facts == ("Asked for how quiet it was.",)
    replayed = await replay(load_recording(journal, result.run_id))
    assert replayed.same, replayed.differences


@pytest.mark.parametrize(
    ("settings", "keep", "told"),
    [
        ({"compaction": None}, "", "are not summarized"),
        ({"compaction": {"summaries": False}}, "", "are not summarized"),
        ({}, "x" * 2_001, "be brief"),
    ],
)
async def test_a_model_that_asks_in_vain_is_told_why(
    tmp_path: Path, settings: dict[str, Any], keep: str, told: str
) -> None:
    replies = [
        Reply.call(ASK, {"keep": keep}),
        Reply.call("work_complete", {"summary": "ok"}),
    ]
    agent = ChatAgent(model=ScriptedModel(replies), tools=[compact_conversation])
    said = await results_of(agent, tmp_path / "runs.db", **settings)
    assert told in said[0]


async def test_a_model_whose_workflow_takes_no_plan_is_told_so(tmp_path: Path) -> None:
    replies = [Reply.call(ASK), Reply.call("work_complete", {"summary": "ok"})]
    agent = ChatAgent(model=ScriptedModel(replies), tools=[compact_conversation])
    without = HarnessWorkflowBuilder(agent).add_edge("repair", "agent_turn").build()
    said = await results_of(without, tmp_path / "runs.db")
    assert "are not summarized" in said[0]


async def results_of(agent: Any, store: Path, **settings: Any) -> list[str]:
    """What its tools answer in a run that gets done."""
    async with AgentHarness(agent, store=store, runtime="local", **settings) as harness:
        result = await harness.run("Be quiet.")
    assert result.status == "done"
    run = JournalReader(store).load_run(result.run_id)
    assert run is not None
    return [message.text for message in run.state.log if message.role == "tool"]
