"""A run with a contract comes out the same from its journal: no command, no judge, no file."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness_actors.agents import ChatAgent, Program
from harness_actors.contracts import CommandSucceeds, ContainsText, Custom, FileExists, ModelJudged
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.results import Usage
from harness_actors.testing import ScriptedModel
from tests.contracts.grounds import contract_with
from tests.replay.recorded_runs import TOOLS, done, recorded
from tests.replay.test_replay import READ, WRITE, check


class Critic(ScriptedModel):
    """A judge that agrees once the work is long enough, and is paid for it."""

    async def complete(self, request: ModelRequest) -> ModelResponse:
        return ModelResponse(
            text='{"met": true, "reason": "because"}',
            tool_calls=(),
            finish_reason="stop",
            usage=Usage(model_calls=1, input_tokens=90, output_tokens=9, cost_usd=0.1),
        )


def second_time(question: Any) -> bool:
    return bool(question.attempt > 1)


CONTRACTS = {
    "a function": contract_with(Custom("second")),
    "a judge": contract_with(ModelJudged("it is good", model="critic"), Custom("second")),
    "never met": contract_with(ContainsText("no such words"), Custom("second")),
}


@pytest.mark.parametrize("name", CONTRACTS)
async def test_a_run_with_a_contract_comes_out_the_same(tmp_path: Path, name: str) -> None:
    agent = ChatAgent(
        model=ScriptedModel([READ, done(), WRITE, done(), done()]),
        tools=TOOLS,
        predicates={"second": second_time},
        judges={"critic": Critic([])},
    )
    session = await recorded(
        tmp_path / "runs.db", Program.of(agent), contract=CONTRACTS[name], max_turns=3
    )

    check(await session.replayed())


@pytest.mark.parametrize("limit", ["time_s", "working_s"])
async def test_time_that_was_over_in_a_verification_comes_out_the_same(
    tmp_path: Path, limit: str
) -> None:
    async def slow(_: object) -> bool:
        await asyncio.sleep(30)
        return True

    agent = ChatAgent(model=ScriptedModel([done()]), tools=TOOLS, predicates={"slow": slow})
    session = await recorded(
        tmp_path / "runs.db",
        Program.of(agent),
        contract=contract_with(Custom("slow", timeout_s=60), FileExists("x"), CommandSucceeds("x")),
        limits={limit: 0.3},
    )
    check(await session.replayed())
