"""A run whose user decided about calls comes out the same, without its policy and its hooks."""

from pathlib import Path
from typing import Any

import pytest

from harness_actors import AgentHarness, ChatAgent
from harness_actors.policies import (
    ApprovalRule,
    Approvals,
    Approve,
    Ask,
    BeforeTool,
    Change,
    Hooks,
    Refuse,
    Respond,
)
from harness_actors.policies.decisions import Decision
from harness_actors.replay import load_recording, replay
from harness_actors.results import OpenQuestion
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import ask_user
from tests.replay.recorded_runs import TOOLS, done
from tests.replay.test_replay import check

CALLS = [
    Reply.calls([("read", {"text": "a"}), ("write", {"text": "b"})]),
    Reply.calls(
        [
            ("write", {"text": "c"}),
            ("ask_user", {"question": "Which?"}),
            ("write", {"text": "d"}),
            ("read", {"text": "e"}),
        ]
    ),
    Reply.calls([("write", {"text": "b"}), ("write", "no json")]),
    done(),
]
DECIDED: list[Decision] = [
    Approve({"text": "B"}),
    Respond("done by hand"),
    Refuse("not that"),
    Approve(standing="tool"),
    Refuse(standing="arguments"),
]


async def doubled(event: BeforeTool) -> Change | Ask | None:
    match event.arguments:
        case {"text": "c"}:
            return Change({"text": "cc"})
        case {"text": "d"}:
            return Ask("it is the fourth")
    return None


GATES: dict[str, dict[str, Any]] = {
    "a policy": {"approvals": Approvals.of_autonomy("low")},
    "a policy with an end": {
        "approvals": Approvals(rules=[ApprovalRule(decide="ask", tools=["write"])], expires_s=60)
    },
    "a policy that denies": {
        "approvals": Approvals(
            rules=[ApprovalRule(decide="deny", arguments={"text": "c"})], otherwise="ask"
        )
    },
    "hooks that ask": {"hooks": Hooks(pre_tool=doubled)},
    "both": {"hooks": Hooks(pre_tool=doubled), "approvals": Approvals.of_autonomy("low")},
    "a policy that asks about nothing": {"approvals": Approvals.of_autonomy("high")},
}


@pytest.mark.parametrize("turned", [0, 2])
@pytest.mark.parametrize("name", GATES)
async def test_a_run_that_waited_for_approval_comes_out_the_same(
    tmp_path: Path, name: str, turned: int
) -> None:
    decided = DECIDED[turned:] + DECIDED[:turned]

    async def decide(asked: OpenQuestion) -> str | Decision:
        if asked.kind == "question":
            return "blue"
        return decided[int(asked.id[1:]) % len(decided)]

    agent = ChatAgent(model=ScriptedModel(CALLS), tools=(*TOOLS, ask_user), **GATES[name])
    store = tmp_path / "runs.db"
    async with AgentHarness(agent, runtime="local", store=store, on_question=decide) as harness:
        result = await harness.run("the task")

    assert result.status == "done"
    check(await replay(load_recording(JournalReader(store), result.run_id)))
