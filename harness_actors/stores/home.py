"""Where journals are that nobody named a place for."""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from platformdirs import user_data_path

from harness_actors.errors import RunNotFoundError, StoreInUseError
from harness_actors.stores.expiry import DAYS_KEPT, Cleared, expire
from harness_actors.stores.lock import hold, is_held, release
from harness_actors.stores.sqlite import SqliteJournal

SECONDS_PER_DAY = 86_400


def home() -> Path:
    """``$HARNESS_HOME``, or the data folder that the platform has for us."""
    named = os.environ.get("HARNESS_HOME")
    return Path(named) if named else user_data_path("harness_actors")


def _journals() -> Iterator[Path]:
    yield home() / "runs.db"
    for number in count(2):
        yield home() / f"runs-{number}.db"


def free_journal() -> Path:
    """The first journal that no other process works on, locked for this one.

    Commands that run at the same time get one each; there are never more of them than
    there were commands at once.
    """
    for path in _journals():
        try:
            hold(path)
        except StoreInUseError:
            continue
        return path
    raise AssertionError("there is no end to the journals")


def expire_home(*, now: float) -> Cleared:
    """Remove what is older than `DAYS_KEPT` days from the journals that nobody else works on.

    Args:
        now: Seconds since the epoch.

    Raises:
        StoreError: A journal is damaged, or cannot be written.
    """
    removed = Cleared()
    for path in _journals():
        if not path.exists():
            return removed
        try:
            cleared = expire(path, ended_before=now - DAYS_KEPT * SECONDS_PER_DAY)
        except StoreInUseError:
            continue
        removed = Cleared(
            runs=removed.runs + cleared.runs,
            code=removed.code + cleared.code,
            freed_bytes=removed.freed_bytes + cleared.freed_bytes,
        )
    raise AssertionError("there is no end to the journals")


def journal_of(run_id: str) -> Path:
    """The journal that has a run, locked for this process.

    Raises:
        RunNotFoundError: None here has it.
        StoreInUseError: Another process works on a journal; the run may be in that one.
        StoreError: A journal cannot be read.
    """
    busy: StoreInUseError | None = None
    for path in _journals():
        if not path.exists():
            break
        held_before = is_held(path)
        try:
            hold(path)
        except StoreInUseError as error:
            busy = error
            continue
        journal = SqliteJournal(path)
        try:
            found = journal.load_run(run_id) is not None
        finally:
            journal.close()
        if found:
            return path
        if not held_before:
            release(path)
    raise busy or RunNotFoundError(run_id, str(home()))
