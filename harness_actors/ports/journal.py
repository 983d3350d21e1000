"""What the harness expects of a journal."""

from collections.abc import Sequence
from typing import Protocol

from harness_actors.events import RunEvent
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan
from harness_actors.records import Entry, ProcessMark, RunHeading, StoredRun
from harness_actors.results import HarnessResult


class Journal(Protocol):
    """Where runs survive. All calls block; one thread makes them.

    Raises, from every call:
        StoreError: The file cannot be read or written; names file and cause.
    """

    def begin_term(self) -> int:
        """Begin the next term; commits of earlier ones are refused from here on."""

    def commit(self, term: int, entries: Sequence[Entry]) -> list[int]:
        """Write entries in one transaction.

        Returns:
            The journal position of each entry, growing; on disk when this returns.

        Raises:
            StaleTermError: `term` is not the newest.
        """

    def known(self, run_ids: Sequence[str]) -> set[str]:
        """Those of these runs that the journal has, over or not."""

    def load_run(self, run_id: str) -> StoredRun | None: ...
    def load_result(self, run_id: str) -> HarnessResult | None:
        """How a run ended; None while it is unfinished, or where nobody knows it."""

    def load_unfinished(self, command: str) -> list[StoredRun]:
        """The runs of a command that are not over, oldest first, and all below them; costs by
        these alone."""

    def load_tree(self, root: str) -> list[StoredRun]:
        """The runs of a tree that are not over, each after its parent."""

    def run_after(self, run_id: str) -> str | None:
        """The first other run that spoke in its conversation after a run had begun to.

        Results that answer what a run left open do not count. None where there is no such
        run, and where the run itself has said nothing.
        """

    def waiting_in(self, conversation_id: str) -> str | None:
        """The run of a conversation that waits for its user; None where none does."""

    def load_conversation(self, conversation_id: str) -> list[Message]: ...
    def load_plan(self, conversation_id: str) -> CompactionPlan | None: ...
    def load_code(self, code: str) -> bytes | None: ...
    def load_processes(self) -> list[ProcessMark]:
        """The processes of all earlier terms that were marked and not forgotten."""

    def forget_processes(self, term: int) -> None:
        """Drop the marks of the terms before `term`: their processes are gone."""

    def load_events(
        self, after: int, *, run_id: str | None = None, limit: int = 1000
    ) -> list[RunEvent]:
        """Events after a position, oldest first; those of one change are never split."""

    def headings(self, beginning: str = "", /) -> list[RunHeading]:
        """The runs whose ids begin so, oldest first; all of them by default."""

    def removed_cost_usd(self) -> float: ...
    def position(self) -> int: ...
    def close(self) -> None: ...
