"""Whatever befalls a run, three things at once in any order: each promise holds after them."""

from collections.abc import Callable
from itertools import product

import pytest

from harness_actors.coordination.protocol import QUARANTINE, Envelope, Slot, SnapshotWanted
from harness_actors.coordination.routing import LOSSES_BEFORE_QUARANTINE
from harness_actors.state import AGENT_TURN, REPAIR, STOP_DECISION
from tests.bounded import bounded
from tests.coordination.agents import ROUND_USD, Round
from tests.coordination.test_losses import move_until
from tests.coordination.test_schedules import Scheduler, turns_of
from tests.coordination.world import a_spec

PLAN: list[Round] = ["lookup", "effect", "lookup", "effect"]
MUCH_USD = 100 * ROUND_USD


def park(at: Scheduler) -> None:
    if "run0" in at.world.coordinator.runs:
        at.stop("run0", "park")


def put_aside(at: Scheduler) -> None:
    if "run0" in at.world.coordinator.runs:
        at.stop("run0", "park_now")


def go_on(at: Scheduler) -> None:
    if "run0" in at.world.coordinator.runs:
        at.go_on("run0")
        return
    at.world.settle(hosts=False)
    if "run0" in at.idle():
        at.resume("run0")


def spend_all(at: Scheduler) -> None:
    at.allow(0.0)


def allow_more(at: Scheduler) -> None:
    at.allow(MUCH_USD)


def lose_host(at: Scheduler) -> None:
    run = at.world.coordinator.runs.get("run0")
    if run is not None and run.slot is not None:
        at.world.lose(run.slot)


def crash(at: Scheduler) -> None:
    at.world.crash()


def next_command(at: Scheduler) -> None:
    at.next_command()


def be_asked_for_the_log(at: Scheduler) -> None:
    """Its host has just been given it, and does not know the log as far as it should."""
    run = at.world.coordinator.runs.get("run0")
    if run is None or run.slot is None or run.received or run.slot not in at.world.hosts:
        return
    if at.world.hosts[run.slot].runs.pop("run0", None) is not None:
        term, wanted = at.world.coordinator.term, SnapshotWanted()
        envelope = Envelope("run0", term, run.hop_number, 1, wanted)
        at.world.perform(at.world.coordinator.received(run.slot, envelope))


EVENTS: tuple[Callable[[Scheduler], None], ...] = (
    park,
    put_aside,
    go_on,
    spend_all,
    allow_more,
    lose_host,
    crash,
    next_command,
    be_asked_for_the_log,
)
PLACES = (
    Slot(REPAIR),
    Slot(AGENT_TURN),
    Slot(AGENT_TURN, index=QUARANTINE),
    Slot(STOP_DECISION),
    None,
)
"""Where the run is; None where it waits for the quarantine host."""


def a_run_at(place: Slot | None) -> Scheduler:
    at = Scheduler([PLAN, PLAN], agent_turns=1, budget_usd=MUCH_USD)
    config = bounded({"max_turns": turns_of(PLAN)})
    at.world.submit(a_spec("run1" if place is None else "run0", config=config))
    first = at.world.coordinator.runs["run1" if place is None else "run0"]
    if place is None or place.index == QUARANTINE:
        first.losses = LOSSES_BEFORE_QUARANTINE
    if place is None:
        at.world.submit(a_spec("run0", config=config))
        at.world.coordinator.runs["run0"].losses = LOSSES_BEFORE_QUARANTINE
        alone = Slot(AGENT_TURN, index=QUARANTINE)
        move_until(at.world, alone, "run1")
        while at.world.coordinator.runs["run0"].slot is not None:
            at.world.settle(hosts=False)
            busy = [h for s, h in at.world.hosts.items() if s != alone]
            assert any(at.world.move(host) for host in busy)
    else:
        move_until(at.world, place, "run0")
    return at


@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("place", PLACES, ids=str)
def test_whatever_befalls_a_run_at_once(place: Slot | None, on_disk: bool) -> None:
    for events in product(EVENTS, repeat=3):
        at = a_run_at(place)
        told = ", ".join(event.__name__ for event in events)
        try:
            for event in events:
                event(at)
                if on_disk:
                    at.world.settle(hosts=False)
                at.check_always()
            at.finish()
            at.check_end(2)
        except AssertionError as broken:
            broken.add_note(f"after: {told}")
            raise


def cancel_child(at: Scheduler) -> None:
    if "run0.1" in at.world.coordinator.runs:
        at.cancel_child("run0.1")


def a_tree_that_waits() -> Scheduler:
    at = Scheduler([["delegate", "effect"], PLAN], agent_turns=1, budget_usd=MUCH_USD)
    at.world.submit(a_spec("run0", config=bounded({"max_turns": 1})))
    while not at.world.coordinator.runs["run0"].waits_for_children:
        if at.world.unwritten:
            at.world.commit()
        else:
            assert any(at.world.move(host) for host in list(at.world.hosts.values()))
    return at


@pytest.mark.parametrize("on_disk", [False, True])
def test_whatever_befalls_a_tree_at_once(on_disk: bool) -> None:
    for events in product((*EVENTS, cancel_child), repeat=3):
        at = a_tree_that_waits()
        told = ", ".join(event.__name__ for event in events)
        try:
            for event in events:
                event(at)
                if on_disk:
                    at.world.settle(hosts=False)
                at.check_always()
            at.finish()
            at.check_end(1)
        except (AssertionError, KeyError, ValueError) as broken:
            broken.add_note(f"after: {told}")
            raise
