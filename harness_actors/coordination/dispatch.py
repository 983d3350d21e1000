"""Brings runs to the hosts that serve them, with what each of these needs to know."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from harness_actors.coordination.active import (
    ActiveRun,
    Background,
    Effects,
    ExecutorNeeds,
    Post,
)
from harness_actors.coordination.at_once import AnswerAtOnce, AtOnce
from harness_actors.coordination.protocol import (
    QUARANTINE,
    Committed,
    Cut,
    Deliver,
    Envelope,
    Forget,
    Mail,
    Offered,
    Park,
    Slot,
    Speak,
    Summarize,
    ToHost,
)
from harness_actors.coordination.routing import Replica, Router
from harness_actors.messages import Message
from harness_actors.plan import without_dropped
from harness_actors.signals import RunEnd
from harness_actors.state import AGENT_TURN, COMPACTION, PRESSURE, Letter, turns_of

SUBSCRIBED_RUNS = 10_000
"""Runs that are listened to; of more, the earliest are forgotten until they are asked for again."""


@dataclass(eq=False, kw_only=True)
class Dispatch:
    """Posts the signals of runs, and whatever else their hosts are told.

    Args:
        term: Term of the coordinator.
        needs: What each of our executors is sent, by name.
        agent_turns: Number of agent turn hosts, at least 1.
        runs: The runs in service, by id; the coordinator's own mapping.
        answer: Says what executors answer that have nothing to do; None where each is asked.
    """

    term: int
    needs: Mapping[str, ExecutorNeeds]
    agent_turns: int
    runs: Mapping[str, ActiveRun]
    answer: AnswerAtOnce | None = None
    at_once: AtOnce = field(init=False)
    # In memory only: a new incarnation is told by whoever still reads.
    _streams: OrderedDict[str, str] = field(default_factory=OrderedDict, init=False)
    # Of all runs together: a run that is taken up again in this term must not get a
    # hop number that an envelope of its life before may still carry.
    _hop_numbers: "count[int]" = field(default_factory=lambda: count(1), init=False)

    def __post_init__(self) -> None:
        self._router = Router(self.agent_turns)
        self.at_once = AtOnce(self.answer, self.runs, self.ask)

    def deliver(self, run: ActiveRun, effects: Effects) -> None:
        """Have the run's hop answered: at once, or by the host that is to serve it."""
        if self.at_once.takes(run):
            self.withhold(run)
            self.at_once.add(run)
        else:
            self.ask(run, effects)

    def ask(self, run: ActiveRun, effects: Effects) -> None:
        """Post the run's hop to the host that is to serve it."""
        run_id, executor = run.spec.run_id, run.hop.to
        code = run.spec.code if executor in run.spec.custom else ""
        pool = "" if run.spec.parent is None else run.spec.parent.pool
        slot = self._router.slot_for(run_id, executor, code, run.losses, pool)
        run.hop_number = self.next_number()
        run.sent = run.received = run.receipt = run.started_after = 0
        run.busy_since = None
        if slot.index == QUARANTINE and not self._router.isolate(run_id):
            run.slot = None
            return
        run.slot = slot
        replica = run.replicas.get(slot)
        needs = None if code else self.needs[executor]
        squeezes = executor == COMPACTION and not code and _is_full(run.state.values)
        if replica is not None and (replica.is_over or squeezes):
            replica = None
        reads_log = needs is None or needs.log or squeezes
        plan = run.state.plan if reads_log else None
        if plan is not None and replica is not None and replica.plan == plan.version:
            plan = None
        known = replica.messages if replica and reads_log else 0
        deliver = Deliver(
            signal=run.hop.signal,
            # A copy: it leaves later, and the state may have changed by then.
            values=_select(run.state.values, None if needs is None else needs.keys),
            log_from=known,
            log=_read(run, known, squeezes=squeezes) if reads_log else (),
            started_at=run.counts_from,
            parking=run.parking or run.closing is not None,
            spec=None if replica else run.spec,
            stream=self._streams.get(run_id, "") if _speaks(slot) else "",
            plan=plan,
            offer=run.offer if executor == COMPACTION else None,
            offered=_offered(run) if _speaks(slot) else 0,
        )
        # It keeps the log for this once.
        run.replicas[slot] = Replica(len(run.state.log), run.plan_version, is_over=squeezes)
        self.post(run, deliver, effects)

    def post(self, run: ActiveRun, body: ToHost, effects: Effects) -> None:
        """Tell the host of a run something; nothing where it is at none."""
        if run.slot is not None:
            run.sent += 1
            envelope = Envelope(run.spec.run_id, self.term, run.hop_number, run.sent, body)
            effects.posts.append(Post(run.slot, envelope))

    def next_number(self) -> int:
        """Of a hop or a job; none is given twice."""
        return next(self._hop_numbers)

    def is_current(self, envelope: Envelope) -> bool:
        """Whether an envelope is to be posted still.

        While its hop was being committed, the host may have died and the run gone on.
        """
        run = self.runs.get(envelope.run_id)
        # Looked at first, as most are: no job has the number of a hop.
        if run is not None and run.hop_number == envelope.hop_number:
            return True
        if isinstance(envelope.body, Cut | Forget):
            return True
        known = None if run is None else run.background
        is_job = isinstance(envelope.body, Summarize)
        return is_job and known is not None and known.job == envelope.hop_number

    def withhold(self, run: ActiveRun) -> None:
        """The run is at no host until it is delivered; what any of them says of it is old."""
        run.slot, run.hop_number, run.busy_since = None, self.next_number(), None

    def wait_no_more(self, run: ActiveRun) -> None:
        """A run that waits for the quarantine host is not to be brought to it."""
        self._router.released(run.spec.run_id)

    def offer(self, run: ActiveRun, effects: Effects) -> None:
        """Tell the agent turn of a run that a plan is offered; whoever comes next is told, too."""
        if run.slot is not None and _speaks(run.slot):
            self.post(run, Offered(_offered(run)), effects)

    def mail(self, run: ActiveRun, letters: tuple[Letter, ...], effects: Effects) -> None:
        """Tell the agent turn of a run what it has been told; whoever comes next is told, too."""
        if run.slot is not None and _speaks(run.slot):
            self.post(run, Mail(letters), effects)

    def post_job(self, run: ActiveRun, known: Background, job: Summarize, effects: Effects) -> None:
        """Post a job for a run to its worker."""
        if known.slot is not None:
            envelope = Envelope(run.spec.run_id, self.term, known.job, 1, job)
            effects.posts.append(Post(known.slot, envelope))

    def cut_job(self, run: ActiveRun, known: Background, effects: Effects) -> None:
        """Tell the worker that nobody waits for its job."""
        if known.slot is not None:
            envelope = Envelope(run.spec.run_id, self.term, known.job, 2, Cut())
            effects.posts.append(Post(known.slot, envelope))

    def stop_at_round(self, run: ActiveRun, effects: Effects) -> None:
        """Tell its host; where none makes rounds, the run stops when it is answered."""
        if run.makes_rounds:
            self.post(run, Park(), effects)

    def subscribe(self, run_ids: Iterable[str], stream: str) -> Effects:
        """Have runs tell a stream actor what their models say, also such as are still to come."""
        effects = Effects()
        for run_id in run_ids:
            self._streams[run_id] = stream
            self._streams.move_to_end(run_id)
            run = self.runs.get(run_id)
            if run is not None and run.slot is not None and _speaks(run.slot):
                self.post(run, Speak(stream), effects)
        while len(self._streams) > SUBSCRIBED_RUNS:
            self._streams.popitem(last=False)
        return effects

    def receipts(self, batch: Iterable[Envelope]) -> tuple[Envelope, ...]:
        """What is told with the answer of the call that brought a batch, or its copy."""
        told = {}
        for envelope in batch:
            run = self.runs.get(envelope.run_id)
            if (
                run is not None
                and run.hop_number == envelope.hop_number
                and envelope.seq <= run.receipt
            ):
                # Of no number: it is true whenever it comes.
                committed = Committed(run.receipt)
                told[envelope.run_id] = Envelope(
                    envelope.run_id, self.term, run.hop_number, 0, committed
                )
        return tuple(told.values())

    def leave(self, run: ActiveRun, effects: Effects) -> None:
        """The run is at its host no longer; another may have the quarantine host."""
        if run.slot is not None and run.slot.index == QUARANTINE:
            successor_id = self._router.released(run.spec.run_id)
            if successor_id is not None and successor_id in self.runs:
                self.deliver(self.runs[successor_id], effects)

    def forget(self, run: ActiveRun, effects: Effects, end: RunEnd | None = None) -> None:
        """The run is over, or put aside: no host needs to know of it.

        Args:
            run: The run.
            effects: What is to be done.
            end: How it ended; None where it did not. The host of its agent is told.
        """
        run_id = run.spec.run_id
        run.hop_number = self.next_number()
        last = next((slot for slot in reversed(run.replicas) if _speaks(slot)), None)
        for slot in run.replicas:
            word = Forget()
            if end is not None and slot == last:
                word = Forget(end, turns_of(run.state.values))
            envelope = Envelope(run_id, self.term, run.hop_number, 1, word)
            effects.posts.append(Post(slot, envelope))
        self._router.released(run_id)
        self._router.forget(run_id)
        self._streams.pop(run_id, None)


def _speaks(slot: Slot) -> bool:
    return slot.kind == AGENT_TURN


def _offered(run: ActiveRun) -> int:
    """Version of the plan that is offered to a run; 0 for none."""
    return 0 if run.offer is None else run.offer.plan.version


def _read(run: ActiveRun, known: int, *, squeezes: bool) -> tuple[Message, ...]:
    """What a host is sent of the log of a run."""
    log = run.state.log
    # What a plan has dropped is not sent again with each next one: it only grows.
    return without_dropped(log, run.state.plan) if squeezes else tuple(log[known:])


def _is_full(values: Mapping[str, Any]) -> bool:
    """Whether room is to be made in a run's window, which takes the log."""
    return bool((values.get(PRESSURE.name) or {}).get("waits"))


def _select(values: Mapping[str, Any], names: tuple[str, ...] | None) -> dict[str, Any]:
    """The entries of these names; None is all of them."""
    if names is None:
        return dict(values)
    return {name: values[name] for name in names if name in values}
