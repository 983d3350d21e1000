"""Hops to executors that have nothing to do: no host is asked, and all comes of one event."""

from typing import Any

import pytest

from harness_actors.config import HarnessConfig
from harness_actors.conversation import UNKNOWN_OUTCOME
from harness_actors.coordination.at_once import MOST_IN_A_ROW
from harness_actors.coordination.protocol import Deliver, Slot
from harness_actors.executors.at_once import answer_at_once
from harness_actors.messages import Message
from harness_actors.records import RunAdded, RunChanged, RunSpec
from harness_actors.signals import (
    CompactionComplete,
    Signal,
    TurnComplete,
)
from harness_actors.state import (
    AGENT_TURN,
    COMPACTION,
    PRESSURE,
    REPAIR,
    STOP_DECISION,
    StateDelta,
    Write,
)
from tests.coordination.agents import Team
from tests.coordination.test_budget import Costly
from tests.coordination.world import Handler, Served, Work, World, a_spec

TURN = Slot(AGENT_TURN)
PRESSED = {"window_tokens": 10, "request_tokens": 10, "overhead_tokens": 0, "plan": 0}


def a_world(team: Team) -> World:
    return World(team.handlers, at_once=answer_at_once)


def a_run(**facts: Any) -> RunSpec:
    """One that is nudged, and so has several turns, as long as it does not say that it is done."""
    return a_spec(config=HarnessConfig(max_turns=9), **facts)


def asked(world: World) -> list[str]:
    """Which hosts were sent a hop, in this order."""
    return [post.slot.executor for post in world.sent if isinstance(post.envelope.body, Deliver)]


def test_a_run_is_on_its_way_to_its_agent_in_the_commit_that_begins_it() -> None:
    world = a_world(Team())
    effects = world.submit(a_run())
    assert [type(entry) for entry in effects.entries] == [RunAdded, RunChanged, RunChanged]
    world.commit()
    assert (world.events(), world.hops()) == (["run_started"], [COMPACTION, AGENT_TURN])
    assert [post.slot for post in effects.posts] == [TURN]


def test_a_run_ends_in_the_commit_of_its_last_turn_and_only_its_agent_was_asked() -> None:
    world = a_world(Team(plan=("effect", "turn", "lookup")))
    ends = list[list[str]]()
    world.committed = lambda effects: ends.append(
        [
            event.type
            for entry in effects.entries
            if isinstance(entry, RunChanged)
            for event in entry.delta.events
        ]
    )
    world.submit(a_run())
    world.settle()
    assert asked(world) == [AGENT_TURN, AGENT_TURN]
    assert ends[-1] == ["stop_decided", "run_completed"]
    cycle = [COMPACTION, AGENT_TURN, STOP_DECISION]
    assert world.hops() == [*cycle, REPAIR, *cycle], "as where each is asked"


def test_the_journal_is_that_of_a_run_of_which_each_is_asked() -> None:
    journals = []
    for at_once in (answer_at_once, None):
        team = Team(plan=("effect", "turn", "lookup"))
        handlers = team.handlers
        if at_once is None:
            handlers |= {name: _as_shipped(name) for name in (REPAIR, COMPACTION, STOP_DECISION)}
        world = World(handlers, at_once=at_once)
        world.submit(a_run())
        world.settle()
        journals.append([(one.version, one.delta, one.hop, one.end) for one in world.changes()])
    assert journals[0] == journals[1]


def _as_shipped(executor: str) -> Handler:
    """A host of a shipped executor."""

    def handle(run: Served, signal: Signal) -> Work:
        yield from ()
        answered = answer_at_once(executor, signal, run.spec, run.values, 0.0)
        assert answered is not None
        return answered

    return handle


def test_what_a_death_has_left_open_is_repaired_by_whoever_does_that() -> None:
    world = a_world(Team(plan=("effect",)))
    world.submit(a_run())
    world.settle(hosts=False)
    while not world.log().open_calls():
        world.move(world.hosts[TURN])
        world.settle(hosts=False)
    world.lose(TURN)
    world.settle()
    assert asked(world) == [AGENT_TURN, REPAIR, AGENT_TURN]
    assert [m.text for m in world.log() if m.role == "tool"] == [UNKNOWN_OUTCOME]
    assert [end.status for end in world.ends()] == ["done"]


class Pressed(Team):
    """Its agent says that its window is full, and after the next turn that it is done."""

    def agent_turn(self, run: Served, signal: Signal) -> Work:
        yield from ()
        if any(message.role == "assistant" for message in run.log):
            return StateDelta(), TurnComplete(ending="completed")
        write = Write(PRESSURE.name, "set", PRESSED)
        return StateDelta((write,), run.add(Message.assistant("one"))), TurnComplete(
            ending="rounds"
        )

    def compaction(self, run: Served, signal: Signal) -> Work:
        yield from ()
        return StateDelta((Write(PRESSURE.name, "set", None),)), CompactionComplete()


def test_where_a_window_is_full_whoever_makes_room_is_asked() -> None:
    world = a_world(Pressed())
    world.submit(a_run())
    world.settle()
    assert asked(world) == [AGENT_TURN, COMPACTION, AGENT_TURN]


@pytest.mark.parametrize("own", [REPAIR, COMPACTION, STOP_DECISION])
def test_executors_of_a_user_are_asked_whatever_they_are_to_do(own: str) -> None:
    world = a_world(Team(plan=("lookup",)))
    world.submit(a_run(custom=(own,)))
    world.settle()
    assert sorted(asked(world)) == sorted([AGENT_TURN, own])


def test_a_run_that_is_done_ends_as_done_though_it_has_spent_what_was_left() -> None:
    world = a_world(Costly(rounds=3))
    world.perform(world.coordinator.allow(3.0, spent_usd=0.0))
    world.submit(a_run())
    world.settle()
    assert [(end.status, end.reason.kind) for end in world.ends()] == [("done", "completed")]


def test_a_cycle_that_leaves_the_turn_out_is_not_gone_round_in_one_event() -> None:
    cycle = ((REPAIR, COMPACTION), (COMPACTION, REPAIR), (AGENT_TURN, STOP_DECISION))
    world = a_world(Team())
    spec = a_run(edges=(*cycle, (STOP_DECISION, REPAIR)))
    effects = world.submit(spec)
    assert len(effects.entries) == 1 + MOST_IN_A_ROW
    assert len(effects.posts) == 1


def test_no_run_of_a_tree_goes_on_before_all_of_it_is_taken_up() -> None:
    """Else the first child that ends is taken for the last one."""
    team = Team(plan=("delegate",), below=[("lookup",)])
    world = World(team.handlers)
    world.submit(a_run())
    while len(world.run_ids()) < 3 or any(not world.changes(one) for one in world.run_ids()):
        world.settle(hosts=False)
        for host in list(world.hosts.values()):
            world.move(host)
    first, second = (one for one in world.run_ids() if one != "run")
    # What its turn came to is on disk, and not what follows from that.
    while not any(one.hop and one.hop.to == STOP_DECISION for one in world.changes(first)):
        world.settle(hosts=False)
        for host in list(world.hosts.values()):
            world.move(host)
    world.handlers.clear()
    world.handlers |= {AGENT_TURN: team.agent_turn, REPAIR: team.repair}
    world.at_once = answer_at_once
    world.crash()
    world.settle()
    ends = {one: [end.status for end in world.ends(one)] for one in ("run", first, second)}
    assert ends == {"run": ["done"], first: ["done"], second: ["done"]}
    results = [message.text for message in world.log() if message.role == "tool"]
    assert results == ["completed: ", "completed: "]
