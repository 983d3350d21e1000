"""Runs below others that are answered while some of their tree go on, and some leave service."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from harness_actors.coordination.active import Effects
from harness_actors.policies import Approve
from harness_actors.policies.decisions import decision_text
from harness_actors.state import is_waiting
from harness_actors.stores import SqliteJournal
from tests.actors.test_admission import Entrance
from tests.coordination.agents import Round, Team
from tests.coordination.test_asked_below import ONE_ASKS, asked, to_its_end
from tests.coordination.test_children import a_tree, check_told_once
from tests.coordination.world import World

ONE_BELOW_ASKS: Mapping[str, Sequence[Round]] = {
    "run": ["delegate", "effect"],
    "run.1": ["delegate", "effect"],
    "run.2": ["turn"] * 40,
    "run.1.1": ["ask", "effect"],
    "run.1.2": ["turn"] * 40,
}


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(tmp_path / "runs.db")) as journal:
        journal.begin_term()
        yield journal


def go_on_until(world: World, reached: Callable[[], bool]) -> None:
    """Go on with all runs alike."""
    for _ in range(1_000):
        if reached():
            return
        while world.unwritten:
            world.commit()
        for host in list(world.hosts.values()):
            while host.inbox or host.outbox:
                world.move(host)
            for run_id in host.ready():
                host.work(run_id)
    raise AssertionError("it never comes to that")


def waits(world: World, run_id: str) -> bool:
    return run_id in world.run_ids() and is_waiting(world.stored(run_id).state.values)


async def answer(entrance: Entrance, about: str) -> None:
    """Answer all that is open and begins like this."""
    answers = {number: "yes" for number in asked(entrance.world) if number.startswith(about)}
    assert answers
    await entrance.admission.answer("run", answers)


def check_it_ends(world: World, team: Team, done: Sequence[str]) -> None:
    """All of the tree come to their ends, these by themselves."""
    world.settle()
    to_its_end(world)
    assert all(len(world.ends(run_id)) == 1 for run_id in world.run_ids())
    assert [world.ends(run_id)[0].status for run_id in done] == ["done"] * len(done)
    assert set(team.effects.values()) == {1}
    check_told_once(world)


async def answered_while_it_leaves(journal: SqliteJournal) -> tuple[Entrance, Team]:
    """A tree that is to park, of which `run.1.1` had asked and has its answers."""
    world, team = a_tree(ONE_BELOW_ASKS)
    go_on_until(world, lambda: waits(world, "run.1.1"))
    world.perform(world.coordinator.stop("run", "park"))
    entrance = Entrance(world, journal)
    await answer(entrance, "1.1.")
    return entrance, team


async def test_one_that_is_answered_while_its_tree_is_put_aside_goes_on_when_that_does(
    journal: SqliteJournal,
) -> None:
    entrance, team = await answered_while_it_leaves(journal)
    world = entrance.world
    assert "run.1.1" not in world.coordinator.runs
    world.settle()
    assert not world.coordinator.runs, "all of it is aside"
    assert world.events()[-1] == "run_parked"
    check_it_ends(world, team, world.run_ids())


async def test_one_that_was_answered_meanwhile_goes_on_with_a_tree_that_does_after_all(
    journal: SqliteJournal,
) -> None:
    entrance, team = await answered_while_it_leaves(journal)
    world = entrance.world
    await entrance.admission.take_up(["run"], asked=True)
    world.settle()
    assert world.ends("run.1.1")
    check_it_ends(world, team, world.run_ids())


def with_one_that_asks_as_well() -> tuple[World, Team]:
    """`run` goes on, as does `run.1`, which is to ask; `run.1.1` has asked."""
    plans: Mapping[str, Sequence[Round]] = {
        **ONE_BELOW_ASKS,
        "run.1": ["delegate", *("effect",) * 9, "ask", "effect"],
        "run.1.2": ["effect"] * 40,
    }
    world, team = a_tree(plans)
    go_on_until(world, lambda: "run.1" in world.run_ids())
    team.beside = True
    go_on_until(world, lambda: waits(world, "run.1.1"))
    return world, team


async def test_one_that_is_answered_below_one_that_leaves_goes_on_with_that(
    journal: SqliteJournal,
) -> None:
    world, team = with_one_that_asks_as_well()
    entrance = Entrance(world, journal)
    go_on_until(world, lambda: world.coordinator.runs["run.1"].held is not None)
    await answer(entrance, "1.1.")
    assert "run.1.1" not in world.coordinator.runs
    go_on_until(world, lambda: waits(world, "run.1"))
    assert "run.2" in world.coordinator.runs, "the others go on meanwhile"

    await answer(entrance, "1.q")
    assert {"run.1", "run.1.1", "run.1.2"} <= world.coordinator.runs.keys()
    check_it_ends(world, team, ["run", "run.1", "run.2"])


async def test_those_that_were_put_aside_with_one_that_asks_go_on_with_it(
    journal: SqliteJournal,
) -> None:
    world, team = with_one_that_asks_as_well()
    entrance = Entrance(world, journal)
    go_on_until(world, lambda: waits(world, "run.1"))
    assert not {"run.1.1", "run.1.2"} & world.coordinator.runs.keys()

    await answer(entrance, "1.q")
    assert {"run.1", "run.1.2"} <= world.coordinator.runs.keys()
    assert "run.1.1" not in world.coordinator.runs, "it has no answer yet"
    check_it_ends(world, team, ["run", "run.1", "run.2"])


async def test_those_that_end_while_answers_to_them_are_taken_stay_over(
    journal: SqliteJournal,
) -> None:
    plans: dict[str, Sequence[Round]] = {**ONE_BELOW_ASKS, "run.1.2": ["ask"]}
    plans["run.1.3"] = ["turn"] * 40
    world, team = a_tree(plans)
    go_on_until(world, lambda: "run.1" in world.run_ids())
    team.children = 3
    go_on_until(world, lambda: waits(world, "run.1.1") and waits(world, "run.1.2"))
    entrance = Entrance(world, journal)
    answers = dict.fromkeys(asked(world), "yes")

    def cancel() -> None:
        # The first of them was read by then.
        if entrance.reads == 3:
            world.perform(world.coordinator.stop("run.1", "cancel"))

    entrance.reading = cancel
    await entrance.admission.answer("run", answers)
    assert entrance.reads >= 3
    assert not world.coordinator.children._resting.get("run"), "nobody is aside"
    world.settle()
    assert world.ends("run.1.1")[0].status == "cancelled"
    assert world.ends()[0].status == "done"
    assert not world.coordinator.runs


async def test_a_tree_that_leaves_while_arguments_are_looked_at_has_its_answers_and_its_last_words(
    journal: SqliteJournal,
) -> None:
    world, team = a_tree(ONE_ASKS)
    team.call = {"tool": "order", "arguments": "{}"}
    go_on_until(world, lambda: waits(world, "run.1"))
    entrance = Entrance(world, journal)
    answers = dict.fromkeys(asked(world), decision_text(Approve(arguments={"count": 2})))

    def leave() -> None:
        if entrance.reads == 2:
            world.settle()

    entrance.reading = leave
    await entrance.admission.answer("run", answers)
    assert not world.coordinator.runs, "it has left meanwhile"
    check_it_ends(world, team, world.run_ids())


async def test_one_that_asks_is_cancelled_while_its_tree_leaves_service(
    journal: SqliteJournal,
) -> None:
    world, team = a_tree(ONE_ASKS)
    go_on_until(world, lambda: waits(world, "run.1"))
    entrance = Entrance(world, journal)

    def leave(run_ids: Sequence[str]) -> None:
        if "run.2" in run_ids:
            world.settle()

    entrance.ending = leave
    await entrance.admission.stop(["run.1"], "cancel")
    assert not world.coordinator.runs, "it has left meanwhile"
    check_it_ends(world, team, ["run", "run.2"])
    assert world.ends("run.1")[0].status == "cancelled"


@pytest.mark.parametrize("reading", range(1, 7))
@pytest.mark.parametrize("by_its_parent", [True, False])
async def test_one_that_asks_is_cancelled_once_where_others_do_so_just_then(
    journal: SqliteJournal, by_its_parent: bool, reading: int
) -> None:
    world, _ = a_tree(ONE_ASKS)
    go_on_until(world, lambda: waits(world, "run.1"))
    entrance = Entrance(world, journal)

    def cancel() -> None:
        if entrance.reads != reading:
            return
        if not by_its_parent:
            world.perform(world.coordinator.stop("run", "cancel"))
            return
        family, effects = world.coordinator.children, Effects()
        child = family.aside(world.coordinator.runs["run"], "run.1")
        assert child is not None
        family.cancel(child, effects)
        world.perform(effects)

    entrance.reading = cancel
    await entrance.admission.stop(["run.1"], "cancel")
    assert entrance.reads >= reading
    world.settle()
    assert [len(world.ends(run_id)) for run_id in world.run_ids()] == [1, 1, 1]
    assert world.ends("run.1")[0].status == "cancelled"
