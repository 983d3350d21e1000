"""A journal in memory: the rules of the port in their simplest form, and nothing else."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from harness_actors.conversation import Conversation
from harness_actors.errors import StaleTermError, StoreError
from harness_actors.events import Event, RunEvent, message_events
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan, Summary
from harness_actors.records import (
    CodeStored,
    Entry,
    Hop,
    ProcessMark,
    RunAdded,
    RunChanged,
    RunHeading,
    RunSpec,
    SnapshotTaken,
    StoredRun,
    SummaryStored,
)
from harness_actors.results import HarnessResult, Usage
from harness_actors.state import USAGE, SharedState, is_waiting

NAME = "journal"


@dataclass
class DiskRun:
    """A run, with all that was committed of it."""

    spec: RunSpec
    command: str
    added_at: float
    changes: list[tuple[int, RunChanged]] = field(default_factory=list)
    snapshot: SnapshotTaken | None = None
    values: SharedState = field(default_factory=SharedState)
    """Its state without the log, played from its changes."""
    end: HarnessResult | None = None

    @property
    def hop(self) -> Hop | None:
        return next((c.hop for _, c in reversed(self.changes) if c.hop is not None), None)


class Disk:
    """What is committed. It survives every process."""

    def __init__(self) -> None:
        self.term = 0
        self.position = 0
        self.runs: dict[str, DiskRun] = {}
        self.logs: dict[str, list[Message]] = {}
        """By conversation."""
        self.speakers: dict[str, list[str]] = {}
        """By conversation: the run that each of its messages is from."""
        self.plans: dict[str, CompactionPlan] = {}
        """By conversation: the newest."""
        self.summaries: dict[tuple[str, str], Summary] = {}
        """By run and key."""
        self.summarized_by: dict[tuple[str, str], str] = {}
        self.summarized_at: dict[tuple[str, str], int] = {}
        """The position at which each was committed."""
        self.condensed: set[tuple[str, str]] = set()
        """Conversations with the keys of what is in a plan of them."""
        self.code: dict[str, bytes] = {}
        self.processes: list[tuple[int, ProcessMark]] = []
        self.changes: list[tuple[int, RunChanged]] = []
        self.written: Callable[[Entry], None] = lambda _: None
        """Told of each entry when it is there, before the next."""

    def commit(self, entries: Sequence[Entry]) -> list[int]:
        """Write entries; all of them, or none."""
        added = set(self.runs)
        for entry in entries:
            if isinstance(entry, RunAdded) and not entry.again:
                if entry.spec.run_id in added:
                    raise StoreError(NAME, f"run {entry.spec.run_id!r} was added to it before")
                added.add(entry.spec.run_id)
            elif isinstance(entry, RunChanged) and entry.run_id not in added:
                raise StoreError(NAME, f"run {entry.run_id!r} was never added to it")
        return [self._write(entry) for entry in entries]

    def _write(self, entry: Entry) -> int:
        match entry:
            case RunAdded():
                self.position += 1
                self._add(entry)
            case RunChanged():
                self.position += 1
                self._change(entry)
            case SnapshotTaken():
                self.runs[entry.run_id].snapshot = entry
            case CodeStored():
                self.code.setdefault(entry.code, entry.blob)
            case SummaryStored():
                self._keep(entry)
            case ProcessMark():
                self.processes.append((self.term, entry))
        self.written(entry)
        return self.position

    def _add(self, entry: RunAdded) -> None:
        spec = entry.spec
        if entry.again:
            self.runs[spec.run_id].command = entry.command
        else:
            self.runs[spec.run_id] = DiskRun(spec, entry.command, entry.at)
            self.logs.setdefault(spec.conversation_id, [])
            self.speakers.setdefault(spec.conversation_id, [])

    def _keep(self, entry: SummaryStored) -> None:
        place = entry.run_id, entry.key
        self.summaries.setdefault(place, entry.summary)
        self.summarized_by.setdefault(place, entry.run_id)
        self.summarized_at.setdefault(place, self.position)

    def unused_of(self, conversation_id: str) -> dict[str, Summary]:
        """The summaries of a conversation that are in no plan yet, by their keys."""
        found = sorted((at, place) for place, at in self.summarized_at.items())
        return {
            key: self.summaries[run_id, key]
            for _, (run_id, key) in found
            if self.runs[run_id].spec.conversation_id == conversation_id
            and (conversation_id, key) not in self.condensed
        }

    def _change(self, entry: RunChanged) -> None:
        run = self.runs[entry.run_id]
        run.changes.append((self.position, entry))
        run.values.apply(replace(entry.delta, plan=None))
        if entry.delta.plan is not None:
            plan = entry.delta.plan
            self.plans[run.spec.conversation_id] = plan
            self.condensed |= {(run.spec.conversation_id, key) for key in plan.made_of}
        run.end = entry.end or run.end
        said = entry.delta.messages
        self.logs[run.spec.conversation_id].extend(said)
        self.speakers[run.spec.conversation_id].extend([entry.run_id] * len(said))
        self.changes.append((self.position, entry))

    def who_spoke_behind(self, run_id: str) -> str | None:
        """The first other run that spoke after the first words of one, results apart."""
        conversation_id = self.runs[run_id].spec.conversation_id
        speakers = self.speakers[conversation_id]
        if run_id not in speakers:
            return None
        behind = range(speakers.index(run_id), len(speakers))
        log = self.logs[conversation_id]
        others = (at for at in behind if speakers[at] != run_id and log[at].role != "tool")
        return next((speakers[at] for at in others), None)


class MemoryJournal:
    """Answers the `Journal` port from a disk that others may have open too."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def begin_term(self) -> int:
        self._disk.term += 1
        return self._disk.term

    def commit(self, term: int, entries: Sequence[Entry]) -> list[int]:
        self._check_term(term)
        return self._disk.commit(entries)

    def _check_term(self, term: int) -> None:
        if term != self._disk.term:
            raise StaleTermError(NAME, f"term {term} is over: {self._disk.term} owns it now")

    def known(self, run_ids: Sequence[str]) -> set[str]:
        return self._disk.runs.keys() & set(run_ids)

    def load_run(self, run_id: str) -> StoredRun | None:
        run = self._disk.runs.get(run_id)
        if run is None:
            return None
        return StoredRun(
            spec=run.spec,
            command=run.command,
            added_at=run.added_at,
            state=self._state(run),
            hop=run.hop,
            losses=run.changes[-1][1].losses if run.changes else 0,
            end=run.end,
            summaries={} if run.end else self._disk.unused_of(run.spec.conversation_id),
        )

    def _state(self, run: DiskRun) -> SharedState:
        state = SharedState()
        if run.snapshot is not None:
            state.version = run.snapshot.version
            state.values = dict(run.snapshot.values)
        for _, change in run.changes:
            if change.version > state.version:
                state.apply(replace(change.delta, plan=None))
        state.log = Conversation(self._disk.logs[run.spec.conversation_id])
        state.plan = self._disk.plans.get(run.spec.conversation_id)
        return state

    def load_result(self, run_id: str) -> HarnessResult | None:
        run = self._disk.runs.get(run_id)
        return None if run is None else run.end

    def load_unfinished(self, command: str) -> list[StoredRun]:
        unfinished = [
            run_id
            for run_id, run in self._disk.runs.items()
            if run.end is None and command in (run.command, self._disk.runs[run.spec.root].command)
        ]
        return [run for run_id in unfinished if (run := self.load_run(run_id)) is not None]

    def load_tree(self, root: str) -> list[StoredRun]:
        found = [
            run_id
            for run_id, run in self._disk.runs.items()
            if run.spec.root == root and run.end is None
        ]
        return [run for run_id in found if (run := self.load_run(run_id)) is not None]

    def waiting_in(self, conversation_id: str) -> str | None:
        idle = (
            run
            for run in self._disk.runs.values()
            if run.spec.conversation_id == conversation_id and not run.command and run.end is None
        )
        waiting = (run.spec.run_id for run in idle if is_waiting(self._state(run).values))
        return next(waiting, None)

    def load_conversation(self, conversation_id: str) -> list[Message]:
        return list(self._disk.logs.get(conversation_id, ()))

    def load_plan(self, conversation_id: str) -> CompactionPlan | None:
        return self._disk.plans.get(conversation_id)

    def run_after(self, run_id: str) -> str | None:
        return self._disk.who_spoke_behind(run_id)

    def load_code(self, code: str) -> bytes | None:
        return self._disk.code.get(code)

    def load_processes(self) -> list[ProcessMark]:
        return [mark for _, mark in self._disk.processes]

    def forget_processes(self, term: int) -> None:
        self._check_term(term)
        self._disk.processes = [kept for kept in self._disk.processes if kept[0] >= term]

    def load_events(
        self, after: int, *, run_id: str | None = None, limit: int = 1000
    ) -> list[RunEvent]:
        found: list[RunEvent] = []
        for position, change in self._disk.changes:
            if position <= after or run_id not in (None, change.run_id):
                continue
            events: list[Event] = message_events(change.delta.messages)
            events += change.delta.events
            found += [
                RunEvent(position=position, run_id=change.run_id, at=change.at, event=event)
                for event in events
            ]
            if len(found) >= limit:
                break
        return found

    def headings(self, beginning: str = "") -> list[RunHeading]:
        return [
            RunHeading(
                run_id=run_id,
                conversation_id=run.spec.conversation_id,
                added_at=run.added_at,
                metadata=run.spec.metadata,
                end=run.end,
                command=run.command,
                usage=self._usage(run_id),
            )
            for run_id, run in self._disk.runs.items()
            if run_id.startswith(beginning)
        ]

    def _usage(self, run_id: str) -> Usage:
        stored = self.load_run(run_id)
        assert stored is not None, "it is listed"
        if stored.end is not None:
            return stored.end.usage
        return Usage(**stored.state.values.get(USAGE.name, {}))

    def removed_cost_usd(self) -> float:
        return 0.0  # nothing is removed from it

    def position(self) -> int:
        return self._disk.position

    def close(self) -> None:
        return
