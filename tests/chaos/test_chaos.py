"""The short form of `make chaos`: one batch meets each kind of disturbance."""

from pathlib import Path

import pytest

from harness_actors.stores import JournalReader
from tests.chaos.battle import Battle, Size
from tests.chaos.kinds import KINDS

SLOW = 8
"""How many times its bar recovery may take beside other groups of tests, on two cores;
`make chaos` holds it to the bar itself."""

pytestmark = [pytest.mark.ray, pytest.mark.timeout(400)]


async def test_a_batch_under_fire_loses_nothing_and_does_nothing_twice(tmp_path: Path) -> None:
    kinds = ["coordinator", "repair", "agent_turn", "stopped_agent_turn", "driver", "ray"]
    battle = Battle(
        tmp_path,
        [KINDS[name] for name in kinds],
        size=Size(runs=30, at_once=20, patient=10, rounds=(3, 8)),
        seed=7,
        # One run crashes its process besides: it alone is lost.
        poison="segfault",
    )

    verdict = await battle.fight()

    assert verdict.findings.broken == []
    assert verdict.kinds == ("segfault", "coordinator", "agent_turn", *kinds[1:])
    assert 0 < verdict.findings.waited <= 6
    assert verdict.findings.decided > 0
    assert verdict.findings.waves > 0
    # Each has asked something, or has had a call to be decided about.
    asked = verdict.findings.questions
    assert asked > 0
    assert asked + verdict.findings.decided >= verdict.findings.waited
    # Three were on top of each other; each of the others touched runs, and they came back.
    assert verdict.overlapping == 3
    assert verdict.delays.keys() == {"coordinator", *kinds[3:]}
    for name, delays in verdict.delays.items():
        assert delays.median is not None, f"no run was touched by {name}"
        assert delays.median < SLOW * KINDS[name].bar_s, name


@pytest.mark.parametrize(
    "kinds",
    [
        ["wave_agent_turn", "approval_coordinator"],
        pytest.param(["approval_agent_turn", "wave_coordinator"], marks=pytest.mark.long),
    ],
    ids="-".join,
)
async def test_strikes_amid_waves_and_amid_approvals_lose_nothing(
    tmp_path: Path, kinds: list[str]
) -> None:
    battle = Battle(
        tmp_path,
        [KINDS[name] for name in kinds],
        size=Size(runs=16, at_once=16, patient=8, rounds=(4, 8)),
        seed=5,
        hasty=0.0,
    )

    verdict = await battle.fight()

    assert verdict.findings.broken == []
    assert verdict.kinds == tuple(kinds)
    assert verdict.findings.decided >= 2
    assert verdict.findings.waves > 0


@pytest.mark.long
async def test_a_batch_that_delegates_loses_no_answer_when_those_who_serve_it_die(
    tmp_path: Path,
) -> None:
    kinds = ["explore", "run_task", "delegating_agent_turn"]
    battle = Battle(
        tmp_path,
        [KINDS[name] for name in kinds],
        size=Size(runs=16, at_once=16, patient=10, rounds=(4, 8)),
        seed=13,
        hasty=0.0,
    )

    verdict = await battle.fight()

    assert verdict.findings.broken == []
    assert verdict.kinds == tuple(kinds)
    assert verdict.findings.children > 0


async def test_under_a_ray_of_the_users_a_command_waits_for_its_return_and_the_next_goes_on(
    tmp_path: Path,
) -> None:
    battle = Battle(
        tmp_path,
        # In this order: a command that finds its Ray dead when it starts says so, and ends.
        [KINDS["joined_raylet"], KINDS["joined_driver"]],
        size=Size(runs=8, at_once=8, patient=4, rounds=(4, 6)),
        seed=17,
        hasty=0.0,
    )

    verdict = await battle.fight()

    assert verdict.findings.broken == []
    assert len(verdict.delays["joined_raylet"].seconds) > 0
    assert len(verdict.delays["joined_driver"].seconds) > 0


@pytest.mark.parametrize(
    "kinds",
    [
        ["gcs"],
        # That a raylet dies alone is tried in tests/joining/test_own_ray.py, too.
        pytest.param(["raylet", "ray_agent"], marks=pytest.mark.long),
    ],
    ids="-".join,
)
async def test_a_command_whose_ray_dies_in_part_or_whole_goes_on_by_itself(
    tmp_path: Path, kinds: list[str]
) -> None:
    battle = Battle(
        tmp_path,
        [KINDS[name] for name in kinds],
        size=Size(runs=10, at_once=10, patient=6, rounds=(3, 8)),
        seed=11,
        hasty=0.0,
    )

    verdict = await battle.fight()

    # Nobody gave the command again, or it would have torn a line of its results.
    assert verdict.findings.broken == []
    assert verdict.kinds == tuple(kinds)
    for name, delays in verdict.delays.items():
        assert delays.most is not None, f"no run was touched by {name}"
        assert delays.most < SLOW * KINDS[name].bar_s, name


async def test_a_batch_that_is_summarized_all_the_time_loses_nothing_when_its_workers_die(
    tmp_path: Path,
) -> None:
    kinds = ["compaction_worker", "pressed_agent_turn", "pressed_compaction", "compaction_worker"]
    battle = Battle(
        tmp_path,
        [KINDS[name] for name in kinds],
        size=Size(runs=10, at_once=10, patient=6, rounds=(20, 30)),
        seed=3,
        hasty=0.0,
        keep=True,
    )

    verdict = await battle.fight()

    assert verdict.findings.broken == []
    assert verdict.kinds == tuple(kinds)
    reader = JournalReader(tmp_path / "run" / "runs.db")
    plans = [
        plan
        for heading in reader.headings()
        if (plan := reader.load_plan(heading.conversation_id)) is not None
    ]
    assert len(plans) >= 8, "hardly a run was pressed"
    assert sum(plan.summary is not None for plan in plans) >= 6
