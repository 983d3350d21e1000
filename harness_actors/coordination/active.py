"""The values that the coordinator works with: runs in service, and what is to be done."""

from dataclasses import dataclass, field

from harness_actors.coordination.protocol import Envelope, Offer, Slot
from harness_actors.coordination.routing import Replica
from harness_actors.plan import Summary
from harness_actors.records import Entry, Hop, RunSpec
from harness_actors.results import LimitKind
from harness_actors.signals import RunEnd
from harness_actors.state import (
    AGENT_TURN,
    AWAITED,
    OPEN_CALLS,
    USAGE,
    WAITED_S,
    WAITING_SINCE,
    SharedState,
    StateDelta,
    Write,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorNeeds:
    """What one of our executors is sent with a signal.

    Attributes:
        keys: Names of the entries that it reads.
        log: Whether it reads the conversation.
    """

    keys: tuple[str, ...]
    log: bool


@dataclass(frozen=True, slots=True)
class Post:
    """An envelope for the host in a slot."""

    slot: Slot
    envelope: Envelope


@dataclass(slots=True)
class Effects:
    """What is to be done about something that happened.

    Attributes:
        entries: To be committed together.
        posts: To be sent, in this order, once the entries are on disk.
    """

    entries: list[Entry] = field(default_factory=list)
    posts: list[Post] = field(default_factory=list)


@dataclass(slots=True)
class Background:
    """What is being prepared for the window of a run; in memory alone.

    Attributes:
        slot: The worker that is at it; None where none is.
        job: Number of the newest job, counted with the hops of all runs.
        base: Version of the plan from which it was begun.
        received: Number of the newest envelope of the job.
        attempts: How often the job was begun.
        offer: A plan that is offered to the run; None for none.
        failures: Jobs in a row that came to nothing.
        rests_until: How many tokens the next request must have before one is begun again.
        summaries: Those that are on disk and in no plan yet, by their keys.
        asked: The user or the model has asked for a summary.
        awaited: The run waits for that before its next turn.
        keep: What they want to be kept; empty for nothing of its own.
    """

    slot: Slot | None = None
    job: int = 0
    base: int = 0
    received: int = 0
    attempts: int = 0
    offer: Offer | None = None
    failures: int = 0
    rests_until: float = 0.0
    summaries: dict[str, Summary] = field(default_factory=dict)
    asked: bool = False
    awaited: bool = False
    keep: str = ""

    @property
    def is_idle(self) -> bool:
        """Nobody is at it, and nothing is offered."""
        return self.slot is None and self.offer is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """An answer of a run that leaves service, until all below it have.

    Attributes:
        delta: What changed with it; not on disk yet.
        asks: The run asks its user; else it is put aside.
        moved: It goes on elsewhere, at its `hop`.
    """

    delta: StateDelta
    asks: bool = False
    moved: bool = False


@dataclass(slots=True)
class ActiveRun:
    """A run that is being served."""

    spec: RunSpec
    state: SharedState
    hop: Hop
    started_at: float
    losses: int = 0
    slot: Slot | None = None
    """Where it is; None while it waits for the quarantine host."""
    hop_number: int = 0
    sent: int = 0
    """Number of the newest envelope that was posted to its host in this hop."""
    received: int = 0
    """Number of the newest envelope that came from its host in this hop."""
    hops: int = 0
    """Since its agent's last turn."""
    receipt: int = 0
    """Number of the newest change of this hop whose commit is told with the answer of the call
    that brought it."""
    busy_since: float | None = None
    """When its tools, or an executor of its user's own, began to run, in seconds since the epoch;
    None while neither does."""
    started_after: int = 0
    """Number of the newest message of this hop after which its host has said that tools begin."""
    announced: tuple[str, ...] = ()
    """Names of those tools, where the index of open calls does not have them; empty of an
    executor, and of an answer that is being taken in."""
    snapshot_due: bool = False
    """Its state was not written whole for long."""
    parking: bool = False
    """It was asked to stop at the next round, to be taken up later."""
    unparked_in: int = 0
    """The hop in which it was asked to go on after all; its host may have parked by then."""
    closing: RunEnd | None = None
    """How it ends where it would make its next model call; None while it may make some."""
    replicas: dict[Slot, Replica] = field(default_factory=dict)
    held: "Held | None" = None
    """Its answer, by which it leaves service when all below it have; meanwhile it is at no host."""
    changed_at: float = 0.0
    """When it was changed last, in seconds since the epoch; 0 before that."""
    background: Background | None = None
    """None where its window was never filled."""
    summarizes_at: float | None = field(init=False)
    """From which share of its window on it is summarized; None for never."""

    def __post_init__(self) -> None:
        settings = self.spec.config.compaction
        summarizes = settings is not None and self.spec.is_summarized
        self.summarizes_at = settings.soft if settings is not None and summarizes else None

    @property
    def waits_for_children(self) -> bool:
        """Whether it waits, at no host, for runs that it has begun."""
        return bool(self.state.values.get(AWAITED.name))

    @property
    def leaves_service(self) -> bool:
        """Whether it is about to: after the round that it is in, or those of runs below it."""
        return self.parking or self.held is not None

    @property
    def plan_version(self) -> int:
        """Of the plan by which its conversation is shown; 0 for none."""
        return 0 if self.state.plan is None else self.state.plan.version

    @property
    def offer(self) -> Offer | None:
        """A plan that it may take; None for none."""
        return None if self.background is None else self.background.offer

    @property
    def makes_rounds(self) -> bool:
        """Whether its host may stop it between two; a user's own executor may, too."""
        return self.slot is not None and (self.slot.executor == AGENT_TURN or bool(self.slot.code))

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that are running, or may be, each once."""
        listed = self.state.values.get(OPEN_CALLS.name) or ()
        return self.announced or tuple(dict.fromkeys(call["tool_name"] for call in listed))

    @property
    def counts_from(self) -> float:
        """When its time began, in seconds since the epoch: later by its waits that are over."""
        waited_s: float = self.state.values.get(WAITED_S.name, 0.0)
        return self.started_at + waited_s

    def waiting_s(self, now: float) -> float:
        """For how long it has waited for its user until `now`; 0 where it does not wait."""
        since: float | None = self.state.values.get(WAITING_SINCE.name)
        return 0.0 if since is None else max(0.0, now - since)

    @property
    def due(self) -> tuple[float, LimitKind] | None:
        """When its time is over if nothing changes, in seconds since the epoch, and by which
        bound; None for never."""
        limits = self.spec.config.limits
        times: list[tuple[float, LimitKind]] = []
        if limits.time_s is not None:
            times.append((self.counts_from + limits.time_s, "time"))
        if limits.working_s is not None and self.busy_since is not None:
            worked_s = self.state.values.get(USAGE.name, {}).get("working_s", 0.0)
            times.append((self.busy_since + limits.working_s - worked_s, "working_time"))
        return min(times, default=None)


def closed_elsewhere(state: SharedState) -> StateDelta:
    """Take out of the index of open calls those that the log does not have as open.

    While a run was parked, another one may have continued their conversation, and has
    answered them then.
    """
    listed = state.values.get(OPEN_CALLS.name) or []
    if not listed:
        return StateDelta()
    still = {call.id for call in state.log.open_calls()}
    left = [call for call in listed if call["call_id"] in still]
    return StateDelta() if left == listed else StateDelta((Write(OPEN_CALLS.name, "set", left),))
