"""What stands in the way of taking up a run where it was cut."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from harness_actors.errors import BadInputError, ConversationMovedOnError
from harness_actors.records import StoredRun
from harness_actors.signals import TurnComplete
from harness_actors.state import TURN_COUNT
from harness_actors.stores.reader import JournalReader


class Looks(Protocol):
    """What must be known of a journal; see `Journal`."""

    def run_after(self, run_id: str) -> str | None: ...


def check_taking_up(store: Path, run_ids: Iterable[str]) -> None:
    """Refuse runs that would ask their model about something else, or work nowhere.

    Those that are over or unknown are passed by.

    Args:
        store: Their journal, read as it is on disk.
        run_ids: The runs.

    Raises:
        ConversationMovedOnError: Another run has continued the conversation of one.
        BadInputError: The workspace of one is gone.
        StoreError: The journal cannot be read.
    """
    journal = JournalReader(store)
    for run_id in run_ids:
        run = journal.load_run(run_id)
        if run is not None:
            check_run(journal, run)


def check_run(journal: Looks, run: StoredRun) -> None:
    """See `check_taking_up`; of one run, as a journal has it that is open already."""
    run_id = run.spec.run_id
    if run.end is not None or not _goes_on_in_the_middle(run):
        return
    later = journal.run_after(run_id)
    if later is not None:
        raise ConversationMovedOnError(run_id, run.spec.conversation_id, later)
    workspace = run.spec.workspace
    if workspace is not None and is_lost(workspace.path):
        problem = (
            f"there is no folder {workspace.path!r}, in which it works; make it again, with "
            "what was in it, or start a new run"
        )
        raise BadInputError(f"run {run_id!r}", (problem,))


def is_lost(workspace: str) -> bool:
    """Whether the folder is gone that a run has begun to work in."""
    # A symlink in its place would have it work where nobody sent it.
    return os.path.islink(workspace) or not os.path.isdir(workspace)


def _goes_on_in_the_middle(run: StoredRun) -> bool:
    """Whether its model is asked again after what was said already.

    A run whose first turn has not begun makes its workspace then, and says its task after
    all that is in the log. One whose last turn is over has only to be judged, in our workflow.
    """
    if not run.state.values.get(TURN_COUNT.name):
        return False
    turn = None if run.hop is None else run.hop.signal
    # Whether an executor of the user's own has the run go on, only that one knows.
    if not isinstance(turn, TurnComplete) or run.spec.custom:
        return True
    if turn.findings or turn.ending == "rounds":
        return True
    return turn.ending == "text" and run.spec.config.completion != "answer"
