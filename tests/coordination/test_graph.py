"""The workflow: what may be built, and what is refused with the executor's name."""

import functools
from typing import Any

import pytest

from harness_actors.config import HarnessConfig
from harness_actors.coordination.graph import (
    BUILT_IN,
    DEFAULT_EDGES,
    HarnessWorkflowBuilder,
    Workflow,
    successor,
)
from harness_actors.errors import ConfigError, WorkflowError
from harness_actors.ports import RunContext
from harness_actors.signals import Signal
from harness_actors.state import AGENT_TURN, COMPACTION, REPAIR, STOP_DECISION, StateKey
from harness_actors.testing import an_agent


class PassesOn:
    """An executor that answers with what it got."""

    reads: tuple[StateKey[Any], ...] = ()
    reads_log = False

    def __init__(self, name: str = "mine") -> None:
        self.name = name

    async def handle(self, signal: Signal, context: RunContext) -> Signal:
        return signal


def a_builder() -> HarnessWorkflowBuilder:
    return HarnessWorkflowBuilder(an_agent())


def test_the_default_is_a_cycle_of_our_four() -> None:
    workflow = a_builder().build()
    assert workflow.edges == DEFAULT_EDGES
    assert [successor(workflow.edges, name) for name in BUILT_IN] == [*BUILT_IN[1:], REPAIR]
    assert not workflow.executors


def test_an_executor_is_put_after_another() -> None:
    workflow = a_builder().insert_after(AGENT_TURN, PassesOn()).build()
    assert successor(workflow.edges, AGENT_TURN) == "mine"
    assert successor(workflow.edges, "mine") == STOP_DECISION


def test_several_are_put_after_one_another() -> None:
    builder = a_builder().insert_after(REPAIR, PassesOn("a")).insert_after("a", PassesOn("b"))
    edges = builder.build().edges
    assert [successor(edges, name) for name in (REPAIR, "a", "b")] == ["a", "b", COMPACTION]


def test_one_of_ours_is_replaced() -> None:
    mine = PassesOn()
    workflow = a_builder().replace(COMPACTION, mine).build()
    assert workflow.edges == DEFAULT_EDGES
    assert workflow.executors == {COMPACTION: mine}


def test_a_registered_one_is_reached_by_edges() -> None:
    builder = a_builder().register("mine", PassesOn())
    builder.add_edge(COMPACTION, "mine").add_edge("mine", AGENT_TURN)
    assert successor(builder.build().edges, COMPACTION) == "mine"


def test_a_builder_gives_workflows_that_do_not_share_what_it_does_next() -> None:
    builder = a_builder()
    before = builder.build()
    builder.insert_after(REPAIR, PassesOn())
    assert before.edges == DEFAULT_EDGES
    assert not before.executors


def test_the_settings_are_kept_with_the_builder() -> None:
    assert a_builder().build().config is None
    config = HarnessConfig(max_turns=3)
    assert HarnessWorkflowBuilder(an_agent(), config).build().config is config


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (("gpt-4.1-mini",), "agent"),
        ((HarnessWorkflowBuilder(an_agent()).build().executors,), "agent"),
        ((an_agent(), {"max_turns": 3}), "config"),
    ],
)
def test_what_is_no_agent_and_what_are_no_settings_is_refused(given: Any, field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        HarnessWorkflowBuilder(*given)
    assert caught.value.field == field


@pytest.mark.parametrize("executor", [PassesOn, len, None, an_agent()])
def test_what_is_no_executor_is_refused_where_it_is_given(executor: Any) -> None:
    builder = a_builder()
    refused = pytest.raises(WorkflowError, match="must be an executor with name, reads")
    with refused:
        builder.register("mine", executor)
    with refused:
        builder.replace(COMPACTION, executor)
    with refused:
        builder.insert_after(COMPACTION, executor)
    assert builder.build().executors == {}


class Nameless:
    reads = ()
    reads_log = False

    async def handle(self, signal: Signal, context: RunContext) -> Signal:
        return signal


def test_an_executor_without_a_name_is_told_by_its_class() -> None:
    nameless: Any = Nameless()
    with pytest.raises(WorkflowError, match="executor 'Nameless': must be an executor with name"):
        a_builder().insert_after(AGENT_TURN, nameless)


def test_an_executor_that_is_not_async_is_refused_where_it_is_given() -> None:
    class Blocks(PassesOn):
        def handle(self, signal: Signal, context: RunContext) -> Signal:  # type: ignore[override]
            return signal

    class Waits(PassesOn):
        @functools.wraps(PassesOn.handle)
        def handle(self, *given: Any) -> Any:  # type: ignore[override]
            return super().handle(*given)

    blocks: Any = Blocks()
    waits: Any = Waits()
    with pytest.raises(WorkflowError, match=r"its handle must be an async function: async def"):
        a_builder().insert_after(AGENT_TURN, blocks)
    a_builder().insert_after(AGENT_TURN, waits)


@pytest.mark.parametrize("name", [AGENT_TURN, "mine"])
def test_a_name_is_registered_once(name: str) -> None:
    builder = a_builder().register("mine", PassesOn())
    with pytest.raises(WorkflowError, match=name) as caught:
        builder.register(name, PassesOn())
    assert "replace" in str(caught.value)


def test_an_edge_to_a_name_that_nobody_registered_is_refused() -> None:
    with pytest.raises(WorkflowError, match=r"'ghost'.*register"):
        a_builder().add_edge(REPAIR, "ghost").build()


def test_an_edge_from_a_name_that_nobody_registered_is_refused() -> None:
    with pytest.raises(WorkflowError, match=r"'ghost'.*register"):
        a_builder().add_edge("ghost", REPAIR).build()


def test_an_executor_that_is_never_reached_is_refused() -> None:
    with pytest.raises(WorkflowError, match=r"'mine'.*no edge leads to it"):
        a_builder().register("mine", PassesOn()).build()


def test_a_cycle_without_a_stop_decision_is_refused() -> None:
    with pytest.raises(WorkflowError, match=r"'stop_decision'.*no run would end"):
        a_builder().add_edge(AGENT_TURN, REPAIR).build()


def test_a_dead_end_is_refused() -> None:
    with pytest.raises(WorkflowError, match=r"'compaction'.*no edge leads on"):
        Workflow(an_agent(), ((REPAIR, COMPACTION),))


def test_nothing_is_put_after_what_is_not_there() -> None:
    with pytest.raises(WorkflowError, match="'ghost'"):
        a_builder().insert_after("ghost", PassesOn())
    with pytest.raises(WorkflowError, match=r"'ghost'.*nothing to replace"):
        a_builder().replace("ghost", PassesOn())
