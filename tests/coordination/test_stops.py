"""Runs that are put aside, cut or cancelled, wherever they are."""

import pytest

from harness_actors.coordination.protocol import Cut, Forget, Park, Slot
from harness_actors.plan import CompactionPlan, Span
from harness_actors.records import RunAdded
from harness_actors.signals import CompactionComplete, Signal
from harness_actors.state import (
    AGENT_TURN,
    COMPACTION,
    REPAIR,
    STOP_DECISION,
    TURN_COUNT,
    StateDelta,
)
from tests.coordination.agents import Team
from tests.coordination.test_losses import MINE, TURN, custom_world, move_until, work_until_open
from tests.coordination.world import Served, Work, World, a_spec

EVERYWHERE = [Slot(REPAIR), Slot(COMPACTION), TURN, Slot(STOP_DECISION)]


def a_run_at(slot: Slot, *plan: str) -> World:
    world = World(Team(plan=plan or ("turn", "effect")).handlers)  # type: ignore[arg-type]
    world.submit(a_spec())
    move_until(world, slot)
    return world


def stop(world: World, mode: str) -> None:
    world.perform(world.coordinator.stop("run", mode))
    world.settle()


@pytest.mark.parametrize("slot", EVERYWHERE, ids=str)
@pytest.mark.parametrize("mode", ["park", "park_now"])
def test_a_run_that_is_put_aside_can_be_taken_up(slot: Slot, mode: str) -> None:
    world = a_run_at(slot)
    stop(world, mode)
    assert world.events()[-1] == "run_parked"
    assert not world.ends()
    assert not world.coordinator.runs
    assert all(not host.runs for host in world.hosts.values())

    world.perform(world.coordinator.adopt(world.stored()))
    world.settle()
    assert world.ends()[0].status == "done"
    assert world.stored().state.values[TURN_COUNT.name] == 2


@pytest.mark.parametrize("slot", EVERYWHERE, ids=str)
def test_a_run_can_be_cancelled_anywhere(slot: Slot) -> None:
    world = a_run_at(slot)
    stop(world, "cancel")
    (result,) = world.ends()
    assert (result.status, result.reason.kind) == ("cancelled", "user")
    assert world.events()[-1] == "run_completed"
    assert not world.coordinator.runs


def test_room_that_was_made_is_kept_by_a_run_that_is_put_aside() -> None:
    plan = CompactionPlan(version=1, base=0, upto=1, spans=(Span(start=0, end=1, action="clear"),))

    def compaction(run: Served, signal: Signal) -> Work:
        yield from ()
        return StateDelta(plan=plan), CompactionComplete()

    world = World(Team().handlers | {COMPACTION: compaction})
    world.submit(a_spec())
    move_until(world, Slot(COMPACTION))
    stop(world, "park")
    assert world.events()[-1] == "run_parked"
    assert [change.delta.plan for change in world.changes() if change.delta.plan] == [plan]


def test_a_run_that_parks_finishes_the_round_in_flight() -> None:
    world = a_run_at(TURN, "effect", "effect", "effect")
    work_until_open(world, TURN)
    stop(world, "park")
    assert [message.role for message in world.log()] == ["user", "assistant", "tool"]
    assert world.posts(Park)


def test_a_round_that_is_cut_stays_open_for_repair() -> None:
    world = a_run_at(TURN, "effect", "effect")
    work_until_open(world, TURN)
    stop(world, "park_now")
    assert [message.role for message in world.log()] == ["user", "assistant"]
    assert [type(envelope.body) for envelope in world.posts(Cut)] == [Cut]
    (cut, forgotten) = (world.posts(Cut)[0], world.posts(Forget, TURN)[0])
    assert cut.order < forgotten.order


def test_a_run_that_parks_between_two_executors_keeps_its_place() -> None:
    world = a_run_at(Slot(COMPACTION))
    stop(world, "park")
    stored = world.stored()
    assert stored.hop is not None
    assert stored.hop.to == AGENT_TURN


def test_a_parked_run_does_not_go_on_when_the_coordinator_comes_back() -> None:
    world = a_run_at(TURN)
    stop(world, "park")
    world.crash()
    world.settle()
    assert world.events()[-1] == "run_parked"
    last = [entry for entry in world.disk if isinstance(entry, RunAdded)][-1]
    assert (last.again, last.command) == (True, "")


def test_a_run_that_is_taken_up_after_parking_is_the_commands_again() -> None:
    world = a_run_at(TURN)
    stop(world, "park")
    world.perform(world.coordinator.adopt(world.stored()))
    world.settle(hosts=False)
    assert world.stored().command == "command"


def test_a_users_executor_is_told_to_park_too() -> None:
    world = custom_world()
    move_until(world, MINE)
    world.perform(world.coordinator.stop("run", "park"))
    world.settle(hosts=False)
    assert world.posts(Park, MINE)


def test_a_run_that_is_to_park_parks_although_its_host_dies() -> None:
    world = a_run_at(TURN, "effect", "effect")
    work_until_open(world, TURN)
    world.perform(world.coordinator.stop("run", "park"))
    world.lose(TURN)
    world.settle()
    assert world.events()[-1] == "run_parked"
    assert not world.log().open_calls(), "repair has closed the call before"


@pytest.mark.parametrize("mode", ["park", "park_now", "cancel"])
def test_stopping_a_run_that_is_not_served_does_nothing(mode: str) -> None:
    world = World(Team().handlers)
    effects = world.coordinator.stop("nobody", mode)
    assert not effects.entries
    assert not effects.posts


def test_a_run_stopped_before_its_first_message_left_is_stopped() -> None:
    world = World(Team().handlers)
    world.submit(a_spec())
    world.perform(world.coordinator.stop("run", "cancel"))
    world.settle()
    assert [end.status for end in world.ends()] == ["cancelled"]
    assert all(not host.runs for host in world.hosts.values())
