"""The examples of docs/subagents.md, and its table of fields."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from harness_actors.agents import ChatAgent
from harness_actors.batch.agent_file import load_agent_file
from harness_actors.subagents import SHIPPED, SubAgentSpec
from tests.pages import run_python_of, text_of

PAGE = "docs/subagents.md"


def first_cells(table: str) -> list[str]:
    """The names in the first column of the table whose head begins so."""
    _, found, below = text_of(PAGE).partition(f"\n{table}")
    assert found
    rows = below.partition("\n\n")[0].splitlines()[2:]
    return [row.split("|")[1].strip(" `") for row in rows]


@pytest.mark.timeout(240)
def test_the_example_prints_what_is_said_of_it(tmp_path: Path) -> None:
    said = re.search(r"It prints `(.*?)` and `(.*?)`", text_of(PAGE))
    assert said is not None

    ended = run_python_of(PAGE, tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == list(said.groups())


def test_the_agent_file_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", text_of(PAGE), re.DOTALL)
    path = tmp_path / "lead.yaml"
    path.write_text(text)

    loaded = load_agent_file(path)

    assert isinstance(loaded.agent, ChatAgent)
    assert [spec.name for spec in loaded.agent.sub_agents] == ["explore", "run_task", "critic"]
    assert loaded.config.sub_agents is not None
    assert loaded.config.sub_agents.max_parallel == 16


def test_all_fields_and_all_shipped_ones_are_there() -> None:
    internal = {"pool"}
    assert first_cells("| field |") == [
        one.name for one in fields(SubAgentSpec) if one.name not in internal
    ]
    assert first_cells("| name |") == list(SHIPPED)
