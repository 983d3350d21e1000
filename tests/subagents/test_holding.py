"""Agents to delegate to that are held to a contract, or are to come to a value."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness_actors import AgentHarness
from harness_actors.contracts import (
    CommandSucceeds,
    ContainsText,
    Custom,
    CustomQuestion,
    FileExists,
    ModelJudged,
    Predicate,
    RequiredOutput,
    TaskContract,
    ToolResultSuccess,
    UserQuestion,
)
from harness_actors.errors import ConfigError
from harness_actors.messages import Message
from harness_actors.records import ParentLink
from harness_actors.results import HarnessResult
from harness_actors.stores import JournalReader
from harness_actors.subagents import SubAgentSpec, explore
from harness_actors.testing import Reply, ScriptedModel
from tests.subagents.team import Team, asked, delegating, in_order, look, looks, ran, results, told

GOAL = "an answer"


@dataclass
class Verdict:
    """What a critic comes to."""

    fault: str
    line: int = 0


def one_thing(predicate: Predicate, **more: Any) -> TaskContract:
    wanted = RequiredOutput(id="it", description=GOAL, predicate=predicate)
    return TaskContract(goal=GOAL, outputs=(wanted,), **more)


def critic(**given: Any) -> SubAgentSpec:
    facts: dict[str, Any] = {"description": "Looks for faults.", "instructions": "You find faults."}
    return SubAgentSpec(name="critic", **{**facts, **given})


def team(says: Any, *prompts: str, given: Any = None, **spec: Any) -> Team:
    calls = [("critic", {"prompt": one}) for one in prompts or ("a",)]
    below = {"You find faults": says}
    return Team(delegating(*calls), below=below, specs=[critic(**spec)], given=given or {})


def end_of(journal: JournalReader, run_id: str) -> HarnessResult:
    stored = journal.load_run(run_id)
    assert stored is not None
    assert stored.end is not None
    return stored.end


# ---- contracts ----------------------------------------------------------------------------


async def test_a_child_is_done_when_its_contract_is_met(tmp_path: Path) -> None:
    says = in_order(Reply.text("nothing"), Reply.call("look", {"what": "x"}), Reply.text("a fault"))
    held = team(says, contract=one_thing(ToolResultSuccess("look")))

    result, journal = await ran(held, tmp_path)

    assert told(journal, result.run_id)[0] == "a fault"
    end = end_of(journal, f"{result.run_id}.1")
    assert end.contract is not None
    assert (end.contract.satisfied, end.contract.attempts) == (True, 2)
    # It is of the child alone.
    assert result.contract is None


@pytest.mark.parametrize("policy", ["interactive", "strict_automation"])
async def test_a_contract_that_is_not_met_fails_the_call_and_says_why(
    tmp_path: Path, policy: str
) -> None:
    held = team(in_order(Reply.text("nothing")), contract=one_thing(ContainsText("signed")))

    result, journal = await ran(held, tmp_path, stop_policy=policy)

    how = "done(unverified)" if policy == "interactive" else "stalled(blocked)"
    text = told(journal, result.run_id)[0]
    assert text.startswith(f"critic ended {how}: not accepted, after 5 nudges in a row: ")
    assert "signed" in text
    assert text.endswith("Its last words:\nnothing")
    assert result.status == "done"


async def test_the_contract_of_a_parent_is_none_of_its_children(tmp_path: Path) -> None:
    held = team(in_order(Reply.text("unsigned")))
    held = Team(
        in_order(
            Reply.call("critic", {"prompt": "a"}),
            Reply.call("work_complete", {"summary": "signed"}),
        ),
        below=held.below,
        specs=held.specs,
    )

    result, journal = await ran(held, tmp_path, contract=one_thing(ContainsText("signed")))

    assert told(journal, result.run_id)[0] == "unsigned"
    assert result.contract is not None
    assert result.contract.satisfied
    assert end_of(journal, f"{result.run_id}.1").contract is None


def is_signed(question: CustomQuestion) -> bool:
    return "signed" in (question.answer or "")


@pytest.mark.parametrize("name", ["signed", f"{__name__}:is_signed"])
async def test_functions_are_those_of_the_parent_or_found_by_their_names(
    tmp_path: Path, name: str
) -> None:
    given = {"predicates": {"signed": is_signed}}
    says = in_order(Reply.text("nothing"), Reply.text("signed"))
    held = team(says, given=given, contract=one_thing(Custom(name)))

    result, journal = await ran(held, tmp_path)

    assert told(journal, result.run_id)[0] == "signed"


async def test_commands_of_a_contract_run_in_the_workspace_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "there").touch()
    held = team(looks, contract=one_thing(CommandSucceeds("test -e there")))

    result, journal = await ran(held, tmp_path, workspace=tmp_path / "work")

    assert told(journal, result.run_id)[0] == "found: saw a"


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (
            {"contract": one_thing(ToolResultSuccess("write")), "tools": ["look"]},
            "outputs[0].predicate: the agent has no tool 'write'",
        ),
        (
            {"contract": one_thing(ToolResultSuccess("write")), "reads_only": True},
            "outputs[0].predicate: the agent has no tool 'write'",
        ),
        ({"contract": one_thing(ModelJudged("good?", model="no"))}, "no judge is named 'no'"),
        ({"contract": one_thing(Custom("no"))}, "no predicate 'no' is registered"),
        ({"contract": one_thing(Custom("no_such_module:f"))}, "no_such_module"),
        (
            {
                "contract": one_thing(
                    ContainsText("x"), questions=(UserQuestion(id="q", question="Where?"),)
                )
            },
            "a child cannot wait before it begins",
        ),
    ],
)
def test_what_no_child_could_meet_is_refused_by_the_field_of_its_contract(
    spec: Any, problem: str
) -> None:
    with pytest.raises(ConfigError) as error:
        team(looks, **spec).agent()
    assert error.value.field == "sub_agents.critic.contract"
    assert problem in error.value.problem
    below = critic(sub_agents=[SubAgentSpec(name="low", description="Low.", **spec)])
    with pytest.raises(ConfigError) as error:
        Team(looks, specs=[below]).agent()
    assert error.value.field == "sub_agents.critic.sub_agents.low.contract"


def test_what_it_delegates_to_counts_as_a_tool() -> None:
    spec = critic(sub_agents=[explore()], contract=one_thing(ToolResultSuccess("explore")))
    assert Team(looks, specs=[spec]).agent().sub_agents == (spec,)


async def test_files_need_a_workspace(tmp_path: Path) -> None:
    held = team(looks, contract=one_thing(FileExists("report.md")))
    with pytest.raises(ConfigError) as error:
        held.harness(tmp_path / "runs.db")
    assert error.value.field == "sub_agents.critic.contract"
    assert "no workspace" in error.value.problem


def test_an_agent_of_another_class_has_the_functions_itself(tmp_path: Path) -> None:
    class Own:
        name, instructions, tools = "own", "", [look]
        model = ScriptedModel([])
        sub_agents = (critic(contract=one_thing(Custom(f"{__name__}:is_signed"))),)

    with pytest.raises(ConfigError, match="must have 'tests"):
        AgentHarness(Own(), runtime="local", store=tmp_path / "runs.db")


# ---- values -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Verdict, {"type": "object", "required": ["fault"]}])
@pytest.mark.parametrize("completion", ["answer", "explicit"])
async def test_the_value_of_a_child_is_the_result_of_its_call(
    tmp_path: Path, completion: str, kind: Any
) -> None:
    def says(conversation: Sequence[Message]) -> Reply:
        # At first what is none.
        value = {"fault": asked(conversation), "line": 7} if results(conversation) else [1]
        if not results(conversation) and completion == "answer":
            if any(m.role == "assistant" for m in conversation):
                return Reply.call("look", {"what": "x"})
            return Reply.text("not this")
        if completion == "explicit":
            return Reply.call("work_complete", {"summary": "Found it.", "output": value})
        return Reply.text(f"Here:\n```json\n{json.dumps(value)}\n```")

    result, journal = await ran(
        team(says, "a", "b", output_type=kind, completion=completion), tmp_path
    )

    assert told(journal, result.run_id)[:2] == [
        '{"fault":"a","line":7}',
        '{"fault":"b","line":7}',
    ]
    assert end_of(journal, f"{result.run_id}.2").output == {"fault": "b", "line": 7}
    assert result.output is None


async def test_nothing_is_a_value_too(tmp_path: Path) -> None:
    done = Reply.call("work_complete", {"summary": "There is none.", "output": None})
    held = team(in_order(done), output_type=int | None, completion="explicit")

    result, journal = await ran(held, tmp_path)

    assert told(journal, result.run_id)[0] == "null"


async def test_a_child_without_its_value_has_failed(tmp_path: Path) -> None:
    held = team(in_order(Reply.text("just words")), output_type=Verdict)

    result, journal = await ran(held, tmp_path)

    text = told(journal, result.run_id)[0]
    assert text.startswith("critic ended done(unverified): not accepted, after 5 nudges in a row: ")
    assert "JSON" in text


async def test_the_type_of_a_parent_is_none_of_its_children(tmp_path: Path) -> None:
    done = Reply.call("work_complete", {"summary": "x", "output": {"fault": "f"}})
    held = Team(
        in_order(Reply.call("critic", {"prompt": "a"}), done),
        below={"You find faults": looks},
        specs=[critic()],
        given={"output_type": Verdict},
    )

    result, journal = await ran(held, tmp_path)

    assert told(journal, result.run_id)[0] == "found: saw a"
    assert result.output == Verdict("f")


def test_the_set_up_has_both_where_they_are_given() -> None:
    from harness_actors.agents import Program

    def parts(**spec: Any) -> Any:
        program = Program.of(team(looks, **spec).agent())
        return program.setup.parts["sub_agents.critic"]

    bare = parts()
    assert not {"contract", "output_type"} & bare.keys()
    held = parts(contract=one_thing(ContainsText("x")), output_type={"type": "object"})
    assert held["output_type"] == {"type": "object"}
    assert held["contract"]["goal"] == GOAL


def test_a_child_that_is_held_to_nothing_is_stored_as_before() -> None:
    where = {"run_id": "a", "root": "a", "call_id": "c", "agent": "critic", "pool": "sub_agent"}
    assert len(ParentLink(**where).__getstate__()) == 5  # type: ignore[arg-type]
    assert len(ParentLink(**where, typed=True).__getstate__()) == 8  # type: ignore[arg-type]
