"""Tasks whose runs have others work in copies of their workspaces."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness_actors.agents import ChatAgent
from harness_actors.batch import TaskOutcome, run_batch
from harness_actors.batch.tasks import Check, Task
from harness_actors.messages import Message
from harness_actors.subagents import SubAgentSpec
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import coding_tools
from harness_actors.tools.supervision.trial import hides_workspaces

WORK = "echo done > words.txt; find ../../../.. -name 'secret*' 2>/dev/null"


def script(messages: Sequence[Message]) -> Reply:
    spoken = sum(message.role == "assistant" for message in messages)
    if messages[0].text.startswith("You work"):
        steps = [Reply.call("run_command", {"command": WORK}), Reply.text(messages[-1].text)]
        return steps[spoken]
    steps = [
        Reply.call("work", {"prompt": "Work."}),
        Reply.call("agent_apply", {"agent": "work-1"}),
        Reply.call("work_complete", {"summary": "\n".join(m.text for m in messages[2:])}),
    ]
    return steps[spoken]


async def worked(run_dir: Path, workspace: Path) -> TaskOutcome:
    worker = SubAgentSpec(
        name="work", description="Works.", instructions="You work.", workspace="copy"
    )
    agent = ChatAgent(model=ScriptedModel(script), tools=coding_tools(), sub_agents=[worker])
    check = Check(command="grep done words.txt")
    tasks = [Task(id="1", task="work", check=check, workspace=str(workspace))]
    (outcome,) = [
        outcome async for outcome in run_batch(tasks, agent, run_dir=run_dir, runtime="local")
    ]
    return outcome


@pytest.mark.parametrize("has_more", [False, True], ids=["ours alone", "with what is not ours"])
async def test_what_is_brought_in_is_there_for_the_check_and_a_copy_sees_itself_alone(
    tmp_path: Path, has_more: bool
) -> None:
    template = tmp_path / "template"
    template.mkdir()
    (template / "secret.txt").write_text("s")
    run_dir = tmp_path / "run"
    run_dir.mkdir()
    if has_more:
        (run_dir / "notes.txt").write_text("not ours")

    outcome = await worked(run_dir, template)

    assert outcome.ok, outcome
    assert "Taken as they are in the copy:\n- words.txt" in outcome.output_text
    if await hides_workspaces(required=False):
        seen = [line for line in outcome.output_text.split("\n") if line.startswith("../")]
        # Neither the workspace of its parent nor what its copy began as.
        assert len(seen) == 1, seen
