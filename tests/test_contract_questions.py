"""Questions of a contract to the user: the run waits with them, as with those of its agent."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness_actors import AgentHarness, ChatAgent
from harness_actors.contracts import AcceptabilityCriteria, RequiredOutput, TaskContract
from harness_actors.contracts.contract import UserQuestion
from harness_actors.contracts.leaves import ContainsText
from harness_actors.messages import Message
from harness_actors.replay import load_recording, replay
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel

ASKS = TaskContract(
    goal="a door",
    outputs=(RequiredOutput(id="R1", description="a colour", predicate=ContainsText("blue")),),
    questions=(
        UserQuestion(id="colour", question="Which colour?", required_for=("R1",)),
        UserQuestion(id="size", question="Which size?", asked=True, answer="M"),
        UserQuestion(id="when", question="Until when?"),
    ),
)
ANSWERS = {"c1": "blue", "c3": "May"}


@dataclass
class Paints:
    """Says what it was told last, and is done; what it has seen is in a file, for it is copied."""

    seen: Path

    def __call__(self, messages: Sequence[Message]) -> Reply:
        said = [message.text for message in messages if message.role == "user"]
        with self.seen.open("a") as file:
            file.write(f"{json.dumps(said)}\n")
        return Reply.call("work_complete", {"summary": messages[-1].text})


def seen_in(folder: Path) -> list[list[str]]:
    """What the user has said by each call of the model."""
    file = folder / "seen"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def a_harness(folder: Path, **more: Any) -> AgentHarness:
    agent = ChatAgent(model=ScriptedModel(Paints(folder / "seen")))
    given = {"runtime": "local", "store": folder / "runs.db", "contract": ASKS, **more}
    return AgentHarness(agent, **given)


async def test_all_are_asked_before_the_model_and_answered_in_another_harness(
    tmp_path: Path,
) -> None:
    async with a_harness(tmp_path) as harness:
        waits = await harness.run("paint")
    assert (waits.status, seen_in(tmp_path)) == ("awaiting_input", [])
    assert [(one.id, one.text, one.why) for one in waits.questions] == [
        ("c1", "Which colour?", "needed for R1"),
        ("c3", "Until when?", ""),
    ]
    async with a_harness(tmp_path) as harness:
        in_part = await harness.resume(waits.run_id, answers={"c3": "May"})
        result = await harness.resume(waits.run_id, answers={"c1": "blue"})

    assert (in_part.status, [one.id for one in in_part.questions]) == ("awaiting_input", ["c1"])
    assert (result.status, result.completion_verified) == ("done", True)
    told = "- Which colour?\n  blue\n- Until when?\n  May"
    assert len(seen_in(tmp_path)) == 1
    task, answers = seen_in(tmp_path)[0]
    assert (task, told in answers) == ("paint", True)
    assert result.contract is not None
    assert (result.contract.satisfied, result.contract.open_questions) == (True, ())
    assert result.turn_count == 1


async def test_a_run_that_was_answered_is_rerun_without_its_user(tmp_path: Path) -> None:
    async with a_harness(tmp_path, on_question=lambda asked: ANSWERS[asked.id]) as harness:
        result = await harness.run("paint")
    assert result.status == "done"

    again = await replay(load_recording(JournalReader(tmp_path / "runs.db"), result.run_id))
    assert again.same, again.differences


@pytest.mark.parametrize(
    ("how", "ends"), [("deny", ("done", "unverified")), ("fail", ("failed", "agent_error"))]
)
async def test_nobody_is_asked_where_nobody_is_there(
    tmp_path: Path, how: str, ends: tuple[str, str]
) -> None:
    config: Any = {"on_question": how, "continuation": {"max_prompts": 1}}
    async with a_harness(tmp_path, **config) as harness:
        result = await harness.run("paint")

    assert (result.status, result.reason.kind) == ends
    assert result.contract is not None
    assert result.contract.open_questions == ("Which colour?", "Until when?")
    if how == "deny":
        assert "nobody is there" in seen_in(tmp_path)[0][1]
    else:
        assert seen_in(tmp_path) == []
        assert "the contract asked its user ('Which colour?')" in result.reason.message


async def test_as_many_as_may_stay_open_are_not_asked(tmp_path: Path) -> None:
    lenient = TaskContract(
        goal="g",
        outputs=(RequiredOutput(id="R1", description="a text"),),
        questions=ASKS.questions,
        acceptability=AcceptabilityCriteria(max_known_unknowns=2),
    )
    async with a_harness(tmp_path, contract=lenient) as harness:
        result = await harness.run("paint")

    assert (result.status, seen_in(tmp_path)) == ("done", [["paint"]])
