"""Which agent runs a task, in which folder, and under which settings."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors.agents import ChatAgent, with_contract
from harness_actors.batch.agent_file import LoadedAgent
from harness_actors.batch.agents import Agents, ReadyAgent
from harness_actors.batch.hiding import Hidden
from harness_actors.batch.tasks import Task
from harness_actors.config import HarnessConfig, Limits
from harness_actors.errors import ConfigError, HarnessError, ModelSetupError
from harness_actors.records import RunSpec
from harness_actors.testing import ScriptedModel
from harness_actors.testing.agents import completes_at_once
from harness_actors.tools import ask_user, coding_tools

TASK = Task(id="t1", task="do it", task_hash="hash")


class Keyed(ScriptedModel):
    """A model whose key was given in code."""

    def __init__(self, name: str) -> None:
        super().__init__(completes_at_once, name=name)
        self.key_names = (f"KEY_{name}",)
        self.secrets: Mapping[str, str] = {f"KEY_{name}": f"key of {name}"}


def a_loaded(name: str = "m", **more: Any) -> LoadedAgent:
    return LoadedAgent(agent=ChatAgent(model=Keyed(name)), **more)


def agents_of(loaded: LoadedAgent, **more: Any) -> Agents:
    return Agents(lambda _: loaded, **more)


def ready(loaded: LoadedAgent, task: Task = TASK, **more: Any) -> ReadyAgent:
    return agents_of(loaded, **more).for_task(task)


def spec_of(agent: ReadyAgent, task: Task = TASK, hidden: Hidden | None = None) -> RunSpec:
    return agent.spec(
        task, run_id="r", folder=Path("/run/r"), hidden=hidden or Hidden(), note={"task_id": "t1"}
    )


# ---- where it works --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of_task", "of_agent", "of_batch", "source"),
    [
        ("/task", "/agent", "/batch", "/task"),
        (None, "/agent", "/batch", "/agent"),
        (None, None, "/batch", "/batch"),
        ("/task", None, None, "/task"),
        (None, None, None, None),
    ],
)
def test_a_task_begins_with_the_folder_that_is_named_nearest_to_it(
    of_task: str | None, of_agent: str | None, of_batch: str | None, source: str | None
) -> None:
    task = replace(TASK, workspace=of_task)
    agents = agents_of(a_loaded(workspace=of_agent), workspace=of_batch)

    assert agents.source_for(task) == source
    assert agents.work_in_folder(task) is (source is not None)
    workspace = spec_of(agents.for_task(task), task).workspace
    assert (workspace and (workspace.path, workspace.source)) == (source and ("/run/r", source))


def test_an_agent_with_tools_works_in_a_folder_that_was_empty() -> None:
    with_tools = LoadedAgent(agent=ChatAgent(model=Keyed("m"), tools=coding_tools()))

    workspace = spec_of(ready(with_tools)).workspace

    assert workspace is not None
    assert (workspace.path, workspace.source, workspace.covered) == ("/run/r", None, None)
    assert agents_of(with_tools).work_in_folder(TASK)
    assert not agents_of(a_loaded()).work_in_folder(TASK)


@pytest.mark.parametrize("required", [False, True])
def test_what_is_hidden_is_in_the_workspace_of_a_run(required: bool) -> None:
    agent = ready(a_loaded(workspace="/agent"))

    workspace = spec_of(agent, hidden=Hidden(Path("/run"), required=required)).workspace

    assert workspace is not None
    assert (workspace.covered, workspace.must_be_covered) == ("/run", required)


# ---- what it is made with ----------------------------------------------------------------


def test_only_tasks_that_begin_with_the_agents_folder_have_it_in_their_set_up() -> None:
    agent, bare = ready(a_loaded(workspace="/agent")), ready(a_loaded())
    own = replace(TASK, workspace="/task")

    assert agent.setup_for(TASK).parts["workspace"] == "/agent"
    assert "workspace" not in agent.setup_for(own).parts
    assert agent.setup_for(own) == bare.setup_for(TASK) == bare.setup_for(own)
    assert agent.setup_for(TASK) != bare.setup_for(TASK)
    for task in (TASK, own):
        assert spec_of(agent, task).made_with == agent.setup_for(task).made_with


def test_limits_of_a_task_go_over_those_of_its_agent_and_are_no_part_of_the_set_up() -> None:
    config = HarnessConfig(
        max_turns=9, max_input_tokens=9_000, limits=Limits(tokens=100, tool_calls=5)
    )
    agent = ready(a_loaded(config=config))
    limited = replace(TASK, limits={"tokens": 7, "max_turns": 2})

    found = spec_of(agent, limited).config

    assert (found.max_turns, found.limits.tokens, found.limits.tool_calls) == (2, 7, 5)
    assert spec_of(agent).config == config
    assert agent.setup_for(limited) == agent.setup_for(TASK)


def test_what_it_has_are_the_set_ups_of_all_agents_so_far() -> None:
    one, other = a_loaded("one", workspace="/agent"), a_loaded("other")
    agents = Agents(lambda task: one if task.id == "t1" else other)
    first = agents.for_task(TASK)
    second = Task(id="t2", task="x")

    own = replace(TASK, workspace="/task")
    assert agents.have({first.setup_for(TASK).hash, first.setup_for(own).hash})
    assert not agents.have({first.setup_for(TASK).hash, "unheard of"})
    theirs = ready(other).setup_for(second).hash
    assert not agents.have({theirs})
    agents.for_task(second)
    assert agents.have({theirs, first.setup_for(TASK).hash})
    assert agents.have(())


# ---- agents of files ---------------------------------------------------------------------


def test_a_task_that_names_a_file_has_the_agent_of_it_and_each_file_is_read_once() -> None:
    read: list[str] = []

    def load(path: Path) -> LoadedAgent:
        read.append(path.name)
        return a_loaded(path.stem)

    agents = agents_of(a_loaded("the batch's"), load=load)
    tasks = [replace(TASK, agent=name) for name in (None, "a.yaml", "b.yaml", "a.yaml")]

    names = [agents.for_task(task).program.workflow.agent.model.name for task in tasks]

    assert names == ["the batch's", "a", "b", "a"]
    assert read == ["a.yaml", "b.yaml"]
    assert agents.secrets() == {
        f"KEY_{name}": f"key of {name}" for name in ("the batch's", "a", "b")
    }


def test_of_a_file_that_is_at_fault_nothing_is_known_but_that_it_may_work_somewhere() -> None:
    def load(path: Path) -> LoadedAgent:
        raise ConfigError("model", "there is none")

    agents = agents_of(a_loaded(), load=load)
    task = replace(TASK, agent="a.yaml", workspace="/task")

    assert (agents.setup_for(task), agents.source_for(task)) == (None, None)
    assert agents.work_in_folder(task)
    with pytest.raises(ConfigError, match="there is none"):
        agents.for_task(task)


def test_whether_a_model_can_be_asked_is_asked_of_the_task_at_hand() -> None:
    asked: list[str] = []

    def check(loaded: LoadedAgent) -> None:
        asked.append(loaded.innermost.model.name)
        raise ModelSetupError("m", "no key")

    agents = agents_of(a_loaded("the batch's"), load=lambda path: a_loaded(path.stem), check=check)

    assert not agents.can_all_be_asked
    for task in (TASK, replace(TASK, agent="a.yaml")):
        with pytest.raises(HarnessError, match="no key"):
            agents.check(task)
    assert asked == ["the batch's", "a"]
    unchecked = agents_of(a_loaded())
    assert unchecked.can_all_be_asked
    unchecked.check(TASK)


# ---- what is refused ---------------------------------------------------------------------


def test_who_could_never_be_answered_is_refused_whichever_agent_it_is() -> None:
    asks = LoadedAgent(agent=ChatAgent(model=Keyed("m"), tools=[ask_user]))
    named = replace(TASK, agent="a.yaml")

    with pytest.raises(ConfigError, match="on_question"):
        ready(asks, may_wait=False)
    with pytest.raises(ConfigError, match="on_question"):
        agents_of(a_loaded(), load=lambda _: asks, may_wait=False).for_task(named)
    denied = replace(asks, config=HarnessConfig(on_question="deny"))
    for agent in (ready(asks), ready(denied, may_wait=False), ready(a_loaded(), may_wait=False)):
        assert spec_of(agent).run_id == "r"
    with pytest.raises(ConfigError, match="on_question"):
        Agents.of(asks.agent, HarnessConfig(), may_wait=False)


ASKS = {"goal": "x", "outputs": ["a"], "questions": ["Which one?"]}
LEFT_OPEN = {**ASKS, "acceptability": {"max_known_unknowns": 1}}


@pytest.mark.parametrize(
    ("of_agent", "of_task", "on_question", "refused"),
    [
        (ASKS, None, "wait", True),
        (None, ASKS, "wait", True),
        (LEFT_OPEN, ASKS, "wait", True),
        (ASKS, None, "deny", False),
        (ASKS, {}, "wait", False),
        (ASKS, LEFT_OPEN, "wait", False),
    ],
)
def test_a_contract_that_asks_what_nobody_could_answer_is_refused_for_its_task(
    of_agent: Any, of_task: Any, on_question: Any, refused: bool
) -> None:
    config = with_contract(HarnessConfig(on_question=on_question), of_agent)
    task = replace(TASK, contract=of_task)
    for may_wait in (True, False):
        agent = ready(replace(a_loaded(), config=config), may_wait=may_wait)
        if refused and not may_wait:
            with pytest.raises(ConfigError, match="what its contract wants to know, 'Which one"):
                agent.held_for(task)
        else:
            assert agent.held_for(task).config_for(task) == agent.config_for(task)
