"""Children that only read their workspace, and what is refused as one."""

from pathlib import Path
from typing import Any

import pytest

from harness_actors import AgentHarness, ChatAgent, tool
from harness_actors.batch.agent_file import load_agent_file
from harness_actors.errors import BadInputError, ConfigError
from harness_actors.ports import ToolContext
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import coding_tools
from harness_actors.tools.paths import open_root, replace_file
from tests.subagents.copies import DEEPER, applies, fix, fixer, ran, writes_itself
from tests.subagents.team import DONE, Team, in_order, told
from tests.subagents.test_background import replays_as_it_was
from tests.subagents.trees import files_in, make


@tool
def scribble(context: ToolContext) -> str:
    """Write by what the tools of the harness write with."""
    with open_root(context) as root:
        replace_file(root, "a", b"2")
    return "written"


async def test_whoever_only_reads_is_offered_no_tool_of_ours_that_writes(tmp_path: Path) -> None:
    tries = in_order(
        writes_itself("a", "2"),
        Reply.call("run_command", {"command": "echo 2 > a"}),
        Reply.call("scribble", {}),
        Reply.call("read_file", {"path": "a"}),
        Reply.text("read"),
    )
    result, journal = await ran(
        tmp_path,
        fix({}),
        files={"a": "1"},
        spec=fixer(workspace="read_only"),
        says=tries,
        tools=[*coding_tools(), scribble],
    )
    wrote, ran_it, scribbled, seen = told(journal, f"{result.run_id}.1")
    assert wrote.startswith("There is no tool 'write_file'. Tools: ")
    assert ran_it.startswith("There is no tool 'run_command'. Tools: ")
    assert scribbled.startswith("the workspace of this agent is read-only")
    assert "1" in seen
    assert told(journal, result.run_id)[0] == "read"
    assert files_in(tmp_path / "workspace") == {"a": "1"}
    await replays_as_it_was(journal, result.run_id, f"{result.run_id}.1")


async def test_those_below_one_that_only_reads_write_nothing_in_its_workspace(
    tmp_path: Path,
) -> None:
    below = fixer(name="below", instructions="You are below.", workspace="shared")
    work = make(tmp_path / "workspace", {"a": "1"})
    team = Team(
        in_order(fix({}), DONE),
        {
            "You repair": in_order(Reply.call("below", {"prompt": "x"}), Reply.text("tried")),
            "You are below": in_order(Reply.call("scribble", {}), Reply.text("tried")),
        },
        [fixer(workspace="read_only", sub_agents=[below])],
        {"tools": [*coding_tools(), scribble]},
    )
    async with team.harness(tmp_path / "runs.db", workspace=work, config=DEEPER) as harness:
        result = await harness.run("Go.")
    (said,) = told(JournalReader(tmp_path / "runs.db"), f"{result.run_id}.1.1")
    assert said.startswith("the workspace of this agent is read-only")
    assert files_in(work) == {"a": "1"}


async def test_one_that_only_reads_brings_nothing_in(tmp_path: Path) -> None:
    below = fixer(name="below", instructions="You are below.", tools=["scribble"])
    work = make(tmp_path / "workspace", {"a": "1"})
    team = Team(
        in_order(fix({}), DONE),
        {
            "You repair": in_order(
                Reply.call("below", {"prompt": "x"}), applies("below-1"), Reply.text("tried")
            ),
            "You are below": in_order(Reply.call("scribble", {}), Reply.text("written")),
        },
        [fixer(workspace="read_only", sub_agents=[below])],
        {"tools": [*coding_tools(), scribble]},
    )
    async with team.harness(tmp_path / "runs.db", workspace=work, config=DEEPER) as harness:
        result = await harness.run("Go.")
    journal = JournalReader(tmp_path / "runs.db")
    assert told(journal, f"{result.run_id}.1.1") == ["written"]
    assert told(journal, f"{result.run_id}.1")[1].startswith("the workspace of this agent is read")
    assert files_in(work) == {"a": "1"}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"workspace": "own"}, "must be one of 'shared', 'read_only', 'copy', not 'own'"),
        ({"workspace": None}, "not None"),
        ({"workspace": ["copy"]}, "must be one of"),
        ({"fork": True, "instructions": ""}, "a fork has those of the agent that delegates"),
    ],
)
def test_a_workspace_that_is_none_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match="workspace") as refused:
        fixer(**given)
    assert refused.value.field == "sub_agents.fix.workspace"
    assert problem in refused.value.problem


def test_an_agent_without_a_workspace_has_nobody_work_in_a_copy(tmp_path: Path) -> None:
    agent = ChatAgent(model=ScriptedModel([]), sub_agents=[fixer()])
    with pytest.raises(ConfigError, match="'copy' is of a workspace, and the run has none"):
        AgentHarness(agent, store=tmp_path / "runs.db", runtime="local")


def test_who_brings_changes_in_needs_the_capability() -> None:
    with pytest.raises(ConfigError, match="needs the capability 'filesystem'"):
        ChatAgent(model=ScriptedModel([]), sub_agents=[fixer()], capabilities=["shell"])


def test_tools_have_other_names_than_those_of_the_harness() -> None:
    @tool
    def agent_apply() -> str:
        """Apply."""
        return ""

    with pytest.raises(ConfigError, match="'agent_apply' is a tool of the harness"):
        ChatAgent(model=ScriptedModel([]), tools=[agent_apply], sub_agents=[fixer()])
    ChatAgent(model=ScriptedModel([]), tools=[agent_apply], sub_agents=[fixer(workspace="shared")])


def test_an_agent_file_says_where_agents_work(tmp_path: Path) -> None:
    path = tmp_path / "lead.yaml"
    text = """
model: gpt-4.1-mini
persona:
  instructions: Lead.
  sub_agents:
    - name: fix
      description: Repairs.
      workspace: {value}
environment:
  tools: [read_file]
"""
    path.write_text(text.format(value="copy"))
    loaded = load_agent_file(path)
    assert isinstance(loaded.agent, ChatAgent)
    assert loaded.agent.sub_agents[0].workspace == "copy"
    for value in ("mine", "[copy]", "3"):
        path.write_text(text.format(value=value))
        with pytest.raises(BadInputError) as refused:
            load_agent_file(path)
        assert "persona.sub_agents.0.workspace: must be one of" in str(refused.value)
