"""Agents that delegate, from the call to its result."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_actors import Limits
from harness_actors.conversation import repaired
from harness_actors.errors import ConfigError
from harness_actors.events import RunEvent, ToolCalled
from harness_actors.messages import Message
from harness_actors.policies import Approvals, Deny, Hooks, Replace
from harness_actors.subagents import SubAgentSpec, document, explore, run_task
from harness_actors.subagents.delegate import MOST_PROMPT_CHARS
from harness_actors.subagents.shipped import EXPLORE_WORDS
from harness_actors.testing import Reply
from harness_actors.turn.brevity import TOO_LONG
from harness_actors.turn.delegation import NOTHING_LEFT
from tests.subagents.team import (
    Team,
    asked,
    delegating,
    exploring,
    in_order,
    looks,
    ran,
    results,
    told,
)


def a_spec(name: str = "helper", **given: Any) -> SubAgentSpec:
    facts: dict[str, Any] = {"description": "Helps.", "instructions": f"You are {name}."}
    return SubAgentSpec(name=name, **{**facts, **given})


async def test_what_a_child_comes_to_is_the_result_of_its_call(tmp_path: Path) -> None:
    result, journal = await ran(Team(exploring("a", "b")), tmp_path)
    assert (result.status, result.reason.kind) == ("done", "completed")
    assert told(journal, result.run_id)[:2] == ["found: saw a", "found: saw b"]
    assert [one.root for one in journal.headings()] == ["", result.run_id, result.run_id]


async def test_calls_before_them_are_made_first_and_those_after_them_last(tmp_path: Path) -> None:
    def signed(event: Any) -> Replace:
        return Replace(f"{event.text} ({'/'.join(event.agent_path)})")

    calls = [
        ("write", {"what": "1"}),
        ("explore", {"prompt": "a"}),
        ("explore", {"prompt": "b"}),
        ("write", {"what": "2"}),
        ("explore", {"prompt": "c"}),
        ("look", {"what": "3"}),
    ]
    team = Team(delegating(*calls), given={"hooks": Hooks(post_tool=signed)})
    result, journal = await ran(team, tmp_path)
    assert result.status == "done"
    # A hook sees each result, also of what was delegated, and those below, by their paths.
    assert told(journal, result.run_id)[:6] == [
        "wrote 1 (agent)",
        "found: saw a (agent/explore) (agent)",
        "found: saw b (agent/explore) (agent)",
        "wrote 2 (agent)",
        "found: saw c (agent/explore) (agent)",
        "saw 3 (agent)",
    ]


async def test_what_stands_behind_children_is_made_when_they_have_ended(tmp_path: Path) -> None:
    calls = [("explore", {"prompt": "a"}), ("write", {"what": "1"}), ("write", {"what": "2"})]
    result, journal = await ran(Team(delegating(*calls)), tmp_path)
    assert told(journal, result.run_id)[:3] == ["found: saw a", "wrote 1", "wrote 2"]


async def test_a_child_begins_with_nothing_but_its_prompt(tmp_path: Path) -> None:
    result, journal = await ran(Team(exploring("the question")), tmp_path)
    child = journal.load_run(f"{result.run_id}.1")
    assert child is not None
    assert (child.state.log[0].role, child.state.log[0].text) == ("user", "the question")
    async with Team(exploring("x")).harness(tmp_path / "runs.db") as harness:
        told_of_child = await harness.conversation(f"{result.run_id}.1")
    # The prompt of its parent is none of its own.
    assert told_of_child[0]["content"].startswith("You find things out")
    assert told_of_child[1] == {"role": "user", "content": "the question"}


async def test_explore_can_only_read(tmp_path: Path) -> None:
    tries = in_order(Reply.call("write", {"what": "x"}), Reply.text("It cannot."))
    result, journal = await ran(
        Team(exploring("a"), below={"You find things out": tries}), tmp_path
    )
    assert told(journal, f"{result.run_id}.1")[0].startswith("There is no tool 'write'")


async def test_an_answer_that_is_too_long_is_asked_for_again_once_and_then_cut(
    tmp_path: Path,
) -> None:
    long = " ".join(f"word{n}" for n in range(EXPLORE_WORDS + 50))
    shorter = Team(
        exploring("a"),
        below={"You find things out": in_order(Reply.text(long), Reply.text("in short"))},
    )
    result, journal = await ran(shorter, tmp_path / "shorter")
    assert told(journal, result.run_id)[0] == "in short"
    stubborn = Team(exploring("a"), below={"You find things out": in_order(Reply.text(long))})
    result, journal = await ran(stubborn, tmp_path / "stubborn")
    text = told(journal, result.run_id)[0]
    assert text.endswith(f"\n[Cut to {EXPLORE_WORDS} of {EXPLORE_WORDS + 50} words.]")
    assert f"word{EXPLORE_WORDS - 1}\n" in text
    child = journal.load_run(f"{result.run_id}.1")
    assert child is not None
    said = TOO_LONG.format(words=EXPLORE_WORDS + 50, most=EXPLORE_WORDS)
    assert sum(said in message.text for message in child.state.log) == 1


async def test_a_child_that_fails_is_the_result_and_no_sibling_minds(tmp_path: Path) -> None:
    def some_fail(conversation: Sequence[Message]) -> Reply:
        if asked(conversation) == "bad":
            raise LookupError("its own fault")
        return looks(conversation)

    team = Team(exploring("good", "bad", "fine"), below={"You find things out": some_fail})
    result, journal = await ran(team, tmp_path)
    first, second, third = told(journal, result.run_id)[:3]
    assert (first, third) == ("found: saw good", "found: saw fine")
    assert second.startswith("explore ended failed(agent_error): LookupError: its own fault")
    assert result.status == "done"


async def test_a_child_of_unknown_end_by_its_limit_says_so(tmp_path: Path) -> None:
    idle = in_order(Reply.call("look", {"what": "x"}))
    team = Team(
        exploring("a"),
        below={"You find things out": idle},
        specs=[explore(limits=Limits(model_calls=3))],
    )
    result, journal = await ran(team, tmp_path, stall=None)
    assert told(journal, result.run_id)[0].startswith("explore ended limit(model_calls): ")
    assert result.children_usage is not None
    assert result.children_usage.model_calls == 3


@pytest.mark.parametrize(
    ("prompt", "problem"),
    [
        ({"prompt": " "}, "prompt is empty"),
        ({"prompt": "x" * (MOST_PROMPT_CHARS + 1)}, "put what is long into a file"),
        ({}, "prompt"),
        ({"prompt": 7}, "prompt"),
    ],
)
async def test_what_cannot_be_delegated_is_said_to_the_model(
    tmp_path: Path, prompt: Any, problem: str
) -> None:
    team = Team(delegating(("explore", prompt), ("explore", {"prompt": "a"})))
    result, journal = await ran(team, tmp_path)
    refused, fine = told(journal, result.run_id)[:2]
    assert problem in refused
    assert fine == "found: saw a"
    assert len(journal.headings()) == 2


async def test_bounds_of_the_run_hold_for_all_that_it_begins(tmp_path: Path) -> None:
    idle = in_order(Reply.call("look", {"what": "x"}))
    team = Team(exploring("a", "b", "c"), below={"You find things out": idle})
    limits = Limits(model_calls=10)
    result, journal = await ran(team, tmp_path, stall=None, limits=limits)
    assert (result.status, result.reason.kind) == ("limit", "model_calls")
    assert 10 <= result.usage_tree.model_calls <= 13
    assert {one.end.status for one in journal.headings() if one.end} == {"limit"}


async def test_where_nothing_is_left_nobody_is_begun(tmp_path: Path) -> None:
    ask = Reply.call("explore", {"prompt": "a"})
    # Two model calls of its own, and two of the first child.
    result, journal = await ran(Team(in_order(ask)), tmp_path, limits=Limits(model_calls=4))
    assert told(journal, result.run_id) == ["found: saw a", NOTHING_LEFT]
    assert (result.status, result.reason.kind) == ("limit", "model_calls")
    assert result.usage_tree.model_calls == 4


async def test_results_are_told_whatever_is_left_for_the_calls_between_them(tmp_path: Path) -> None:
    # When the children have ended, no tool call is left for the one between that began none.
    result, journal = await ran(
        Team(exploring("a", "", "c")), tmp_path, limits=Limits(tool_calls=3)
    )

    said = told(journal, result.run_id)
    assert (said[0], said[2]) == ("found: saw a", "found: saw c")


async def test_children_may_not_do_what_their_parent_may_not(tmp_path: Path) -> None:
    writes = in_order(Reply.call("write", {"what": "x"}), Reply.text("denied"))

    def no_writing(event: Any) -> Any:
        return Deny("not here") if event.tool_name == "write" else None

    specs = [a_spec()]
    hooked = Team(
        delegating(("helper", {"prompt": "a"})),
        below={"You are helper": writes},
        specs=specs,
        given={"hooks": Hooks(pre_tool=no_writing)},
    )
    result, journal = await ran(hooked, tmp_path / "hooked")
    assert told(journal, f"{result.run_id}.1")[0].startswith("The call was not made: not here")

    asks = Team(
        delegating(("helper", {"prompt": "a"})),
        below={"You are helper": writes},
        specs=specs,
        given={"approvals": Approvals.of_autonomy("low")},
    )
    result, journal = await ran(asks, tmp_path / "asks", on_question="deny")
    # At a low autonomy delegating to one that may write is asked about, too.
    assert "nobody is there" in told(journal, result.run_id)[0].lower()
    assert len(journal.headings()) == 1


async def test_nested_ones_go_as_deep_as_settings_allow(tmp_path: Path) -> None:
    inner = a_spec("inner")
    outer = a_spec("outer", sub_agents=[inner])
    below = {
        "You are outer": in_order(
            Reply.call("inner", {"prompt": "deep"}), Reply.text("outer is done")
        ),
        "You are inner": looks,
    }
    team = Team(delegating(("outer", {"prompt": "a"})), below=below, specs=[outer])
    result, journal = await ran(team, tmp_path / "deep", sub_agents={"max_depth": 2})
    run_id = result.run_id
    assert [one.run_id for one in journal.headings()] == [run_id, f"{run_id}.1", f"{run_id}.1.1"]
    assert told(journal, f"{run_id}.1")[0] == "found: saw deep"
    assert result.children_usage is not None
    assert result.children_usage.model_calls == 4

    result, journal = await ran(team, tmp_path / "flat")
    assert told(journal, f"{result.run_id}.1")[0].startswith("There is no tool 'inner'")


@pytest.mark.parametrize("settings", [{"sub_agents": None}, {"sub_agents": {"max_depth": 0}}])
async def test_where_it_may_not_delegate_there_are_no_such_tools(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    def top(conversation: Sequence[Message]) -> Reply:
        assert "delegate" not in conversation[0].text
        return exploring("a")(conversation)

    result, journal = await ran(Team(top), tmp_path, **settings)
    assert told(journal, result.run_id)[0].startswith("There is no tool 'explore'")


async def test_the_prompt_tells_of_those_that_there_are(tmp_path: Path) -> None:
    def top(conversation: Sequence[Message]) -> Reply:
        return Reply.call("work_complete", {"summary": conversation[0].text})

    result, _ = await ran(Team(top, specs=[explore(), document()]), tmp_path)
    assert "by calling explore and document" in result.output_text
    assert "run_task" not in result.output_text


async def test_events_say_who_was_begun_and_how_each_ended(tmp_path: Path) -> None:
    kinds: list[str] = []
    async with Team(exploring("a", "b")).harness(tmp_path / "runs.db") as harness:
        async for item in harness.run_stream("Go.", text=False):
            if isinstance(item, RunEvent):
                kinds.append(item.event.type)
                assert not isinstance(item.event, ToolCalled) or item.event.tool_name != "look"
    assert kinds.count("children_started") == 1
    assert kinds.count("child_ended") == 2


async def test_a_conversation_goes_on_after_children(tmp_path: Path) -> None:
    async with Team(exploring("a")).harness(tmp_path / "runs.db") as harness:
        first = await harness.run("Go.")
        second = await harness.run("And again.")
        messages = await harness.conversation(second.run_id)
    assert (first.status, second.status) == ("done", "done")
    assert sum(one["role"] == "user" for one in messages) == 2


async def test_the_log_of_a_parent_has_two_messages_for_each(tmp_path: Path) -> None:
    result, journal = await ran(Team(exploring(*"abcdefgh")), tmp_path)
    stored = journal.load_run(result.run_id)
    assert stored is not None
    assert repaired(list(stored.state.log))[1] == 0
    assert len(results(list(stored.state.log))) == 8 + 1
    assert stored.state.values["harness.child_results"] == []


@pytest.mark.ray
@pytest.mark.timeout(180)
async def test_it_is_so_on_ray(tmp_path: Path) -> None:
    team = Team(
        delegating(
            ("write", {"what": "1"}),
            ("explore", {"prompt": "a"}),
            ("helper", {"prompt": "b"}),
            ("write", {"what": "2"}),
        ),
        below={"You find things out": looks, "You are helper": looks},
        specs=[explore(), run_task(), a_spec()],
    )
    result, journal = await ran(team, tmp_path, runtime="ray", address="local")
    assert result.status == "done"
    assert told(journal, result.run_id)[:4] == [
        "wrote 1",
        "found: saw a",
        "found: saw b",
        "wrote 2",
    ]


def a_team(**given: Any) -> Team:
    return Team(exploring("a"), **given)


@pytest.mark.parametrize(
    ("specs", "problem"),
    [
        ([explore(), explore()], "two are named 'explore'"),
        ([a_spec("look")], "'look' has the name of a tool"),
        ([a_spec(tools=["fly"])], "'fly' is no tool of the agent that delegates"),
        (["explore"], r"must be SubAgentSpec\(...\), explore\(\) or the like"),
    ],
)
def test_an_agent_refuses_whom_it_cannot_delegate_to(specs: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        a_team(specs=specs).agent()
