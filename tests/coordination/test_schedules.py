"""Runs under schedules that delay, repeat, kill and stop at any step."""

from collections.abc import Callable
from functools import partial
from random import Random

import hypothesis.strategies as st
from hypothesis import given, settings

from harness_actors.conversation import repaired
from harness_actors.coordination.protocol import QUARANTINE, Slot
from tests.coordination.agents import Round, Team
from tests.coordination.world import World, a_spec

Action = tuple[str, Callable[[], object]]

ROUNDS: st.SearchStrategy[Round] = st.sampled_from(["effect", "lookup", "turn"])
PLANS = st.lists(st.lists(ROUNDS, min_size=1, max_size=8), min_size=1, max_size=3)

WEIGHTS = {
    "hear twice": 0.1,
    "lose": 0.01,
    "crash": 0.005,
    "park": 0.004,
    "park_now": 0.004,
    "go on": 0.02,
}
"""How likely a disturbance is on a road of roughness 1, against 1 for what is ordinary."""


class Scheduler:
    """Chooses what happens next from a list of numbers."""

    def __init__(self, plans: list[list[Round]], agent_turns: int) -> None:
        self.team = Team({f"run{i}": plan for i, plan in enumerate(plans)})
        self.world = World(self.team.handlers, agent_turns=agent_turns)
        self.parked: set[str] = set()

    def actions(self) -> list[Action]:
        """What could happen now."""
        world = self.world
        actions: list[Action] = []
        if world.unwritten:
            actions += [("commit", world.commit)]
        for slot, host in world.hosts.items():
            if host.inbox:
                actions += [("take", host.take)]
            if host.outbox:
                actions += [("hear", partial(world.hear, slot))]
                actions.append(("hear twice", partial(self._hear_twice, slot)))
            actions += [("work", partial(host.work, run)) for run in host.ready()]
            actions.append(("lose", partial(world.lose, slot)))
        for run_id in world.coordinator.runs:
            for mode in ("park", "park_now"):
                actions.append((mode, partial(self._stop, run_id, mode)))
            actions.append(("go on", partial(self._go_on, run_id)))
        actions.append(("crash", world.crash))
        actions += [("resume", partial(self._resume, run_id)) for run_id in self._idle()]
        return actions

    def act(self, chance: Random, roughness: float) -> None:
        """Do one of the things that could happen now."""
        actions = self.actions()
        weights = [WEIGHTS[n] * roughness if n in WEIGHTS else 1.0 for n, _ in actions]
        chance.choices(actions, weights)[0][1]()

    def _hear_twice(self, slot: Slot) -> None:
        # The connection broke behind the call, so the same envelope comes again.
        envelope = self.world.hosts[slot].outbox[0]
        self.world.hear(slot)
        self.world.perform(self.world.coordinator.received(slot, envelope))

    def _stop(self, run_id: str, mode: str) -> None:
        self.world.perform(self.world.coordinator.stop(run_id, mode))

    def _go_on(self, run_id: str) -> None:
        self.world.perform(self.world.coordinator.resume(run_id))

    def _idle(self) -> list[str]:
        """Runs of which everything is on disk and that nobody serves, unfinished."""
        unwritten = {
            getattr(entry, "run_id", None)
            for step in self.world.unwritten
            for entry in step.entries
        }
        return [
            run_id
            for run_id in self.world.run_ids()
            if run_id not in self.world.coordinator.runs
            and run_id not in unwritten
            and not self.world.ends(run_id)
        ]

    def _resume(self, run_id: str) -> None:
        self.world.perform(self.world.coordinator.adopt(self.world.stored(run_id)))

    def finish(self) -> None:
        """Let all runs come to their end, undisturbed."""
        self.world.settle()
        for run_id in self._idle():
            self._resume(run_id)
        self.world.settle()

    # ---- what must hold ------------------------------------------------------------------

    def check_always(self) -> None:
        """The state in memory is what the entries say; nothing else is held."""
        world = self.world
        entries = [*world.disk, *(e for step in world.unwritten for e in step.entries)]
        for run_id, run in world.coordinator.runs.items():
            stored = world.stored(run_id, entries)
            assert stored.state.values == run.state.values
            assert stored.state.version == run.state.version
            assert list(stored.state.log) == list(run.state.log)
            assert stored.losses == run.losses
        alone = [run for run in world.coordinator.runs.values() if _in_quarantine(run.slot)]
        assert len(alone) <= 1, "the quarantine host serves one run at a time"

    def check_end(self, count: int) -> None:
        world = self.world
        for run_id in (f"run{i}" for i in range(count)):
            if run_id not in world.run_ids():
                continue  # its submission was lost with the coordinator before it was on disk
            assert len(world.ends(run_id)) == 1
            assert world.changes(run_id)[-1].end is not None
            assert repaired(world.log(run_id))[1] == 0
        assert all(times == 1 for times in self.team.effects.values()), "an effect happened twice"
        assert not world.coordinator.runs
        for host in world.hosts.values():
            assert not host.runs, "a host keeps runs that are over"
            assert len(host.seen) == 0


def _in_quarantine(slot: Slot | None) -> bool:
    return slot is not None and slot.index == QUARANTINE


@settings(max_examples=250)
@given(
    plans=PLANS,
    agent_turns=st.integers(1, 2),
    seed=st.integers(0, 1_000_000),
    length=st.integers(100, 400),
    roughness=st.sampled_from([0.3, 1.0, 8.0]),
)
def test_runs_survive_any_schedule(
    plans: list[list[Round]], agent_turns: int, seed: int, length: int, roughness: float
) -> None:
    chance = Random(seed)
    scheduler = Scheduler(plans, agent_turns)
    for number in range(len(plans)):
        scheduler.world.submit(a_spec(f"run{number}"))
    for number in range(length):
        scheduler.act(chance, roughness)
        if number % 5 == 0:
            scheduler.check_always()
    scheduler.finish()
    scheduler.check_end(len(plans))


@given(plan=st.lists(ROUNDS, max_size=6), prefix=st.integers(1, 60))
def test_a_run_goes_on_after_a_crash_at_every_committed_prefix(
    plan: list[Round], prefix: int
) -> None:
    team = Team(plan=plan)
    world = World(team.handlers)
    world.submit(a_spec())
    while world.unwritten and len(world.disk) < prefix:
        world.commit()
        while not world.unwritten and any(world.move(host) for host in [*world.hosts.values()]):
            pass
    world.crash()
    world.settle()
    assert [end.status for end in world.ends()] == ["done"]
    assert repaired(world.log())[1] == 0
    assert all(times == 1 for times in team.effects.values())
