"""Ten who are sent out, five of whom need approval and two of whom ask: each is answered once."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_actors import Approve
from harness_actors.policies import ApprovalRule, Approvals
from harness_actors.results import OpenQuestion
from harness_actors.stores import JournalReader
from harness_actors.subagents import explore, run_task
from harness_actors.testing import Reply
from harness_actors.tools import ask_user, coding_tools
from tests.scenarios.stage import DONE, Played, Scenario, play, play_killed, runs

READERS, WRITERS, ASKERS = 3, 5, 2
LOG = "effects.txt"


def delegates(body: Mapping[str, Any]) -> Reply:
    messages = body["messages"]
    system, task = messages[0]["content"], messages[1]["content"]
    results = [one["content"] for one in messages if one["role"] == "tool"]
    if system.startswith("You find things out"):
        first = Reply.call("list_directory", {"path": "."})
    elif task.startswith("ask"):
        first = Reply.call("ask_user", {"question": f"{task}: which way?"})
    else:
        first = runs(f"echo {task} >> {LOG}")
    if system.startswith(("You find things out", "You carry out commands")):
        return Reply.text(f"I saw: {results[-1][:60]}") if results else first
    if results:
        return DONE
    read = [("explore", {"prompt": f"question {n}"}) for n in range(READERS)]
    write = [("run_task", {"prompt": f"order-{n}"}) for n in range(WRITERS)]
    ask = [("run_task", {"prompt": f"ask-{n}"}) for n in range(ASKERS)]
    return Reply.calls([*write, *read, *ask])


async def answers(question: OpenQuestion) -> Any:
    """A person who thinks for a while."""
    await asyncio.sleep(0.01)
    assert question.path == "run_task"
    if question.kind == "approval":
        return Approve()
    return f"the way of {question.text.partition(':')[0]}"


SCENARIO = Scenario(
    script=delegates,
    agent={
        "sub_agents": [explore(), run_task()],
        "tools": [*coding_tools(), ask_user],
        "approvals": Approvals(rules=[ApprovalRule(decide="ask", tools=["run_command"])]),
    },
    settings={"on_question": answers},
)


def check(played: Played) -> None:
    assert played.ending == ("done", "completed", True)
    log = played.workspace / LOG
    # Of those that were cut off nobody knows, and they are not carried out again.
    effects = log.read_text().split() if log.exists() else []
    assert len(effects) == len(set(effects)) <= WRITERS, "an order was carried out twice"
    told = [
        message["content"]
        for talk in played.talks.values()
        for message in talk[-1]["messages"]
        if message["role"] == "tool" and message["content"].startswith("the way of")
    ]
    assert sorted(told) == [f"the way of ask-{n}" for n in range(ASKERS)]
    own = played.workspace.parent / "runs.db"
    journal = JournalReader(own if own.exists() else own.parents[1] / "runs.db")
    ended = [one for one in journal.headings() if one.root == played.result.run_id]
    assert [one.end.status for one in ended if one.end is not None] == ["done"] * 10


async def test_each_is_answered_once(tmp_path: Path) -> None:
    check(await play(SCENARIO, tmp_path))


@pytest.mark.parametrize("seed", range(6))
async def test_it_is_so_when_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    check(await play_killed(__name__, tmp_path, seed))
