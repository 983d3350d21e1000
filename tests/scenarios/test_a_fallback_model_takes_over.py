"""A provider that is down, for ever or in the middle of a run, costs no run that has another."""

import json
from pathlib import Path

import pytest

from harness_actors import AgentHarness, ChatAgent
from harness_actors.models import OpenAIModel
from harness_actors.testing import LoopbackServer
from harness_actors.testing.faults import OVERLOADED, WRONG_KEY, BreakOff, Fault
from harness_actors.tools import coding_tools
from tests.scenarios.stage import AT_ONCE, DONE, TASK, in_order, writes

SCRIPT = in_order(writes("a.md", "a"), writes("b.md", "b"), DONE)


@pytest.mark.parametrize("well_for", [0, 1])
@pytest.mark.parametrize("fault", [OVERLOADED, WRONG_KEY, BreakOff("in_body")])
async def test_a_fallback_model_takes_over(tmp_path: Path, fault: Fault, well_for: int) -> None:
    async with (
        LoopbackServer(SCRIPT, faults=lambda n, _: fault if n > well_for else None) as down,
        LoopbackServer(SCRIPT) as sound,
    ):
        models = [
            OpenAIModel(name, base_url=server.base_url, max_retries=1, backoff=AT_ONCE)
            for name, server in (("first", down), ("second", sound))
        ]
        agent = ChatAgent(models=models, tools=coding_tools())
        store, work = tmp_path / "runs.db", tmp_path / "work"
        async with AgentHarness(agent, runtime="local", store=store, workspace=work) as harness:
            result = await harness.run(TASK)

    assert (result.status, result.reason.kind) == ("done", "completed")
    assert result.completion_verified
    assert [(work / name).read_text() for name in ("a.md", "b.md")] == ["a", "b"]
    assert sound.requests == 3 - well_for
    bodies = [json.loads(request.body) for request in sound.seen]
    assert {body["model"] for body in bodies} == {"second"}
    # It is asked what the first was asked, with no word of the change.
    refused = json.loads(down.seen[well_for].body)
    assert bodies[0]["messages"] == refused["messages"]
    users = [one["content"] for one in bodies[-1]["messages"] if one["role"] == "user"]
    assert users == [TASK]
    told = [one.event for one in result.transcript if one.event.type == "model_fell_back"]
    assert told


async def test_where_all_are_down_the_run_fails_and_names_each(tmp_path: Path) -> None:
    async with (
        LoopbackServer(SCRIPT, faults=lambda *_: OVERLOADED) as one,
        LoopbackServer(SCRIPT, faults=lambda *_: WRONG_KEY) as other,
    ):
        models = [
            OpenAIModel(name, base_url=server.base_url, max_retries=1, backoff=AT_ONCE)
            for name, server in (("first", one), ("second", other))
        ]
        agent, store = ChatAgent(models=models), tmp_path / "runs.db"
        async with AgentHarness(agent, runtime="local", store=store) as harness:
            result = await harness.run(TASK)

    assert (result.status, result.reason.kind) == ("failed", "model_error")
    assert not result.completion_verified
    assert "first" in result.reason.message
    assert "second" in result.reason.message
    assert (one.requests, other.requests) == (2, 1)
