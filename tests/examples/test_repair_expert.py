"""The expert of the repair demo decides by the conversation alone."""

import json
from typing import Any

import pytest

from examples.repair.build import Fix
from examples.repair.expert import expert_reply
from harness_actors.conversation import UNKNOWN_OUTCOME

FIXES = {"humaneval-003": Fix(old_text="    return a - 1", new_text="    return a + 1")}
FAULTY = "def f(a):\n    return a - 1\n"
REPAIRED = "def f(a):\n    return a + 1\n"
TASK: dict[str, Any] = {"role": "user", "content": "Repair task humaneval-003: ..."}


def calls(message: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
    functions = [call["function"] for call in message["tool_calls"]]
    return [(each["name"], json.loads(each["arguments"])) for each in functions]


def answered(messages: list[dict[str, Any]], *results: str) -> list[dict[str, Any]]:
    """The conversation after the expert's next message and the results of its calls."""
    reply = expert_reply(messages, FIXES)
    return [
        *messages,
        reply,
        *(
            {"role": "tool", "tool_call_id": call["id"], "content": result}
            for call, result in zip(reply["tool_calls"], results, strict=True)
        ),
    ]


def test_it_reads_edits_tries_and_completes() -> None:
    said = []
    messages = [TASK]
    for results in (["# Repair", FAULTY], ["edited"], ["exit status 0"], ["done"]):
        said.append(calls(expert_reply(messages, FIXES)))
        messages = answered(messages, *results)

    assert said[0] == [("read_file", {"path": "README.md"}), ("read_file", {"path": "solution.py"})]
    assert said[1] == [("edit_file", {"path": "solution.py", **FIXES["humaneval-003"]})]
    assert said[2] == [("run_command", {"command": 'python -c "import solution"'})]
    assert [name for name, _ in said[3]] == ["work_complete"]
    ids = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert len(ids) == len(set(ids)) == 5


def test_it_says_the_same_when_asked_again() -> None:
    messages = answered([TASK], "# Repair", FAULTY)
    assert expert_reply(messages, FIXES) == expert_reply(messages, FIXES)


@pytest.mark.parametrize(
    ("found", "then"), [(FAULTY, "edit_file"), (REPAIRED, "run_command")], ids=["lost", "done"]
)
def test_it_looks_again_when_the_outcome_of_its_edit_is_unknown(found: str, then: str) -> None:
    messages = answered(answered([TASK], "# Repair", FAULTY), UNKNOWN_OUTCOME)
    assert calls(expert_reply(messages, FIXES)) == [("read_file", {"path": "solution.py"})]

    messages = answered(messages, found)
    assert [name for name, _ in calls(expert_reply(messages, FIXES))] == [then]


def test_it_completes_again_when_it_is_asked_to() -> None:
    messages = [TASK]
    for results in (["# Repair", FAULTY], ["edited"], ["exit status 0"], ["not yet"]):
        messages = answered(messages, *results)
    messages.append({"role": "user", "content": "Go on until the work is complete."})
    assert [name for name, _ in calls(expert_reply(messages, FIXES))] == ["work_complete"]


def test_it_says_so_when_it_does_not_know_the_task() -> None:
    with pytest.raises(LookupError, match="names a task"):
        expert_reply([{"role": "user", "content": "humaneval-999"}], FIXES)
