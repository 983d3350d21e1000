"""Work that is delegated to ten others at once: each is told of once, whoever dies."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_actors.events import ChildEnded
from harness_actors.stores import JournalReader
from harness_actors.subagents import explore, run_task
from harness_actors.testing import Reply
from tests.scenarios.stage import DONE, Played, Scenario, play, play_killed, runs, writes

READERS, WRITERS = 6, 4
LOG = "effects.txt"


def delegates(body: Mapping[str, Any]) -> Reply:
    """One that writes, sends out ten, writes again and is done; and what these do."""
    messages = body["messages"]
    system, task = messages[0]["content"], messages[1]["content"]
    results = [one["content"] for one in messages if one["role"] == "tool"]
    if system.startswith("You find things out"):
        return runs_or_tells(results, Reply.call("read_file", {"path": "plan.txt"}))
    if system.startswith("You carry out commands"):
        return runs_or_tells(results, runs(f"echo {task} >> {LOG}"))
    if not results:
        return writes("plan.txt", "the plan")
    if len(results) == 1:
        asked = [("explore", {"prompt": f"question {n}"}) for n in range(READERS)]
        ordered = [("run_task", {"prompt": f"order-{n}"}) for n in range(WRITERS)]
        last = ("write_file", {"path": "report.md", "content": "all is in"})
        return Reply.calls([*asked, *ordered, last])
    return DONE


def runs_or_tells(results: list[str], first: Reply) -> Reply:
    return Reply.text(f"I saw: {results[-1][:40]}") if results else first


SCENARIO = Scenario(script=delegates, agent={"sub_agents": [explore(), run_task()]})


def check(played: Played) -> None:
    assert played.ending == ("done", "completed", True)
    assert (played.workspace / "report.md").read_text() == "all is in"
    log = played.workspace / LOG
    # Of those that were cut off nobody knows, and they are not carried out again.
    effects = log.read_text().split() if log.exists() else []
    assert len(effects) == len(set(effects)) <= WRITERS, "an order was carried out twice"
    (last,) = (one for one in played.talks.values() if one[-1]["messages"][1]["content"] == TASK)
    calls = [call for one in last[-1]["messages"] for call in one.get("tool_calls") or ()]
    answers = {
        one["tool_call_id"]: one["content"] for one in last[-1]["messages"] if one["role"] == "tool"
    }
    assert len(answers) == len(calls) == 1 + READERS + WRITERS + 1
    for call in calls:
        if call["function"]["name"] in ("explore", "run_task"):
            assert answers[call["id"]].startswith("I saw: "), answers[call["id"]]
    own = played.workspace.parent / "runs.db"
    # That of the cell, where scenarios share one.
    journal = JournalReader(own if own.exists() else own.parents[1] / "runs.db")
    ended = [one for one in journal.headings() if one.root == played.result.run_id]
    assert len(ended) == READERS + WRITERS
    assert {one.end.status for one in ended if one.end is not None} == {"done"}
    told = [one.event for one in journal.load_events(0, limit=100_000)]
    names = [
        one.run_id
        for one in told
        if isinstance(one, ChildEnded) and one.run_id.startswith(played.result.run_id)
    ]
    assert len(names) == len(set(names)) == READERS + WRITERS
    assert "explore" in json.dumps(last[0]["tools"])


TASK = "Write the report."


async def test_each_is_told_of_once(tmp_path: Path) -> None:
    check(await play(SCENARIO, tmp_path))


@pytest.mark.parametrize("seed", range(6))
async def test_it_is_so_when_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    check(await play_killed(__name__, tmp_path, seed))
