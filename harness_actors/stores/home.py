"""Where journals are that nobody named a place for."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

from platformdirs import user_data_path

from harness_actors.errors import BadInputError, RunNotFoundError, StoreInUseError
from harness_actors.stores.expiry import DAYS_KEPT, expire
from harness_actors.stores.lock import hold, is_held, release
from harness_actors.stores.private import OWN, make_own_folder
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


def free_journal(
    is_served: Callable[[Path], bool] = lambda _: False, *, shares_cell: bool = True
) -> Path:
    """The first journal that no other process works on, locked for this one.

    Commands that run at the same time get one each; there are never more of them than
    there were commands at once. Once a day, runs are removed from it that ended longer ago
    than `days_kept`.

    Args:
        is_served: Whether a cell that outlived its command serves a journal. From that one
            nothing is removed.
        shares_cell: The caller wants just such a cell; else the journal is not free for it.

    Raises:
        BadInputError: `days_kept` does.
        StoreError: The journal cannot be read or written.
    """
    make_own_folder(home())
    for path in _journals():
        try:
            hold(path)
        except StoreInUseError:
            continue
        served = is_served(path)
        if served and not shares_cell:
            release(path)
            continue
        if not served:
            _expire_daily(path)
        return path
    raise AssertionError("there is no end to the journals")


def days_kept() -> float:
    """How long ended runs are kept in these journals: ``$HARNESS_KEEP_DAYS``; 0 is for ever.

    Raises:
        BadInputError: The variable is not a number of days.
    """
    named = os.environ.get("HARNESS_KEEP_DAYS") or str(DAYS_KEPT)
    try:
        days = float(named)
    except ValueError:
        days = -1.0
    if not 0 <= days < float("inf"):
        raise BadInputError("HARNESS_KEEP_DAYS", (f"must be a number of days, not {named!r}",))
    return days


def _expire_daily(path: Path) -> None:
    """Remove from a journal what is too old, unless that was done a while ago."""
    days, now = days_kept(), time.time()
    looked_at = path.with_name(path.name + ".expired")
    if not days or not path.exists():
        return
    if looked_at.exists() and now - looked_at.stat().st_mtime < SECONDS_PER_DAY:
        return
    expire(path, ended_before=now - days * SECONDS_PER_DAY)
    looked_at.touch(OWN)


def journal_of(run_id: str) -> Path:
    """The journal that has a run, locked for this process.

    Raises:
        RunNotFoundError: None here has it.
        StoreInUseError: Another process works on a journal; the run may be in that one.
        StoreError: A journal cannot be read.
    """
    busy: StoreInUseError | None = None
    if home().is_dir():
        make_own_folder(home())
    for path in sorted(home().glob("runs*.db")):
        held_before = is_held(path)
        try:
            hold(path)
        except StoreInUseError as error:
            busy = error
            continue
        found = False
        try:
            with closing(SqliteJournal(path)) as journal:
                found = journal.load_run(run_id) is not None
        finally:
            if not found and not held_before:
                release(path)
        if found:
            return path
    raise busy or RunNotFoundError(run_id, str(home()))
