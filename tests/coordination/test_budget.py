"""The money of a command: its runs stop after the round that spends the last of it."""

import pytest

from harness_actors.coordination.budget import Budget
from harness_actors.coordination.protocol import Committed, Park, Slot
from harness_actors.coordination.routing import LOSSES_BEFORE_QUARANTINE
from harness_actors.messages import Message
from harness_actors.signals import Parked, Signal, TurnComplete
from harness_actors.state import AGENT_TURN, BUDGET, REPAIR, STOP_DECISION, USAGE, StateDelta, Write
from tests.coordination.agents import Team
from tests.coordination.test_losses import TURN, move_until
from tests.coordination.world import Served, WaitFor, Work, World, a_spec

ROUND_USD = 1.0


class Costly(Team):
    """A team whose agent spends a dollar in each round, and is done after so many."""

    def __init__(self, rounds: int = 100) -> None:
        super().__init__()
        self.rounds = rounds

    def agent_turn(self, run: Served, signal: Signal) -> Work:
        while not run.parking:
            cost = Write(USAGE.name, "increment", {"model_calls": 1, "cost_usd": ROUND_USD})
            change = StateDelta((cost,), run.add(Message.assistant("one round")))
            if sum(message.role == "assistant" for message in run.log) == self.rounds:
                return change, TurnComplete(ending="completed")
            # As turns do that share a budget: what the round cost must be known.
            yield WaitFor((yield change))
        return StateDelta(), Parked()


def a_world(runs: int, budget_usd: float, *, rounds: int = 100, spent_usd: float = 0.0) -> World:
    world = World(Costly(rounds).handlers)
    world.perform(world.coordinator.allow(budget_usd, spent_usd=spent_usd))
    for number in range(runs):
        world.submit(a_spec(f"run{number}"))
    return world


def cost_of(world: World) -> float:
    used = (world.stored(run_id).state.values.get(USAGE.name, {}) for run_id in world.run_ids())
    return sum(float(usage.get("cost_usd", 0.0)) for usage in used)


def spend(world: World, usd: float) -> None:
    """Go on until so much is spent, and that is on disk."""
    while cost_of(world) < usd:
        for host in list(world.hosts.values()):
            world.move(host)
        world.settle(hosts=False)


def reasons(world: World) -> set[tuple[str, str]]:
    ends = [end for run_id in world.run_ids() for end in world.ends(run_id)]
    assert len(ends) == len(world.run_ids())
    return {(end.status, end.reason.kind) for end in ends}


@pytest.mark.parametrize("runs", [1, 4])
def test_a_spent_budget_ends_all_runs_after_their_round(runs: int) -> None:
    world = a_world(runs, budget_usd=10)
    world.settle()
    assert reasons(world) == {("limit", "budget")}
    assert 10 <= cost_of(world) <= 10 + (runs - 1) * ROUND_USD
    (result, *_) = world.ends("run0")
    assert result.reason.message == "the 10 USD that all runs together may cost were spent"
    assert not world.coordinator.runs


def test_what_earlier_commands_spent_counts() -> None:
    world = a_world(1, budget_usd=10, spent_usd=8)
    world.settle()
    assert cost_of(world) == 2


def test_a_run_hears_that_all_is_spent_before_it_hears_that_its_round_is_on_disk() -> None:
    world = a_world(1, budget_usd=1)
    move_until(world, TURN, "run0")
    world.hosts[TURN].work("run0")
    effects = world.hear(TURN)
    bodies = [post.envelope.body for post in effects.posts]
    assert bodies == [Park(), Committed(1)]


@pytest.mark.parametrize(("budget_usd", "rounds"), [(1.0, 10), (0.3, 3), (0.7, 7), (2.5, 25)])
def test_tenths_of_a_dollar_add_up(budget_usd: float, rounds: int) -> None:
    budget = Budget()
    budget.allow(budget_usd, spent_usd=0.0)
    budget.take_up("run", 0.0)
    tenth = StateDelta((Write(USAGE.name, "increment", {"cost_usd": 0.1}),))
    for number in range(rounds):
        assert not budget.is_spent, f"after {number} rounds"
        budget.charge("run", tenth)
    assert budget.is_spent


def test_a_budget_that_is_raised_is_held_as_the_first_one_was() -> None:
    world = a_world(1, budget_usd=3)
    world.settle()
    assert reasons(world) == {("limit", "budget")}
    world.perform(world.coordinator.allow(7, spent_usd=0))
    world.submit(a_spec("next"))
    world.settle()
    assert reasons(world) == {("limit", "budget")}
    assert 7 <= cost_of(world) <= 8


def test_a_budget_that_is_raised_under_way_outlives_the_coordinator() -> None:
    world = a_world(2, budget_usd=3)
    spend(world, 1)
    world.perform(world.coordinator.allow(7, spent_usd=0))
    world.settle(hosts=False)
    assert {world.stored(run_id).state.values[BUDGET.name] for run_id in ("run0", "run1")} == {7}
    world.crash()
    world.settle()
    assert reasons(world) == {("limit", "budget")}
    assert 7 <= cost_of(world) <= 8


def test_under_a_budget_that_is_spent_no_model_is_asked() -> None:
    world = a_world(2, budget_usd=10, spent_usd=10)
    world.settle()
    assert reasons(world) == {("limit", "budget")}
    assert cost_of(world) == 0
    assert TURN not in world.hosts


def test_a_run_that_is_done_in_its_last_round_is_done() -> None:
    world = a_world(1, budget_usd=3, rounds=3)
    world.settle()
    assert reasons(world) == {("done", "completed")}
    assert Slot(STOP_DECISION) in world.hosts


def test_a_run_that_was_done_when_another_spent_the_last_is_done() -> None:
    world = a_world(1, budget_usd=100, rounds=1)
    move_until(world, TURN, "run0")
    world.hosts[TURN].work("run0")
    assert world.hosts[TURN].outbox, "it is done, and nobody knows yet"
    world.perform(world.coordinator.allow(100, spent_usd=100))
    world.settle()
    assert reasons(world) == {("done", "completed")}


def test_a_run_that_waits_for_the_quarantine_host_ends_with_the_budget() -> None:
    world = a_world(3, budget_usd=5)
    for run in world.coordinator.runs.values():
        run.losses = LOSSES_BEFORE_QUARANTINE
    world.settle()
    assert reasons(world) == {("limit", "budget")}
    assert cost_of(world) == 5, "one run at a time is there"


def test_the_budget_outlives_the_coordinator() -> None:
    world = a_world(2, budget_usd=10)
    spend(world, 3)
    world.settle(hosts=False)
    assert world.stored("run0").state.values[BUDGET.name] == 10
    world.crash()
    world.settle()
    assert reasons(world) == {("limit", "budget")}
    assert 10 <= cost_of(world) <= 10 + ROUND_USD, "one of the two was in flight"


def test_a_run_that_is_put_aside_and_taken_up_again_is_counted_once() -> None:
    world = a_world(1, budget_usd=10)
    spend(world, 4)
    world.perform(world.coordinator.stop("run0", "park"))
    world.settle()
    spent = cost_of(world)
    assert 4 <= spent <= 5
    world.perform(world.coordinator.adopt(world.stored("run0")))
    world.settle()
    assert cost_of(world) == 10


def test_a_command_with_a_larger_budget_goes_on_with_what_was_interrupted() -> None:
    world = a_world(1, budget_usd=3, rounds=8)
    move_until(world, TURN, "run0")
    world.perform(world.coordinator.stop("run0", "park_now"))
    world.settle()
    world.hosts.clear()
    world.coordinator = world._begin(2)
    world.perform(world.coordinator.allow(100, spent_usd=0))
    world.perform(world.coordinator.adopt(world.stored("run0"), asked=True))
    world.settle()
    assert reasons(world) == {("done", "completed")}
    assert world.stored("run0").state.values[BUDGET.name] == 100


def test_a_command_without_a_budget_is_not_held_to_that_of_an_earlier_one() -> None:
    world = a_world(1, budget_usd=3, rounds=8)
    move_until(world, TURN, "run0")
    world.perform(world.coordinator.stop("run0", "park_now"))
    world.settle()
    other = World(Costly(8).handlers, command="another")
    other.disk = world.disk
    other.perform(other.coordinator.adopt(world.stored("run0"), asked=True))
    other.settle()
    assert reasons(other) == {("done", "completed")}


def test_without_a_budget_nothing_is_noted_of_one() -> None:
    world = World(Costly(2).handlers)
    effects = world.submit(a_spec())
    assert len(effects.entries) == 1
    assert [post.slot.executor for post in effects.posts] == [REPAIR]
    world.settle()
    assert world.ends()[0].status == "done"
    assert AGENT_TURN in {slot.executor for slot in world.hosts}


def test_a_bound_that_is_set_again_counts_what_ended_what_goes_on_and_what_was_before() -> None:
    budget = Budget()
    budget.take_up("over", 1.0)
    budget.take_up("at work", 2.0)
    charged = StateDelta(writes=(Write(USAGE.name, "increment", {"cost_usd": 4.0}),))
    budget.charge("at work", charged)
    budget.end("over")

    budget.allow(100.0, spent_usd=8.0)
    assert budget.spent_usd == 15.0
    budget.charge("at work", charged)
    budget.take_up("at work", 6.0)
    assert budget.spent_usd == 19.0, "one that is put aside and taken up is not counted twice"
