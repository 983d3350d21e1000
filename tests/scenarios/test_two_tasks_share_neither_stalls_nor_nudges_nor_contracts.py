"""The next task on one harness sees the conversation, and nothing of how the last one was held."""

import json
from pathlib import Path
from typing import Any

from harness_actors.contracts import FileExists
from harness_actors.testing import Reply
from tests.contracts.grounds import contract_with
from tests.scenarios.stage import DONE, Scenario, writes

READS = Reply.call("read_file", {"path": "a.txt"})
TALKS = Reply.text("I will, soon.")
TASKS: dict[str, list[Reply]] = {
    # Two equal rounds are no circle, and neither are two more of the next task.
    "read": [writes("a.txt", "a"), READS, READS, TALKS, TALKS, DONE],
    "read again": [READS, READS, TALKS, TALKS, TALKS, DONE],
    "have a file": [DONE, writes("b.txt", "b"), DONE],
    "have none": [DONE],
}


def by_task(body: dict[str, Any]) -> Reply:
    spoken, task = 0, ""
    for message in body["messages"]:
        if message["role"] == "user" and message["content"] in TASKS:
            spoken, task = 0, message["content"]
        spoken += message["role"] == "assistant"
    return TASKS[task][spoken]


SCENARIO = Scenario(script=by_task, settings={"continuation": {"max_prompts": 3}})


async def test_two_tasks_share_neither_stalls_nor_nudges_nor_contracts(tmp_path: Path) -> None:
    held = contract_with(FileExists("b.txt"))
    async with (
        SCENARIO.server() as server,
        SCENARIO.harness(tmp_path, server.base_url) as harness,
    ):
        results = {}
        for task in TASKS:
            contract = held if task == "have a file" else None
            results[task] = await harness.run(task, contract=contract)
            if task == "have a file":
                (tmp_path / "work" / "b.txt").unlink()

    for result in results.values():
        assert (result.status, result.reason.kind) == ("done", "completed")
        assert result.completion_verified
    assert [result.contract is None for result in results.values()] == [True, True, False, True]
    messages = json.loads(server.seen[-1].body)["messages"]
    told: dict[str, list[str]] = {}
    for message in messages:
        if message["role"] == "user" and message["content"] in TASKS:
            told[message["content"]] = []
        elif message["role"] == "user":
            told[list(told)[-1]].append(message["content"])
    assert [len(texts) for texts in told.values()] == [2, 3, 1, 0]
    assert "b.txt" in told["have a file"][0]
    assert "You go in circles" not in json.dumps(messages)
    assert server.requests == sum(map(len, TASKS.values()))
