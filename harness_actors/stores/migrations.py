"""How a journal of an earlier version becomes one of the newest.

The rule: a command that writes to a journal brings it up to the newest version when it
opens it, one step per version, each in a transaction of its own; a process that is killed
meanwhile leaves the version before, whole. Whoever only reads (`JournalReader`) reads every
version back to `OLDEST` as it is. A program that is older than a file refuses it and leaves
it as it is, so going back to an earlier release needs a copy made before.
"""

import sqlite3
from collections.abc import Callable, Mapping

from harness_actors.stores.marks import UNMARKED
from harness_actors.stores.schema import INDEXES, TABLES, VERSION
from harness_actors.stores.transactions import transaction

Step = Callable[[sqlite3.Connection], None]


def _deflated_messages(connection: sqlite3.Connection) -> None:
    """1 to 2: nothing moves, for rows say themselves whether they are deflated.

    The number alone tells programs that know version 1 only to leave the file alone.
    """


def _marks(connection: sqlite3.Connection) -> None:
    """2 to 3: while this step is in the log alone, the file has no marks."""
    for name in ("marks", "removed"):
        connection.execute(f"CREATE TABLE {name} {TABLES[name]}")
    connection.execute("INSERT INTO removed VALUES (1, 0.0)")
    connection.execute("INSERT INTO marks (mark) VALUES (?)", (UNMARKED,))


def _waiting_runs(connection: sqlite3.Connection) -> None:
    """3 to 4: nothing moves; the number alone keeps earlier programs from closing open calls."""


def _plans(connection: sqlite3.Connection) -> None:
    """4 to 5: no conversation is shown otherwise than it is."""
    connection.execute(f"CREATE TABLE plans {TABLES['plans']}")


def _summaries(connection: sqlite3.Connection) -> None:
    """5 to 6: nothing was summarized."""
    connection.execute(f"CREATE TABLE summaries {TABLES['summaries']}")


def _children(connection: sqlite3.Connection) -> None:
    """6 to 7: no run has any."""
    connection.execute(f"CREATE TABLE children {TABLES['children']}")
    connection.execute(f"CREATE INDEX children_of_root ON {INDEXES['children_of_root']}")


STEPS: Mapping[int, Step] = {
    1: _deflated_messages,
    2: _marks,
    3: _waiting_runs,
    4: _plans,
    5: _summaries,
    6: _children,
}
"""The steps, by the version that each begins with; it ends with the next one."""


def migrate(
    connection: sqlite3.Connection, *, steps: Mapping[int, Step] = STEPS, newest: int = VERSION
) -> None:
    """Bring a journal up to the newest version.

    Args:
        connection: One that writes; the file was checked.
        steps: By the version that each begins with.
        newest: Where to stop.
    """
    while _version(connection) < newest:
        with transaction(connection, "IMMEDIATE"):
            # Read again: another process may have done the step before we had the lock.
            version = _version(connection)
            if version < newest:
                steps[version](connection)
                connection.execute(f"PRAGMA user_version = {version + 1}")


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version
