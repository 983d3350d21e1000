"""Runs under schedules that delay, repeat, kill and stop at any step."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from random import Random

import hypothesis.strategies as st
from hypothesis import given, settings

from harness_actors.config import HarnessConfig, Limits
from harness_actors.conversation import repaired
from harness_actors.coordination.active import Effects
from harness_actors.coordination.deadlines import GRACE_S
from harness_actors.coordination.protocol import QUARANTINE, Slot
from harness_actors.events import ChildEnded, RunParked
from harness_actors.records import CHILD_MARK, RunChanged, StoredRun
from harness_actors.results import Usage
from harness_actors.state import ANSWERS, CHILDREN, USAGE, is_waiting, unanswered
from tests.coordination.agents import ROUND_USD, Round, Team
from tests.coordination.world import World, a_spec

Action = tuple[str, Callable[[], object]]

ROUNDS: st.SearchStrategy[Round] = st.sampled_from(["effect", "lookup", "turn", "ask"])
CHILD_ROUNDS: st.SearchStrategy[Round] = st.sampled_from(["effect", "lookup"])


def delegating(rounds: st.SearchStrategy[Round], most: int) -> st.SearchStrategy[list[Round]]:
    """Plans of which some delegate, once: a tree has many runs as it is."""
    plans = st.lists(rounds, min_size=1, max_size=most)
    places = st.none() | st.integers(0, most)
    return st.builds(_with_one, plans, places)


def _with_one(plan: list[Round], place: int | None) -> list[Round]:
    return plan if place is None else [*plan[:place], "delegate", *plan[place:]]


PLANS = st.lists(delegating(ROUNDS, 7), min_size=1, max_size=3)
BELOW = st.lists(delegating(CHILD_ROUNDS, 2), max_size=2)

WEIGHTS = {
    "hear twice": 0.1,
    "lose": 0.01,
    "crash": 0.005,
    "cancel child": 0.005,
    "park": 0.02,
    "park_now": 0.004,
    "go on": 0.05,
    "next command": 0.002,
    "time passes": 0.03,
    "allow more": 0.004,
    "allow less": 0.004,
}
"""How likely a disturbance is on a road of roughness 1, against 1 for what is ordinary."""


class Scheduler:
    """Chooses what happens next from a list of numbers.

    Args:
        plans: What the model of each run answers.
        agent_turns: Number of agent turn hosts.
        budget_usd: What all runs may cost together at first; None for no bound, ever.
        below: What children do, by how deep they are.
    """

    def __init__(
        self,
        plans: list[list[Round]],
        agent_turns: int,
        budget_usd: float | None = None,
        below: Sequence[Sequence[Round]] = (),
    ) -> None:
        self.team = Team({f"run{i}": plan for i, plan in enumerate(plans)}, below=below)
        self.team.asked = self._asked
        self.world = World(self.team.handlers, agent_turns=agent_turns)
        self.world.began = self._began
        self.wishes = Wishes(self.world)
        self.budget_usd = budget_usd
        self._earlier_usd = 0.0
        self._asked_after: Counter[str] = Counter()
        """Rounds that began since all was spent, by run."""
        if budget_usd is not None:
            self.allow(budget_usd)

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
        if self.budget_usd is not None:
            actions += [("allow more", self._allow_more), ("allow less", self._allow_less)]
        for run_id in world.coordinator.runs:
            for mode in ("park", "park_now"):
                actions.append((mode, partial(self.stop, run_id, mode)))
            actions.append(("go on", partial(self.go_on, run_id)))
            if CHILD_MARK in run_id:
                actions.append(("cancel child", partial(self.cancel_child, run_id)))
        actions.append(("crash", world.crash))
        actions.append(("next command", self.next_command))
        actions.append(("time passes", self._time_passes))
        for run_id in self.idle():
            actions.append(("resume", partial(self.resume, run_id)))
            for question in unanswered(world.stored(run_id).state.values):
                actions.append(("answer", partial(self.answer, run_id, question["id"])))
        return actions

    def act(self, chance: Random, roughness: float) -> None:
        """Do one of the things that could happen now."""
        actions = self.actions()
        weights = [WEIGHTS[n] * roughness if n in WEIGHTS else 1.0 for n, _ in actions]
        chance.choices(actions, weights)[0][1]()

    def _hear_twice(self, slot: Slot) -> None:
        # The connection broke after the call, so the same envelope comes again.
        envelope = self.world.hosts[slot].outbox[0]
        self.world.hear(slot)
        self.world.perform(self.world.coordinator.received(slot, envelope))

    def stop(self, run_id: str, mode: str) -> None:
        self.wishes.note(run_id, self.world.coordinator.stop(run_id, mode), parks=True)

    def go_on(self, run_id: str) -> None:
        world, root = self.world, run_id.partition(CHILD_MARK)[0]
        if CHILD_MARK in run_id or world.coordinator.runs[run_id].state.values.get(CHILDREN.name):
            # Some of its tree may have been put aside, which the journal is asked for.
            world.settle(hosts=False)
        self.wishes.note(run_id, world.coordinator.resume(run_id), parks=False)
        for known in world.run_ids():
            if _is_below(known, root) and not world.ends(known):
                effects = world.coordinator.adopt(world.stored(known), asked=True)
                self.wishes.note(run_id, effects, parks=False)

    def cancel_child(self, run_id: str) -> None:
        self.world.perform(self.world.coordinator.stop(run_id, "cancel"))

    def next_command(self) -> None:
        """The cell dies with its command; another one takes up what it is asked to."""
        self.world.crash(command=f"command {self.world.coordinator.term + 1}")

    def _began(self) -> None:
        # As a host does that begins: what runs cost before is known, and the budget anew.
        stored = [self.world.stored(run_id) for run_id in self.world.run_ids()]
        self._earlier_usd = sum(_cost_of(run) for run in stored if run.end is not None)
        if self.budget_usd is not None:
            for run in stored:
                if run.end is None:
                    self.world.coordinator.budget.take_up(run.spec.run_id, _cost_of(run))
            self.allow(self.budget_usd)

    def allow(self, budget_usd: float) -> None:
        self.budget_usd = budget_usd
        coordinator = self.world.coordinator
        self.world.perform(coordinator.allow(budget_usd, spent_usd=self._earlier_usd))

    def _allow_more(self) -> None:
        assert self.budget_usd is not None
        self.allow(self.budget_usd + 2 * ROUND_USD)

    def _allow_less(self) -> None:
        assert self.budget_usd is not None
        self.allow(max(ROUND_USD, self.budget_usd - 3 * ROUND_USD))

    def _time_passes(self) -> None:
        self.world.clock.advance(5.0)
        self.world.perform(self.world.coordinator.overdue())
        now = self.world.clock.now()
        for run in self.world.coordinator.runs.values():
            assert run.due is None or now < run.due[0] + GRACE_S, "its time is over"

    def _asked(self, run_id: str) -> None:
        """A round begins: after the last of the money, that of a run that was in flight."""
        if self.world.coordinator.budget.is_spent:
            self._asked_after[run_id] += 1
            assert self._asked_after[run_id] == 1, "a run goes on though all is spent"

    def idle(self) -> list[str]:
        """Runs of which everything is on disk and that nobody serves, unfinished."""
        unwritten = {
            getattr(entry, "run_id", None)
            for effects in self.world.unwritten
            for entry in effects.entries
        }
        return [
            run_id
            for run_id in self.world.run_ids()
            if run_id not in self.world.coordinator.runs
            and run_id not in unwritten
            and CHILD_MARK not in run_id
            and not self.world.ends(run_id)
        ]

    def resume(self, run_id: str) -> None:
        # What is below it goes on with it. All of it is on disk: the last to leave was this one.
        for known in self.world.run_ids():
            if known.partition(CHILD_MARK)[0] == run_id and not self.world.ends(known):
                effects = self.world.coordinator.adopt(self.world.stored(known), asked=True)
                self.wishes.note(run_id, effects, parks=False)

    def answer(self, run_id: str, question_id: str) -> None:
        """Somebody answers a question, and perhaps somebody else at the same moment."""
        world, answers = self.world, {question_id: f"{run_id}: {question_id}"}
        stored = world.stored(run_id)
        world.perform(world.coordinator.answer(stored, answers))

    def finish(self) -> None:
        """Let all runs come to their end, undisturbed."""
        self.world.settle()
        while idle := self.idle():
            for run_id in idle:
                for question in unanswered(self.world.stored(run_id).state.values):
                    self.answer(run_id, question["id"])
                    self.world.settle()
                self.resume(run_id)
            self.world.settle()

    # ---- what must hold ------------------------------------------------------------------

    def check_always(self) -> None:
        """The state in memory is what the entries say; nothing else is held."""
        world = self.world
        entries = [*world.disk, *(e for effects in world.unwritten for e in effects.entries)]
        for run_id, run in world.coordinator.runs.items():
            stored = world.stored(run_id, entries)
            assert stored.state.values == run.state.values
            assert stored.state.version == run.state.version
            assert list(stored.state.log) == list(run.state.log)
            assert stored.losses == run.losses
        assert world.coordinator.budget.limit_usd == self.budget_usd
        if not world.coordinator.budget.is_spent:
            self._asked_after.clear()
        next_at = world.coordinator.next_overdue_at
        for run in world.coordinator.runs.values():
            if run.due is not None:
                assert next_at is not None
                assert next_at <= run.due[0] + GRACE_S, "nobody will look at it in time"
        for run in world.coordinator.runs.values():
            assert not is_waiting(run.state.values), "a run that waits is served"
        for run in world.coordinator.runs.values():
            if run.waits_for_children:
                assert run.slot is None, "a run that waits for others is at a host"
            if run.spec.parent is not None:
                assert run.spec.parent.run_id in world.coordinator.runs, "it outlives its parent"
        alone = [run for run in world.coordinator.runs.values() if _in_quarantine(run.slot)]
        assert len(alone) <= 1, "the quarantine host serves one run at a time"

    def check_end(self, count: int) -> None:
        world = self.world
        for run_id in (f"run{i}" for i in range(count)):
            if run_id not in world.run_ids():
                continue  # its submission was lost with the coordinator before it was on disk
            (end,) = world.ends(run_id)
            assert end.reason.kind != "max_turns", "it had a turn left for all of its plan"
            assert world.changes(run_id)[-1].end is not None
            assert repaired(world.log(run_id))[1] == 0
            self._check_answers(run_id)
        self._check_children()
        assert all(times == 1 for times in self.team.effects.values()), "an effect happened twice"
        assert not world.coordinator.runs
        for host in world.hosts.values():
            assert not host.runs, "a host keeps runs that are over"
            assert len(host.seen) == 0

    def _check_children(self) -> None:
        """Each child has ended, and its parent was told of it once, or had ended itself."""
        world = self.world
        for run_id in world.run_ids():
            if (link := world.stored(run_id).spec.parent) is None:
                continue
            (end,) = world.ends(run_id)
            events = [e for change in world.changes(link.run_id) for e in change.delta.events]
            told = [e for e in events if isinstance(e, ChildEnded) and e.run_id == run_id]
            orphaned = end.reason.kind == "parent"
            assert len(told) == (0 if orphaned else 1), f"{run_id} was told of {len(told)} times"
            (above,) = world.ends(link.run_id)
            assert not orphaned or above.status != "done", "its parent was done without it"
        for run_id in world.run_ids():
            (end,) = world.ends(run_id)
            calls = [world.ends(one)[0].usage for one in world.run_ids() if _is_below(one, run_id)]
            used = end.children_usage or Usage()
            assert used.model_calls == sum(usage.model_calls for usage in calls)

    def _check_answers(self, run_id: str) -> None:
        """Each answer that was given is the result of its call, once."""
        values = self.world.stored(run_id).state.values
        given = sorted((values.get(ANSWERS.name) or {}).values())
        results = [m.text for m in self.world.log(run_id) if m.role == "tool"]
        read = sorted(text for text in results if text.startswith(f"{run_id}: "))
        (end,) = self.world.ends(run_id)
        assert read == given or (end.status != "done" and set(read) < set(given))
        assert len(set(read)) == len(read)


class Wishes:
    """What was asked of runs last, as far as that is on disk: no run parks unasked."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._parks: set[str] = set()
        self._noted: list[tuple[Effects, str, bool]] = []
        world.committed = self._committed

    def note(self, run_id: str, effects: Effects, *, parks: bool) -> None:
        """A run was asked to park, or to go on."""
        self._noted.append((effects, run_id, parks))
        self._world.perform(effects)

    def _committed(self, effects: Effects) -> None:
        for _, run_id, parks in [noted for noted in self._noted if noted[0] is effects]:
            root = run_id.partition(CHILD_MARK)[0]
            (self._parks.add if parks else self._parks.discard)(root)
        for entry in effects.entries:
            if isinstance(entry, RunChanged):
                parked = any(isinstance(event, RunParked) for event in entry.delta.events)
                root = entry.run_id.partition(CHILD_MARK)[0]
                assert not parked or root in self._parks, "it parks, and nobody asked"


def turns_of(plan: list[Round]) -> int:
    """As many as it takes, and not one more."""
    return 1 + plan.count("turn")


def _cost_of(run: StoredRun) -> float:
    cost_usd: float = run.state.values.get(USAGE.name, {}).get("cost_usd", 0.0)
    return cost_usd


def _is_below(run_id: str, above: str) -> bool:
    return run_id.startswith(above + CHILD_MARK)


def _in_quarantine(slot: Slot | None) -> bool:
    return slot is not None and slot.index == QUARANTINE


@settings(max_examples=250)
@given(
    plans=PLANS,
    agent_turns=st.integers(1, 2),
    seed=st.integers(0, 1_000_000),
    length=st.integers(100, 400),
    roughness=st.sampled_from([0.3, 1.0, 8.0]),
    budget_usd=st.none() | st.integers(1, 6),
    below=BELOW,
)
def test_runs_survive_any_schedule(
    plans: list[list[Round]],
    agent_turns: int,
    seed: int,
    length: int,
    roughness: float,
    budget_usd: float | None,
    below: list[list[Round]],
) -> None:
    chance = Random(seed)
    scheduler = Scheduler(plans, agent_turns, budget_usd, below)
    for number in range(len(plans)):
        limits = Limits(
            time_s=chance.choice((None, 60.0, 400.0)), working_s=chance.choice((None, 30.0))
        )
        config = HarnessConfig(limits=limits, max_turns=turns_of(plans[number]))
        scheduler.world.submit(a_spec(f"run{number}", config=config))
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
    while not world.ends():
        asked = unanswered(world.stored().state.values)
        answers = {question["id"]: "yes" for question in asked}
        world.perform(world.coordinator.answer(world.stored(), answers))
        world.settle()
        world.perform(world.coordinator.adopt(world.stored(), asked=True))
        world.settle()
    assert [end.status for end in world.ends()] == ["done"]
    assert repaired(world.log())[1] == 0
    assert all(times == 1 for times in team.effects.values())
