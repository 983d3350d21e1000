"""What a journal is made of: its tables, and the names in what is packed into them."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from harness_actors.stores.codec import unpack

FREE = "reason.details"
"""What is in there depends on the run."""
PACKED = (("runs", "spec"), ("results", "result"), ("snapshots", "state"))


def shape_of(path: Path) -> set[str]:
    """All names of a journal, each with what it belongs to; of events their kinds alone.

    After its writes and events a change may have more, which readers leave out.

    Readers leave out what they do not know of an event; of the rest they know all or fail.
    """
    with closing(sqlite3.connect(path)) as connection:
        return set(_shape(connection))


def _shape(connection: sqlite3.Connection) -> Iterator[str]:
    for (sql,) in connection.execute("SELECT sql FROM sqlite_master"):
        yield sql
    for table, column in PACKED:
        for plain in _values(connection, table, column):
            yield from _names(plain, column)
    for hop in _values(connection, "records", "hop"):
        yield from _names(hop["signal"], f"signal {hop['signal']['kind']}")
    for writes, events, *_ in _values(connection, "records", "delta"):
        for name, change, value in writes:
            yield from _names(value, f"{change} {name}")
        for event in events:
            yield f"event {event['type']}"


def _values(connection: sqlite3.Connection, table: str, column: str) -> Iterator[Any]:
    rows = connection.execute(f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL")
    return (unpack(packed) for (packed,) in rows)


def _names(plain: Any, where: str) -> Iterator[str]:
    """Where a value is, and the same of all that is in it."""
    yield where
    if isinstance(plain, list):
        for item in plain:
            yield from _names(item, where)
    elif isinstance(plain, dict) and not where.endswith(FREE):
        for name, value in plain.items():
            yield from _names(value, f"{where}.{name}")
