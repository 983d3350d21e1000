"""The model of the kill tests: notes for some rounds, then completes.

The task says how: ``{"path": ..., "rounds": ..., "seconds": ...}``.
"""

import json
from typing import Any

from harness_actors.testing import Reply


def reply(body: dict[str, Any]) -> Reply:
    messages = body["messages"]
    task = json.loads(next(m["content"] for m in messages if m["role"] == "user"))
    spoken = sum(message["role"] == "assistant" for message in messages)
    if spoken < task["rounds"]:
        return Reply.call("note", {"path": task["path"], "seconds": task["seconds"]})
    return Reply.call("work_complete", {"summary": f"after {spoken} notes"})
