"""Runs below others that ask their user: asked for at the top, answered there, and waited for."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harness_actors.coordination.active import Effects
from harness_actors.errors import AnswerError
from harness_actors.results import Usage
from harness_actors.state import ANSWERS, ASKED_BELOW, AWAITED, USAGE, is_waiting, unanswered
from tests.bounded import bounded
from tests.coordination.agents import ROUND_USD, Round
from tests.coordination.test_children import a_tree, check_told_once, step_until, until_waiting
from tests.coordination.world import World

ONE_ASKS: Mapping[str, Sequence[Round]] = {
    "run": ["delegate", "effect"],
    "run.1": ["ask", "effect"],
    "run.2": ["effect"] * 3,
}
DEEP_ONES_ASK: Mapping[str, Sequence[Round]] = {
    "run": ["delegate", "effect"],
    "run.1": ["delegate", "effect"],
    "run.2": ["ask", "effect"],
    "run.1.1": ["effect", "ask", "effect"],
    "run.1.2": ["ask", "ask"],
}


def asked(world: World) -> list[str]:
    """The ids of what the run at the top asks."""
    return [question["id"] for question in unanswered(world.stored().state.values)]


def until_one_asks(world: World) -> None:
    """Go on until `run.1` has asked, and no further."""
    step_until(world, lambda: is_waiting(_values(world, "run.1")))


def _values(world: World, run_id: str) -> Mapping[str, Any]:
    return world.stored(run_id).state.values if run_id in world.run_ids() else {}


def answer(world: World, run_id: str = "run", **_: Any) -> None:
    """Answer all that is open."""
    answers = {number: f"the answer to {number}" for number in asked(world)}
    world.perform(world.coordinator.answer(world.stored(run_id), answers))
    world.settle()


def take_up(world: World) -> None:
    """A command takes up the tree."""
    for one in map(world.stored, world.run_ids()):
        if one.end is None:
            world.perform(world.coordinator.adopt(one, asked=True))
    world.perform(world.coordinator.taken_up("run"))
    world.settle()


def to_its_end(world: World) -> None:
    """Answer whatever is asked until the tree is over."""
    for _ in range(9):
        if world.ends():
            return
        answer(world)
        take_up(world)
    raise AssertionError("it does not end")


def test_it_is_asked_for_at_the_top_in_the_same_commit() -> None:
    world, _ = a_tree(ONE_ASKS)
    until_one_asks(world)
    assert asked(world) == ["1.q0", "1.q1"]
    assert is_waiting(world.stored("run.1").state.values)
    assert world.stored().state.values[ASKED_BELOW.name]["run.1"][0]["path"] == "explore"


def test_the_tree_waits_when_the_others_have_ended_and_not_before() -> None:
    world, team = a_tree(ONE_ASKS)
    until_one_asks(world)
    assert "run" in world.coordinator.runs
    world.settle()
    assert not world.coordinator.runs
    assert world.ends("run.2")
    assert is_waiting(world.stored().state.values)
    assert world.events()[-1] == "input_awaited"

    to_its_end(world)
    assert [end.status for end in world.ends()] == ["done"]
    assert set(team.effects.values()) == {1}
    check_told_once(world)


def test_nothing_of_it_is_left_when_all_is_answered() -> None:
    world, _ = a_tree(DEEP_ONES_ASK)
    world.settle()
    assert set(asked(world)) == {"1.1.q2", "1.1.q3", "1.2.q0", "1.2.q1", "2.q0", "2.q1"}
    to_its_end(world)
    assert [end.status for end in world.ends()] == ["done"]
    assert not world.stored().state.values[ASKED_BELOW.name]
    kin = world.coordinator.children
    assert not any((kin._below, kin._queued, kin._aside, kin._resting, kin.limits._used))
    check_told_once(world)


def test_each_has_the_answers_to_its_own_questions() -> None:
    world, _ = a_tree(DEEP_ONES_ASK)
    world.settle()
    to_its_end(world)
    for run_id in ("run.1.1", "run.1.2", "run.2"):
        given = world.stored(run_id).state.values[ANSWERS.name]
        at_the_top = run_id.removeprefix("run.")
        assert given == {number: f"the answer to {at_the_top}.{number}" for number in given}
        assert len(given) >= 2


def test_one_that_is_answered_goes_on_while_the_others_do() -> None:
    plans: Mapping[str, Sequence[Round]] = {**ONE_ASKS, "run.2": ["turn"] * 40}
    world, _ = a_tree(plans)
    until_one_asks(world)
    answers = dict.fromkeys(asked(world), "yes")
    world.perform(world.coordinator.answer(world.stored(), answers))
    world.perform(world.coordinator.adopt(world.stored("run.1"), asked=True))
    step_until(world, lambda: bool(world.ends("run.1")))
    assert world.ends("run.1")[0].status == "done"
    assert "input_awaited" not in world.events(), "nobody else stood still for that"


def test_one_that_asks_itself_as_well_takes_its_own_answers_only() -> None:
    plans: dict[str, Sequence[Round]] = {"run.1": ["ask"]}
    plans["run"] = ["delegate", *("lookup",) * 9, "ask"]

    world, team = a_tree(plans, children=1)
    team.beside = True
    world.settle()
    assert asked(world) == ["q20", "q21", "1.q0", "1.q1"]
    with pytest.raises(AnswerError, match=r"has no question '1\.q9'"):
        world.coordinator.answer(world.stored(), {"q20": "a", "1.q9": "b"})
    to_its_end(world)
    assert world.ends()[0].status == "done"


def test_one_that_is_over_is_asked_for_no_more() -> None:
    world, _ = a_tree(ONE_ASKS)
    world.settle()
    tree = [world.stored(run_id) for run_id in ("run",)]
    world.perform(world.coordinator.stop_idle(world.stored("run.1"), "cancel", tree=tree))
    world.settle()
    assert asked(world) == []
    assert world.ends("run.1")[0].status == "cancelled"
    take_up(world)
    assert world.ends()[0].status == "done"
    check_told_once(world)


def test_those_in_the_queue_do_not_wait_for_one_that_asks() -> None:
    plans: Mapping[str, Sequence[Round]] = {**ONE_ASKS, "run.3": ["effect"]}
    world, _ = a_tree(plans, children=3, config=bounded({"sub_agents": {"max_parallel": 1}}))
    world.settle()
    assert world.ends("run.2")
    assert world.ends("run.3")
    assert asked(world) == ["1.q0", "1.q1"]


def test_what_it_has_used_counts_after_a_death_though_nobody_serves_it() -> None:
    plans: Mapping[str, Sequence[Round]] = {**ONE_ASKS, "run.2": ["lookup"] * 50}
    world, _ = a_tree(plans, config=bounded({"limits": {"model_calls": 40}}))
    world.perform(world.coordinator.allow(1000 * ROUND_USD, spent_usd=0.0))
    until_one_asks(world)
    world.crash()
    world.commit()
    used = sum(
        (
            Usage(**world.stored(run_id).state.values.get(USAGE.name, {}))
            for run_id in world.run_ids()
        ),
        Usage(),
    )
    assert world.coordinator.children.limits._used["run"].model_calls == used.model_calls
    assert "run.1" not in world.coordinator.runs


@pytest.mark.parametrize("steps", range(0, 120, 4))
def test_a_coordinator_that_dies_anywhere_loses_no_question(steps: int) -> None:
    world, team = a_tree(DEEP_ONES_ASK)
    world.commit()
    for _ in range(steps):
        if world.unwritten:
            world.commit()
        elif not any(world.move(host) for host in list(world.hosts.values())):
            break
    world.crash()
    world.settle()
    to_its_end(world)
    assert [end.status for end in world.ends()] == ["done"]
    assert all(world.ends(run_id) for run_id in world.run_ids())
    assert set(team.effects.values()) == {1}
    check_told_once(world)


def test_a_tree_that_is_to_park_parks_with_its_questions_and_asks_when_it_goes_on() -> None:
    world, _ = a_tree(ONE_ASKS)
    until_waiting(world)
    until_one_asks(world)
    world.perform(world.coordinator.stop("run", "park"))
    world.settle()
    assert world.events()[-1] == "run_parked"
    with pytest.raises(AnswerError, match="it waits for no answer"):
        world.coordinator.answer(world.stored("run.2"), {"q1": "x"})
    take_up(world)
    assert world.events()[-1] == "input_awaited"
    to_its_end(world)
    assert world.ends()[0].status == "done"


def test_those_that_are_aside_end_with_a_tree_that_has_nothing_left() -> None:
    plans: dict[str, Sequence[Round]] = {
        "run": ["delegate", "effect"],
        "run.1": ["delegate", "effect"],
        "run.1.1": ["ask"],
        "run.1.2": ["ask"],
    }
    world = next(filter(None, (_parked_while_it_asks(plans, steps) for steps in range(200))))
    world.perform(world.coordinator.allow(1.0, spent_usd=2.0))
    take_up(world)
    assert [world.ends(run_id)[0].reason.kind for run_id in world.run_ids()] == [
        "budget",
        "budget",
        "parent",
        "parent",
    ]


def _parked_while_it_asks(plans: Mapping[str, Sequence[Round]], steps: int) -> World | None:
    """A tree that was put aside with two that ask; None where it does not come to that."""
    world, team = a_tree(plans, children=1)
    step_until(world, lambda: "run.1" in world.run_ids())
    team.children = 2
    step_until(world, lambda: "run.1.2" in world.run_ids())
    for _ in range(steps):
        if world.unwritten:
            world.commit()
        elif not any(world.move(host) for host in list(world.hosts.values())):
            return None
    world.perform(world.coordinator.stop("run", "park"))
    world.settle()
    ask = all(is_waiting(_values(world, run_id)) for run_id in ("run.1.1", "run.1.2"))
    return world if ask and world.events()[-1] == "run_parked" else None


def test_one_that_asks_is_cancelled_by_the_run_that_has_begun_it() -> None:
    plans: Mapping[str, Sequence[Round]] = {**ONE_ASKS, "run.2": ["turn"] * 40}
    world, _ = a_tree(plans)
    until_one_asks(world)
    run, family = world.coordinator.runs["run"], world.coordinator.children
    child = family.aside(run, "run.1")
    assert child is not None
    effects = Effects()
    family.cancel(child, effects)
    world.perform(effects)
    world.settle()
    assert world.ends("run.1")[0].status == "cancelled"
    assert asked(world) == []
    assert world.ends()[0].status == "done"
    check_told_once(world)


def come_back(world: World, answers: Mapping[str, str]) -> None:
    """`run.1.1` is answered while others go on, and served again with the one above it."""
    world.perform(world.coordinator.answer(world.stored(), answers))
    for run_id in ("run.1", "run.1.1"):
        world.perform(world.coordinator.adopt(world.stored(run_id), asked=True))
    world.perform(world.coordinator.taken_up("run"))


def with_two_that_ask_below_one(others: Sequence[Round]) -> World:
    """A tree of which one goes on while those below another one have asked, and left with it."""
    world, _ = a_tree({**DEEP_ONES_ASK, "run.1.1": ["ask", "effect"], "run.2": others})
    ask = ("run.1.1", "run.1.2")
    step_until(world, lambda: all(is_waiting(_values(world, run_id)) for run_id in ask))
    step_until(world, lambda: "run.1" not in world.coordinator.runs)
    assert {"run", "run.2"} <= world.coordinator.runs.keys()
    return world


def test_one_that_goes_on_for_an_answer_below_it_waits_for_all_others() -> None:
    world = with_two_that_ask_below_one(["turn"] * 40)
    answers = {number: "yes" for number in asked(world) if number.startswith("1.1.")}
    come_back(world, answers)
    step_until(world, lambda: bool(world.ends("run.1.1")))
    assert not world.ends("run.1.2")
    assert world.stored("run.1").state.values[AWAITED.name], "another one of its is not over"

    to_its_end(world)
    assert world.ends()[0].status == "done"
    check_told_once(world)


def test_one_of_two_that_ask_is_cancelled_while_the_tree_goes_on() -> None:
    world = with_two_that_ask_below_one(["turn"] * 40)
    tree = [world.stored(run_id) for run_id in ("run", "run.1", "run.1.1", "run.2")]
    world.perform(world.coordinator.stop_idle(world.stored("run.1.2"), "cancel", tree=tree))
    world.settle(hosts=False)
    assert world.ends("run.1.2")[0].status == "cancelled"
    assert all(number.startswith("1.1.") for number in asked(world))
    to_its_end(world)
    assert world.ends()[0].status == "done"
    check_told_once(world)


def test_one_of_two_children_that_ask_is_cancelled_while_the_third_goes_on() -> None:
    plans: Mapping[str, Sequence[Round]] = {
        "run": ["delegate", "effect"],
        "run.1": ["ask"],
        "run.2": ["ask"],
        "run.3": ["turn"] * 40,
    }
    world, _ = a_tree(plans, children=3)
    ask = ("run.1", "run.2")
    step_until(world, lambda: all(is_waiting(_values(world, run_id)) for run_id in ask))
    tree = [world.stored(run_id) for run_id in ("run", "run.2", "run.3")]
    world.perform(world.coordinator.stop_idle(world.stored("run.1"), "cancel", tree=tree))
    step_until(world, lambda: bool(world.ends("run.3")))
    assert not world.ends()
    to_its_end(world)
    assert world.ends()[0].status == "done"
    check_told_once(world)


def test_no_more_are_served_at_once_when_some_come_back_with_an_answer() -> None:
    plans: Mapping[str, Sequence[Round]] = {
        "run": ["delegate", "effect"],
        "run.1": ["delegate", "effect", "effect"],
        "run.1.1": ["ask"],
        "run.2": ["effect"] * 20,
    }
    world, team = a_tree(plans, config=bounded({"sub_agents": {"max_parallel": 1}}))
    step_until(world, lambda: "run.1" in world.run_ids())
    team.children = 1
    step_until(world, lambda: is_waiting(_values(world, "run.1.1")))
    # Its place is free, so that the other one is served when it comes back.
    step_until(world, lambda: len(world.log("run.2")) > 4)
    come_back(world, dict.fromkeys(asked(world), "yes"))
    world.perform(world.coordinator.stop("run.1.1", "cancel"))
    assert not world.coordinator.runs["run.1"].waits_for_children
    assert world.coordinator.runs["run.1"].slot is None, "the other one has its place"
    world.settle()
    ends = {run_id: world.ends(run_id)[0].status for run_id in world.run_ids()}
    assert ends.pop("run.1.1") == "cancelled"
    assert set(ends.values()) == {"done"}
    check_told_once(world)
