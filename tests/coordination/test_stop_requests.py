"""What a user asked of a run holds, whatever dies meanwhile and whether it is served or not."""

from dataclasses import replace

import pytest

from harness_actors.config import HarnessConfig, Limits
from harness_actors.conversation import UNKNOWN_OUTCOME, repaired
from harness_actors.coordination.active import Effects
from harness_actors.coordination.deadlines import GRACE_S
from harness_actors.coordination.protocol import Answered, Cut, GoOn, Slot
from harness_actors.messages import Message
from harness_actors.policies.hooks import LATE_S
from harness_actors.signals import Parked, Signal
from harness_actors.state import PARKING, USAGE, StateDelta, Write
from tests.coordination.agents import Round, Team
from tests.coordination.test_losses import (
    MINE,
    TURN,
    custom_world,
    move_until,
    suspected,
    work_until_open,
)
from tests.coordination.test_stops import EVERYWHERE, a_run_at, stop
from tests.coordination.world import Served, Work, World, a_spec


def parking(world: World) -> None:
    world.perform(world.coordinator.stop("run", "park"))


# ---- a request to park outlives the coordinator --------------------------------------------


@pytest.mark.parametrize("slot", EVERYWHERE, ids=str)
def test_a_run_that_was_to_park_parks_although_the_coordinator_dies(slot: Slot) -> None:
    world = a_run_at(slot)
    parking(world)
    world.settle(hosts=False)
    world.crash()
    world.settle()
    assert world.events()[-1] == "run_parked"
    assert world.stored().command == "", "no incarnation goes on with it unasked"
    assert not world.ends()
    assert not world.coordinator.runs


def test_the_request_is_on_disk_before_the_host_hears_of_it() -> None:
    world = a_run_at(TURN, "effect")
    effects = world.coordinator.stop("run", "park")
    (change,) = effects.entries
    assert [write.key for write in change.delta.writes] == [PARKING.name]  # type: ignore[union-attr]
    assert effects.posts


def test_a_run_that_has_parked_is_asked_no_more() -> None:
    world = a_run_at(TURN, "effect")
    stop(world, "park")
    assert world.stored().state.values[PARKING.name] is False


def test_asking_twice_to_park_is_one_request() -> None:
    world = a_run_at(TURN, "effect")
    parking(world)
    assert not world.coordinator.stop("run", "park").entries


@pytest.mark.parametrize("died", [False, True])
def test_a_parked_run_that_is_taken_up_is_not_parked_again(died: bool) -> None:
    world = a_run_at(TURN, "effect", "turn")
    parking(world)
    if died:
        world.settle(hosts=False)
        world.crash()
    world.settle()
    world.perform(world.coordinator.adopt(world.stored()))
    world.settle()
    assert world.ends()[0].status == "done"
    assert world.events().count("run_parked") == 1


def test_a_run_asked_to_park_that_is_taken_up_goes_on_whoever_dies() -> None:
    world = a_run_at(TURN, "effect")
    parking(world)
    world.settle(hosts=False)
    stored = world.stored()
    assert stored.state.values[PARKING.name]
    world.hosts.clear()
    world.coordinator = world._begin(2)
    world.perform(world.coordinator.adopt(stored, asked=True))
    world.settle(hosts=False)
    assert world.stored().state.values[PARKING.name] is False
    world.crash()
    world.settle()
    assert world.ends()[0].status == "done"
    assert "run_parked" not in world.events()


# ---- resuming a run that is still parking ---------------------------------------------------


@pytest.mark.parametrize("slot", EVERYWHERE, ids=str)
def test_a_run_that_is_resumed_before_it_parked_goes_on(slot: Slot) -> None:
    world = a_run_at(slot)
    parking(world)
    world.settle(hosts=False)
    world.perform(world.coordinator.resume("run"))
    world.settle()
    assert world.ends()[0].status == "done"
    assert "run_parked" not in world.events()
    assert not world.stored().state.values[PARKING.name]
    assert bool(world.posts(GoOn, TURN)) == (slot == TURN)


def test_an_answer_that_it_parked_crosses_the_request_to_go_on() -> None:
    world = a_run_at(TURN, "effect", "effect")
    parking(world)
    world.settle(hosts=False)
    host = world.hosts[TURN]
    while not any(isinstance(envelope.body, Answered) for envelope in host.outbox):
        if host.inbox:
            host.take()
        elif host.ready():
            host.work("run")
        else:
            world.hear(TURN)
            world.settle(hosts=False)
    world.perform(world.coordinator.resume("run"))
    world.settle()
    assert world.ends()[0].status == "done"
    assert "run_parked" not in world.events()


def test_after_parking_was_taken_back_it_can_be_asked_for_again() -> None:
    world = a_run_at(TURN, "effect", "effect")
    work_until_open(world, TURN)
    parking(world)
    world.perform(world.coordinator.resume("run"))
    stop(world, "park")
    assert world.events()[-1] == "run_parked"


def test_a_request_to_go_on_that_died_with_the_coordinator_leaves_the_run_parked() -> None:
    world = a_run_at(TURN, "effect")
    parking(world)
    world.settle(hosts=False)
    world.coordinator.resume("run")  # and it dies before that is on disk
    world.crash()
    world.settle()
    assert world.events()[-1] == "run_parked"


def test_resuming_a_run_that_does_not_park_changes_nothing() -> None:
    world = a_run_at(TURN, "effect")
    effects = world.coordinator.resume("run")
    assert not effects.entries
    assert not effects.posts
    assert not world.posts(GoOn)
    assert world.coordinator.resume("another") == Effects()


@pytest.mark.parametrize("slot", EVERYWHERE, ids=str)
def test_only_who_makes_rounds_is_told_to_stop_at_one(slot: Slot) -> None:
    world = a_run_at(slot)
    effects = world.coordinator.stop("run", "park")
    assert [post.slot for post in effects.posts] == [slot] * (slot == TURN)


def test_a_users_executor_that_parks_by_itself_parks() -> None:
    def parks(run: Served, signal: Signal) -> Work:
        yield from ()
        return StateDelta(), Parked()

    world = custom_world(parks)
    world.settle()
    assert world.events()[-1] == "run_parked"
    assert MINE in world.hosts


# ---- cancelling -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["park", "park_now"])
def test_a_parked_run_can_be_cancelled(mode: str) -> None:
    world = a_run_at(TURN, "effect", "effect")
    work_until_open(world, TURN)
    stop(world, mode)
    world.perform(world.coordinator.stop_idle(world.stored(), "cancel"))
    world.settle()
    (result,) = world.ends()
    assert (result.status, result.reason.kind) == ("cancelled", "user")
    assert world.events()[-1] == "run_completed"
    assert repaired(world.log())[1] == 0
    if mode == "park_now":
        assert world.log()[-1].text == UNKNOWN_OUTCOME


def test_a_run_of_another_command_can_be_cancelled() -> None:
    world = a_run_at(TURN, "effect")
    other = World(Team().handlers, command="another")
    other.disk = world.disk
    other.perform(other.coordinator.stop_idle(world.stored(), "cancel"))
    other.settle()
    assert [end.status for end in other.ends()] == ["cancelled"]
    assert not other.coordinator.runs


@pytest.mark.parametrize("mode", ["cancel", "park", "park_now"])
def test_a_run_that_is_over_stays_as_it_is(mode: str) -> None:
    world = a_run_at(TURN, "effect")
    world.settle()
    effects = world.coordinator.stop_idle(world.stored(), mode)
    assert not effects.entries
    assert not effects.posts


@pytest.mark.parametrize("mode", ["park", "park_now"])
def test_a_run_of_another_command_is_not_put_aside(mode: str) -> None:
    world = a_run_at(TURN, "effect")
    stop(world, "park")
    assert not world.coordinator.stop_idle(world.stored(), mode).entries


def test_a_run_that_its_own_command_does_not_serve_is_put_aside() -> None:
    world = a_run_at(TURN, "effect")
    world.hosts.clear()
    world.coordinator = world._begin(2)
    world.perform(world.coordinator.stop_idle(world.stored(), "park"))
    world.settle()
    assert world.events()[-1] == "run_parked"
    assert world.stored().command == ""


def test_cancelling_again_after_the_coordinator_died_ends_it_once() -> None:
    world = a_run_at(TURN, "effect")
    world.coordinator.stop("run", "cancel")  # and it dies before that is on disk
    world.crash()
    world.perform(world.coordinator.stop("run", "cancel"))
    world.settle()
    assert [end.status for end in world.ends()] == ["cancelled"]
    world.crash()
    assert not world.coordinator.stop_idle(world.stored(), "cancel").entries


def test_a_cancelled_run_leaves_the_calls_of_the_run_that_continues_its_conversation() -> None:
    world = World(Team(plan=["effect", "effect"]).handlers)
    world.submit(a_spec("first", conversation_id="c"))
    move_until(world, TURN, "first")
    world.perform(world.coordinator.stop("first", "park_now"))
    world.settle()
    world.submit(a_spec("second", conversation_id="c"), world.log("first"))
    move_until(world, TURN, "second")
    work_until_open(world, TURN, "second")
    world.perform(world.coordinator.stop_idle(world.stored("first"), "cancel"))
    world.settle()
    assert world.ends("first")[0].status == "cancelled"
    assert not world.changes("first")[-1].delta.messages
    assert world.ends("second")[0].status == "done"
    assert repaired(world.log("second"))[1] == 0


# ---- wall time ------------------------------------------------------------------------------

LIMITED = HarnessConfig(limits=Limits(time_s=60))


def pass_time(world: World, seconds: float) -> None:
    world.clock.advance(seconds)
    world.perform(world.coordinator.overdue())
    world.settle(hosts=False)


@pytest.mark.parametrize("slot", EVERYWHERE, ids=str)
def test_a_run_whose_time_is_over_ends_wherever_it_hangs(slot: Slot) -> None:
    world = World(Team(plan=["effect", "turn"]).handlers)
    world.submit(a_spec(config=LIMITED))
    move_until(world, slot)
    due = world.coordinator.next_overdue_at
    assert due is not None
    assert due - world.clock.now() == pytest.approx(60 + GRACE_S)
    pass_time(world, 60)
    assert not world.ends(), "it may still end by itself"
    pass_time(world, GRACE_S + 0.01)
    world.settle()
    (result,) = world.ends()
    assert (result.status, result.reason.kind) == ("limit", "time")
    assert result.reason.message == "the run's 60 s of wall time were over"
    assert world.posts(Cut, slot)
    assert world.coordinator.next_overdue_at is None


def test_a_run_whose_hooks_must_see_each_result_may_be_late_by_their_time() -> None:
    world = World(Team(plan=["effect", "turn"]).handlers)
    world.submit(replace(a_spec(config=LIMITED), late_hooks=True))
    move_until(world, TURN)
    due = world.coordinator.next_overdue_at
    assert due is not None
    assert due - world.clock.now() == pytest.approx(60 + LATE_S + GRACE_S)
    pass_time(world, 60 + LATE_S)
    assert not world.ends(), "its hooks may still be at work"
    pass_time(world, GRACE_S + 0.01)
    assert [end.reason.kind for end in world.ends()] == ["time"]


@pytest.mark.parametrize("plan", ["effect", "lookup"])
def test_a_run_whose_tool_holds_up_its_process_ends_when_its_working_time_is_over(
    plan: Round,
) -> None:
    world = World(Team(plan=[plan]).handlers)
    world.submit(a_spec(config=HarnessConfig(limits=Limits(working_s=60))))
    move_until(world, TURN)
    pass_time(world, 100)
    assert not world.ends(), "the model may have waited"
    while world.coordinator.runs["run"].busy_since is None:
        world.hosts[TURN].work("run")
        while world.hosts[TURN].outbox:
            world.hear(TURN)
        world.settle(hosts=False)
    pass_time(world, 60)
    assert not world.ends(), "it may still end by itself"
    pass_time(world, GRACE_S + 0.01)
    world.settle()
    (result,) = world.ends()
    assert (result.status, result.reason.kind) == ("limit", "working_time")
    assert repaired(world.log())[1] == 0
    assert world.coordinator.next_overdue_at is None


def test_a_run_that_hangs_has_the_working_time_that_earlier_rounds_left() -> None:
    world = World(Team(plan=["lookup"]).handlers)
    world.submit(a_spec(config=HarnessConfig(limits=Limits(working_s=60))))
    move_until(world, TURN)
    run = world.coordinator.runs["run"]
    run.state.apply(StateDelta((Write(USAGE.name, "increment", {"working_s": 45.0}),)))
    while run.busy_since is None:
        world.hosts[TURN].work("run")
        while world.hosts[TURN].outbox:
            world.hear(TURN)
        world.settle(hosts=False)

    pass_time(world, 15)
    assert not world.ends(), "it may still end by itself"
    pass_time(world, GRACE_S + 0.01)
    world.settle()
    assert world.ends()[0].reason.kind == "working_time"


def test_a_run_whose_tools_ended_in_time_still_ends_when_its_wall_time_is_over() -> None:
    world = World(Team(plan=["effect", "turn"]).handlers)
    world.submit(a_spec(config=HarnessConfig(limits=Limits(time_s=60, working_s=10))))
    move_until(world, TURN)
    for began in (True, False):
        while (world.coordinator.runs["run"].busy_since is not None) is not began:
            world.hosts[TURN].work("run")
            while world.hosts[TURN].outbox:
                world.hear(TURN)
            world.settle(hosts=False)
            while world.hosts[TURN].inbox:
                world.hosts[TURN].take()
    pass_time(world, 10 + GRACE_S + 0.01)
    assert not world.ends(), "no tool works"
    pass_time(world, 50)
    world.settle(hosts=False)
    (result,) = world.ends()
    assert (result.status, result.reason.kind) == ("limit", "time")


def test_a_run_that_waits_for_the_quarantine_host_ends_when_its_time_is_over() -> None:
    world = suspected(2)
    world.coordinator.runs["run1"].spec = a_spec("run1", config=LIMITED)
    world.coordinator._deadlines.watch(world.coordinator.runs["run1"])
    assert world.coordinator.runs["run1"].slot is None
    pass_time(world, 61)
    world.settle()
    assert world.ends("run1")[0].reason.kind == "time"
    assert world.ends("run0")[0].status == "done"


def test_time_counts_from_the_first_start_across_pauses() -> None:
    world = World(Team(plan=["effect"]).handlers)
    world.submit(a_spec(config=LIMITED))
    move_until(world, TURN)
    stop(world, "park")
    assert world.coordinator.next_overdue_at is None, "a parked run ends when it is taken up"
    pass_time(world, 100)
    assert not world.ends()
    world.perform(world.coordinator.adopt(world.stored()))
    pass_time(world, 0)
    world.settle()
    assert world.ends()[0].reason.kind == "time"
    assert world.ends()[0].wall_s == pytest.approx(100)


def test_runs_that_ended_in_time_are_not_looked_at_again() -> None:
    world = World(Team(plan=["effect"]).handlers)
    for number in range(3):
        world.submit(a_spec(f"run{number}", config=LIMITED))
    world.settle()
    assert world.coordinator.next_overdue_at is None
    world.clock.advance(100)
    assert not world.coordinator.overdue().entries
    assert not world.coordinator._deadlines._due


def test_a_message_that_arrives_after_its_time_is_dropped() -> None:
    world = World(Team(plan=["effect"]).handlers)
    world.submit(a_spec(config=LIMITED))
    move_until(world, TURN)
    world.hosts[TURN].work("run")
    pass_time(world, 61)
    world.hear(TURN)
    world.settle()
    assert len(world.ends()) == 1
    assert list(world.log()) == list[Message]()
