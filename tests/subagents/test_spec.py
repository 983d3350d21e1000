"""What an agent is to which another one delegates, and what is refused as one."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harness_actors import ChatAgent
from harness_actors.config import HarnessConfig, Limits, SubAgentConfig
from harness_actors.errors import ConfigError
from harness_actors.subagents import SubAgentSpec, document, explore, run_task
from harness_actors.testing import ScriptedModel
from harness_actors.tools import ask_user, tool
from harness_actors.tools.files import write_file

MODEL = ScriptedModel([])


@tool(effect="read_only")
async def look() -> str:
    """Look."""
    return "nothing"


@tool
async def write() -> str:
    """Write."""
    return "written"


def a_spec(name: str = "scout", **more: Any) -> SubAgentSpec:
    return SubAgentSpec(**{"name": name, "description": "Looks.", **more})


def an_agent(sub_agents: Any, tools: Sequence[Any] = (look, write)) -> ChatAgent:
    return ChatAgent(model=MODEL, tools=tools, sub_agents=sub_agents)


def test_an_agent_has_those_to_which_it_delegates() -> None:
    agent = an_agent([explore(), run_task(), document(), a_spec(tools=["look"])])

    assert [spec.name for spec in agent.sub_agents] == ["explore", "run_task", "document", "scout"]
    assert agent.sub_agents[3].tools == ("look",)
    assert agent.sub_agents[3].limits == Limits(model_calls=100)
    assert explore(model=MODEL, limits=Limits(tokens=9)).limits.tokens == 9
    assert an_agent(()).sub_agents == ()


@pytest.mark.parametrize(
    ("given", "field", "problem"),
    [
        ({"name": ""}, "sub_agents.name", "must be named by letters"),
        ({"name": "a b"}, "sub_agents.name", "not 'a b'"),
        ({"name": 7}, "sub_agents.name", "not 7"),
        ({"description": " "}, "sub_agents.scout.description", "is needed"),
        ({"description": None}, "sub_agents.scout.description", "is needed"),
        ({"instructions": ["x"]}, "sub_agents.scout.instructions", "must be a text"),
        ({"model": "gpt-4.1"}, "sub_agents.scout.model", "must be a model such as OpenAIModel"),
        ({"tools": "look"}, "sub_agents.scout.tools", "must be a list of names"),
        ({"tools": [look]}, "sub_agents.scout.tools", "must be names"),
        ({"tools": ["look", "look"]}, "sub_agents.scout.tools", "each once"),
        ({"reads_only": "yes"}, "sub_agents.scout.reads_only", "must be true or false"),
        ({"limits": {"tokens": 9}}, "sub_agents.scout.limits", "must be Limits(...)"),
        ({"completion": "maybe"}, "sub_agents.scout.completion", "'answer' or 'explicit'"),
        ({"completion": []}, "sub_agents.scout.completion", "'answer' or 'explicit'"),
        ({"max_words": 0}, "sub_agents.scout.max_words", "of at least 1, not 0"),
        ({"max_words": True}, "sub_agents.scout.max_words", "of at least 1, not True"),
        ({"contract": "a report"}, "sub_agents.scout.contract", "must be TaskContract(...)"),
        ({"contract": {"goal": "x"}}, "sub_agents.scout.contract", "outputs: "),
        ({"output_type": str}, "sub_agents.scout.output_type", "is str"),
        ({"output_type": 7}, "sub_agents.scout.output_type", "must be"),
        ({"output_type": int, "max_words": 9}, "sub_agents.scout.max_words", "is for words"),
        ({"sub_agents": "explore"}, "sub_agents.scout.sub_agents", "must be a list"),
        ({"sub_agents": ["explore"]}, "sub_agents.scout.sub_agents", "must be SubAgentSpec(...)"),
        (
            {"sub_agents": [explore(), explore()]},
            "sub_agents.scout.sub_agents",
            "two are named 'explore'",
        ),
        (
            {"tools": ["look"], "sub_agents": [a_spec("below", tools=["write"])]},
            "sub_agents.scout.sub_agents.below.tools",
            "'write' is no tool of the agent that delegates; that has look",
        ),
    ],
)
def test_what_is_none_is_refused_by_its_field(
    given: Mapping[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as error:
        a_spec(**given)

    assert error.value.field == field
    assert problem in error.value.problem


@pytest.mark.parametrize(
    ("sub_agents", "field", "problem"),
    [
        ("explore", "sub_agents", "must be a list, such as [explore()]"),
        (explore(), "sub_agents", "must be a list"),
        (["explore"], "sub_agents", "must be SubAgentSpec(...), explore() or the like"),
        ([explore], "sub_agents", "must be SubAgentSpec(...), explore() or the like"),
        ([explore(), explore()], "sub_agents", "two are named 'explore'"),
        ([a_spec("look")], "sub_agents", "'look' has the name of a tool of its agent"),
        ([a_spec("work_complete")], "sub_agents", "has the name of a tool of the harness"),
        (
            [a_spec(tools=["paint"])],
            "sub_agents.scout.tools",
            "'paint' is no tool of the agent that delegates; that has look, write",
        ),
        # What it has is known only now.
        (
            [a_spec(sub_agents=[a_spec("below", tools=["paint"])])],
            "sub_agents.scout.sub_agents.below.tools",
            "'paint' is no tool",
        ),
        (
            [a_spec(sub_agents=[a_spec("write")])],
            "sub_agents.scout.sub_agents",
            "'write' has the name of a tool of its agent",
        ),
    ],
)
def test_an_agent_cannot_delegate_to_what_does_not_fit_it(
    sub_agents: Any, field: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as error:
        an_agent(sub_agents)

    assert error.value.field == field
    assert problem in error.value.problem


@pytest.mark.parametrize(
    ("spec", "field", "problem"),
    [
        (
            a_spec(tools=["look", "write"], reads_only=True),
            "sub_agents.scout.tools",
            "'write' is not for an agent with reads_only; leave one of them out",
        ),
        (
            a_spec(tools=["ask_user"], reads_only=True),
            "sub_agents.scout.tools",
            "'ask_user' is not for an agent with reads_only",
        ),
        (
            a_spec(tools=["write_file"], workspace="read_only"),
            "sub_agents.scout.tools",
            "'write_file' is not for an agent with workspace=\"read_only\"",
        ),
        (
            a_spec(reads_only=True, sub_agents=[a_spec("below", tools=["write"])]),
            "sub_agents.scout.sub_agents.below.tools",
            "'write' is no tool of the agent that delegates, which only reads",
        ),
    ],
)
def test_a_tool_in_its_list_that_its_settings_take_away_is_refused(
    spec: SubAgentSpec, field: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as error:
        an_agent([spec], [look, write, write_file, ask_user])

    assert error.value.field == field
    assert problem in error.value.problem


def test_what_they_take_away_and_no_list_names_is_no_fault() -> None:
    specs = [a_spec(reads_only=True), a_spec("viewer", workspace="read_only", tools=["write"])]
    assert len(an_agent(specs, [look, write, write_file, ask_user]).sub_agents) == 2


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"max_depth": -1}, "sub_agents.max_depth"),
        ({"max_depth": 9}, "sub_agents.max_depth"),
        ({"max_depth": True}, "sub_agents.max_depth"),
        ({"max_parallel": 0}, "sub_agents.max_parallel"),
        ({"depth": 1}, "sub_agents.depth"),
    ],
)
def test_how_far_agents_may_delegate_is_bounded(given: Mapping[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as error:
        HarnessConfig.from_mapping({"sub_agents": given})

    assert error.value.field == field


def test_settings_of_delegating_may_be_fields_or_nothing() -> None:
    config = HarnessConfig.from_mapping({"sub_agents": {"max_depth": 0, "max_parallel": 3}})

    assert config.sub_agents == SubAgentConfig(max_depth=0, max_parallel=3)
    assert HarnessConfig.from_mapping({"sub_agents": None}).sub_agents is None
