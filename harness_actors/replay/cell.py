"""The coordinator of a rerun with a journal of its own, and the comparison with the other one."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from harness_actors.actors.host.shipped_executors import executor_needs
from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.coordinator import Coordinator
from harness_actors.coordination.protocol import (
    Answered,
    Changed,
    Deliver,
    Envelope,
    FromHost,
    Mail,
    Slot,
)
from harness_actors.coordination.taking_up import taken_from
from harness_actors.events import ChildEnded
from harness_actors.messages import Message
from harness_actors.ports import Clock
from harness_actors.records import RunAdded, RunChanged, StoredRun
from harness_actors.replay.differences import Difference, of_changes
from harness_actors.replay.ends import as_end, left_by
from harness_actors.replay.recording import Recording
from harness_actors.replay.visits import (
    beside_of,
    deeds_of,
    is_asked_below,
    is_beside,
    is_note,
)
from harness_actors.results import HarnessResult
from harness_actors.signals import Parked, RunEnd
from harness_actors.state import (
    AGENT_TURN,
    AWAITED,
    COORDINATOR,
    MAIL,
    USAGE,
    Letter,
    StateDelta,
    Write,
    is_waiting,
)
from harness_actors.stores import SqliteJournal

COMMAND = "replay"


class DivergedError(Exception):
    """The rerun went where its journal has nothing more to say; the text says where."""


class RerunCell:
    """Serves one run: the shipped state machine on a fresh journal, step by step.

    Args:
        recording: The run as it was.
        journal: Where the rerun is committed.
        clock: Its time.

    Attributes:
        slot: Whose turn it is.
        deliver: What that executor is sent; None before the first.
        taken: Changes since it was set to 0.
        differences: What was committed otherwise than it had been.
        facts: What was taken from the recording, as sentences.
        messages: What the rerun added to the log.
        end: How it ended; None while it goes on.
    """

    def __init__(self, recording: Recording, journal: SqliteJournal, clock: Clock) -> None:
        self._recording = recording
        # Whatever has begun it is not there, and all that it has begun is below it alone.
        self._spec = replace(recording.spec, parent=None)
        link = recording.spec.parent
        self._pool = "" if link is None else link.pool
        self._changes = deeds_of(recording)
        self._beside = beside_of(recording)
        self._run_id = recording.spec.run_id
        self._journal = journal
        self._clock = clock
        self._at = 0
        self._brought = 0
        self._hop_number = self._seq = 0
        self.slot = Slot("")
        self._mail: list[Letter] = []
        self.deliver: Deliver | None = None
        self.taken = 0
        self.differences: list[Difference] = []
        self.facts: list[str] = []
        self.messages: list[Message] = []
        self.end: HarnessResult | None = None
        self.begin_term()

    @property
    def run(self) -> ActiveRun:
        """The run as the coordinator has it.

        Raises:
            DivergedError: It is served no longer.
        """
        run = self._coordinator.runs.get(self._run_id)
        if run is None:
            raise DivergedError("the rerun was over before")
        return run

    @property
    def is_behind(self) -> bool:
        """The journal has more of the run."""
        return self._at < len(self._changes)

    @property
    def is_complete(self) -> bool:
        """It is over, where the journal has nothing more of it."""
        return self.end is not None and not self.is_behind

    def begin_term(self) -> None:
        """A new incarnation of the coordinator, which has nothing but the journal."""
        self._term = self._journal.begin_term()
        self._coordinator = Coordinator(
            term=self._term,
            command=COMMAND,
            needs=executor_needs(),
            agent_turns=1,
            clock=self._clock,
            workers=False,
        )
        self._coordinator.children.answers_requests = False
        if self._recording.spec.parent is not None:
            # Its user was asked above it, where it stood.
            self._coordinator.children.departures.wait = self._coordinator.waits.begin_below

    def submit(self) -> None:
        """Begin the run in its conversation."""
        if self._changes:
            self._bring_others(self._changes[0].position)
        conversation = self._recording.spec.conversation_id
        log, plan = (
            self._journal.load_conversation(conversation),
            self._journal.load_plan(conversation),
        )
        self._perform(self._coordinator.submit(self._spec, log, plan))

    def receive(self, body: FromHost) -> None:
        """An executor said something."""
        self.bring()
        self._receive(body)

    def bring(self) -> None:
        """Have happen what happened beside the run, up to its next change."""
        if self.is_behind:
            self._bring_beside(self._changes[self._at].position)

    def _receive(self, body: FromHost) -> None:
        self._seq += 1
        envelope = Envelope(self._run_id, self._term, self._hop_number, self._seq, body)
        self._perform(self._coordinator.received(self.slot, envelope))

    def stop(self, mode: str) -> None:
        """The user asked for a stop."""
        self._perform(self._coordinator.stop(self._run_id, mode))

    def lose_host(self, cause: str) -> None:
        """The process of the executor died."""
        self._perform(self._coordinator.host_lost(self.slot, cause))

    def adopt(self, next_position: int, *, newest_first: bool = False) -> None:
        """The run is taken up from the journal of the rerun, as another command does it.

        Args:
            next_position: Where the recorded journal has what follows. What other runs had
                added to the conversation until then is in it now.
            newest_first: Those that it has begun are taken up in that order, and end so with it.
        """
        if is_waiting(self._stored().state.values):
            # What those below it ask, or were answered, while it waited for that.
            self.bring()
        self._bring_others(next_position)
        run, *below = self._journal.load_tree(self._run_id)
        for stored in (run, *(reversed(below) if newest_first else below)):
            self._perform(self._coordinator.adopt(stored))

    def answer(self, answers: Mapping[str, str]) -> None:
        """The user of the run answered what it waits for."""
        self._perform(self._coordinator.answer(self._stored(), answers))

    def end_idle(self, end: HarnessResult) -> None:
        """The run has ended while nobody served it, and with it those below it."""
        run, *tree = self._journal.load_tree(self._run_id)
        left = [taken_from(one) for one in tree if one.end is None]
        effects = Effects()
        self._coordinator.children.end_idle(taken_from(run), as_end(end), left, effects)
        self._perform(effects)

    def leave_with_those_below(self) -> None:
        """It leaves service, because all that are left below it wait for their user."""
        self.bring()
        for child in self.children:
            effects = Effects()
            self._coordinator.waits.begin_below(child, effects)
            self._perform(effects)

    @property
    def children(self) -> list[ActiveRun]:
        """The runs that it has begun, and that are not over; none while nobody serves it."""
        return [run for run in self._coordinator.runs.values() if run.spec.parent is not None]

    def result_of(self, child_id: str) -> HarnessResult:
        """How a run that it has begun has ended, by the journal.

        Raises:
            DivergedError: The journal does not have it.
        """
        child = self._recording.children.get(child_id)
        if child is None or child.end is None:
            raise DivergedError(f"the journal does not say how {child_id!r} has ended")
        return child.end

    def used_by(self, child: ActiveRun) -> Mapping[str, Any]:
        """What a run that it has begun has used in the end, with all below that, by the journal."""
        return asdict(self.result_of(child.spec.run_id).usage_tree)

    def child_used(self, child: ActiveRun) -> None:
        """A run that it has begun has used that by now."""
        if USAGE.name not in child.state.values:
            self._say_of(child, Changed(self._left_by(child.spec.run_id)))

    def put_aside_below(self) -> None:
        """Those leave service that it has begun, where it waits for that to leave, too."""
        run = self._coordinator.runs.get(self._run_id)
        if run is None or run.held is None:
            return
        self.bring()
        for child in self.children:
            self._say_of(child, Answered(StateDelta(), Parked()))

    def answer_requests(self, writes: Sequence[Write]) -> None:
        """Who serves the runs that it has begun answers what it has asked of them."""
        self.bring()
        effects = Effects()
        answers = [write for write in writes if write.key != AWAITED.name]
        self._coordinator.children.answered(self.run, answers, effects)
        self._perform(effects)

    def end_child(self, child_id: str) -> None:
        """A run that it has begun is over."""
        self.bring()
        self._end_child(child_id)

    @property
    def is_idle(self) -> bool:
        """Nobody serves it."""
        return self._run_id not in self._coordinator.runs

    def end_idle_child(self, child_id: str) -> None:
        """A run that it has begun is over, while nobody serves either."""
        self.bring()
        tree = [one for one in self._journal.load_tree(self._run_id) if one.end is None]
        runs = {one.spec.run_id: taken_from(one) for one in tree}
        child, result, effects = runs.pop(child_id), self.result_of(child_id), Effects()
        self._coordinator.changes.change(child, self._left_by(child_id), effects)
        rest = list(runs.values())
        self._coordinator.children.end_idle(child, as_end(result), rest, effects)
        self._perform(effects)

    def take_mail(self) -> list[Letter]:
        """What its host was told since the last time that the run is to be told."""
        taken, self._mail = self._mail, []
        return taken

    def _end_child(self, child_id: str) -> None:
        result, child = self.result_of(child_id), self._coordinator.runs.get(child_id)
        if child is None:
            raise DivergedError(f"{child_id!r} ended, which is not served")
        self._say_of(child, Answered(self._left_by(child_id), as_end(result)))

    def _left_by(self, child_id: str) -> StateDelta:
        """What a run that it has begun has used and come to, of which this one is told."""
        return left_by(self.result_of(child_id), self._recording.children[child_id].changed)

    def end_waiting(self, end: RunEnd) -> None:
        """Others than its executors ended the run while it was at none of them."""
        run = self.run
        run.slot, self._hop_number, self._seq = self.slot, run.hop_number, run.received
        self.receive(Answered(StateDelta(), end))

    def _say_of(self, child: ActiveRun, body: FromHost) -> None:
        # Nobody serves it here, so that it is heard from anywhere, be it queued or not.
        child.slot = child.slot or Slot(AGENT_TURN)
        run_id, number = child.spec.run_id, child.hop_number
        envelope = Envelope(run_id, self._term, number, child.received + 1, body)
        self._perform(self._coordinator.received(child.slot, envelope))

    def _stored(self) -> StoredRun:
        stored = self._journal.load_run(self._run_id)
        assert stored is not None, "it was submitted"
        return stored

    def tell(self, sentence: str) -> None:
        """Something was taken from the recording."""
        if sentence not in self.facts:
            self.facts.append(sentence)

    def differ(self, what: str, problem: str) -> None:
        """Something other than a change is not as it was."""
        found = Difference(where=self._where(), what=what, journal="", rerun=problem)
        self.differences.append(found)

    def _perform(self, effects: Effects) -> None:
        self._journal.commit(self._term, effects.entries)
        for entry in effects.entries:
            if isinstance(entry, RunChanged) and entry.run_id == self._run_id:
                self._compare(entry)
        for post in effects.posts:
            is_own = post.envelope.run_id == self._run_id
            if is_own and isinstance(post.envelope.body, Deliver):
                self.slot, self.deliver = post.slot, post.envelope.body
                self._hop_number, self._seq = post.envelope.hop_number, 0
                self._mail = []
            elif is_own and isinstance(post.envelope.body, Mail):
                self._mail += post.envelope.body.letters

    def _compare(self, made: RunChanged) -> None:
        if made.end is None and (is_note(made.delta, made.hop) or is_beside(made.delta, made.hop)):
            return
        if not self.is_behind:
            raise DivergedError("the rerun went on after the end of the journal's run")
        stored = self._changes[self._at]
        self.differences += of_changes(self._where(), stored, made, pool=self._pool)
        self.messages += made.delta.messages
        self.end = made.end or self.end
        self._at += 1
        self.taken += 1

    def _where(self) -> str:
        at = f", at {self.slot.executor!r}" if self.slot.executor else ""
        return f"change {self._at + 1} of {len(self._changes)}{at}"

    def _bring_beside(self, before: int) -> None:
        """What summaries have cost until then, and why some failed, as it is on record; who has
        ended that the run has begun, and what it was told."""
        while self._beside and self._beside[0].position < before:
            delta = self._beside.pop(0).delta
            ended = next((e for e in delta.events if isinstance(e, ChildEnded)), None)
            if delta.writes and all(is_asked_below(write) for write in delta.writes):
                self._note(delta)
                continue
            mail = (Letter(**one.value) for one in delta.writes if one.key == MAIL.name)
            # Who is at work is said again by itself.
            letters = [letter for letter in mail if letter.sender != COORDINATOR]
            if not letters and ended is None and {w.key for w in delta.writes} == {MAIL.name}:
                continue
            if ended is not None:
                self.tell("what came of the runs that it began")
                self._end_child(ended.run_id)
            elif letters:
                self.tell("what it was told by the run above it")
                for letter in letters:
                    effects = Effects()
                    self._coordinator.children.beside.post(self.run, letter, effects)
                    self._perform(effects)
            else:
                self._receive(Changed(delta))

    def _note(self, delta: StateDelta) -> None:
        """What runs below have asked, or were answered, wherever these stand here."""
        self.tell("what was asked by the runs below it")
        run, effects = (
            self._coordinator.runs.get(self._run_id) or taken_from(self._stored()),
            Effects(),
        )
        self._coordinator.changes.change(run, delta, effects)
        self._perform(effects)

    def _bring_others(self, before: int) -> None:
        """Put into the conversation what other runs have added until then."""
        others = self._recording.others
        fresh = [message for at, message in others[self._brought :] if at < before]
        if not fresh:
            return
        plans = [plan for at, plan in self._recording.other_plans if at < before]
        plan = plans[-1] if plans else None
        self.tell(f"{len(fresh)} messages that other runs added to its conversation")
        run_id = f"others-{self._brought}"
        spec = replace(self._spec, run_id=run_id, task=(), metadata={})
        at = self._clock.now()
        self._brought += len(fresh)
        change = RunChanged(
            run_id=spec.run_id,
            version=1,
            delta=StateDelta(messages=tuple(fresh), plan=plan),
            hop=None,
            losses=0,
            end=None,
            at=at,
        )
        self._journal.commit(self._term, [RunAdded(spec=spec, command="", at=at), change])
