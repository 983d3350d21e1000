"""The journal of a schedule: it fails when it is told to, and is compared with the simplest one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness_actors.actors.simulated.processes import current_process
from harness_actors.errors import StoreError
from harness_actors.events import RunEvent
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan
from harness_actors.ports import Journal
from harness_actors.records import Entry, ProcessMark, RunHeading, StoredRun
from harness_actors.results import HarnessResult
from harness_actors.stores import SqliteJournal
from tests.simulation.disk import NAME, Disk, MemoryJournal
from tests.simulation.moving import AT_ITS_PATH, NOT_ANSWERED, Mover
from tests.simulation.oracle import Oracle

T = TypeVar("T")


@dataclass
class Faults:
    """What the next commit does.

    Attributes:
        before: It fails, and nothing is written.
        after: It fails though all is written.
    """

    before: bool = False
    after: bool = False


class WatchedJournal:
    """Answers the `Journal` port from another one that it watches.

    Args:
        journal: What is watched.
        disk: What must be in it.
        oracle: Told of each commit.
        faults: What is to go wrong.
        twin: The journal is one of its own, and is compared with the disk; else it is the disk.
        mover: Who takes its file away; None where nobody does.
    """

    def __init__(
        self,
        journal: Journal,
        disk: Disk,
        oracle: Oracle,
        faults: Faults,
        *,
        twin: bool,
        mover: Mover | None = None,
    ) -> None:
        self._journal = journal
        self._disk = disk
        self._oracle = oracle
        self._faults = faults
        self._twin = MemoryJournal(disk) if twin else None
        self._mover = mover

    def begin_term(self) -> int:
        term = self._journal.begin_term()
        self._at_its_path(AT_ITS_PATH, f"term {term}")
        if self._twin is not None:
            self._twin.begin_term()
        if term != self._disk.term:
            self._oracle.ledger.broken("terms grow by one", f"{term} is not {self._disk.term}")
        return term

    def commit(self, term: int, entries: Sequence[Entry]) -> list[int]:
        if self._faults.before:
            self._faults.before = False
            self._oracle.ledger.note(current_process(), "a commit fails, and nothing is written")
            raise StoreError(NAME, "the disk is full")
        if self._mover is not None:
            self._mover.written = False
        try:
            positions = self._journal.commit(term, entries)
        except StoreError:
            if self._mover is not None and self._mover.written:
                # It is in the file that is put back, and nobody was told so.
                self._disk.commit(entries)
                self._oracle.committed(term, entries)
            raise
        self._at_its_path(AT_ITS_PATH, "a commit")
        if self._twin is not None:
            self._same("positions", positions, self._disk.commit(entries))
        self._oracle.committed(term, entries)
        if self._faults.after:
            self._faults.after = False
            self._oracle.ledger.note(current_process(), "a commit fails, and all is written")
            raise StoreError(NAME, "the disk is gone")
        return positions

    def check_standing(self) -> None:
        assert isinstance(self._journal, SqliteJournal)
        self._journal.check_standing()

    def _at_its_path(self, invariant: str, what: str) -> None:
        if self._mover is not None and self._mover.place.is_away:
            self._oracle.ledger.broken(invariant, what)

    def _same(self, what: str, found: object, expected: object) -> None:
        if found != expected:
            self._oracle.ledger.broken(
                "the journal gives back what was committed", f"{what}: {found} is not {expected}"
            )

    def _read(self, what: str, read: Callable[[Journal], T], view: Callable[[T], object]) -> T:
        found = read(self._journal)
        self._at_its_path(NOT_ANSWERED, what)
        if self._twin is not None:
            self._same(what, view(found), view(read(self._twin)))
        return found

    def known(self, run_ids: Sequence[str]) -> set[str]:
        return self._read("known runs", lambda j: j.known(run_ids), lambda known: known)

    def load_run(self, run_id: str) -> StoredRun | None:
        return self._read(run_id, lambda j: j.load_run(run_id), view_of_run)

    def load_result(self, run_id: str) -> HarnessResult | None:
        return self._read(run_id, lambda j: j.load_result(run_id), lambda result: result)

    def load_unfinished(self, command: str) -> list[StoredRun]:
        return self._read(
            "unfinished runs",
            lambda j: j.load_unfinished(command),
            lambda runs: [view_of_run(run) for run in runs],
        )

    def load_tree(self, root: str) -> list[StoredRun]:
        return self._read(
            root, lambda j: j.load_tree(root), lambda runs: [view_of_run(run) for run in runs]
        )

    def waiting_in(self, conversation_id: str) -> str | None:
        return self._read(
            conversation_id, lambda j: j.waiting_in(conversation_id), lambda waiting: waiting
        )

    def run_after(self, run_id: str) -> str | None:
        return self._read(run_id, lambda j: j.run_after(run_id), lambda later: later)

    def load_conversation(self, conversation_id: str) -> list[Message]:
        return self._read(
            conversation_id, lambda j: j.load_conversation(conversation_id), lambda log: log
        )

    def load_plan(self, conversation_id: str) -> CompactionPlan | None:
        return self._read(
            conversation_id, lambda j: j.load_plan(conversation_id), lambda plan: plan
        )

    def load_code(self, code: str) -> bytes | None:
        return self._journal.load_code(code)

    def load_processes(self) -> list[ProcessMark]:
        return self._read("processes", lambda j: j.load_processes(), lambda marks: marks)

    def forget_processes(self, term: int) -> None:
        self._journal.forget_processes(term)
        if self._twin is not None:
            self._twin.forget_processes(term)

    def load_events(
        self, after: int, *, run_id: str | None = None, limit: int = 1000
    ) -> list[RunEvent]:
        return self._read(
            "events",
            lambda j: j.load_events(after, run_id=run_id, limit=limit),
            lambda events: events,
        )

    def headings(self, beginning: str = "", /) -> list[RunHeading]:
        return self._read(
            "headings",
            lambda j: j.headings(beginning),
            lambda headings: [(h.run_id, h.end, h.command, h.usage) for h in headings],
        )

    def removed_cost_usd(self) -> float:
        return self._read("removed_cost_usd", lambda j: j.removed_cost_usd(), lambda cost: cost)

    def position(self) -> int:
        return self._read("position", lambda j: j.position(), lambda position: position)

    def close(self) -> None:
        self._journal.close()


def view_of_run(run: StoredRun | None) -> object:
    """What two journals must agree on of a run."""
    if run is None:
        return None
    state = run.state
    return (
        (run.spec, run.command, run.added_at, run.hop, run.losses, run.end),
        (state.version, state.values, list(state.log), state.plan),
    )
