"""Children whose calls need approval, or that ask: their user is asked by the run at the top."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness_actors import Approve, Refuse
from harness_actors.errors import AnswerError
from harness_actors.events import RunCompleted, RunEvent
from harness_actors.policies import ApprovalRule, Approvals
from harness_actors.results import OpenQuestion
from harness_actors.stores import JournalReader
from harness_actors.subagents import SubAgentSpec
from harness_actors.testing import Reply
from harness_actors.tools import ask_user, tool
from tests.subagents.team import Says, Team, delegating, in_order, look, looks, results, told, write

ASKS = {"approvals": Approvals(rules=[ApprovalRule(decide="ask", tools=["write"])])}


def writes(*said: str) -> Says:
    """Writes, and says what came of that."""

    def reply(conversation: Any) -> Reply:
        if came_to := results(conversation):
            return Reply.text(came_to[-1])
        return Reply.call("write", {"what": "x"})

    return reply


def helper(name: str = "helper", **parts: Any) -> SubAgentSpec:
    return SubAgentSpec(name=name, description="Helps.", instructions=f"You are {name}.", **parts)


def team(*calls: str, below: dict[str, Says] | None = None, **parts: Any) -> Team:
    specs = parts.pop("specs", [helper(), helper("reader")])
    return Team(
        delegating(*((name, {"prompt": "a"}) for name in calls)),
        below={"You are helper": writes(), "You are reader": looks, **(below or {})},
        specs=specs,
        given={**ASKS, **parts},
    )


async def test_a_call_of_a_child_is_approved_by_the_user_of_its_tree(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    async with team("helper", "reader").harness(store) as harness:
        waits = await harness.run("Go.")
        (question,) = waits.questions
        assert (waits.status, waits.reason.kind) == ("awaiting_input", "approval")
        assert (question.path, question.tool, question.id) == ("helper", "write", "1.q1")

        result = await harness.resume(waits.run_id, answers={question.id: Approve()})

    assert result.status == "done"
    journal = JournalReader(store)
    assert told(journal, f"{result.run_id}.1") == ["wrote x"]
    assert told(journal, result.run_id)[:2] == ["wrote x", "found: saw a"]


async def test_what_its_children_have_used_so_far_is_told_of_one_that_waits(tmp_path: Path) -> None:
    async with team("helper", "reader").harness(tmp_path / "runs.db") as harness:
        waits = await harness.run("Go.")
        assert waits.usage.model_calls == 1
        assert waits.children_usage is not None
        assert (waits.children_usage.model_calls, waits.children_usage.tool_calls) == (3, 1)
        result = await harness.resume(waits.run_id, answers={"1.q1": Approve()})
    assert result.usage_tree.model_calls == 6
    assert result.usage.model_calls == 2


async def test_one_is_denied_with_a_note(tmp_path: Path) -> None:
    async with team("helper").harness(tmp_path / "runs.db") as harness:
        waits = await harness.run("Go.")
        result = await harness.resume(waits.run_id, answers={"1.q1": Refuse("not today")})
    journal = JournalReader(tmp_path / "runs.db")
    assert "not today" in told(journal, f"{result.run_id}.1")[0]


async def test_what_nobody_has_decided_in_time_is_decided_when_the_tree_goes_on(
    tmp_path: Path,
) -> None:
    rules = [ApprovalRule(decide="ask", tools=["write"])]
    policy = Approvals(rules=rules, expires_s=0.05, on_expiry="approve")
    store = tmp_path / "runs.db"
    async with team("helper", "helper", approvals=policy).harness(store) as harness:
        waits = await harness.run("Go.")
        assert len(waits.questions) == 2
        await asyncio.sleep(0.1)
        # Of the one below, too, whose own entries say nothing of it.
        shown = {one.run_id: one for one in JournalReader(store).headings()}
        assert [one.is_answered for one in shown.values()] == [True] * 3

        result = await harness.resume(waits.run_id)

    assert result.status == "done"
    assert told(JournalReader(store), result.run_id)[:2] == ["wrote x"] * 2


async def test_the_others_go_on_meanwhile(tmp_path: Path) -> None:
    async with team("helper", "reader").harness(tmp_path / "runs.db") as harness:
        waits = await harness.run("Go.")
        journal = JournalReader(tmp_path / "runs.db")
        reader = journal.load_run(f"{waits.run_id}.2")
    assert reader is not None
    assert reader.end is not None
    assert reader.end.output_text == "found: saw a"


async def test_all_are_asked_together(tmp_path: Path) -> None:
    async with team("helper", "helper", "helper").harness(tmp_path / "runs.db") as harness:
        waits = await harness.run("Go.")
        assert sorted(one.id for one in waits.questions) == ["1.q1", "2.q1", "3.q1"]
        again = await harness.resume(waits.run_id, answers={"2.q1": Approve()})
        assert sorted(one.id for one in again.questions) == ["1.q1", "3.q1"]
        answers: dict[str, Any] = {"1.q1": Refuse("no"), "3.q1": Approve()}
        result = await harness.resume(waits.run_id, answers=answers)
    assert result.status == "done"
    first, *others, _ = told(JournalReader(tmp_path / "runs.db"), result.run_id)
    assert "no" in first
    assert others == ["wrote x", "wrote x"]


async def test_a_program_answers_at_once(tmp_path: Path) -> None:
    asked: list[OpenQuestion] = []

    def answer(question: OpenQuestion) -> Any:
        asked.append(question)
        return Approve()

    harness = team("helper", "helper").harness(tmp_path / "runs.db", on_question=answer)
    async with harness:
        result = await harness.run("Go.")
    assert result.status == "done"
    assert [(one.path, one.id) for one in asked] == [("helper", "1.q1"), ("helper", "2.q1")]


async def test_a_child_below_another_one_is_named_by_the_way_to_it(tmp_path: Path) -> None:
    nested = team(
        "outer",
        below={"You are outer": delegating(("helper", {"prompt": "b"}))},
        specs=[helper("outer", sub_agents=[helper()], completion="explicit")],
    )
    settings = {"sub_agents": {"max_depth": 2}}
    async with nested.harness(tmp_path / "runs.db", **settings) as harness:
        waits = await harness.run("Go.")
        (question,) = waits.questions
        assert (question.path, question.id) == ("outer/helper", "1.1.q1")
        result = await harness.resume(waits.run_id, answers={question.id: Approve()})
    assert result.status == "done"
    assert told(JournalReader(tmp_path / "runs.db"), f"{result.run_id}.1.1") == ["wrote x"]


async def test_a_child_asks_its_user(tmp_path: Path) -> None:
    asks = in_order(
        Reply.call("ask_user", {"question": "Which?", "options": ["red", "blue"]}),
        Reply.text("thanks"),
    )
    curious = team("helper", below={"You are helper": asks}, tools=[look, write, ask_user])
    async with curious.harness(tmp_path / "runs.db") as harness:
        waits = await harness.run("Go.")
        assert (waits.questions[0].text, waits.questions[0].options) == ("Which?", ("red", "blue"))
        with pytest.raises(AnswerError, match="must be one of 'red', 'blue'"):
            await harness.resume(waits.run_id, answers={"1.q1": "green"})
        result = await harness.resume(waits.run_id, answers={"1.q1": "blue"})
    assert told(JournalReader(tmp_path / "runs.db"), f"{result.run_id}.1") == ["blue"]


@pytest.mark.parametrize("how", ["deny", "fail"])
async def test_where_nobody_is_there_none_waits(how: str, tmp_path: Path) -> None:
    async with team("helper").harness(tmp_path / "runs.db", on_question=how) as harness:
        result = await harness.run("Go.")
    assert result.status == "done"
    first = told(JournalReader(tmp_path / "runs.db"), result.run_id)[0]
    assert ("nobody is there" in first.lower()) if how == "deny" else ("on_question" in first)


async def test_the_child_may_be_named_in_the_place_of_the_tree(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    async with team("helper").harness(store) as harness:
        waits = await harness.run("Go.")
        result = await harness.resume(f"{waits.run_id}.1", answers={"q1": Approve()})
    assert result.output_text == "wrote x"


async def test_a_program_answers_while_the_others_go_on(tmp_path: Path) -> None:
    """The one that is slow ends after the one that has asked, which did not wait for it."""
    gate = tmp_path / "gate"

    @tool(effect="read_only")
    async def slow(what: str) -> str:
        """Look slowly."""
        while not gate.exists():  # noqa: ASYNC110 - it runs from a pickle, with no event of ours
            await asyncio.sleep(0.01)
        return f"saw {what}"

    def answer(question: OpenQuestion) -> Any:
        return Approve()

    reads = in_order(Reply.call("slow", {"what": "a"}), Reply.text("read"))
    both = team("helper", "reader", below={"You are reader": reads}, tools=[look, write, slow])
    ended: list[str] = []
    async with both.harness(tmp_path / "runs.db", on_question=answer) as harness:
        async for item in harness.run_stream("Go.", children=True):
            if isinstance(item, RunEvent) and isinstance(item.event, RunCompleted):
                ended.append(item.path)
                gate.touch()
    assert ended == ["helper", "reader", ""]


async def test_one_beside_its_run_asks_while_that_goes_on(tmp_path: Path) -> None:
    waits = in_order(
        Reply.call("helper", {"prompt": "a"}),
        Reply.call("agent_wait", {"agents": [], "until": "all"}),
        Reply.call("work_complete", {"summary": "done"}),
    )
    beside = Team(
        waits,
        below={"You are helper": writes()},
        specs=[helper(background=True)],
        given=ASKS,
    )
    async with beside.harness(tmp_path / "runs.db") as harness:
        asked = await harness.run("Go.")
        assert [one.id for one in asked.questions] == ["1.q1"]
        result = await harness.resume(asked.run_id, answers={"1.q1": Approve()})
    assert result.status == "done"
    assert told(JournalReader(tmp_path / "runs.db"), f"{result.run_id}.1") == ["wrote x"]


async def test_what_nobody_answers_at_once_is_asked_in_the_end(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(question: OpenQuestion) -> Any:
        asked.append(question.id)
        return None if question.id == "1.q1" else Approve()

    harness = team("helper", "helper").harness(tmp_path / "runs.db", on_question=answer)
    async with harness:
        result = await harness.run("Go.")
    assert [one.id for one in result.questions] == ["1.q1"]
    assert asked == ["1.q1", "2.q1"]


async def test_a_child_that_is_taken_up_waits_for_what_else_is_open_in_its_tree(
    tmp_path: Path,
) -> None:
    store = tmp_path / "runs.db"
    async with team("helper", "helper").harness(store) as harness:
        waits = await harness.run("Go.")
        child = f"{waits.run_id}.1"
        async with asyncio.timeout(20):
            still = await harness.resume(child)
            assert [one.id for one in still.questions] == ["1.q1", "2.q1"]
            still = await harness.resume(child, answers={"q1": Approve()})
            assert (still.run_id, [one.id for one in still.questions]) == (child, ["2.q1"])
            result = await harness.resume(child, answers={"2.q1": Refuse("no")})
    assert (result.run_id, result.status, result.output_text) == (child, "done", "wrote x")


async def test_what_a_program_raises_is_raised_when_all_stand_still(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(question: OpenQuestion) -> Any:
        asked.append(question.id)
        if len(asked) == 1:
            raise LookupError("no idea")
        return Approve()

    store = tmp_path / "runs.db"
    async with team("helper", "reader").harness(store, on_question=answer) as harness:
        with pytest.raises(LookupError, match="no idea"):
            await harness.run("Go.")
        assert harness.run_id is not None
        result = await harness.resume(harness.run_id)
    assert result.status == "done"
    assert asked == ["1.q1", "1.q1"]


@tool(effect="read_only")
async def linger(what: str) -> str:
    """Look for long enough that others come to ask."""
    await asyncio.sleep(0.6)
    return what


def beside(*replies: Reply) -> Team:
    """One that sends out a helper in the background, and what it does then."""
    return Team(
        in_order(Reply.call("helper", {"prompt": "a"}), *replies),
        below={"You are helper": writes()},
        specs=[helper(background=True)],
        given={**ASKS, "tools": [look, write, linger]},
    )


DONE = Reply.call("work_complete", {"summary": "done"})


async def test_one_that_asks_is_cancelled_by_the_agent_that_sent_it_out(tmp_path: Path) -> None:
    agent = {"agent": "helper-1"}
    team = beside(
        Reply.call("linger", {"what": "a"}),
        Reply.call("agent_status", agent),
        Reply.call("agent_cancel", {"agents": ["helper-1"]}),
        DONE,
    )
    async with team.harness(tmp_path / "runs.db") as harness:
        result = await harness.run("Go.")
    assert result.status == "done"
    journal = JournalReader(tmp_path / "runs.db")
    said = told(journal, result.run_id)
    assert said[2] == "helper-1 waits for an answer of its user, and goes on when it has that."
    assert said[3] == "helper-1 was cancelled."
    assert told(journal, f"{result.run_id}.1") == [
        "The call was not made: the run ended while it waited for its user."
    ]


async def test_the_time_of_a_wait_stands_still_while_the_tree_waits(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    long = Reply.call("agent_wait", {"agents": [], "until": "all", "timeout_s": 1.5})
    async with beside(long, DONE).harness(store) as harness:
        waits = await harness.run("Go.")
        await asyncio.sleep(2)
        result = await harness.resume(waits.run_id, answers={"1.q1": Approve()})
    assert result.status == "done"
    journal = JournalReader(store)
    assert told(journal, result.run_id)[1] == "helper-1: completed"
    assert told(journal, f"{result.run_id}.1") == ["wrote x"]
