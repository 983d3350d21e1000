"""Bounds hold whatever the workflow: no cycle of executors escapes them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness_actors import AgentHarness, ChatAgent, HarnessConfig, HarnessResult, Limits, tool
from harness_actors.coordination.ceilings import MOST_HOPS
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.ports import RunContext
from harness_actors.signals import (
    CompactionComplete,
    CustomSignal,
    Outcome,
    RepairTrigger,
    Signal,
    TurnComplete,
)
from harness_actors.state import (
    AGENT_TURN,
    REPAIR,
    STOP_DECISION,
    TURN,
    TURN_COUNT,
    TURNS_MADE,
    USAGE,
    StateDelta,
    StateKey,
    TurnProgress,
    Write,
)
from harness_actors.testing import Reply, ScriptedModel
from tests.coordination.agents import Team
from tests.coordination.world import Served, Work, World, a_spec

WITHIN_S = 60.0


class Restless(Team):
    """A team whose stop decision ends nothing, whatever the turn came to."""

    def stop_decision(self, run: Served, signal: Signal) -> Work:
        yield from ()
        return StateDelta(), RepairTrigger()

    def agent_turn(self, run: Served, signal: Signal) -> Work:
        yield from ()
        used = {"model_calls": 2, "input_tokens": 100, "cost_usd": 0.5, "working_s": 4.0}
        count, usage = (TURN_COUNT.name, 1), (USAGE.name, used)
        writes = tuple(Write(name, "increment", value) for name, value in (count, usage))
        return StateDelta(writes), TurnComplete(ending="completed")


@pytest.mark.parametrize(
    ("config", "kind", "turns"),
    [
        (HarnessConfig(max_turns=7), "max_turns", 7),
        (HarnessConfig(), "max_turns", 50),
        (HarnessConfig(limits=Limits(model_calls=7)), "model_calls", 4),
        (HarnessConfig(limits=Limits(tokens=250)), "tokens", 3),
        (HarnessConfig(limits=Limits(cost_usd=2.5)), "cost", 5),
        (HarnessConfig(limits=Limits(working_s=10)), "working_time", 3),
    ],
)
def test_a_run_that_no_executor_ends_ends_at_its_bounds(
    config: HarnessConfig, kind: str, turns: int
) -> None:
    world = World(Restless().handlers)
    world.submit(a_spec(config=config))

    world.settle()

    (end,) = world.ends()
    assert (end.status, end.reason.kind, end.turn_count) == ("limit", kind, turns)
    assert end.reason.details == {"turn": turns}
    assert world.events()[-1] == "run_completed"
    assert not world.coordinator.runs


def test_what_is_over_is_not_begun_again_after_a_restart() -> None:
    world = World(Restless().handlers)
    world.submit(a_spec(config=HarnessConfig(max_turns=3)))
    world.commit()
    for steps in range(40):
        for _ in range(steps):
            if world.unwritten:
                world.commit()
            else:
                any(world.move(host) for host in list(world.hosts.values()))
        world.crash()
    world.settle()

    (end,) = world.ends()
    assert (end.reason.kind, end.turn_count) == ("max_turns", 3)


class Own:
    """An executor of a user's own that goes on for ever."""

    reads: tuple[StateKey[Any], ...] = ()
    reads_log = False

    def __init__(self, name: str, answer: Signal) -> None:
        self.name = name
        self._answer = answer

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        return self._answer


class OwnTurn(Own):
    """One in the place of the agent turn, which counts nothing and is never through."""

    reads = (TURN,)

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        context.set(TURN, TurnProgress())
        return self._answer


@tool
async def step() -> str:
    return "done"


def talker() -> ChatAgent:
    """An agent that says at once that it is done."""
    return ChatAgent(model=ScriptedModel(lambda _: Reply.text("done")), tools=[step])


async def outcome_of(builder: HarnessWorkflowBuilder, folder: Path) -> HarnessResult:
    workflow = builder.build()
    async with AgentHarness(workflow, runtime="local", store=folder / "runs.db") as harness:
        return await asyncio.wait_for(harness.run("go on"), WITHIN_S)


async def test_a_stop_decision_of_ones_own_that_ends_nothing_does_not_pass_max_turns(
    tmp_path: Path,
) -> None:
    config = HarnessConfig(max_turns=9, completion="answer")
    builder = HarnessWorkflowBuilder(talker(), config)
    result = await outcome_of(
        builder.replace(STOP_DECISION, Own(STOP_DECISION, RepairTrigger())), tmp_path
    )

    assert (result.status, result.reason.kind, result.turn_count) == ("limit", "max_turns", 9)
    assert result.usage.model_calls == 9
    assert result.reason.message == "all 9 turns were used and the task is not completed"


async def test_a_stop_decision_of_ones_own_that_ends_nothing_does_not_pass_model_calls(
    tmp_path: Path,
) -> None:
    config = HarnessConfig(limits=Limits(model_calls=5), completion="answer")
    builder = HarnessWorkflowBuilder(talker(), config)
    builder.replace(STOP_DECISION, Own(STOP_DECISION, RepairTrigger()))

    result = await outcome_of(builder, tmp_path)

    assert (result.status, result.reason.kind) == ("limit", "model_calls")
    assert result.usage.model_calls == 5


async def test_turns_that_follow_each_other_are_bounded(tmp_path: Path) -> None:
    builder = HarnessWorkflowBuilder(talker(), HarnessConfig(max_turns=4, completion="answer"))
    builder.insert_after(AGENT_TURN, Own("again", CompactionComplete()))

    result = await outcome_of(builder.replace(STOP_DECISION, own_back()), tmp_path)

    assert (result.reason.kind, result.turn_count) == ("max_turns", 4)


def own_back() -> Own:
    return Own(STOP_DECISION, RepairTrigger())


async def test_an_agent_turn_of_ones_own_is_bounded_though_it_counts_nothing(
    tmp_path: Path,
) -> None:
    builder = HarnessWorkflowBuilder(talker(), HarnessConfig(max_turns=6))
    builder.replace(AGENT_TURN, OwnTurn(AGENT_TURN, TurnComplete(ending="rounds")))

    result = await outcome_of(builder.replace(STOP_DECISION, own_back()), tmp_path)

    assert (result.status, result.reason.kind) == ("limit", "max_turns")
    assert (result.turn_count, result.reason.details) == (6, {"turn": 6})


class Round(Team):
    """Executors that pass a run on to each other, past the agent."""

    def past(self, run: Served, signal: Signal) -> Work:
        yield from ()
        return StateDelta(), CustomSignal(name="on")


def test_a_cycle_that_never_comes_to_the_agent_ends() -> None:
    team = Round()
    edges = ((REPAIR, STOP_DECISION), (STOP_DECISION, "a"), ("a", "b"), ("b", "a"))
    custom = (STOP_DECISION, "a", "b")
    world = World({REPAIR: team.repair, STOP_DECISION: team.past, "a": team.past, "b": team.past})
    world.submit(a_spec(edges=edges, custom=custom))

    world.settle()

    (end,) = world.ends()
    assert (end.status, end.reason.kind) == ("failed", "agent_error")
    assert f"made {MOST_HOPS} hops without a turn of the agent" in end.reason.message
    assert len(world.hops()) == MOST_HOPS


def test_hops_are_counted_from_turn_to_turn() -> None:
    team = Restless()
    world = World(team.handlers)
    limits = Limits(model_calls=MOST_HOPS)
    world.submit(a_spec(config=HarnessConfig(max_turns=MOST_HOPS // 4 + 1, limits=limits)))

    world.settle()

    (end,) = world.ends()
    assert end.reason.kind == "max_turns"
    assert len(world.hops()) > MOST_HOPS


def test_runs_of_our_own_agent_turn_keep_no_count_of_it() -> None:
    world = World(Team(plan=("turn", "turn", "effect")).handlers)
    world.submit(a_spec())

    world.settle()

    assert TURNS_MADE.name not in world.stored().state.values
    assert world.ends()[0].status == "done"
