"""What the delegated repair writes, it has from whom it has sent to find it out."""

import json
from pathlib import Path
from typing import Any

import pytest

from examples.repair.archive import build_delegated
from examples.repair.build import build
from examples.repair.delegated import delegated_reply

TASK: dict[str, Any] = {
    "role": "user",
    "content": "Repair task humaneval-003: the function `f` in solution.py has one fault.",
}
MAY_DELEGATE = [{"function": {"name": "explore"}}, {"function": {"name": "read_file"}}]
MAY_READ = [{"function": {"name": "grep_files"}}, {"function": {"name": "read_file"}}]
NOW = "def f(a):\n    return a - 1\n"
BEFORE = "import math\n\n\ndef g(a):\n    return a - 1\n\n\ndef f(a):\n    return a + 1\n"


def calls(message: dict[str, Any]) -> list[tuple[str, dict[str, str]]]:
    functions = [call["function"] for call in message["tool_calls"]]
    return [(each["name"], json.loads(each["arguments"])) for each in functions]


def answered(
    messages: list[dict[str, Any]], tools: list[dict[str, Any]], *results: str
) -> list[dict[str, Any]]:
    """The conversation after the next message and the results of its calls."""
    reply = delegated_reply(messages, tools)
    told = [
        {"role": "tool", "tool_call_id": call["id"], "content": result}
        for call, result in zip(reply["tool_calls"], results, strict=True)
    ]
    return [*messages, reply, *told]


def explored(prompt: str, before: str = BEFORE) -> str:
    """What whoever explores says to a prompt, and with which calls it has found it."""
    talk: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    assert [name for name, _ in calls(delegated_reply(talk, MAY_READ))] == [
        "grep_files",
        "read_file",
    ]
    talk = answered(talk, MAY_READ, "archive/part_1.py\n  8: def f(a):", NOW)
    assert calls(delegated_reply(talk, MAY_READ)) == [("read_file", {"path": "archive/part_1.py"})]
    return str(delegated_reply(answered(talk, MAY_READ, before), MAY_READ)["content"])


def test_the_edit_is_what_was_found_in_the_archive() -> None:
    ((name, given),) = calls(delegated_reply([TASK], MAY_DELEGATE))
    assert name == "explore"

    talk = answered([TASK], MAY_DELEGATE, explored(given["prompt"]))
    talk = answered(talk, MAY_DELEGATE, "# Repair", NOW)

    fix = {"old_text": "    return a - 1", "new_text": "    return a + 1"}
    edit = ("edit_file", {"path": "solution.py", **fix})
    assert calls(delegated_reply(talk, MAY_DELEGATE)) == [edit]


@pytest.mark.parametrize("answer", ["explore ended failed(executor_lost): it died", "Not found."])
def test_without_an_answer_nothing_is_written_and_another_one_is_sent(answer: str) -> None:
    talk = answered([TASK], MAY_DELEGATE, answer)

    assert [name for name, _ in calls(delegated_reply(talk, MAY_DELEGATE))] == ["explore"]


def test_it_writes_whatever_the_answer_says() -> None:
    prompt = calls(delegated_reply([TASK], MAY_DELEGATE))[0][1]["prompt"]
    other = explored(prompt, BEFORE.replace("a + 1", "a + 7"))
    talk = answered(answered([TASK], MAY_DELEGATE, other), MAY_DELEGATE, "# Repair", NOW)

    assert calls(delegated_reply(talk, MAY_DELEGATE))[0][1]["new_text"] == "    return a + 7"


def test_each_archive_has_every_function_once_and_the_workspace_has_no_fix(tmp_path: Path) -> None:
    build(tmp_path / "tasks", limit=6)
    made = build_delegated(tmp_path / "tasks", tmp_path / "out", 5)

    assert len(made) == 5
    functions = [str(task["metadata"]["function"]) for task in made]
    for task in made:
        workspace = tmp_path / "out" / task["workspace"]
        assert sorted(path.name for path in workspace.iterdir()) == [
            "README.md",
            "archive",
            "solution.py",
        ]
        archive = "".join(path.read_text() for path in (workspace / "archive").iterdir())
        assert [archive.count(f"def {name}(") for name in functions] == [1] * 5
