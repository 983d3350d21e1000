"""What hostile models answer: scripts of the loopback server."""

from typing import Any

from harness_actors.testing import Reply

DONE = Reply.call("work_complete", {"summary": "done"})


def asks_for_long_globs(body: dict[str, Any]) -> Reply:
    """One hostile pattern a round, then the end."""
    patterns = ("[" * 25_000, "*" * 5_000 + "b", "[a" * 16_000)
    return _in_turn(body, [("find_files", {"pattern": pattern}) for pattern in patterns])


def asks_for_long_texts(body: dict[str, Any]) -> Reply:
    """Texts that overlap themselves, and twenty million lines."""
    lines, letters = "lines.txt", "letters.txt"
    calls: list[tuple[str, dict[str, Any]]] = [
        ("edit_file", {"path": letters, "old_text": "a" * 100_000, "new_text": "b"}),
        ("edit_file", {"path": letters, "old_text": "a" * 1_000_000, "new_text": "b"}),
        ("edit_file", {"path": lines, "old_text": "x\ny", "new_text": "z"}),
        ("read_file", {"path": lines}),
        ("read_file", {"path": lines, "start_line": 19_999_990, "end_line": -1}),
        ("grep_files", {"pattern": "(a+)+$b"}),
    ]
    return _in_turn(body, calls)


def _in_turn(body: dict[str, Any], calls: list[tuple[str, dict[str, Any]]]) -> Reply:
    done = sum(message["role"] == "tool" for message in body["messages"])
    return Reply.call(*calls[done]) if done < len(calls) else DONE
