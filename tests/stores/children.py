"""What other processes do to a journal: ``python -m tests.stores.children WHAT PATH``."""

import fcntl
import json
import os
import resource
import signal
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path


def commit_for_ever(path: Path) -> None:
    """Commit groups of three rounds of one run; print the last position of each, once on disk."""
    from harness_actors.records import Entry
    from harness_actors.stores import SqliteJournal
    from tests.stores.entries import a_round, added

    journal = SqliteJournal(path)
    term = journal.begin_term()
    stored = journal.load_run("run-1")
    if stored is None:
        journal.commit(term, [added()])
    version = 0 if stored is None else stored.state.version
    while True:
        group: list[Entry] = [a_round(version + at) for at in (1, 2, 3)]
        version += 3
        print(journal.commit(term, group)[-1], flush=True)


def begin_a_term(path: Path) -> None:
    from harness_actors.stores import SqliteJournal

    journal = SqliteJournal(path)
    print(journal.begin_term(), flush=True)
    journal.close()


def move_the_log_until_told(path: Path) -> None:
    """Hold the lock of whoever moves the log, until a line comes."""
    with path.with_name(f"{path.name}-shm").open("r+b") as index:
        # WAL_CKPT_LOCK, see https://www.sqlite.org/walformat.html#wal_locks
        fcntl.lockf(index, fcntl.LOCK_EX, 1, 121)
        print("holds it", flush=True)
        sys.stdin.readline()


def read_without_pickle(path: Path) -> None:
    """Read all of a journal where whoever would unpickle gets an `ImportError`."""
    for name in ("pickle", "_pickle", "cloudpickle", "marshal", "shelve"):
        sys.modules[name] = None  # type: ignore[assignment]
    from harness_actors.stores import SqliteJournal

    journal = SqliteJournal(path)
    run = journal.load_run("run-1")
    assert run is not None
    code = journal.load_code("c0de")
    seen = {
        "messages": len(run.state.log),
        "events": len(journal.load_events(0)),
        "headings": len(journal.headings()),
        "code": code and code.decode(),
    }
    print(json.dumps(seen), flush=True)
    journal.close()


def write_beyond_the_limit(path: Path) -> None:
    """Commit until files may not grow any more; print the last position and the error."""
    from harness_actors.errors import StoreError
    from harness_actors.stores import SqliteJournal
    from tests.stores.entries import a_round, added

    journal = SqliteJournal(path)
    term = journal.begin_term()
    (position,) = journal.commit(term, [added()])
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
    version = 0
    try:
        while True:
            version += 1
            (position,) = journal.commit(term, [a_round(version)])
    except StoreError as error:
        print(json.dumps({"position": position, "error": str(error)}), flush=True)


def _die() -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def die_while_removing(path: Path) -> None:
    """Expire all of a journal; be killed where the second step is about to be committed."""
    from harness_actors.stores import expiry

    remove, steps = expiry._remove, iter([False, True])

    def remove_and_die(connection: sqlite3.Connection, conversations: Sequence[str]) -> list[str]:
        removed = remove(connection, conversations)
        if next(steps):
            connection.set_trace_callback(lambda _: bool(_die()))
        return removed

    expiry._remove = remove_and_die
    expiry.expire(path, ended_before=1e12)


def die_while_giving_back(path: Path) -> None:
    """Compact a journal; be killed when SQLite is some way into it."""
    from harness_actors.stores import expiry

    give_back = expiry._give_back

    def give_back_and_die(connection: sqlite3.Connection) -> None:
        connection.set_progress_handler(_die, 1_000)
        give_back(connection)

    expiry._give_back = give_back_and_die
    expiry.compact(path)


def clear_where_a_disk_is_full(path: Path) -> None:
    """Expire and compact a journal that does not fit where temporary files are."""
    from harness_actors.errors import StoreError
    from harness_actors.stores.expiry import compact, expire

    cleared = expire(path, ended_before=500.0)
    error = ""
    try:
        compact(path)
    except StoreError as full:
        error = str(full)
    print(json.dumps({"runs": cleared.runs, "freed": cleared.freed_bytes, "error": error}))


def hold_the_store(path: Path) -> None:
    """Work on the store until the input ends."""
    from harness_actors.stores.lock import hold

    hold(path)
    print("held", flush=True)
    sys.stdin.read()


def fill_a_small_disk(path: Path) -> None:
    """Commit until the disk is full, make room, and go on; print what happened."""
    from harness_actors.errors import StoreError
    from harness_actors.stores import SqliteJournal
    from tests.stores.entries import a_round, added

    ballast = path.with_name("ballast")
    ballast.write_bytes(bytes(100_000))
    journal = SqliteJournal(path)
    term = journal.begin_term()
    journal.commit(term, [added()])
    version, error = 0, ""
    while not error:
        try:
            journal.commit(term, [a_round(version + at) for at in range(1, 11)])
            version += 10
        except StoreError as full:
            error = str(full)
    still = journal.load_run("run-1")
    journal.close()
    ballast.unlink()
    journal = SqliteJournal(path)
    reopened = journal.load_run("run-1")
    assert still is not None
    assert reopened is not None
    (position,) = journal.commit(journal.begin_term(), [a_round(version + 1)])
    seen = {
        "error": error,
        "acknowledged": version,
        "read_while_full": still.state.version,
        "reopened": reopened.state.version,
        "next_position": position,
    }
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
