"""Runs that others have begun: waited for, ended with them, and told of once."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from harness_actors.coordination.deadlines import GRACE_S
from harness_actors.coordination.protocol import QUARANTINE, Deliver, Slot
from harness_actors.events import ChildEnded, ChildrenStarted
from harness_actors.records import CHILD_MARK, RunAdded, RunChanged, WorkspaceSpec
from harness_actors.results import Usage
from harness_actors.state import (
    AGENT_TURN,
    AWAITED,
    CHILD_RESULTS,
    CHILDREN_USAGE,
    REPAIR,
    USAGE,
    SharedState,
)
from tests.bounded import bounded
from tests.coordination.agents import ROUND_USD, Round, Team
from tests.coordination.test_losses import move_until
from tests.coordination.world import World, a_spec

POOL = Slot(AGENT_TURN, pool="explore")
DEEP: Mapping[str, Sequence[Round]] = {
    "run": ["delegate", "effect"],
    "run.1": ["delegate", "effect"],
    "run.2": ["effect"],
    "run.1.1": ["effect"],
    "run.1.2": ["effect"],
}


def a_tree(
    plans: Mapping[str, Sequence[Round]] | None = None, *, children: int = 2, **facts: Any
) -> tuple[World, Team]:
    """A run that is about to delegate, and what its children are to do."""
    team = Team(plans or {"run": ["delegate", "effect"]}, plan=["effect"])
    team.children = children
    world = World(team.handlers)
    world.submit(a_spec(**facts))
    return world, team


def until_waiting(world: World, run_id: str = "run") -> None:
    """Go on until a run waits for its children, and no further."""
    for _ in range(1_000):
        run = world.coordinator.runs.get(run_id)
        if run is not None and run.waits_for_children:
            world.settle(hosts=False)
            return
        if world.unwritten:
            world.commit()
        else:
            assert any(world.move(host) for host in list(world.hosts.values()))
    raise AssertionError("it never waits")


def step_until(world: World, reached: Callable[[], bool]) -> None:
    """Go on step by step."""
    while not reached():
        if world.unwritten:
            world.commit()
        else:
            assert any(world.move(host) for host in list(world.hosts.values()))


def parked_in(world: World) -> list[str]:
    """The runs that were put aside, in their order, each as often as it was."""
    return [
        change.run_id
        for change in world.disk
        if isinstance(change, RunChanged)
        and any(event.type == "run_parked" for event in change.delta.events)
    ]


def take_up(world: World, root: str = "run", *, command: bool = False) -> None:
    """A command takes up a tree, each run after its parent."""
    for run_id in world.run_ids():
        stored = world.stored(run_id)
        if stored.spec.root == root and stored.end is None:
            world.perform(world.coordinator.adopt(stored, asked=True))
    world.settle()


def results_of(world: World, run_id: str = "run") -> list[str]:
    return [message.text for message in world.log(run_id) if message.role == "tool"]


def told(world: World, run_id: str = "run") -> list[ChildEnded]:
    events = [e for change in world.changes(run_id) for e in change.delta.events]
    return [event for event in events if isinstance(event, ChildEnded)]


def check_told_once(world: World) -> None:
    """Each child that is over was told of to its parent, once, in the commit of its end."""
    for run_id in world.run_ids():
        spec = world.stored(run_id).spec
        if spec.parent is None or not world.ends(run_id):
            continue
        ended = [one for one in told(world, spec.parent.run_id) if one.run_id == run_id]
        parent_over = bool(world.ends(spec.parent.run_id))
        assert len(ended) == 1 or (parent_over and not ended), run_id


def test_a_run_waits_at_no_host_for_those_that_it_has_begun() -> None:
    world, team = a_tree()
    until_waiting(world)
    run = world.coordinator.runs["run"]
    assert run.slot is None
    assert set(world.coordinator.runs) == {"run", "run.1", "run.2"}
    world.settle()

    assert [end.status for end in world.ends()] == ["done"]
    assert results_of(world) == ["completed: ok", "completed: ok", "done"]
    assert [(one.run_id, one.agent, one.status) for one in told(world)] == [
        ("run.1", "explore", "completed"),
        ("run.2", "explore", "completed"),
    ]
    assert Counter(event for event in world.events() if event == "turn_started") == Counter()
    assert not world.coordinator.runs
    assert set(team.effects.values()) == {1}


def test_its_start_is_one_commit_with_those_of_its_children_and_so_is_each_end() -> None:
    world, _ = a_tree()
    begun: list[list[str]] = []

    def look(effects: Any) -> None:
        named = [
            entry.spec.run_id if isinstance(entry, RunAdded) else entry.run_id
            for entry in effects.entries
            if hasattr(entry, "spec") or hasattr(entry, "delta")
        ]
        begun.append(named)

    world.committed = look
    world.settle()
    assert ["run", "run.1", "run.2"] in begun
    assert any(group[-1] == "run" and "run.1" in group for group in begun)
    check_told_once(world)


def test_children_are_served_by_their_pool_and_begin_with_nothing() -> None:
    world, _ = a_tree(workspace=WorkspaceSpec(path="/w", source="/from"), keys=("K",))
    world.settle()
    spec = world.stored("run.1").spec
    assert spec.workspace == WorkspaceSpec(path="/w")
    assert (spec.keys, spec.code, spec.root) == (("K",), "code", "run")
    assert spec.parent is not None
    assert (spec.parent.run_id, spec.parent.agent, spec.parent.depth) == ("run", "explore", 1)
    posts = [post for post in world.sent if isinstance(post.envelope.body, Deliver)]
    served = {post.envelope.run_id: post.slot for post in posts if post.slot.kind == AGENT_TURN}
    assert served == {"run": Slot(AGENT_TURN), "run.1": POOL, "run.2": POOL}
    assert [message.role for message in world.log("run.1")][:2] == ["user", "assistant"]


def test_a_tree_three_deep_ends_from_below() -> None:
    world, team = a_tree(DEEP)
    world.settle()
    assert [end.status for end in world.ends()] == ["done"]
    assert results_of(world, "run.1") == ["completed: ok", "completed: ok", "done"]
    assert world.stored("run.1.1").spec.parent is not None
    link = world.stored("run.1.1").spec.parent
    assert link is not None
    assert (link.root, link.run_id, link.agent, link.depth) == (
        "run",
        "run.1",
        "explore/explore",
        2,
    )
    assert set(team.effects.values()) == {1}
    check_told_once(world)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_are_served_at_once_than_settings_allow(most: int) -> None:
    config = bounded({"sub_agents": {"max_parallel": most}})
    world, _ = a_tree(children=7, config=config)
    until_waiting(world)
    seen = 0
    while world.coordinator.runs:
        served = [run for run in world.coordinator.runs.values() if run.slot is not None]
        assert len(served) <= most
        seen = max(seen, len(served))
        if world.unwritten:
            world.commit()
        else:
            assert any(world.move(host) for host in list(world.hosts.values()))
    assert seen == most
    assert len(told(world)) == 7


def test_what_they_used_is_the_parents_apart_and_once() -> None:
    world, _ = a_tree(DEEP)
    world.perform(world.coordinator.allow(100.0, spent_usd=0.0))
    world.settle()
    (end,) = world.ends()
    assert end.children_usage is not None
    rounds = {run_id: world.ends(run_id)[0].usage.model_calls for run_id in world.run_ids()}
    assert rounds == {"run": 2, "run.1": 2, "run.2": 1, "run.1.1": 1, "run.1.2": 1}
    assert end.children_usage.model_calls == 5
    assert end.usage_tree.cost_usd == 7 * ROUND_USD
    assert world.coordinator.budget.spent_usd == pytest.approx(7 * ROUND_USD)
    assert world.ends("run.2")[0].children_usage is None


def test_a_run_that_ends_takes_all_below_it_along() -> None:
    world, _ = a_tree(DEEP)
    until_waiting(world, "run")
    until_waiting(world, "run.1")
    world.perform(world.coordinator.stop("run", "cancel"))
    world.settle()
    kinds = {run_id: world.ends(run_id)[0].reason.kind for run_id in world.run_ids()}
    assert kinds == {
        "run": "user",
        **dict.fromkeys(["run.1", "run.2", "run.1.1", "run.1.2"], "parent"),
    }
    assert not world.coordinator.runs
    assert not any(host.runs for host in world.hosts.values())


def test_a_child_that_is_cancelled_is_told_to_its_parent_and_no_sibling_minds() -> None:
    world, _ = a_tree()
    until_waiting(world)
    world.perform(world.coordinator.stop("run.1", "cancel"))
    world.settle()
    assert [(one.run_id, one.status) for one in told(world)] == [
        ("run.1", "cancelled"),
        ("run.2", "completed"),
    ]
    assert [end.status for end in world.ends()] == ["done"]
    assert results_of(world)[0].startswith("cancelled: explore ended cancelled(user)")


def test_when_time_is_over_the_whole_tree_ends() -> None:
    world, _ = a_tree(DEEP, config=bounded({"limits": {"time_s": 5.0}}))
    until_waiting(world, "run.1")
    world.clock.advance(5.0 + GRACE_S + 0.1)
    world.perform(world.coordinator.overdue())
    world.settle()
    assert world.ends()[0].reason.kind == "time"
    assert all(world.ends(run_id) for run_id in world.run_ids())
    assert not world.coordinator.runs


@pytest.mark.parametrize("mode", ["park", "park_now"])
@pytest.mark.parametrize("named", ["run", "run.1", "run.1.2"])
def test_a_tree_is_put_aside_as_one_and_goes_on_as_one(mode: str, named: str) -> None:
    world, team = a_tree(DEEP)
    until_waiting(world, "run.1")
    world.perform(world.coordinator.stop(named, mode))
    world.settle()
    assert not world.coordinator.runs
    assert not any(world.ends(run_id) for run_id in ("run", "run.1"))
    assert all(world.stored(i).command == "" for i in world.run_ids() if not world.ends(i))
    assert world.events()[-1] == "run_parked"

    take_up(world)
    assert [end.status for end in world.ends()] == ["done"]
    assert all(world.ends(run_id) for run_id in world.run_ids())
    if mode == "park":
        assert set(team.effects.values()) == {1}
    check_told_once(world)


def test_a_child_that_is_aside_is_waited_for_though_the_others_have_ended() -> None:
    plans: dict[str, Sequence[Round]] = {
        "run": ["delegate", "effect"],
        "run.1": ["effect"] * 3,
        "run.2": ["effect"] * 30,
    }
    world, team = a_tree(plans)
    until_waiting(world)
    world.perform(world.coordinator.stop("run", "park"))
    while "run.1" in world.coordinator.runs:
        if world.unwritten:
            world.commit()
        else:
            assert any(world.move(host) for host in list(world.hosts.values()))
    assert "run.2" in world.coordinator.runs
    world.perform(world.coordinator.stop("run.2", "cancel"))
    world.settle()
    assert not world.ends()
    assert not world.coordinator.runs
    assert world.stored().state.values[AWAITED.name] == 2

    take_up(world)
    assert [end.status for end in world.ends()] == ["done"]
    assert world.run_ids() == ["run", "run.1", "run.2"]
    assert set(team.effects.values()) == {1}
    check_told_once(world)


def test_a_tree_that_was_to_park_and_is_to_at_once_parks_once() -> None:
    world, _ = a_tree(DEEP)
    until_waiting(world, "run.1")
    world.perform(world.coordinator.stop("run", "park"))
    world.perform(world.coordinator.stop("run", "park_now"))
    world.settle()
    assert not world.coordinator.runs
    parked = parked_in(world)
    assert len(parked) == len(set(parked))


def test_one_that_asks_and_waits_for_those_beside_it_is_put_aside_once() -> None:
    plans: dict[str, Sequence[Round]] = {"run": ["delegate", "ask"], "run.1": ["effect"] * 9}
    world, team = a_tree(plans, children=1)
    team.beside = True
    step_until(world, lambda: world.coordinator.runs["run"].held is not None)
    world.perform(world.coordinator.stop("run", "park_now"))
    world.settle()
    assert not world.coordinator.runs
    # It waits for its user, as it was about to.
    assert parked_in(world) == ["run.1"]
    assert world.events()[-1] == "input_awaited"


def test_one_that_is_aside_ends_with_its_parent() -> None:
    settings = {"sub_agents": {"max_parallel": 1}}
    world, _ = a_tree(DEEP, config=bounded(settings))
    until_waiting(world, "run.1")
    # Those that are queued are put aside at once, and the others when their rounds are over.
    world.perform(world.coordinator.stop("run", "park"))
    assert "run.2" not in world.coordinator.runs
    world.perform(world.coordinator.stop("run", "cancel"))
    world.settle()
    kinds = {run_id: world.ends(run_id)[0].reason.kind for run_id in world.run_ids()}
    assert kinds.pop("run") == "user"
    assert set(kinds.values()) == {"parent"}
    assert world.ends()[0].children_usage is not None


def test_nothing_is_kept_of_a_queue_whose_runs_are_over() -> None:
    world, _ = a_tree(config=bounded({"sub_agents": {"max_parallel": 1}}))
    until_waiting(world)
    world.perform(world.coordinator.stop("run", "cancel"))
    world.settle()
    kin = world.coordinator.children
    assert not any((kin._below, kin._queued, kin._aside, kin._resting, kin.limits._used))


def test_one_that_is_taken_up_again_is_counted_once() -> None:
    plans: dict[str, Sequence[Round]] = {
        "run": ["delegate", "effect"],
        **{f"run.{n}": ["lookup"] * 6 for n in (1, 2)},
    }
    world, _ = a_tree(plans)
    # So that rounds are counted.
    world.perform(world.coordinator.allow(1000.0, spent_usd=0.0))
    until_waiting(world)
    children = [world.coordinator.runs[f"run.{n}"] for n in (1, 2)]
    step_until(world, lambda: all(one.state.values.get(USAGE.name) for one in children))
    world.perform(world.coordinator.stop("run", "park"))
    step_until(world, lambda: len(world.coordinator.runs) == 2)
    world.settle(hosts=False)
    world.perform(world.coordinator.resume("run"))
    for run_id in ("run.1", "run.2"):
        world.perform(world.coordinator.adopt(world.stored(run_id), asked=True))
    world.settle(hosts=False)
    runs = [world.stored(run_id).state.values for run_id in world.run_ids()]
    used = sum(values.get(USAGE.name, {}).get("model_calls", 0) for values in runs)
    assert len(world.coordinator.runs) == 3
    assert world.coordinator.children.limits._used["run"].model_calls == used


@pytest.mark.parametrize("aside", [False, True])
def test_what_children_came_to_is_told_though_their_parent_is_ended(aside: bool) -> None:
    plans: dict[str, Sequence[Round]] = {
        "run": ["delegate", "effect"],
        "run.1": ["effect"],
        "run.2": ["effect"] * 30,
    }
    world, _ = a_tree(plans)
    until_waiting(world)
    step_until(world, lambda: "run.1" not in world.coordinator.runs)
    if aside:
        world.perform(world.coordinator.stop("run", "park_now"))
        world.settle()
        run, child = world.stored("run"), world.stored("run.2")
        world.perform(world.coordinator.stop_idle(run, "cancel", tree=[child]))
    else:
        world.perform(world.coordinator.stop("run", "cancel"))
    world.settle()
    assert [end.status for end in world.ends()] == ["cancelled"]
    done, cancelled = results_of(world)
    assert done == "ok"
    assert "cancelled(parent)" in cancelled


def test_the_run_at_the_top_is_put_aside_last() -> None:
    world, _ = a_tree(DEEP)
    until_waiting(world, "run.1")
    world.perform(world.coordinator.stop("run", "park"))
    world.settle()
    order = parked_in(world)
    assert order[-1] == "run"
    assert order.index("run.1") > max(order.index(one) for one in order if one.startswith("run.1."))


def test_one_that_is_asked_to_park_while_it_delegates_begins_nobody() -> None:
    world, _ = a_tree()
    move_until(world, Slot(AGENT_TURN), "run")
    host = world.host(Slot(AGENT_TURN))
    while host.ready():
        host.work(host.ready()[0])
    world.perform(world.coordinator.stop("run", "park"))
    world.settle()
    assert world.run_ids() == ["run"]
    assert world.events()[-1] == "run_parked"


def test_a_tree_that_was_to_park_goes_on_after_all() -> None:
    world, team = a_tree()
    until_waiting(world)
    world.perform(world.coordinator.stop("run", "park"))
    world.perform(world.coordinator.resume("run"))
    world.settle()
    assert [end.status for end in world.ends()] == ["done"]
    assert set(team.effects.values()) == {1}


def test_a_tree_that_is_aside_is_cancelled_as_one() -> None:
    world, _ = a_tree(DEEP)
    until_waiting(world, "run.1")
    world.perform(world.coordinator.stop("run", "park_now"))
    world.settle()
    tree = [world.stored(run_id) for run_id in world.run_ids()[1:] if not world.ends(run_id)]
    world.perform(world.coordinator.stop_idle(world.stored(), "cancel", tree=tree))
    world.settle()
    kinds = {run_id: world.ends(run_id)[0].reason.kind for run_id in world.run_ids()}
    assert kinds.pop("run") == "user"
    assert set(kinds.values()) == {"parent"}


def test_a_child_that_is_aside_is_cancelled_and_its_parent_knows_when_it_goes_on() -> None:
    world, _ = a_tree(DEEP)
    until_waiting(world, "run.1")
    world.perform(world.coordinator.stop("run", "park_now"))
    world.settle()
    others = [world.stored(i) for i in world.run_ids() if i != "run.1"]
    world.perform(world.coordinator.stop_idle(world.stored("run.1"), "cancel", tree=others))
    world.settle()
    assert [one.status for one in told(world)] == ["cancelled"]
    assert world.ends("run.1.1")[0].reason.kind == "parent"
    assert world.stored().state.values[AWAITED.name] == 2
    take_up(world)
    assert [end.status for end in world.ends()] == ["done"]
    assert len(told(world)) == 2


@pytest.mark.parametrize("victim", [Slot(AGENT_TURN), POOL, Slot(REPAIR)])
def test_a_host_that_dies_costs_nobody_a_result(victim: Slot) -> None:
    world, _ = a_tree(DEEP)
    until_waiting(world, "run.1")
    world.lose(victim)
    world.settle()
    assert [end.status for end in world.ends()] == ["done"]
    check_told_once(world)


def test_a_child_that_keeps_killing_its_process_is_lost_and_no_sibling_is() -> None:
    plans: dict[str, Sequence[Round]] = {"run": ["delegate", "effect"], "run.1": ["lookup"]}
    world, _ = a_tree(plans)
    until_waiting(world)
    for _ in range(3):
        run = world.coordinator.runs["run.1"]
        while run.busy_since is None:
            if world.unwritten:
                world.commit()
            else:
                assert any(world.move(host) for host in list(world.hosts.values()))
        assert run.slot is not None
        world.lose(run.slot)
    world.settle()
    assert {one.run_id: one.status for one in told(world)} == {
        "run.1": "lost",
        "run.2": "completed",
    }
    assert world.ends("run.1")[0].reason.kind == "executor_lost"
    assert [end.status for end in world.ends()] == ["done"]
    assert not any(post.slot.index == QUARANTINE and post.slot.pool for post in world.sent)


def test_a_pool_that_does_not_start_fails_its_children_only() -> None:
    world, _ = a_tree()
    until_waiting(world)
    world.settle(hosts=False)
    while not any(run.slot == POOL for run in world.coordinator.runs.values()):
        if world.unwritten:
            world.commit()
        else:
            assert any(world.move(host) for host in list(world.hosts.values()))
    world.perform(world.coordinator.host_missing(POOL, "no memory"))
    world.settle()
    assert "lost" in {one.status for one in told(world)}
    assert [end.status for end in world.ends()] == ["done"]


@pytest.mark.parametrize("steps", range(0, 90, 3))
def test_a_coordinator_that_dies_anywhere_loses_no_tree(steps: int) -> None:
    world, _ = a_tree(DEEP)
    world.commit()
    for _ in range(steps):
        if world.unwritten:
            world.commit()
        elif not any(world.move(host) for host in list(world.hosts.values())):
            break
    world.crash()
    world.settle()
    assert [end.status for end in world.ends()] == ["done"]
    assert all(world.ends(run_id) for run_id in world.run_ids())
    check_told_once(world)


def test_the_bounds_of_a_run_hold_for_its_tree() -> None:
    limits = {"model_calls": 4}
    plans: dict[str, Sequence[Round]] = {
        "run": ["delegate", "effect"],
        **{f"run.{n}": ["lookup"] * 20 for n in (1, 2, 3)},
    }
    world, _ = a_tree(plans, children=3, config=bounded({"limits": limits}))
    # So that rounds are counted.
    world.perform(world.coordinator.allow(1000.0, spent_usd=0.0))
    world.settle()
    used = sum(world.ends(run_id)[0].usage.model_calls for run_id in world.run_ids())
    # One more for each that was at it.
    assert 4 <= used <= 4 + 3
    assert world.ends()[0].reason.kind == "model_calls"
    assert {world.ends(f"run.{n}")[0].reason.kind for n in (1, 2, 3)} == {"model_calls"}


def test_a_budget_that_is_spent_ends_a_tree_from_below() -> None:
    plans: dict[str, Sequence[Round]] = {
        "run": ["delegate", "effect"],
        **{f"run.{n}": ["lookup"] * 20 for n in (1, 2)},
    }
    world, _ = a_tree(plans)
    world.perform(world.coordinator.allow(5 * ROUND_USD, spent_usd=0.0))
    world.settle()
    kinds = {run_id: world.ends(run_id)[0].reason.kind for run_id in world.run_ids()}
    assert set(kinds.values()) == {"budget"}
    assert len(told(world)) == 2


def test_who_delegates_reads_no_conversation_for_those_that_begin_with_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(_log: object) -> tuple[()]:
        raise AssertionError("that grows with the conversation, and none of them is a fork")

    monkeypatch.setattr("harness_actors.coordination.children.before_calls", read)
    world, _ = a_tree()
    world.settle()
    assert results_of(world) == ["completed: ok", "completed: ok", "done"]


def test_runs_without_children_pay_nothing() -> None:
    world = World(Team(plan=["effect", "lookup"]).handlers)
    world.submit(a_spec())
    world.settle()
    keys = {write.key for change in world.changes() for write in change.delta.writes}
    assert not keys & {AWAITED.name, CHILD_RESULTS.name, CHILDREN_USAGE.name}
    assert world.ends()[0].children_usage is None


def test_results_that_are_taken_do_not_come_again() -> None:
    world, _ = a_tree({"run": ["delegate", "effect", "delegate", "effect"]})
    world.settle()
    assert results_of(world).count("completed: ok") == 4
    assert world.stored().state.values[CHILD_RESULTS.name] == []
    names = [
        e.children for c in world.changes() for e in c.delta.events if type(e) is ChildrenStarted
    ]
    assert [one["run_id"] for group in names for one in group] == [
        f"run{CHILD_MARK}{n}" for n in (1, 2, 3, 4)
    ]


def test_snapshots_wait_while_many_have_ended() -> None:
    world, _ = a_tree(children=200)
    world.settle()
    from harness_actors.records import SnapshotTaken

    kept = [e for e in world.disk if isinstance(e, SnapshotTaken) and e.run_id == "run"]
    assert all(len(one.values.get(CHILD_RESULTS.name) or ()) <= 64 for one in kept)
    assert len(told(world)) == 200


def test_usage_of_a_run_and_its_tree_are_told_apart() -> None:
    state = SharedState()
    assert state.values.get(USAGE.name) is None
    world, _ = a_tree()
    world.settle()
    assert world.ends()[0].usage_tree == world.ends()[0].usage + (
        world.ends()[0].children_usage or Usage()
    )
