"""A question is answered by another harness on the same store: another process, a month later."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness_actors.errors import AnswerError
from harness_actors.testing import Reply
from harness_actors.tools import ask_user, coding_tools
from tests.scenarios.stage import TASK, Scenario, writes

ASKS = Reply.calls([("ask_user", {"question": "Which colour?", "options": ["red", "blue"]})])


def paints(body: dict[str, Any]) -> Reply:
    told = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    match len(told):
        case 0:
            return writes("door.txt", "bare")
        case 1:
            return ASKS
        case 2:
            return writes("door.txt", f"{told[1]}")
    return Reply.call("work_complete", {"summary": f"told: {told[1]}"})


SCENARIO = Scenario(script=paints, agent={"tools": [*coding_tools(), ask_user]})


async def test_a_question_outlives_the_process_that_asked(tmp_path: Path) -> None:
    async with SCENARIO.server() as server:
        async with SCENARIO.harness(tmp_path, server.base_url) as first:
            waiting = await first.run(TASK)
        asked = server.requests
        async with SCENARIO.harness(tmp_path, server.base_url) as second:
            still = await second.resume(waiting.run_id)
            with pytest.raises(AnswerError):
                await second.resume(waiting.run_id, answers={"q1": "green"})
            assert server.requests == asked, "nobody is asked while it waits"
            done = await second.resume(waiting.run_id, answers={"q1": "blue"})
        async with SCENARIO.harness(tmp_path, server.base_url) as third:
            again = await third.resume(waiting.run_id)

    assert (waiting.status, waiting.reason.kind) == ("awaiting_input", "question")
    assert [question.text for question in waiting.questions] == ["Which colour?"]
    assert still.questions == waiting.questions
    assert (done.status, done.reason.kind, done.completion_verified) == ("done", "completed", True)
    assert done.output_text == again.output_text == "told: blue"
    assert (tmp_path / "work" / "door.txt").read_text() == "blue"
    assert server.requests == 4
    messages = json.loads(server.seen[-1].body)["messages"]
    results = [one["content"] for one in messages if one["role"] == "tool"]
    assert results.count("blue") == 1, "the answer is told once"
    assert [one["role"] for one in messages if one["role"] == "user"] == ["user"], "and no nudge"
