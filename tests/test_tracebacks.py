"""Where a user's code failed is in the events, in the journal, and in the result."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_actors import AgentHarness, ChatAgent, HarnessResult, tool
from harness_actors.config import HarnessConfig
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.events import RunCompleted, RunEvent, ToolReturned
from harness_actors.messages import Message
from harness_actors.ports import ModelRequest, ModelResponse, RunContext
from harness_actors.replay import load_recording, replay
from harness_actors.signals import Outcome, Signal
from harness_actors.state import StateKey
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel


def _divide(count: int) -> float:
    return 12 / count


@tool
def share(count: int) -> str:
    """Share; not idempotent, so each result is committed by itself.

    Args:
        count: Among how many.
    """
    return str(_divide(count))


@tool(effect="read_only")
async def look(count: int) -> str:
    """Look; idempotent.

    Args:
        count: Among how many.
    """
    return str(_divide(count))


class BrokenModel:
    """A user's own model."""

    name = "broken"
    key_names: tuple[str, ...] = ()

    async def complete(self, request: ModelRequest) -> ModelResponse:
        return self._parse({})

    def _parse(self, answer: dict[str, str]) -> ModelResponse:
        return ModelResponse(text=answer["text"])

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        yield await self.complete(request)


class BrokenExecutor:
    """A user's own executor."""

    name = "auditor"
    reads: tuple[StateKey[Any], ...] = ()
    reads_log = False

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        _divide(0)
        return signal


def _calls(messages: Sequence[Message]) -> Reply:
    results = [message for message in messages if message.role == "tool"]
    if not results:
        return Reply.calls([("share", {"count": 0}), ("share", {"count": 3})])
    if len(results) == 2:
        return Reply.calls([("look", {"count": 4}), ("look", {"count": 0})])
    return Reply.call("work_complete", {"summary": "shared"})


async def ended(agent: Any, store: Path) -> HarnessResult:
    async with AgentHarness(agent, runtime="local", store=store) as harness:
        return await harness.run("Share it.")


def returned(events: Sequence[RunEvent]) -> list[tuple[str, bool]]:
    """Of each result its text, and whether it says where the call failed."""
    found = [e.event for e in events if isinstance(e.event, ToolReturned)]
    return [(event.text, "_divide" in event.traceback) for event in found]


async def test_a_tools_traceback_is_in_its_event_and_the_model_sees_what_it_saw(
    tmp_path: Path,
) -> None:
    agent = ChatAgent(model=ScriptedModel(_calls), tools=[share, look])
    result = await ended(agent, tmp_path / "runs.db")

    expected = [
        ("ZeroDivisionError: division by zero", True),
        ("4.0", False),
        ("3.0", False),
        ("ZeroDivisionError: division by zero", True),
        ("Done.", False),
    ]
    journal = JournalReader(tmp_path / "runs.db")
    assert returned(result.transcript)[:4] == expected[:4]
    assert returned(journal.load_events(0)) == returned(result.transcript)
    stored = journal.load_run(result.run_id)
    assert stored is not None
    log = stored.state.log
    assert b"_divide" not in b"".join(message.encoded for message in log)
    assert not any(message.facts.traceback for message in log), "a conversation has none"

    rerun = await replay(load_recording(journal, result.run_id))
    assert rerun.same, rerun.differences


async def test_a_change_without_a_traceback_is_stored_as_before(tmp_path: Path) -> None:
    agent = ChatAgent(model=ScriptedModel([Reply.text("hello")]))
    config = HarnessConfig(completion="answer")
    async with AgentHarness(
        agent, runtime="local", store=tmp_path / "runs.db", config=config
    ) as harness:
        result = await harness.run("Say hello.")

    from harness_actors.events import encode_event

    assert not any("traceback" in encode_event(e.event) for e in result.transcript)


@pytest.mark.parametrize(
    ("agent", "name", "words"),
    [
        (ChatAgent(model=BrokenModel()), "_parse", "KeyError: 'text'"),
        (
            HarnessWorkflowBuilder(ChatAgent(model=BrokenModel()))
            .insert_after("repair", BrokenExecutor())
            .build(),
            "_divide",
            "ZeroDivisionError: division by zero",
        ),
    ],
    ids=["model", "executor"],
)
async def test_what_ended_a_run_is_told_with_its_place(
    agent: Any, name: str, words: str, tmp_path: Path
) -> None:
    result = await ended(agent, tmp_path / "runs.db")

    assert (result.status, result.reason.kind) == ("failed", "agent_error")
    assert name in result.reason.traceback
    assert result.reason.traceback.endswith(words)
    assert name not in result.reason.message, "the sentence stays short"
    journal = JournalReader(tmp_path / "runs.db")
    (completed,) = [e.event for e in journal.load_events(0) if isinstance(e.event, RunCompleted)]
    assert completed.traceback == result.reason.traceback
    kept = journal.load_result(result.run_id)
    assert kept is not None
    assert kept.reason.traceback == result.reason.traceback
    rerun = await replay(load_recording(journal, result.run_id))
    assert rerun.same, rerun.differences


async def test_a_tool_that_exits_keeps_where_it_did(tmp_path: Path) -> None:
    @tool
    def leave() -> str:
        """Leave."""
        raise SystemExit(3)

    agent = ChatAgent(
        model=ScriptedModel(
            [Reply.call("leave"), Reply.call("work_complete", {"summary": "left"})]
        ),
        tools=[leave],
    )
    result = await ended(agent, tmp_path / "runs.db")

    (event, _) = [e.event for e in result.transcript if isinstance(e.event, ToolReturned)]
    assert "in leave" in event.traceback
    assert "SystemExit: 3" in event.traceback
