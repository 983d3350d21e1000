"""The half of a journal that reads: the same for its one writer and for those who look."""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from harness_actors.events import RunEvent
from harness_actors.messages import Message
from harness_actors.records import ProcessMark, RunHeading, StoredChange, StoredRun
from harness_actors.results import HarnessResult
from harness_actors.stores import queries
from harness_actors.stores.headings import load_headings

T = TypeVar("T")


class ReadableJournal(ABC):
    """What can be read of a journal.

    Raises, from every call:
        StoreError: The file cannot be read; names file and cause.
    """

    @abstractmethod
    def _read(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Do one reading, in a transaction of its own."""

    def known(self, run_ids: Sequence[str]) -> set[str]:
        """Those of these runs that the journal has, over or not."""
        return self._read(lambda connection: queries.load_known(connection, run_ids))

    def load_run(self, run_id: str) -> StoredRun | None:
        return self._read(lambda connection: queries.load_run(connection, run_id))

    def run_after(self, run_id: str) -> str | None:
        """The first other run that spoke in its conversation after a run had begun to.

        Results that answer what a run left open do not count. None where there is no such
        run, and where the run itself has said nothing.
        """
        return self._read(lambda connection: queries.load_run_after(connection, run_id))

    def load_result(self, run_id: str) -> HarnessResult | None:
        """How a run ended; None while it is unfinished, or where nobody knows it."""
        return self._read(lambda connection: queries.load_result(connection, run_id))

    def load_unfinished(self, command: str) -> list[StoredRun]:
        """The runs of a command that are not over, oldest first."""
        return self._read(lambda connection: queries.load_unfinished(connection, command))

    def load_conversation(self, conversation_id: str) -> list[Message]:
        return self._read(lambda connection: queries.load_conversation(connection, conversation_id))

    def has_conversation(self, conversation_id: str) -> bool:
        """Whether a run of a conversation is in the journal."""
        return self._read(lambda connection: queries.has_conversation(connection, conversation_id))

    def waiting_in(self, conversation_id: str) -> str | None:
        """The run of a conversation that waits for its user; None where none does."""
        return self._read(lambda connection: queries.load_waiting(connection, conversation_id))

    def load_own_messages(self, run_id: str) -> list[Message]:
        """What a run itself added to its conversation's log, its task included."""
        return self._read(lambda connection: queries.load_own_messages(connection, run_id))

    def load_code(self, code: str) -> bytes | None:
        return self._read(lambda connection: queries.load_code(connection, code))

    def load_processes(self) -> list[ProcessMark]:
        """The processes of all terms that were marked and not forgotten, oldest first."""
        return self._read(queries.load_processes)

    def load_events(
        self, after: int, *, run_id: str | None = None, limit: int = 1000
    ) -> list[RunEvent]:
        """Events after a position, oldest first; those of one change are never split.

        Args:
            after: A journal position; 0 begins at the first event.
            run_id: Only those of this run.
            limit: Events after which the list ends with the change that it is in.
        """
        return self._read(lambda connection: queries.load_events(connection, after, run_id, limit))

    def load_previews(self, run_ids: Sequence[str]) -> dict[str, str]:
        """How the tasks of runs begin, by run id; of one that has not begun, nothing."""
        return self._read(lambda connection: queries.load_previews(connection, run_ids))

    def load_changes(self, run_id: str, after: int = 0, limit: int = 1000) -> list[StoredChange]:
        """Changes of a run after a position, oldest first; empty after the newest.

        Args:
            run_id: The run.
            after: A journal position, that of the last change of the page before; 0
                begins at the first change.
            limit: Most changes in the list.
        """
        return self._read(lambda connection: queries.load_changes(connection, run_id, after, limit))

    def headings(self, beginning: str = "") -> list[RunHeading]:
        """The runs whose ids begin so, oldest first; all of them by default."""
        return self._read(lambda connection: load_headings(connection, beginning))

    def position(self) -> int:
        """The newest position; 0 in an empty journal."""
        return self._read(queries.load_position)
