"""An agent that says what it may work with is offered no tool that needs more."""

from typing import Any

import pytest

from harness_actors.agents import ChatAgent
from harness_actors.errors import ConfigError
from harness_actors.policies import offered_tools
from harness_actors.testing import ScriptedModel
from harness_actors.tools import coding_tools, tool


@tool(needs=["crm"])
def refund(order: str) -> str:
    """Refund an order."""
    return order


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


ALL = (*coding_tools(), refund, add)


def offered(capabilities: Any, tools: Any = ALL) -> list[str]:
    agent = ChatAgent(model=ScriptedModel([]), tools=tools, capabilities=capabilities)
    return [one.spec.name for one in offered_tools(agent)]


def test_an_agent_that_says_nothing_has_all_its_tools() -> None:
    assert offered(None) == [one.spec.name for one in ALL]


def test_a_tool_that_needs_more_than_the_agent_may_is_not_offered() -> None:
    files = offered(["filesystem"])
    assert "read_file" in files
    assert "run_command" not in files
    assert "refund" not in files
    assert offered(["shell", "crm"]) == ["run_command", "refund", "add"]


def test_an_agent_that_may_nothing_is_offered_what_needs_nothing() -> None:
    assert offered([]) == ["add"]
    assert offered([], tools=()) == []


def test_every_shipped_tool_of_the_workspace_says_what_it_needs() -> None:
    assert all(one.spec.needs for one in coding_tools())


@pytest.mark.parametrize("given", [["shel"], "shell", [7], ["crm!"]])
def test_a_capability_that_nobody_knows_is_refused(given: Any) -> None:
    with pytest.raises(ConfigError, match="capabilities"):
        offered(given)


@pytest.mark.parametrize("needs", ["shell", [""], [7], ["two words"]])
def test_a_tool_must_name_what_it_needs(needs: Any) -> None:
    with pytest.raises(ConfigError, match="needs"):

        @tool(needs=needs)
        def anything() -> str:
            """Do anything."""
            return ""
