"""What a run's changes say of how it was served: visits to executors, and what cut them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness_actors.coordination.graph import ENTRY
from harness_actors.events import (
    ChildrenStarted,
    ExecutorLost,
    InputAwaited,
    QuestionAnswered,
    RunParked,
    RunResumed,
    StopDecided,
    SummaryFailed,
)
from harness_actors.records import CHILD_MARK, Hop, RunSpec, StoredChange
from harness_actors.replay.open_calls import closings
from harness_actors.replay.recording import Recording
from harness_actors.results import HarnessResult
from harness_actors.signals import TurnComplete
from harness_actors.state import (
    AGENT_TURN,
    ANSWERS,
    ASKED_BELOW,
    AWAITED,
    CHILD_RESULTS,
    CHILDREN_USAGE,
    MAIL,
    OFFERED,
    PRESSURE,
    SIDE_USAGE,
    TURNS_MADE,
    WAITING_SINCE,
    StateDelta,
    Write,
)

HowCut = Literal["cancelled", "parked", "lost", "died", "ended", "failed", "here"]
"""What ended a visit from outside: its user, twice; the death of its process while a tool
ran, or of any process at another time; a bound that others than the turn watch over; a
failure of code that the journal does not hold; `here` the journal ends, and the run is not
over."""

NOT_OF_RUNS = frozenset(("harness.parking", "harness.budget"))
"""Entries in which the coordinator notes what it was asked for, as journals name them."""

WITH_ANSWERS = NOT_OF_RUNS | {TURNS_MADE.name}
"""Entries that the coordinator may write into the change of an executor's answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """One signal as one executor served it.

    Attributes:
        to: The executor.
        changes: What it committed, its answer included.
        hop: Where its answer led; None where it ended the run, or was cut.
        end: How the run ended by it, from inside or outside.
        cut: What ended it from outside; None where it answered.
        parks: It answered, and then the run was put aside.
        waits: It asked the user, and the run was put aside until somebody went on with it; or it
            began others, and waited for them at no host.
        meanwhile: What was committed of the run until then: answers, and that it was asked for; or
            how those have ended, and that it was put aside.
        given: Its code is not ours, so what it did is taken as it is.
        cause: Of a lost one: why its process was killed.
        tools: Of a lost one: those that ran.
        next_position: Journal position of the first change after it; None at the end.
    """

    to: str
    changes: tuple[StoredChange, ...]
    hop: Hop | None = None
    end: HarnessResult | None = None
    cut: HowCut | None = None
    parks: bool = False
    waits: bool = False
    meanwhile: tuple[StoredChange, ...] = ()
    given: bool = False
    cause: str = ""
    tools: tuple[str, ...] = ()
    next_position: int | None = None

    @property
    def is_repeatable(self) -> bool:
        """Whether an executor whose code is at hand can do it again: it did not fail, and what
        ended it, or put its run aside, was surely its own answer."""
        ended_itself = self.end is None or self.end.status in ("done", "stalled")
        return self.cut != "failed" and not self.parks and ended_itself


def is_note(delta: StateDelta, hop: Hop | None) -> bool:
    """Whether a change only notes what the coordinator was asked for, whoever asked."""
    only_notes = all(write.key in NOT_OF_RUNS for write in delta.writes)
    return only_notes and not delta.messages and not delta.events and hop is None


def is_beside(delta: StateDelta, hop: Hop | None) -> bool:
    """Whether a change says what summaries of the run cost, or why one failed; or what the run is
    told of others while it goes on, or is asked for those below it."""
    keys = {write.key for write in delta.writes}
    if keys and all(is_asked_below(write) for write in delta.writes):
        return not delta.messages and hop is None
    if MAIL.name in keys and not keys & {CHILD_RESULTS.name, AWAITED.name}:
        told = all(write.change != "drop" for write in delta.writes)
        return told and not delta.messages and hop is None
    costs = any(write.key == SIDE_USAGE.name for write in delta.writes)
    failed = any(isinstance(event, SummaryFailed) for event in delta.events)
    return (costs or failed) and not delta.messages and hop is None


def is_asked_below(write: Write) -> bool:
    """Whether a write says what runs below ask their user, or are answered."""
    if write.key == ANSWERS.name and write.change == "put":
        return CHILD_MARK in write.value[0]
    return write.key == ASKED_BELOW.name


def own_part(delta: StateDelta) -> StateDelta:
    """What an executor itself put into the change that came with its answer.

    The rest the coordinator added when it took the answer, and adds again in a rerun.
    """
    return replace(
        delta,
        writes=tuple(write for write in delta.writes if write.key not in WITH_ANSWERS),
        events=tuple(event for event in delta.events if not isinstance(event, RunParked)),
    )


def deeds_of(recording: Recording) -> list[StoredChange]:
    """The changes of a run without such notes, and without what was done beside it."""
    return [
        change
        for change in recording.changes
        if not is_note(change.delta, change.hop) and not is_beside(change.delta, change.hop)
    ]


def beside_of(recording: Recording) -> list[StoredChange]:
    """The changes that say what was done beside a run."""
    return [change for change in recording.changes if is_beside(change.delta, change.hop)]


def visits_of(recording: Recording) -> list[Visit]:
    """The visits of a run, in their order."""
    reader = _Reader(recording)
    visits = []
    while not reader.over:
        visits.append(reader.visit())
    return visits


class _Reader:
    """Goes through the changes of a run, visit by visit."""

    def __init__(self, recording: Recording) -> None:
        self._spec: RunSpec = recording.spec
        self._changes: Sequence[StoredChange] = deeds_of(recording)
        self._closing = frozenset(closings(self._changes))
        self._end = recording.end
        self._at = 0
        self._to = ENTRY
        self.over = False

    def visit(self) -> Visit:
        """The next visit; all that it committed has been read then."""
        start, to = self._at, self._to
        while self._at < len(self._changes):
            change = self._changes[self._at]
            events = change.delta.events
            if self._ends_with(change):
                return self._last(to, start)
            if lost := next((e for e in events if isinstance(e, ExecutorLost)), None):
                return self._lost(to, start, lost)
            if _awaits_children(change) or any(isinstance(e, ChildrenStarted) for e in events):
                return self._delegating(to, start)
            if self._was_left(to, change):
                return self._died(to, start)
            if any(isinstance(e, InputAwaited) for e in events):
                return self._waiting(to, start)
            if change.hop is None and any(isinstance(e, RunParked) for e in events):
                return self._parked(to, start)
            self._at += 1
            if change.hop is not None:
                parks = any(isinstance(e, RunParked) for e in events)
                self._to = change.hop.to
                visit = self._made(to, start, hop=change.hop, parks=parks)
                if parks:
                    self._adopted()
                return visit
        self.over = True
        return self._made(to, start, cut="here")

    def _ends_with(self, change: StoredChange) -> bool:
        return self._end is not None and change is self._changes[-1]

    def _last(self, to: str, start: int) -> Visit:
        assert self._end is not None
        self.over = True
        before = self._changes[start : self._at]
        kind = self._end.reason.kind
        judged = any(isinstance(e, StopDecided) for c in before for e in c.delta.events)
        if judged or to in self._spec.custom:
            # Its own last words are two changes, of which the second is the end.
            self._at += 1
            return self._made(to, start, end=self._end)
        cut: HowCut = "ended"
        if self._end.status == "cancelled" and kind == "user":
            cut = "cancelled"
        elif self._end.status == "failed":
            cut = "failed"
        # What those had used that it had begun beside it is written when it ends with them.
        while self._at > start and is_used_below(self._changes[self._at - 1]):
            self._at -= 1
        return self._made(to, start, end=self._end, cut=cut)

    def _lost(self, to: str, start: int, lost: ExecutorLost) -> Visit:
        change = self._changes[self._at]
        visit = self._made(to, start, cut="lost", cause=lost.cause, tools=lost.tools)
        self._at += 1
        if change.hop is not None:
            self._to = change.hop.to
        elif self._end is not None:
            self.over = True
        return visit

    def _was_left(self, to: str, change: StoredChange) -> bool:
        """Whether the change is one of a run that goes on after a death that left no trace."""
        if self._at in self._closing:
            return True
        if any(isinstance(event, RunResumed) for event in change.delta.events):
            return to == AGENT_TURN
        ours = to == AGENT_TURN and to not in self._spec.custom
        if not ours or change.hop is None or _yields(change):
            return False
        return not isinstance(change.hop.signal, TurnComplete)

    def _died(self, to: str, start: int) -> Visit:
        visit = self._made(to, start, cut="died")
        self._adopted()
        return visit

    def _parked(self, to: str, start: int) -> Visit:
        if to in self._spec.custom or self._delegates_later(to):
            # Perhaps its own answer; what it wrote with that is in the same change.
            self._at += 1
            visit = self._made(to, start, parks=True)
        else:
            visit = self._made(to, start, cut="parked", own=1)
            self._at += 1
        self._adopted()
        return visit

    def _waiting(self, to: str, start: int) -> Visit:
        asked, self._at = self._at, self._at + 1
        while self._at < len(self._changes) and _is_of_a_wait(self._changes[self._at]):
            self._at += 1
        over = self._at < len(self._changes) and self._ends_with(self._changes[self._at])
        behind = self._changes[self._at : self._at + 1]
        visit = Visit(
            to=to,
            changes=tuple(self._changes[start:asked]),
            end=self._end if over else None,
            waits=True,
            meanwhile=tuple(self._changes[asked + 1 : self._at]),
            next_position=behind[0].position if behind else None,
        )
        if behind and any(write.key == WAITING_SINCE.name for write in behind[0].delta.writes):
            self._at += 1
        self._adopted()
        self.over |= over
        return visit

    def _delegates_later(self, to: str) -> bool:
        """Whether a turn was to begin other runs when its run was put aside."""
        writes = self._changes[self._at].delta.writes
        return to == AGENT_TURN and any(write.key not in WITH_ANSWERS for write in writes)

    def _delegating(self, to: str, start: int) -> Visit:
        begun, waits = self._changes[self._at], True
        self._at += 1
        behind = self._at
        while waits and self._at < len(self._changes) and not self._ends_with(self._next):
            waits = not _is_last_result(self._next)
            self._at += 1
        over = waits and self._at < len(self._changes)
        visit = Visit(
            to=to,
            changes=tuple(self._changes[start:behind]),
            hop=begun.hop,
            end=self._end if over else None,
            waits=True,
            meanwhile=tuple(self._changes[behind : self._at]),
            next_position=self._next.position if self._at < len(self._changes) else None,
        )
        # Journals from before that led through repair, as does whoever is taken up while it waits.
        left = RunParked | InputAwaited
        parked = any(isinstance(e, left) for c in visit.meanwhile for e in c.delta.events)
        self._to = ENTRY if begun.hop is None or parked else begun.hop.to
        self.over = waits
        return visit

    @property
    def _next(self) -> StoredChange:
        return self._changes[self._at]

    def _adopted(self) -> None:
        """The run was taken up again. A turn that was perhaps in progress begins with repair."""
        if self._at in self._closing:
            self._at += 1
        if self._to == AGENT_TURN:
            self._to = ENTRY
        self.over = self._at >= len(self._changes)

    def _made(
        self,
        to: str,
        start: int,
        *,
        hop: Hop | None = None,
        end: HarnessResult | None = None,
        cut: HowCut | None = None,
        parks: bool = False,
        cause: str = "",
        tools: tuple[str, ...] = (),
        own: int = 0,
    ) -> Visit:
        """What was read since `start`; the coordinator's `own` changes come after it."""
        behind = self._changes[self._at + own : self._at + own + 1]
        return Visit(
            to=to,
            changes=tuple(self._changes[start : self._at]),
            hop=hop,
            end=end,
            cut=cut,
            parks=parks,
            given=to in self._spec.custom or cut == "failed",
            cause=cause,
            tools=tools,
            next_position=behind[0].position if behind else None,
        )


def _is_of_a_wait(change: StoredChange) -> bool:
    """Whether the coordinator took an answer, or said again what a run waits for."""
    kinds = InputAwaited | QuestionAnswered
    return any(isinstance(event, kinds) for event in change.delta.events)


def _awaits_children(change: StoredChange) -> bool:
    """Whether its run waits from then on for others that it has begun."""
    return any(write.key == AWAITED.name and write.value for write in change.delta.writes)


def is_used_below(change: StoredChange) -> bool:
    """Whether a change says only what came of a run, and what it has used, that ends with its
    parent."""
    delta, keys = change.delta, {write.key for write in change.delta.writes}
    used = CHILDREN_USAGE.name in keys and keys <= {CHILDREN_USAGE.name, CHILD_RESULTS.name}
    return used and not delta.messages and not delta.events and change.hop is None


def _is_last_result(change: StoredChange) -> bool:
    """Whether all have ended with a change for which its run has waited."""
    return any(write.key == AWAITED.name and write.value == 0 for write in change.delta.writes)


def _yields(change: StoredChange) -> bool:
    """Whether an agent turn waits until room is made in the window of its model, or for a plan."""
    return offered_in(change.delta) > 0 or any(
        write.key == PRESSURE.name and write.change == "set" and (write.value or {}).get("waits")
        for write in change.delta.writes
    )


def offered_in(delta: StateDelta) -> int:
    """Version of the plan for which a turn waits with a change; 0 where it does not."""
    versions = (write.value for write in delta.writes if write.key == OFFERED.name)
    return next(versions, 0)
