"""Plans that are made beside the runs whose windows fill, one at a time for each."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from harness_actors.coordination.active import ActiveRun, Background, Effects
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.protocol import (
    COMPACTION_WORKER,
    Envelope,
    Proposed,
    Slot,
    Summarize,
    Summarized,
)
from harness_actors.coordination.run_changes import RunChanges
from harness_actors.events import SummaryFailed
from harness_actors.plan import without_summarized
from harness_actors.ports import Clock
from harness_actors.records import SummaryStored
from harness_actors.state import (
    COMPACTION,
    PRESSURE,
    REQUEST_TOKENS,
    SIDE_USAGE,
    USAGE,
    StateDelta,
    Write,
    turns_of,
)

WAIT_S = 30.0
"""How long a run whose window is full waits for a plan that is being made."""
FAILURES_BEFORE_REST = 2
ATTEMPTS = 2
"""How often a job is begun whose worker dies."""
GROWTH = 1.1
"""How much larger the next request must be, after a rest, than that in which nothing was gained."""
JOBS_PER_WORKER = 4
MOST_WORKERS = 4
REMEMBERED_RUNS = 1_000
"""That are still to come, and for which a summary was asked for; of more, the newest."""
KEPT_SUMMARIES = 256
"""Of one run, those that are in no plan yet."""


@dataclass(eq=False)
class BackgroundCompaction:
    """Has workers make plans, and offers these to runs.

    A run is idle, or a job is being done for it, or a plan is offered to it. All of that is in
    memory: after a death of the coordinator it begins again, and what was summarized is on disk.

    Args:
        runs: The runs in service, by id; the coordinator's own mapping.
        changes: Writes down what was summarized.
        dispatch: Tells hosts and workers.
        clock: Tells the time.
    """

    _runs: Mapping[str, ActiveRun]
    _changes: RunChanges
    _dispatch: Dispatch
    _clock: Clock
    _jobs: Counter[Slot] = field(default_factory=Counter, init=False)
    _held: dict[str, float] = field(default_factory=dict, init=False)
    """Runs at no host that wait for a plan, and until when, in seconds since the epoch."""
    _proven: set[Slot] = field(default_factory=set, init=False)
    """Workers that have said something since they were begun."""
    _asked: dict[str, str] = field(default_factory=dict, init=False)
    """By run that is still to come: what its user wants to be kept of a summary."""

    def consider(self, run: ActiveRun, effects: Effects) -> None:
        """Something of a run was committed: begin a job for it, where its window fills."""
        if run.summarizes_at is None or run.spec.run_id not in self._runs:
            return
        known = run.background
        if known is not None and not known.is_idle and known.base != run.plan_version:
            # Whatever was made from the plan before is of no use.
            self._drop(run, known, effects)
        values = run.state.values
        tokens, window = values.get(REQUEST_TOKENS.name, 0), _window_of(run)
        asked = known is not None and known.asked
        if tokens < run.summarizes_at * window and not asked:
            return
        if run.closing is not None or run.parking:
            return
        if known is None:
            run.background = known = Background()
        if not known.is_idle or (tokens < known.rests_until and not asked):
            return
        self._begin(run, known, effects)

    def ask(self, run_id: str, keep: str, effects: Effects, *, awaited: bool = True) -> bool:
        """The user of a run, or its model, asks for a summary, however full its window is.

        Args:
            run_id: The run; one that is still to come is remembered, and waits for its summary
                before its first turn.
            keep: What they want to be kept; empty for nothing of its own.
            effects: What is to be done.
            awaited: The run is to wait for it before its next turn.

        Returns:
            Whether a job is in progress for it.
        """
        run = self._runs.get(run_id)
        if run is None:
            self._asked[run_id] = keep
            while len(self._asked) > REMEMBERED_RUNS:
                del self._asked[next(iter(self._asked))]
            return False
        if run.summarizes_at is None:
            return False
        known = run.background = run.background or Background()
        known.asked, known.keep = True, keep or known.keep
        known.awaited = known.awaited or awaited
        if known.is_idle:
            self.consider(run, effects)
        return known.slot is not None

    def begun(self, run: ActiveRun, effects: Effects) -> None:
        """A run is served from now on: begin a job for it, if that was asked for before."""
        if (keep := self._asked.pop(run.spec.run_id, None)) is not None:
            self.ask(run.spec.run_id, keep, effects)

    def received(self, run: ActiveRun, envelope: Envelope, effects: Effects) -> None:
        """A worker said something. What is of another job, or was said before, is dropped."""
        known = run.background
        if known is None or known.slot is None or envelope.hop_number != known.job:
            return
        if envelope.seq <= known.received:
            return
        known.received = envelope.seq
        self._proven.add(known.slot)
        match envelope.body:
            case Summarized() as made:
                self._keep(run, known, made, effects)
            case Proposed() as proposed:
                self._over(run, known, proposed, effects)

    def worker_lost(self, slot: Slot, cause: str, effects: Effects) -> None:
        """The worker in a slot is gone: its jobs are begun once more, each once."""
        self._proven.discard(slot)
        for run in list(self._runs.values()):
            known = run.background
            if known is None or known.slot != slot:
                continue
            self._leave(known)
            if known.attempts < ATTEMPTS:
                self._post(run, known, effects)
            else:
                problem = f"its worker was lost {known.attempts} times{cause and ': '}{cause}"
                self._failed(run, known, problem, effects)
                self._release(run, effects)

    def is_awaited(self, run: ActiveRun) -> bool:
        """Whether a run is to wait, before those who make room, for what its user asked for."""
        known = run.background
        awaited = known is not None and known.awaited and known.slot is not None
        return awaited and run.hop.to == COMPACTION

    def hold(self, run: ActiveRun) -> bool:
        """Let a run whose window is full wait, at no host, for a plan that is being made.

        Returns:
            Whether it does; False where none is being made.
        """
        known = run.background
        if known is None or known.slot is None or run.closing is not None or run.parking:
            return False
        self._held[run.spec.run_id] = self._clock.now() + WAIT_S
        return True

    def forget(self, run: ActiveRun, effects: Effects) -> None:
        """A run is served no longer."""
        self._held.pop(run.spec.run_id, None)
        if run.background is not None:
            self._drop(run, run.background, effects)

    @property
    def next_due(self) -> float | None:
        """When a run has waited long enough, in seconds since the epoch; None for never."""
        return min(self._held.values()) if self._held else None

    def overdue(self, effects: Effects) -> None:
        """Time passed: runs that have waited long enough go on without a plan."""
        now = self._clock.now()
        for run_id in [run_id for run_id, until in self._held.items() if until <= now]:
            self._release(self._runs[run_id], effects)

    # ---- what follows from it -------------------------------------------------------

    def _begin(self, run: ActiveRun, known: Background, effects: Effects) -> None:
        known.base, known.attempts = run.plan_version, 0
        self._post(run, known, effects)

    def _post(self, run: ActiveRun, known: Background, effects: Effects) -> None:
        known.slot, known.job = self._worker(), self._dispatch.next_number()
        known.attempts += 1
        known.received = 0
        self._jobs[known.slot] += 1
        state = run.state
        job = Summarize(
            spec=run.spec,
            log=without_summarized(state.log, state.plan),
            plan=state.plan,
            request_tokens=state.values.get(REQUEST_TOKENS.name, 0),
            window_tokens=_window_of(run),
            known=dict(known.summaries),
            keep=known.keep,
            asked=known.asked,
        )
        self._dispatch.post_job(run, known, job, effects)

    def _worker(self) -> Slot:
        """Where the next job goes: one more worker only where all have enough to do.

        One comes up at a time. After a death of the coordinator, the windows of many runs are full
        at once, and what these wait for are the hosts of their turns, which start then, too.
        """
        begun: list[Slot] = []
        for index in range(MOST_WORKERS):
            slot = Slot(COMPACTION_WORKER, index=index)
            begun.append(slot)
            if self._jobs[slot] < JOBS_PER_WORKER:
                return slot
            if slot not in self._proven:
                break
        return min(begun, key=lambda slot: self._jobs[slot])

    def _keep(self, run: ActiveRun, known: Background, made: Summarized, effects: Effects) -> None:
        """A summary is on disk before it is used, with what it cost."""
        known.summaries[made.key] = made.summary
        while len(known.summaries) > KEPT_SUMMARIES:
            del known.summaries[next(iter(known.summaries))]
        # No model call of the run's own, of which it may make so many.
        used = replace(made.usage, model_calls=0)
        writes = (
            Write(USAGE.name, "increment", USAGE.encode(used)),
            Write(SIDE_USAGE.name, "increment", SIDE_USAGE.encode(made.usage)),
        )
        self._changes.change(run, StateDelta(writes), effects)
        # With its change, and so after the plan by which the run was summarized before.
        effects.entries.append(
            SummaryStored(run_id=run.spec.run_id, key=made.key, summary=made.summary)
        )

    def _over(
        self, run: ActiveRun, known: Background, proposed: Proposed, effects: Effects
    ) -> None:
        self._leave(known)
        known.asked = known.awaited = False
        offer = proposed.offer
        if proposed.problem:
            self._failed(run, known, proposed.problem, effects)
        elif offer is None or not offer.plan.follows(run.state.plan):
            self._rest(run, known)
        else:
            known.offer, known.failures, known.rests_until = offer, 0, 0.0
            self._dispatch.offer(run, effects)
        self._release(run, effects)

    def _failed(self, run: ActiveRun, known: Background, problem: str, effects: Effects) -> None:
        known.failures += 1
        known.asked = known.awaited = False
        if known.failures >= FAILURES_BEFORE_REST:
            self._rest(run, known)
        told = SummaryFailed(turn=turns_of(run.state.values), problem=problem)
        self._changes.change(run, StateDelta(events=(told,)), effects)

    def _rest(self, run: ActiveRun, known: Background) -> None:
        known.failures = 0
        known.rests_until = GROWTH * run.state.values.get(REQUEST_TOKENS.name, 0)

    def _release(self, run: ActiveRun, effects: Effects) -> None:
        """A run that waited for a plan goes on."""
        if self._held.pop(run.spec.run_id, None) is not None:
            self._dispatch.deliver(run, effects)

    def _drop(self, run: ActiveRun, known: Background, effects: Effects) -> None:
        """Cut the job of a run, or take back what is offered to it."""
        if known.slot is not None:
            self._dispatch.cut_job(run, known, effects)
            self._leave(known)
        if known.offer is not None and known.offer.plan == run.state.plan:
            # It was taken, and what it was made of is in it. Another may have the same version.
            for key in known.offer.plan.made_of:
                known.summaries.pop(key, None)
            known.keep = ""
        known.offer = None

    def _leave(self, known: Background) -> None:
        if known.slot is not None:
            self._jobs[known.slot] -= 1
            known.slot = None


def _window_of(run: ActiveRun) -> int:
    pressure = run.state.values.get(PRESSURE.name) or {}
    window: int = pressure.get("window_tokens") or run.spec.config.window_tokens
    return window
