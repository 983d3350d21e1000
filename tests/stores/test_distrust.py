"""A file that somebody made to harm whoever opens it runs nothing and fills no memory."""

import sqlite3
from pathlib import Path

import pytest

from harness_actors.stores.distrust import bound_steps, connect

LONGEST_BYTES = 128 << 20


@pytest.fixture
def connection(path: Path) -> sqlite3.Connection:
    """A connection to a file with a trigger that somebody put there."""
    made = sqlite3.connect(path, isolation_level=None)
    made.execute("CREATE TABLE some (x)")
    made.execute("CREATE TABLE other (x)")
    made.execute("CREATE TRIGGER it AFTER INSERT ON some BEGIN INSERT INTO other VALUES (1); END")
    made.close()
    return connect(path.as_uri())


def test_no_trigger_of_a_file_is_run(connection: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError, match="trigger"):
        connection.execute("INSERT INTO some VALUES (1)")

    assert connection.execute("SELECT count(*) FROM other").fetchone() == (0,)
    # Nor is a function trusted that is named in a view or an index.
    assert connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
    connection.close()


def test_a_row_has_a_longest_size(connection: sqlite3.Connection) -> None:
    size = f"length(CAST(zeroblob({LONGEST_BYTES}) AS BLOB))"
    assert connection.execute(f"SELECT {size}").fetchone() == (LONGEST_BYTES,)
    with pytest.raises(sqlite3.DataError, match="too big"):
        connection.execute(f"SELECT {size.replace(')', ' + 1)', 1)}").fetchone()
    connection.close()


def test_each_change_is_in_a_transaction_that_was_begun(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO other VALUES (1)")

    assert not connection.in_transaction
    connection.close()


def test_a_larger_file_may_be_read_for_longer(connection: sqlite3.Connection) -> None:
    # 50 million steps are free; each number that is counted here takes some 12 of them.
    counts = (
        "WITH RECURSIVE it(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM it LIMIT 8000000) "
        "SELECT count(*) FROM it"
    )
    bound_steps(connection, 0)
    with pytest.raises(sqlite3.OperationalError, match="interrupted"):
        connection.execute(counts).fetchone()

    bound_steps(connection, 20_000_000)

    assert connection.execute(counts).fetchone() == (8_000_000,)
    connection.close()
