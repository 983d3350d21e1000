"""What a journal forgets, when, and how its file becomes smaller.

The rule:

- The snapshot of a run is dropped when the run ends. Nothing else goes by itself.
- `expire` removes conversations whole: all runs of one and all children of these, with their
  changes, messages and results, once each of them has ended and the newest change of the youngest
  is older than asked. A conversation with a run that is parked or unfinished stays, however old it
  is.
- The conversation with the newest change of the journal stays too: positions go on from
  there, so none is used twice and a reader's cursor stays valid.
- What a run printed (`logs.py`) is removed with it, and so are the copies of its workspace in which
  others have worked for it (`copies.py`); with a conversation its artifacts (`artifacts.py`).
- What removed runs cost stays known, as one sum: a budget counts it.
- Code that no run names any more is dropped by both `expire` and `compact`.
- Freed pages are used again. They are given back to the file system by `compact`, and by
  `expire` where they are a quarter of the file or more.
- The journal of a run directory belongs to its folder and is never expired unasked. In
  ``$HARNESS_HOME`` nobody else looks after the journals; `DAYS_KEPT` is how long runs are
  kept there.

Each step is a transaction: a process that is killed meanwhile leaves a good journal, and the
next call does the rest. A store on which another command works is refused.
"""

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness_actors.errors import StoreError
from harness_actors.stores.artifacts import remove_artifacts
from harness_actors.stores.codec import unpack, unpack_result
from harness_actors.stores.connection import open_journal
from harness_actors.stores.conversations import program_of
from harness_actors.stores.copies import remove_copies
from harness_actors.stores.faults import damage, is_full, store_error
from harness_actors.stores.lock import hold, is_held, release
from harness_actors.stores.logs import remove_logs
from harness_actors.stores.schema import PLACES
from harness_actors.stores.sqlite import BUSY_S
from harness_actors.stores.transactions import transaction

DAYS_KEPT = 30
"""How long ended runs are kept in the journals of ``$HARNESS_HOME``."""

_CONVERSATIONS_PER_STEP = 100
_WORTHWHILE = 0.25
"""Share of free pages from which on `expire` gives them back: that writes the whole file."""

_EXPIRED = """
    SELECT conversation_id FROM (
        SELECT roots.conversation_id,
            EXISTS (SELECT 1 FROM results WHERE run = runs.id) AS ended,
            (SELECT max(position) FROM records WHERE run = runs.id) AS newest
        FROM runs LEFT JOIN children ON children.run = runs.id
        JOIN runs AS roots ON roots.id = coalesce(children.root, runs.id)
    ) JOIN records ON position = newest
    GROUP BY conversation_id
    HAVING min(ended) = 1 AND max(at) < ?
        AND max(newest) < (SELECT max(position) FROM records)
"""

_OF_CONVERSATION = """
    SELECT id FROM runs WHERE conversation_id = ?1 UNION
    SELECT run FROM children JOIN runs ON runs.id = root WHERE conversation_id = ?1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """What was removed from a journal.

    Attributes:
        runs: How many runs.
        code: How many blobs of code.
        freed_bytes: By how much the file became smaller.
    """

    runs: int = 0
    code: int = 0
    freed_bytes: int = 0


def expire(path: str | Path, *, ended_before: float) -> Cleared:
    """Remove what ended before a time, by the rule of this module.

    Args:
        path: The journal; nothing happens where there is none.
        ended_before: Seconds since the epoch.

    Raises:
        StoreInUseError: Another process works on it.
        StoreError: It is not a journal, damaged, or cannot be written.
    """
    path = Path(path)
    if not path.exists():
        return Cleared()
    with _alone(path) as connection:
        before = path.stat().st_size
        runs = _remove_expired(path, connection, ended_before)
        remove_artifacts(path, but=_conversations(connection))
        remove_copies(path, but=_run_ids(connection))
        code = _drop_code(connection)
        pages, free, _ = _pages(connection)
        if free >= _WORTHWHILE * pages and _has_room(path, connection):
            try:
                _give_back(connection)
            except sqlite3.Error as error:
                # What was removed stays removed, and its pages are used again.
                if not is_full(error):
                    raise
        return Cleared(runs=runs, code=code, freed_bytes=before - _size(path, connection))


def compact(path: str | Path) -> Cleared:
    """Drop the code that no run names, and make the file as small as it can be.

    Args:
        path: The journal. Its file system, and the one for temporary files, need room for
            what is left of it: twice its size where these are the same.

    Raises:
        StoreInUseError: Another process works on it.
        StoreError: There is no such file, no room, or it is not a journal or damaged.
    """
    path = Path(path)
    if not path.exists():
        raise StoreError(str(path), "there is no such file; check the path, or $HARNESS_HOME")
    with _alone(path) as connection:
        before = path.stat().st_size
        code = _drop_code(connection)
        if not _has_room(path, connection):
            problem = "the disk has no room to compact it; make room for twice its size"
            raise StoreError(str(path), problem)
        _give_back(connection)
        return Cleared(code=code, freed_bytes=before - _size(path, connection))


@contextmanager
def _alone(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes, while no other command works on the journal."""
    held_before = is_held(path)
    hold(path)
    try:
        with damage(path), closing(open_journal(path, busy_s=BUSY_S)) as connection:
            yield connection
    except (sqlite3.Error, OSError) as error:
        raise store_error(path, error, busy_s=BUSY_S) from error
    finally:
        if not held_before:
            release(path)


def _remove_expired(path: Path, connection: sqlite3.Connection, ended_before: float) -> int:
    found = connection.execute(_EXPIRED, (ended_before,)).fetchall()
    conversations = [conversation for (conversation,) in found]
    removed = 0
    for at in range(0, len(conversations), _CONVERSATIONS_PER_STEP):
        with transaction(connection, "IMMEDIATE"):
            runs = _remove(connection, conversations[at : at + _CONVERSATIONS_PER_STEP])
        remove_logs(path, runs)
        removed += len(runs)
    return removed


def _remove(connection: sqlite3.Connection, conversations: Sequence[str]) -> list[str]:
    named = [
        row
        for conversation in conversations
        for row in connection.execute(
            f"SELECT id, run_id FROM runs WHERE id IN ({_OF_CONVERSATION})", (conversation,)
        )
    ]
    runs = [(run,) for run, _ in named]
    cost_usd = 0.0
    for run in runs:
        packed = connection.execute("SELECT result FROM results WHERE run = ?", run).fetchone()
        end = unpack_result(packed[0])
        cost_usd += 0.0 if end is None else end.usage.cost_usd
        positions = connection.execute("SELECT position FROM records WHERE run = ?", run).fetchall()
        connection.executemany(
            "DELETE FROM messages WHERE id >= ?1 * ?2 AND id < (?1 + 1) * ?2",
            [(position, PLACES) for (position,) in positions],
        )
    for table in ("records", "results", "snapshots", "plans", "summaries", "children"):
        connection.executemany(f"DELETE FROM {table} WHERE run = ?", runs)
    connection.executemany("DELETE FROM runs WHERE id = ?", runs)
    connection.execute("UPDATE removed SET cost_usd = cost_usd + ?", (cost_usd,))
    return [run_id for _, run_id in named]


def _conversations(connection: sqlite3.Connection) -> set[str]:
    found = connection.execute("SELECT DISTINCT conversation_id FROM runs")
    return {conversation for (conversation,) in found}


def _run_ids(connection: sqlite3.Connection) -> Iterator[str]:
    for (run_id,) in connection.execute("SELECT run_id FROM runs"):
        yield run_id


def _drop_code(connection: sqlite3.Connection) -> int:
    with transaction(connection, "IMMEDIATE"):
        named = {unpack(spec)["code"] for (spec,) in connection.execute("SELECT spec FROM runs")}
        stored = connection.execute("SELECT code FROM code").fetchall()
        unnamed = [row for row in stored if program_of(row[0]) not in named]
        connection.executemany("DELETE FROM code WHERE code = ?", unnamed)
    return len({program_of(name) for (name,) in unnamed})


def _pages(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Pages of the journal, how many of them are free, and the bytes of one."""
    names = ("page_count", "freelist_count", "page_size")
    pages, free, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
    return pages, free, size


def _has_room(path: Path, connection: sqlite3.Connection) -> bool:
    pages, free, size = _pages(connection)
    # Once in a temporary file, and once in the write-ahead log beside the journal.
    return shutil.disk_usage(path.resolve().parent).free > 2 * (pages - free) * size


def _give_back(connection: sqlite3.Connection) -> None:
    # In place, and not into a new file that takes the old one's name: SQLite's own locks
    # then protect it from whoever has it open without having asked for the store's lock.
    connection.execute("VACUUM")


def _size(path: Path, connection: sqlite3.Connection) -> int:
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size
