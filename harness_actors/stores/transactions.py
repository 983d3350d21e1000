"""What a transaction is."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal


@contextmanager
def transaction(
    connection: sqlite3.Connection, kind: Literal["DEFERRED", "IMMEDIATE"]
) -> Iterator[None]:
    """All or nothing: committed at the end, taken back by any exception.

    Args:
        connection: One that is in no transaction.
        kind: `DEFERRED` reads one state of the file; `IMMEDIATE` writes, and is the
            only one that does until it ends.
    """
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some errors have ended it already. Should this fail too, the first error is the
        # one to be told, and SQLite forgets the transaction when the file is next opened.
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise
