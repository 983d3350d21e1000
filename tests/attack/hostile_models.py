"""What hostile models answer: scripts of the loopback server."""

from typing import Any

from harness_actors.testing import Reply

DONE = Reply.call("work_complete", {"summary": "done"})


def asks_for_long_globs(body: dict[str, Any]) -> Reply:
    """One hostile pattern a round, then the end."""
    patterns = ("[" * 25_000, "*" * 5_000 + "b", "[a" * 16_000)
    return _in_turn(body, [("find_files", {"pattern": pattern}) for pattern in patterns])


def _in_turn(body: dict[str, Any], calls: list[tuple[str, dict[str, Any]]]) -> Reply:
    done = sum(message["role"] == "tool" for message in body["messages"])
    return Reply.call(*calls[done]) if done < len(calls) else DONE
