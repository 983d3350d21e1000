"""Runs that have no round to finish when their tree leaves service, and others below them that do:
one is queued because others were served when it was answered, or waits for the quarantine host."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from harness_actors.coordination.protocol import QUARANTINE, Slot
from harness_actors.coordination.routing import LOSSES_BEFORE_QUARANTINE
from harness_actors.state import AGENT_TURN, COMPACTION, STOP_DECISION
from harness_actors.stores import SqliteJournal
from tests.actors.test_admission import Entrance
from tests.actors.test_answers_below import answer, check_it_ends, go_on_until, waits
from tests.bounded import bounded
from tests.coordination.agents import Round, Team
from tests.coordination.test_asked_below import take_up
from tests.coordination.test_children import a_tree, parked_in
from tests.coordination.world import World, a_spec

PLANS: Mapping[str, Sequence[Round]] = {
    "run": ["delegate", "effect"],
    "run.1": ["delegate", "ask", "effect"],
    "run.1.1": ["turn"] * 40,
    "run.2": ["turn"] * 40,
}
ALONE = Slot(AGENT_TURN, index=QUARANTINE)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(tmp_path / "runs.db")) as journal:
        journal.begin_term()
        yield journal


def has_a_round(world: World, run_id: str) -> bool:
    run = world.coordinator.runs.get(run_id)
    return run is not None and run.makes_rounds


def has_a_host(world: World, run_id: str) -> bool:
    return world.coordinator.runs[run_id].slot is not None


async def queued_above_another(
    journal: SqliteJournal, plans: Mapping[str, Sequence[Round]] = PLANS, *, beside: bool = False
) -> tuple[Entrance, Team]:
    """`run.1` was answered while `run.2` had its place; `run.1.1` goes on meanwhile."""
    world, team = a_tree(plans, config=bounded({"sub_agents": {"max_parallel": 1}}))
    team.beside = beside
    go_on_until(world, lambda: "run.1" in world.run_ids())
    team.beside, team.children = True, 1
    go_on_until(world, lambda: waits(world, "run.1") and has_a_round(world, "run.2"))
    entrance = Entrance(world, journal)
    await answer(entrance, "1.q")
    go_on_until(world, lambda: has_a_round(world, "run.1.1") and has_a_round(world, "run.2"))
    assert world.coordinator.runs["run.1"].slot is None
    return entrance, team


async def test_one_that_is_queued_parks_after_those_below_it(journal: SqliteJournal) -> None:
    entrance, team = await queued_above_another(journal)
    world = entrance.world
    world.perform(world.coordinator.stop("run", "park"))
    assert {"run", "run.1", "run.1.1", "run.2"} == world.coordinator.runs.keys()
    world.settle()
    assert not world.coordinator.runs
    last = parked_in(world)[-4:]
    assert set(last) == {"run", "run.1", "run.1.1", "run.2"}
    assert last.index("run.1.1") < last.index("run.1") < last.index("run")
    take_up(world)
    check_it_ends(world, team, ["run", "run.1", "run.2"])


async def test_one_that_is_queued_leaves_after_those_below_it_where_one_above_asks(
    journal: SqliteJournal,
) -> None:
    plans: Mapping[str, Sequence[Round]] = {
        **PLANS,
        "run": ["delegate", *("effect",) * 40, "ask", "effect"],
    }
    entrance, team = await queued_above_another(journal, plans, beside=True)
    world = entrance.world
    go_on_until(world, lambda: world.coordinator.runs["run"].held is not None)
    assert {"run", "run.1", "run.1.1"} <= world.coordinator.runs.keys()
    go_on_until(world, lambda: waits(world, "run"))
    last = parked_in(world)[-3:]
    assert last.index("run.1.1") < last.index("run.1")
    check_it_ends(world, team, ["run"])


async def test_one_that_is_queued_is_so_still_where_its_tree_goes_on_after_all(
    journal: SqliteJournal,
) -> None:
    entrance, team = await queued_above_another(journal)
    world = entrance.world
    world.perform(world.coordinator.stop("run", "park"))
    world.perform(world.coordinator.resume("run"))
    assert world.coordinator.runs["run.1"].slot is None, "the other one has its place"
    check_it_ends(world, team, ["run", "run.1", "run.2"])
    assert not parked_in(world)[1:], "but for the one below that was put aside by its question"


async def test_a_place_that_becomes_free_meanwhile_is_there_for_it_when_it_goes_on(
    journal: SqliteJournal,
) -> None:
    plans: Mapping[str, Sequence[Round]] = {**PLANS, "run.2": ["effect"] * 30}
    entrance, team = await queued_above_another(journal, plans)
    world = entrance.world
    go_on_until(world, lambda: world.coordinator.runs["run.2"].hop.to == STOP_DECISION)
    world.perform(world.coordinator.stop("run", "park"))
    turns = {slot for slot in world.hosts if slot.executor == AGENT_TURN}
    while "run.2" in world.coordinator.runs:
        while world.unwritten:
            world.commit()
        moved = [world.move(host) for slot, host in world.hosts.items() if slot not in turns]
        assert any(moved)
    assert not has_a_host(world, "run.1"), "it is to park"
    world.perform(world.coordinator.resume("run"))
    assert has_a_host(world, "run.1")
    check_it_ends(world, team, ["run", "run.1", "run.2"])


def test_one_that_waits_for_the_quarantine_host_parks_after_those_below_it() -> None:
    plans: Mapping[str, Sequence[Round]] = {
        **PLANS,
        "run": ["delegate", *("turn",) * 40],
        "run.1": ["turn"] * 40,
        "other": ["effect"] * 200,
        "next": ["effect"],
    }
    world, team = a_tree(plans, children=1)
    team.beside = True
    go_on_until(world, lambda: has_a_round(world, "run.1"))
    runs = world.coordinator.runs

    def suspect(name: str) -> None:
        runs[name].losses = LOSSES_BEFORE_QUARANTINE
        go_on_until(world, lambda: runs[name].hop.to == AGENT_TURN)

    world.submit(a_spec("other", conversation_id="other"))
    suspect("other")
    go_on_until(world, lambda: runs["run"].hop.to == COMPACTION)
    suspect("run")
    world.submit(a_spec("next", conversation_id="next"))
    suspect("next")
    go_on_until(world, lambda: has_a_round(world, "run.1"))
    slots = [runs[name].slot for name in ("other", "run", "next")]
    assert slots == [ALONE, None, None]

    world.perform(world.coordinator.stop("run", "park"))
    world.perform(world.coordinator.stop("other", "cancel"))
    assert runs["next"].slot == ALONE, "whoever is to leave has no place"
    assert "run" in runs
    world.settle()
    assert parked_in(world) == ["run.1", "run"]
    assert world.ends("next")[0].status == "done"
