"""One run, step by step: what is committed, what is posted, and what is dropped."""

import pytest

from harness_actors.conversation import UNKNOWN_OUTCOME, repaired
from harness_actors.coordination.protocol import (
    Answered,
    Changed,
    Committed,
    Deliver,
    Envelope,
    Forget,
    Slot,
)
from harness_actors.coordination.run_changes import CHANGES_PER_SNAPSHOT
from harness_actors.errors import ConversationBusyError
from harness_actors.messages import Message
from harness_actors.records import RunAdded, SnapshotTaken
from harness_actors.results import Reason
from harness_actors.signals import RepairComplete, RepairTrigger, RunEnd
from harness_actors.state import (
    AGENT_TURN,
    COMPACTION,
    OPEN_CALLS,
    REPAIR,
    STOP_DECISION,
    TURN_COUNT,
    StateDelta,
    Write,
)
from tests.coordination.agents import Team
from tests.coordination.world import World, a_spec

REPAIR_SLOT, TURN_SLOT = Slot(REPAIR), Slot(AGENT_TURN)


def a_world(*plan: str, **facts: int) -> World:
    return World(Team(plan=plan).handlers, **facts)  # type: ignore[arg-type]


def at_agent_turn(*plan: str) -> World:
    """A world in which the run's turn was delivered and nothing of it was done."""
    world = a_world(*plan)
    world.submit(a_spec())
    while not any(post.slot == TURN_SLOT for post in world.sent):
        world.settle(hosts=False)
        for host in list(world.hosts.values()):
            if host.slot != TURN_SLOT:
                world.move(host)
    return world


def test_signals_follow_the_edges_until_the_run_ends() -> None:
    world = a_world("effect", "turn", "lookup")
    world.submit(a_spec())
    world.settle()
    cycle = [COMPACTION, AGENT_TURN, STOP_DECISION]
    assert world.hops() == [*cycle, REPAIR, *cycle]
    assert [end.reason.kind for end in world.ends()] == ["completed"]
    assert world.events()[-1] == "run_completed"


def test_the_result_says_what_the_state_counted() -> None:
    world = a_world("turn", "turn")
    world.submit(a_spec())
    world.clock.advance(2.5)
    world.settle()
    (result,) = world.ends()
    assert (result.turn_count, result.output_text, result.wall_s) == (3, "ok", 2.5)
    assert result.completion_verified


def test_nothing_is_posted_before_its_entries_are_on_disk() -> None:
    world = a_world()
    effects = world.submit(a_spec())
    assert [type(entry) for entry in effects.entries] == [RunAdded]
    assert len(effects.posts) == 1
    assert not world.hosts, "it waits for the commit"
    world.commit()
    assert len(world.hosts[REPAIR_SLOT].inbox) == 1


def test_a_change_is_acknowledged_with_the_entries_that_commits_it() -> None:
    world = at_agent_turn("effect")
    host = world.hosts[TURN_SLOT]
    host.take()
    host.work("run")
    effects = world.hear(TURN_SLOT)
    assert len(effects.entries) == 1
    assert [post.envelope.body for post in effects.posts] == [Committed(1)]


def test_what_was_heard_twice_is_taken_once() -> None:
    world = at_agent_turn("effect")
    host = world.hosts[TURN_SLOT]
    host.take()
    host.work("run")
    again = host.outbox[0]
    world.hear(TURN_SLOT)
    effects = world.coordinator.received(TURN_SLOT, again)
    assert not effects.entries
    assert not effects.posts


@pytest.mark.parametrize(
    ("slot", "term", "later_hop"),
    [(TURN_SLOT, 0, 0), (TURN_SLOT, 1, -1), (Slot(AGENT_TURN, index=1), 1, 0), (REPAIR_SLOT, 1, 0)],
    ids=["an older term", "an older hop", "another host", "another executor"],
)
def test_what_is_stale_is_dropped(slot: Slot, term: int, later_hop: int) -> None:
    world = at_agent_turn()
    run = world.coordinator.runs["run"]
    body = Answered(StateDelta(), RepairComplete())
    effects = world.coordinator.received(
        slot, Envelope("run", term, run.hop_number + later_hop, 1, body)
    )
    assert not effects.entries
    assert not effects.posts
    fresh = Envelope("run", 1, run.hop_number, 1, body)
    assert world.coordinator.received(TURN_SLOT, fresh).entries, "the same, but not stale"


def test_what_is_said_of_an_unknown_run_is_dropped() -> None:
    world = a_world()
    effects = world.coordinator.received(
        TURN_SLOT, Envelope("nobody", 1, 1, 1, Changed(StateDelta()))
    )
    assert not effects.entries


def test_a_late_change_of_a_cut_hop_is_not_taken_for_one_of_the_runs_next_life() -> None:
    world = at_agent_turn("effect")
    host = world.hosts[TURN_SLOT]
    host.take()
    host.work("run")
    late = host.outbox[0]  # it hangs in a broken connection
    world.perform(world.coordinator.stop("run", "park_now"))
    world.settle(hosts=False)
    world.perform(world.coordinator.adopt(world.stored()))
    while world.coordinator.runs["run"].slot != TURN_SLOT:
        world.settle(hosts=False)
        for other in (Slot(REPAIR), Slot(COMPACTION)):
            if other in world.hosts:
                world.move(world.hosts[other])
    assert not world.coordinator.received(TURN_SLOT, late).entries


def test_a_run_that_is_served_is_not_submitted_or_adopted_again() -> None:
    world = a_world()
    world.submit(a_spec())
    world.settle(hosts=False)
    assert not world.coordinator.submit(a_spec()).posts
    assert not world.coordinator.adopt(world.stored()).posts


def test_a_run_that_ended_is_not_adopted() -> None:
    world = a_world()
    world.submit(a_spec())
    world.settle()
    effects = world.coordinator.adopt(world.stored())
    assert not effects.entries
    assert not effects.posts
    assert not world.coordinator.runs


def test_adopting_a_run_of_another_command_is_journaled() -> None:
    world = a_world("effect")
    world.submit(a_spec())
    world.settle(hosts=False)
    other = World(command="another")
    effects = other.coordinator.adopt(world.stored())
    (added,) = effects.entries
    assert isinstance(added, RunAdded)
    assert (added.again, added.command) == (True, "another")


def test_an_end_answers_the_calls_that_were_open() -> None:
    world = at_agent_turn("effect")
    host = world.hosts[TURN_SLOT]
    host.take()
    for _ in range(2):
        host.work("run")
        world.hear(TURN_SLOT)
    world.perform(world.coordinator.stop("run", "cancel"))
    world.settle()
    log = world.log()
    assert [message.role for message in log] == ["user", "assistant", "tool"]
    assert log[-1].text == UNKNOWN_OUTCOME
    assert log[-1].is_error
    assert repaired(log)[1] == 0


def test_every_host_that_knows_a_run_is_told_to_forget_it() -> None:
    world = a_world("effect", "turn", "lookup")
    world.submit(a_spec())
    world.settle()
    told = [post.slot for post in world.sent if isinstance(post.envelope.body, Forget)]
    assert sorted(told) == sorted(world.hosts)
    assert all(not host.runs and len(host.seen) == 0 for host in world.hosts.values())
    assert not world.coordinator.runs


def test_the_state_is_stored_whole_now_and_then() -> None:
    world = a_world(*["effect"] * 70)
    world.submit(a_spec())
    world.settle()
    snapshots = [entry for entry in world.disk if isinstance(entry, SnapshotTaken)]
    assert [snapshot.version for snapshot in snapshots] == [64, 128]
    world.stored()  # which checks them against the changes before them


@pytest.mark.parametrize(("mode", "snapshots"), [("cancel", 0), ("park_now", 1)])
def test_a_run_that_ends_where_its_state_would_be_stored_leaves_no_snapshot(
    mode: str, snapshots: int
) -> None:
    world = at_agent_turn("effect")
    world.coordinator.runs["run"].state.version = CHANGES_PER_SNAPSHOT - 1
    effects = world.coordinator.stop("run", mode)
    assert sum(isinstance(entry, SnapshotTaken) for entry in effects.entries) == snapshots


def test_a_change_that_its_entry_does_not_allow_ends_the_run_and_not_the_cell() -> None:
    world = at_agent_turn("effect")
    run = world.coordinator.runs["run"]
    writes = (Write("mine", "set", 1), Write(TURN_COUNT.name, "increment", "three"))
    state = StateDelta((Write(TURN_COUNT.name, "set", 2),))
    seqs = iter((1, 2))
    for delta in (state, StateDelta(writes)):
        envelope = Envelope("run", 1, run.hop_number, next(seqs), Changed(delta))
        world.perform(world.coordinator.received(TURN_SLOT, envelope))
    world.settle()
    (result,) = world.ends()
    assert (result.status, result.reason.kind) == ("failed", "agent_error")
    assert TURN_COUNT.name in result.reason.message
    assert "mine" not in world.stored().state.values, "a delta is applied whole or not at all"


def test_an_executor_without_a_successor_ends_the_run() -> None:
    world = a_world()
    world.submit(a_spec(edges=((REPAIR, COMPACTION),)))
    world.settle()
    (result,) = world.ends()
    assert result.reason.kind == "agent_error"
    assert "compaction" in result.reason.message


def test_any_executor_may_end_a_run() -> None:
    world = a_world()
    end = RunEnd(status="failed", reason=Reason(kind="agent_error", message="no"))
    world.submit(a_spec())
    run = world.coordinator.runs["run"]
    envelope = Envelope("run", 1, run.hop_number, 1, Answered(StateDelta(), end))
    world.perform(world.coordinator.received(REPAIR_SLOT, envelope))
    world.settle()
    assert world.ends()[0].reason.message == "no"


# ---- conversations --------------------------------------------------------------------------


def test_two_runs_of_one_conversation_cannot_go_on_at_once() -> None:
    world = a_world()
    world.submit(a_spec("first", conversation_id="talk"))
    with pytest.raises(ConversationBusyError, match="talk"):
        world.coordinator.submit(a_spec("second", conversation_id="talk"))
    world.settle()
    assert world.ends("first")
    assert "second" not in world.coordinator.runs


def test_a_run_continues_the_log_of_its_conversation_and_nothing_else() -> None:
    world = a_world("lookup")
    world.submit(a_spec("first", conversation_id="talk"))
    world.settle()
    before = world.log("first")
    world.submit(a_spec("second", conversation_id="talk"), before)
    assert not world.coordinator.runs["second"].state.values
    world.settle()
    assert world.ends("second")[0].turn_count == 1
    assert list(world.log("second"))[: len(before)] == list(before)
    assert len(world.log("second")) > len(before)


def test_a_parked_run_whose_calls_another_run_answered_does_not_answer_them_again() -> None:
    world = at_agent_turn("effect")
    host = world.hosts[TURN_SLOT]
    host.take()
    for _ in range(2):
        host.work("run")
        world.hear(TURN_SLOT)
    world.perform(world.coordinator.stop("run", "park_now"))
    world.settle(hosts=False)
    assert world.stored().state.values[OPEN_CALLS.name]
    # The user goes on talking: the next run closes the call, as agent turns do.
    (call,) = world.log().open_calls()
    closed = StateDelta(messages=(Message.tool_result(call.id, UNKNOWN_OUTCOME),))
    world.submit(a_spec("next", conversation_id="run"), world.log())
    run = world.coordinator.runs["next"]
    envelope = Envelope("next", 1, run.hop_number, 1, Changed(closed))
    world.perform(world.coordinator.received(REPAIR_SLOT, envelope))
    world.perform(world.coordinator.stop("next", "cancel"))
    world.settle(hosts=False)

    world.perform(world.coordinator.adopt(world.stored()))
    world.settle()
    assert world.ends()[0].status == "done"
    assert repaired(world.log())[1] == 0


# ---- what is sent ------------------------------------------------------------------------------


def test_the_first_delivery_brings_the_spec_and_later_ones_do_not() -> None:
    world = a_world("turn", "turn")
    world.submit(a_spec())
    world.settle()
    for slot in world.hosts:
        first, *later = [e.body for e in world.posts(Deliver, slot) if isinstance(e.body, Deliver)]
        assert first.spec is not None
        assert all(deliver.spec is None for deliver in later)


def test_executors_are_sent_what_they_read_and_no_more() -> None:
    world = a_world("effect", "turn")
    world.submit(a_spec())
    world.settle()
    for envelope in world.posts(Deliver, REPAIR_SLOT):
        assert isinstance(envelope.body, Deliver)
        assert not envelope.body.log
        assert AGENT_TURN not in envelope.body.values
        assert set(envelope.body.values) <= {"harness.started", OPEN_CALLS.name, TURN_COUNT.name}


def test_only_the_new_end_of_the_log_is_sent() -> None:
    world = a_world("effect", "turn", "effect", "turn", "effect")
    world.submit(a_spec())
    world.settle()
    delivered = [e.body for e in world.posts(Deliver, TURN_SLOT) if isinstance(e.body, Deliver)]
    assert [deliver.log_from for deliver in delivered] == [0, 4, 7]
    assert all(deliver.log == () for deliver in delivered), "it wrote all of them itself"


def test_a_host_with_another_length_of_the_log_gets_all_of_it() -> None:
    world = a_world("turn", "turn")
    world.submit(a_spec())
    world.settle(hosts=False)
    while len(world.posts(Deliver, TURN_SLOT)) < 2:
        for host in list(world.hosts.values()):
            world.move(host)
        world.settle(hosts=False)
    host = world.hosts[TURN_SLOT]
    host.runs["run"].log = type(host.runs["run"].log)()  # as if it had lost count
    world.settle()
    whole = world.posts(Deliver, TURN_SLOT)[2].body
    assert isinstance(whole, Deliver)
    assert whole.spec is not None
    assert (whole.log_from, len(whole.log)) == (0, 2)
    assert world.ends()[0].status == "done"


def test_calls_of_equal_ids_in_one_log_are_told_apart() -> None:
    world = a_world(*["effect"] * 5)
    world.submit(a_spec())
    world.settle()
    ids = [call.id for message in world.log() for call in message.tool_calls]
    assert ids == ["call_0", "call_1", "call_0", "call_1", "call_0"]
    assert repaired(world.log())[1] == 0


def test_a_trigger_begins_each_cycle() -> None:
    world = a_world("turn")
    world.submit(a_spec())
    world.settle()
    signals = [
        e.body.signal for e in world.posts(Deliver, REPAIR_SLOT) if isinstance(e.body, Deliver)
    ]
    assert signals == [RepairTrigger(), RepairTrigger()]
