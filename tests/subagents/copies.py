"""An agent that has files repaired by others, each in a workspace of its own."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness_actors import HarnessConfig, HarnessResult
from harness_actors.messages import Message
from harness_actors.stores import JournalReader
from harness_actors.subagents import SubAgentSpec
from harness_actors.testing import Reply
from harness_actors.tools import coding_tools
from tests.subagents.team import DONE, Team, asked, in_order, results
from tests.subagents.trees import Files, make

DEEPER = HarnessConfig.from_mapping({"sub_agents": {"max_depth": 2}})
LINES = "".join(f"line {number}\n" for number in range(9))


def fixer(**given: Any) -> SubAgentSpec:
    facts: dict[str, Any] = {
        "name": "fix",
        "description": "Repairs files.",
        "instructions": "You repair.",
        "workspace": "copy",
    }
    return SubAgentSpec(**{**facts, **given})


def fix(*texts: Mapping[str, str]) -> Reply:
    """Sends out somebody for each of these, to write files."""
    return Reply.calls([("fix", {"prompt": json.dumps(one)}) for one in texts])


def writes(conversation: Sequence[Message]) -> Reply:
    """Writes the files that it was asked for."""
    if results(conversation):
        return Reply.text("repaired")
    wanted = json.loads(asked(conversation))
    return Reply.calls(
        [("write_file", {"path": path, "content": text}) for path, text in wanted.items()]
    )


def changes(agent: str = "fix-1", **given: Any) -> Reply:
    return Reply.call("agent_changes", {"agent": agent, **given})


def applies(agent: str = "fix-1", **given: Any) -> Reply:
    return Reply.call("agent_apply", {"agent": agent, **given})


def writes_itself(path: str, text: str) -> Reply:
    return Reply.call("write_file", {"path": path, "content": text})


async def ran(
    folder: Path,
    *steps: Reply,
    files: Files,
    spec: SubAgentSpec | None = None,
    says: Any = writes,
    **agent: Any,
) -> tuple[HarnessResult, JournalReader]:
    """A run of an agent that works in a folder with some files."""
    work = make(folder / "workspace", files)
    parts = {"tools": coding_tools(), **agent}
    team = Team(in_order(*steps, DONE), {"You repair": says}, [spec or fixer()], parts)
    async with team.harness(folder / "runs.db", workspace=work) as harness:
        result = await harness.run("Go.")
    return result, JournalReader(folder / "runs.db")
