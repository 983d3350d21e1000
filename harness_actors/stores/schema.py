"""The tables of the journal and their version."""

import sqlite3
from pathlib import Path

from harness_actors.errors import StoreError
from harness_actors.stores.faults import damaged, foreign

VERSION = 7
"""The version that is written. Each was shipped:

1. The first.
2. Messages may be deflated. Rows of version 1 stay as they are and are read as before.
3. The file and its write-ahead log have marks, by which they know each other; see `marks`.
   What runs cost that were removed is kept.
4. Runs may wait for their users. Nothing is stored otherwise, but an earlier program would take
   calls that wait for calls that were lost. Results say how their calls failed: the column
   `is_error` has a number for each way, where earlier rows have 1. Changes may have a fourth
   part, for facts of messages beside their tracebacks.
5. What models are shown of conversations that are too long for them is kept: an earlier program
   would show all of them. `is_error` is -1 of what the harness says as a user message.
6. Parts of conversations that are no longer shown are summarized: an earlier program cannot read
   such plans.
7. Runs may have children: an earlier program would go on with them without their parents.
"""
OLDEST = 1
"""The oldest version that can be read, and brought up to the newest."""
APPLICATION_ID = 0x4861416A
"""Marks the file as ours, for `file` and for us; ASCII ``HaAj``."""

SHOWN_NAME = 60
"""Characters of a foreign name that an error says."""

# Source: the header of a database file, in SQLite's description of its format.
_SQLITE = b"SQLite format 3\0"
_ID_AT = 68
HEADER_BYTES = _ID_AT + 4

PLACES = 1 << 20
"""The id of a message is the position of its change times this, plus its place there.

So messages need neither a column nor an index to be found: those of a change are a
range of ids, those after a position too, and the rows are in the order of writing,
which packs pages full.
"""

TABLES = {
    # The newest term: commits of any other are refused.
    "terms": "(id INTEGER PRIMARY KEY CHECK (id = 1), term INTEGER NOT NULL)",
    "code": "(code TEXT PRIMARY KEY, blob BLOB NOT NULL)",
    "runs": """(
        id INTEGER PRIMARY KEY,
        run_id TEXT NOT NULL UNIQUE,
        conversation_id TEXT NOT NULL,
        command TEXT NOT NULL,
        added_at REAL NOT NULL,
        metadata NOT NULL,
        spec NOT NULL
    )""",
    # Apart from the runs, so that a run's end does not rewrite its row.
    "results": "(run INTEGER PRIMARY KEY REFERENCES runs, result NOT NULL)",
    # One row per change of a run, and one without version per submission of it. Rows are
    # never deleted, so positions are never used twice.
    "records": """(
        position INTEGER PRIMARY KEY,
        run INTEGER NOT NULL REFERENCES runs,
        version INTEGER,
        at REAL NOT NULL,
        losses INTEGER NOT NULL,
        hop,
        delta
    )""",
    # Those of a submission are the run's task, those of a change belong to the log.
    "messages": """(
        id INTEGER PRIMARY KEY,
        role TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        is_error INTEGER NOT NULL,
        encoded BLOB NOT NULL
    )""",
    "snapshots": """(
        run INTEGER PRIMARY KEY REFERENCES runs,
        version INTEGER NOT NULL,
        state NOT NULL
    )""",
    "processes": """(
        term INTEGER NOT NULL,
        role TEXT NOT NULL,
        node TEXT NOT NULL,
        pid INTEGER NOT NULL,
        started INTEGER NOT NULL
    )""",
    "marks": "(id INTEGER PRIMARY KEY, mark BLOB NOT NULL)",
    # How conversations are shown to their models; the newest one of a conversation counts.
    "plans": """(
        run INTEGER NOT NULL REFERENCES runs,
        position INTEGER NOT NULL,
        plan NOT NULL,
        PRIMARY KEY (run, position)
    ) WITHOUT ROWID""",
    # Parts of conversations in few words, by what was summarized, and by whom.
    "summaries": """(
        run INTEGER NOT NULL REFERENCES runs,
        key TEXT NOT NULL,
        position INTEGER NOT NULL,
        summary NOT NULL,
        PRIMARY KEY (run, key)
    ) WITHOUT ROWID""",
    # Runs that others have begun, with the run at the top of their tree.
    "children": """(
        run INTEGER PRIMARY KEY REFERENCES runs,
        root INTEGER NOT NULL REFERENCES runs
    )""",
    # What the runs cost that were removed together: it was spent all the same.
    "removed": "(id INTEGER PRIMARY KEY CHECK (id = 1), cost_usd REAL NOT NULL)",
}
ADDED_IN = {
    "marks": 3,
    "removed": 3,
    "plans": 5,
    "summaries": 6,
    "children": 7,
    "children_of_root": 7,
}
"""The version of tables and indexes that are not in the first one."""
INDEXES = {
    "runs_of_conversation": "runs (conversation_id)",
    "records_of_run": "records (run)",
    "children_of_root": "children (root)",
}
KEYS = {"sqlite_autoindex_code_1": "code", "sqlite_autoindex_runs_1": "runs"}
"""Indexes that SQLite makes by itself, for what is unique, with their tables."""


def create_if_empty(connection: sqlite3.Connection) -> None:
    """Make the tables in a file that has none."""
    if _names(connection):
        return
    # In rollback mode and one transaction: two processes that create the same file
    # wait for each other, and the file's first page never lacks its version.
    connection.execute("BEGIN EXCLUSIVE")
    if not _names(connection):
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        for name, columns in TABLES.items():
            connection.execute(_table(name, columns))
        for name, columns in INDEXES.items():
            connection.execute(_index(name, columns))
        connection.execute("INSERT INTO terms VALUES (1, 0)")
        connection.execute("INSERT INTO removed VALUES (1, 0.0)")
    connection.execute("COMMIT")


def check_schema(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse what is not a journal of a version that is known.

    What a schema holds, SQLite runs: triggers, views in the place of tables, columns that are
    computed. So it must be ours, word for word. No table has been read or written before.

    Raises:
        StoreError: The file is of something else, of an unknown version, lacks a table, or has
            what we do not make.
    """
    check_header(path, connection)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    later = {name for name, added in ADDED_IN.items() if added > version}
    ours = {name: parts for name, parts in _ours().items() if name not in later}
    found = {
        str(name): (kind, table, sql)
        for kind, name, table, sql in connection.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master LIMIT ?", (len(ours) + 1,)
        )
    }
    if foreign_parts := [name for name in found if found[name] != ours.get(name)]:
        kind, name = found[foreign_parts[0]][0], foreign_parts[0]
        problem = (
            f"its schema was changed: the {kind} {name[:SHOWN_NAME]!r} is none of ours. Nothing of "
            "it was run; trust it no further, and take a copy from whoever made it"
        )
        raise StoreError(str(path), problem)
    if missing := set(ours) - set(found):
        raise damaged(path, f"it has no {', '.join(sorted(missing))}")


def begins_a_journal(begins: bytes) -> bool:
    """Whether a file is one of ours, by its first `HEADER_BYTES`; nothing opens it."""
    ours = APPLICATION_ID.to_bytes(4)
    return begins.startswith(_SQLITE) and begins[_ID_AT:HEADER_BYTES] == ours


def check_header(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse what is not a journal of ours, by the two numbers in the file's header alone.

    Raises:
        StoreError: The file is of something else, or of an unknown version.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise foreign(path)
    if not OLDEST <= version <= VERSION:
        problem = (
            f"its format is version {version}, and this program knows {OLDEST} to {VERSION}; "
            "use the harness_actors that wrote it or a newer one, or name another file"
        )
        raise StoreError(str(path), problem)


def _table(name: str, columns: str) -> str:
    return f"CREATE TABLE {name} {columns}"


def _index(name: str, columns: str) -> str:
    return f"CREATE INDEX {name} ON {columns}"


def _ours() -> dict[str, tuple[str, str, str | None]]:
    """All that the newest version has, by name: its kind, its table and its words."""
    tables = {name: ("table", name, _table(name, columns)) for name, columns in TABLES.items()}
    indexes = {
        name: ("index", columns.split()[0], _index(name, columns))
        for name, columns in INDEXES.items()
    }
    return {**tables, **indexes, **{name: ("index", of, None) for name, of in KEYS.items()}}


def _names(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
