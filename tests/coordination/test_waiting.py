"""Runs that ask their user: put aside, answered, taken up again."""

from collections.abc import Mapping
from typing import Any

import pytest

from harness_actors.coordination.deadlines import GRACE_S
from harness_actors.coordination.protocol import Slot
from harness_actors.coordination.waiting import MOST_ANSWER_CHARS
from harness_actors.errors import AnswerError
from harness_actors.events import InputAwaited
from harness_actors.records import RunAdded, SnapshotTaken
from harness_actors.signals import Signal, Waiting
from harness_actors.state import (
    AGENT_TURN,
    ANSWERS,
    PARKING,
    QUESTIONS,
    TURN_COUNT,
    WAITED_S,
    StateDelta,
    Write,
    is_waiting,
    unanswered,
)
from harness_actors.stores.codec import pack_delta
from harness_actors.testing import ManualClock
from harness_actors.turn.questions import NOT_BEGUN
from tests.bounded import bounded
from tests.coordination.agents import DONE, Team
from tests.coordination.world import TOOLS, Served, Work, World, a_spec

BOTH = {"q0": "yes", "q1": "no"}


def asked(*plan: str, **facts: Any) -> World:
    """A run that waits for two answers."""
    world = World(Team(plan=plan or ("ask", "effect")).handlers)  # type: ignore[arg-type]
    world.submit(a_spec(**facts))
    world.settle()
    return world


def answer(world: World, answers: Mapping[str, str]) -> None:
    world.perform(world.coordinator.answer(world.stored(), answers))
    world.settle()


def take_up(world: World, *, asked: bool = True) -> None:
    world.perform(world.coordinator.adopt(world.stored(), asked=asked))
    world.settle()


def told_last(world: World) -> InputAwaited:
    found = [e for c in world.changes() for e in c.delta.events if isinstance(e, InputAwaited)]
    return found[-1]


def results_of(world: World) -> list[str]:
    return [message.text for message in world.log() if message.role == "tool"]


def test_a_run_that_asks_is_at_no_host_and_nobodys() -> None:
    world = asked()

    assert not world.coordinator.runs
    assert all(not host.runs for host in world.hosts.values())
    assert is_waiting(world.stored().state.values)
    assert world.events()[-1] == "input_awaited"
    assert [question["id"] for question in told_last(world).questions] == ["q0", "q1"]
    assert not world.ends()
    assert world.stored().command == ""


def test_the_state_of_a_run_that_waits_is_kept_whole_for_those_who_list_it() -> None:
    world = asked()
    (snapshot,) = [entry for entry in world.disk if isinstance(entry, SnapshotTaken)]
    assert snapshot.version == world.stored().state.version
    assert snapshot.values == world.stored().state.values


def test_answers_are_its_results_and_it_is_the_same_turn() -> None:
    world = asked()
    answer(world, BOTH)
    assert not world.coordinator.runs, "an answer takes up no run"
    assert not unanswered(world.stored().state.values)

    take_up(world)

    assert results_of(world) == ["yes", "no", "done"]
    assert world.ends()[0].status == DONE.status
    assert world.stored().state.values[TURN_COUNT.name] == 1
    assert not is_waiting(world.stored().state.values)


def test_answers_may_come_one_by_one_and_in_any_order() -> None:
    world = asked()
    answer(world, {"q1": "no"})
    take_up(world)
    assert not world.coordinator.runs
    assert [question["id"] for question in told_last(world).questions] == ["q0"]

    answer(world, {"q0": "yes"})
    take_up(world)

    assert results_of(world) == ["yes", "no", "done"]


def test_a_run_that_is_asked_for_too_early_says_again_what_it_waits_for() -> None:
    world = asked()
    take_up(world)
    assert not world.coordinator.runs
    assert world.events().count("input_awaited") == 2


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ({"q7": "yes"}, "it has no question 'q7'; open are q0, q1"),
        ({"q0": " \n"}, "the answer to 'q0' is empty"),
        ({"q0": ""}, "the answer to 'q0' is empty"),
        ({"q0": "x" * (MOST_ANSWER_CHARS + 1)}, "has 100001 characters, and may have 100000"),
        ({"q0": "x" * 10_000_000}, "has 10000000 characters"),
        ({"q0": "\ud800"}, "the answer to 'q0' is not valid Unicode"),
        ({"q0": 3}, "the answer to 'q0' is empty"),
        ({"q0": "yes", "q7": "no"}, "it has no question 'q7'"),
    ],
)
def test_what_is_no_answer_is_refused_and_changes_nothing(
    answers: dict[str, str], problem: str
) -> None:
    world = asked()
    before = len(world.disk)

    with pytest.raises(AnswerError) as refused:
        answer(world, answers)

    assert problem in str(refused.value)
    world.settle()
    assert len(world.disk) == before


def test_the_first_answer_wins() -> None:
    world = asked()
    answer(world, {"q0": "first"})

    with pytest.raises(AnswerError, match="'q0' was answered before; the first answer counts"):
        answer(world, {"q0": "second", "q1": "no"})

    assert world.stored().state.values[ANSWERS.name] == {"q0": "first"}


def test_an_answer_costs_the_same_however_many_there_are() -> None:
    """The last of many questions of one message, and the first."""
    many = 64

    def asks(run: Served, _signal: Signal) -> Work:
        asked = [
            {"id": f"q{number}", "call_id": f"c{number}", "text": "?", "options": [], "why": ""}
            for number in range(many)
        ]
        yield TOOLS
        return StateDelta((Write(QUESTIONS.name, "set", {"asked": asked, "held": []}),)), Waiting()

    world = World({**Team().handlers, AGENT_TURN: asks})
    world.submit(a_spec())
    world.settle()
    said = {f"q{number}": f"as the plan of part {number} says it: yes" for number in range(many)}
    for question_id, text in said.items():
        answer(world, {question_id: text})

    committed = [change.delta for change in world.changes()[-many:]]
    sizes = [len(pack_delta(delta) or b"") for delta in committed]
    assert world.stored().state.values[ANSWERS.name] == said
    assert max(sizes) <= min(sizes) + 4, sizes


def test_an_answer_that_is_given_once_more_was_taken_wherever_the_run_is_by_then() -> None:
    """The cell may have died before it could say that the answer is on disk."""
    world = asked("ask", "effect", "effect")
    answer(world, BOTH)
    before = len(world.disk)

    answer(world, BOTH)
    answer(world, {"q1": BOTH["q1"]})
    assert len(world.disk) == before, "nothing is written"

    world.perform(world.coordinator.adopt(world.stored(), asked=True))
    assert "run" in world.coordinator.runs
    answer(world, BOTH)
    world.settle()
    assert world.ends()[0].status == "done"
    answer(world, BOTH)
    assert results_of(world) == ["yes", "no", "done", "done"]


def test_an_answer_may_come_again_with_a_new_one() -> None:
    world = asked()
    answer(world, {"q0": "yes"})
    answer(world, BOTH)
    assert world.events().count("question_answered") == 2
    assert world.stored().state.values[ANSWERS.name] == BOTH


def test_an_answer_to_a_run_that_waits_for_none_is_refused() -> None:
    world = World(Team(plan=("effect",)).handlers)
    world.submit(a_spec())
    world.commit()
    with pytest.raises(AnswerError, match="in progress, and waits for no answer"):
        answer(world, BOTH)
    world.settle()
    with pytest.raises(AnswerError, match="it is over: done"):
        answer(world, BOTH)

    parked = World(Team(plan=("effect", "effect")).handlers)
    parked.submit(a_spec())
    parked.commit()
    parked.perform(parked.coordinator.stop("run", "park_now"))
    parked.settle()
    with pytest.raises(AnswerError, match="it waits for no answer"):
        answer(parked, BOTH)


@pytest.mark.parametrize("answers", [{}, {"q0": "yes"}, BOTH], ids=["none", "one", "all"])
def test_a_run_that_waits_can_be_cancelled(answers: dict[str, str]) -> None:
    world = asked()
    if answers:
        answer(world, answers)

    world.perform(world.coordinator.stop_idle(world.stored(), "cancel"))
    world.settle()

    (end,) = world.ends()
    assert (end.status, end.reason.kind) == ("cancelled", "user")
    assert results_of(world) == [NOT_BEGUN, NOT_BEGUN]
    with pytest.raises(AnswerError, match="it is over: cancelled"):
        answer(world, {"q1": "not that"})


def test_what_a_run_waited_before_it_was_cancelled_is_none_of_its_time() -> None:
    world = asked()
    world.clock.advance(1000.0)
    answer(world, BOTH)
    world.perform(world.coordinator.adopt(world.stored(), asked=True))
    world.clock.advance(3.0)
    world.perform(world.coordinator.stop("run", "park_now"))
    world.settle()
    again = asked()
    again.clock.advance(500.0)
    for cut in (world, again):
        cut.perform(cut.coordinator.stop_idle(cut.stored(), "cancel"))
        cut.settle()
    assert world.ends()[0].wall_s == pytest.approx(3.0)
    assert again.ends()[0].wall_s == 0.0


def test_to_park_a_run_that_waits_changes_nothing() -> None:
    world = asked()
    before = len(world.disk)
    world.perform(world.coordinator.stop_idle(world.stored(), "park"))
    assert len(world.disk) == before


def test_a_run_that_was_to_park_waits_instead_and_is_not_parked_after_it() -> None:
    world = World(Team(plan=("ask", "effect")).handlers)
    world.submit(a_spec())
    until_the_question_is_on_its_way(world)
    world.perform(world.coordinator.stop("run", "park"))
    world.settle()

    assert world.events()[-1] == "input_awaited"
    assert not world.stored().state.values.get(PARKING.name)
    answer(world, BOTH)
    take_up(world)
    assert world.ends()[0].status == "done"


def test_a_run_that_waits_is_not_gone_on_with_after_a_restart() -> None:
    world = asked()
    world.crash()
    world.settle()
    assert not world.coordinator.runs
    assert [e.command for e in world.disk if isinstance(e, RunAdded)] == ["command", ""]


def test_a_cell_that_dies_between_an_answer_and_the_run_s_going_on_loses_neither() -> None:
    world = asked()
    answer(world, BOTH)
    world.crash()
    take_up(world)
    assert results_of(world) == ["yes", "no", "done"]


def test_a_cell_that_dies_while_a_run_goes_on_with_its_answers_gives_them_once() -> None:
    for steps in range(25):
        world = asked()
        answer(world, BOTH)
        world.perform(world.coordinator.adopt(world.stored(), asked=True))
        for _ in range(steps):
            if world.unwritten:
                world.commit()
            else:
                any(world.move(host) for host in list(world.hosts.values()))
        world.crash()
        if not world.coordinator.runs and not world.ends():
            take_up(world)
        world.settle()

        assert results_of(world)[:2] == ["yes", "no"], steps
        assert len(world.ends()) == 1
        assert world.stored().state.values[WAITED_S.name] == 0.0


def test_the_time_of_a_run_stands_still_while_it_waits() -> None:
    world = asked(config=bounded({"limits": {"time_s": 100.0}}))
    world.clock.advance(1_000_000.0)
    world.perform(world.coordinator.overdue())
    assert not world.ends()
    answer(world, BOTH)
    world.clock.advance(500_000.0)
    world.perform(world.coordinator.adopt(world.stored(), asked=True))

    run = world.coordinator.runs["run"]
    assert run.due is not None
    assert run.due[0] == pytest.approx(world.clock.now() + 100.0)
    world.clock.advance(99.0)
    world.perform(world.coordinator.overdue())
    world.settle()

    (end,) = world.ends()
    assert end.status == "done"
    assert end.wall_s == pytest.approx(99.0)


def test_the_time_of_a_run_goes_on_when_it_does() -> None:
    world = asked(config=bounded({"limits": {"time_s": 100.0}}))
    world.clock.advance(1000.0)
    answer(world, BOTH)
    world.perform(world.coordinator.adopt(world.stored(), asked=True))
    world.clock.advance(100.0 + GRACE_S)
    world.perform(world.coordinator.overdue())
    world.settle()
    (end,) = world.ends()
    assert (end.status, end.reason.kind) == ("limit", "time")


def test_a_clock_that_goes_back_makes_no_wait_shorter_than_nothing() -> None:
    world = asked()
    world.clock = ManualClock(world.clock.now() - 50.0)
    world.crash()
    answer(world, BOTH)
    take_up(world)
    assert world.stored().state.values[WAITED_S.name] == 0.0


def until_the_question_is_on_its_way(world: World) -> None:
    turn = Slot(AGENT_TURN)
    while turn not in world.hosts or not world.hosts[turn].outbox:
        if world.unwritten:
            world.commit()
        else:
            any(world.move(host) for host in list(world.hosts.values()))
    world.hear(turn)  # that its turn begins
    while not world.hosts[turn].outbox:
        world.move(world.hosts[turn])


def test_a_run_whose_budget_is_spent_by_others_while_it_asks_ends_and_does_not_wait() -> None:
    world = World(Team(plan=("ask", "effect")).handlers)
    world.submit(a_spec())
    until_the_question_is_on_its_way(world)
    world.perform(world.coordinator.allow(2.0, spent_usd=2.5))
    world.settle()
    (end,) = world.ends()
    assert (end.status, end.reason.kind) == ("limit", "budget")
    assert "input_awaited" not in world.events()
    assert results_of(world) == [NOT_BEGUN, NOT_BEGUN]


def test_a_run_that_asks_with_the_last_of_its_money_waits_and_ends_when_it_goes_on() -> None:
    world = World(Team(plan=("ask", "effect")).handlers)
    world.perform(world.coordinator.allow(1.0, spent_usd=0.0))
    world.submit(a_spec())
    world.settle()
    assert world.events()[-1] == "input_awaited"

    answer(world, BOTH)
    take_up(world)

    (end,) = world.ends()
    assert (end.status, end.reason.kind) == ("limit", "budget")


def test_a_run_may_ask_again_and_again() -> None:
    world = asked("ask", "ask", "effect", "turn", "ask")
    for first in (0, 2, 8):
        answer(world, {f"q{first}": f"a{first}", f"q{first + 1}": f"b{first}"})
        take_up(world)
    assert results_of(world) == ["a0", "b0", "a2", "b2", "done", "a8", "b8"]
    assert world.ends()[0].status == "done"
