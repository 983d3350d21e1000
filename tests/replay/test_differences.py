"""What counts as a difference between a change or an end and the one made in its place."""

from dataclasses import replace
from typing import Any

import pytest

from harness_actors.events import Event, ExecutorLost, TurnStarted
from harness_actors.messages import Message, MessageFacts
from harness_actors.records import Hop, RunChanged, StoredChange
from harness_actors.replay.differences import SHOWN_CHARS, Difference, of_changes, of_ends
from harness_actors.results import HarnessResult, Reason, Usage
from harness_actors.signals import RepairTrigger, TurnComplete
from harness_actors.state import USAGE, WAITED_S, StateDelta, Write

STEP = Write("tests.step", "set", 1)
TURN = TurnStarted(turn=1, max_turns=9)
REPAIR = Hop(to="repair", signal=RepairTrigger())
SAID, MORE = Message.user("said"), Message.user("more")


def between(
    stored: StateDelta, made: StateDelta, *, hops: tuple[Hop | None, Hop | None] = (None, None)
) -> list[Difference]:
    before = StoredChange(position=1, at=1.0, version=1, delta=stored, hop=hops[0], losses=0)
    after = RunChanged(run_id="r", version=1, delta=made, hop=hops[1], losses=0, end=None, at=2.0)
    return list(of_changes("here", before, after))


def kinds(*deltas: StateDelta, **more: Any) -> list[str]:
    """What differs, whichever of the two is the journal's."""
    first, second = deltas
    found = [one.what for one in between(first, second, **more)]
    assert [one.what for one in between(second, first, **more)] == found
    return found


def a_change(
    *writes: Write, messages: tuple[Message, ...] = (), events: tuple[Event, ...] = ()
) -> StateDelta:
    return StateDelta(writes, messages, events)


def test_what_is_the_same_in_all_parts_differs_in_none() -> None:
    whole = a_change(STEP, messages=(SAID, MORE), events=(TURN,))

    assert between(whole, whole, hops=(REPAIR, REPAIR)) == []


def test_each_part_of_a_change_is_compared() -> None:
    nothing = a_change()
    assert kinds(nothing, a_change(STEP)) == ["state"]
    assert kinds(a_change(STEP), a_change(Write("tests.step", "set", 2))) == ["state"]
    assert kinds(a_change(STEP), a_change(Write("tests.step", "append", 1))) == ["state"]
    assert kinds(nothing, a_change(events=(TURN,))) == ["events"]
    assert kinds(a_change(events=(TURN,)), a_change(events=(replace(TURN, turn=2),))) == ["events"]
    assert kinds(nothing, nothing, hops=(REPAIR, None)) == ["where it goes on"]
    resumed = Hop(to="repair", signal=RepairTrigger(resumed=True))
    assert kinds(nothing, nothing, hops=(REPAIR, resumed)) == ["where it goes on"]


def test_a_message_too_many_or_too_few_is_told_by_its_place() -> None:
    one, both = a_change(messages=(SAID,)), a_change(messages=(SAID, MORE))
    assert kinds(one, both) == ["message 2 (user)"]

    (told,) = between(one, both)
    assert (told.where, told.journal) == ("here", "")
    assert "more" in told.rerun


@pytest.mark.parametrize(
    ("stored", "made", "same"),
    [
        (SAID, replace(SAID, tokens=SAID.tokens + 1), False),
        (SAID, Message.user("Said"), False),
        (
            Message.tool_result("a", "x", failure="timed_out"),
            Message.tool_result("a", "x", failure="failed"),
            False,
        ),
        (Message.tool_result("a", "x"), Message.tool_result("a", "x", is_error=True), False),
        (
            Message.tool_result("a", "x", facts=MessageFacts(limit="time")),
            Message.tool_result("a", "x", facts=MessageFacts(limit="working_time")),
            False,
        ),
        # Where a user's code failed: in a rerun it is not run.
        (
            Message.tool_result("a", "x", failure="failed", facts=MessageFacts(traceback="here")),
            Message.tool_result("a", "x", failure="failed"),
            True,
        ),
        # An earlier version did not say how a call failed, nor by which bound.
        (
            replace(Message.tool_result("a", "x", is_error=True), failure=None),
            Message.tool_result("a", "x", failure="timed_out", facts=MessageFacts(limit="time")),
            True,
        ),
        (
            replace(Message.tool_result("a", "x", is_error=True), failure=None),
            Message.tool_result("a", "x"),
            False,
        ),
    ],
)
def test_two_messages_are_the_same_in_all_that_is_kept_of_them(
    stored: Message, made: Message, same: bool
) -> None:
    found = between(a_change(messages=(stored,)), a_change(messages=(made,)))

    assert (found == []) is same


def test_time_and_places_of_processes_are_no_difference() -> None:
    """How long it took, which of several hosts died, and where a user's code failed."""

    def used(seconds: float, calls: int = 1) -> Write:
        return Write(USAGE.name, "increment", {"model_calls": calls, "working_s": seconds})

    def lost(host: str, losses: int = 1) -> StateDelta:
        return a_change(events=(ExecutorLost(executor=host, losses=losses),))

    assert kinds(a_change(used(1.0)), a_change(used(2.0))) == []
    assert kinds(a_change(used(1.0)), a_change(used(1.0, calls=2))) == ["state"]
    assert (
        kinds(
            a_change(Write(WAITED_S.name, "increment", 1.0)),
            a_change(Write(WAITED_S.name, "increment", 9.0)),
        )
        == []
    )
    assert kinds(lost("agent_turn[0]"), lost("agent_turn[3]")) == []
    assert kinds(lost("agent_turn"), lost("repair")) == ["events"]
    assert kinds(lost("agent_turn"), lost("agent_turn", losses=2)) == ["events"]

    def failed(**more: str) -> Hop:
        error = {"reason": "agent_error", "message": "no such page", **more}
        return Hop(to="stop_decision", signal=TurnComplete(ending="error", error=error))

    nothing = a_change()
    assert kinds(nothing, nothing, hops=(failed(traceback="line 3"), failed())) == []
    assert kinds(nothing, nothing, hops=(failed(), failed(message="another"))) != []


def test_what_is_long_is_shown_in_short() -> None:
    (told,) = between(a_change(messages=(Message.user("x" * 9000),)), a_change())

    assert len(told.journal) == SHOWN_CHARS + 1
    assert told.journal.endswith("…")


# ---- endings -----------------------------------------------------------------------------

END = HarnessResult(
    run_id="r",
    status="done",
    reason=Reason(kind="completed", message="all is done"),
    turn_count=2,
    usage=Usage(model_calls=3, working_s=1.5),
    output_text="an answer",
    completion_verified=True,
)


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"status": "limit", "reason": Reason(kind="time", message="")}, ["reason", "status"]),
        ({"reason": Reason(kind="answered", message="all is done")}, ["reason"]),
        ({"turn_count": 3}, ["turns"]),
        ({"output_text": "another"}, ["answer"]),
        ({"completion_verified": False}, ["verified"]),
        ({"usage": Usage(model_calls=4)}, ["usage"]),
    ],
)
def test_each_part_of_an_end_is_compared(other: dict[str, Any], what: list[str]) -> None:
    assert [one.what for one in of_ends(END, replace(END, **other))] == what


def test_how_long_a_run_took_is_no_part_of_its_end() -> None:
    later = replace(END, wall_s=99.0, usage=replace(END.usage, working_s=88.0))

    assert list(of_ends(END, later)) == []
    assert list(of_ends(None, None)) == []


def test_an_end_in_the_place_of_none_is_told_in_full() -> None:
    found = {one.what: (one.journal, one.rerun) for one in of_ends(None, END)}

    assert found["status"] == ("not over", "done")
    assert found["answer"] == ("", "an answer")
    assert all(one.where == "the end" for one in of_ends(END, None))
