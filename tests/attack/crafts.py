"""Journals that somebody made to harm whoever opens them."""

import os
import sqlite3
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from harness_actors.records import Entry
from harness_actors.stores import SqliteJournal
from harness_actors.stores.codec import pack
from harness_actors.stores.vocabulary import VOCABULARY
from tests.stores.entries import a_round, added, an_end, changed

Craft = Callable[[Path], None]

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
SUPER_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


def sound(path: Path) -> None:
    """One that is as we write it: a run that is over, and one that goes on."""
    journal = SqliteJournal(path)
    entries: list[Entry] = [
        added(),
        *(a_round(version) for version in range(1, 20)),
        changed(20, end=an_end()),
    ]
    journal.commit(journal.begin_term(), [*entries, added("run-2"), a_round(1, "run-2")])
    journal.close()


def sql(*statements: str) -> Craft:
    """A sound one on which statements were executed."""

    def craft(path: Path) -> None:
        sound(path)
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            for statement in statements:
                connection.execute(statement)
        connection.close()

    return craft


def column(table: str, name: str, value: object, rows: str = "1") -> Craft:
    """A sound one in which a column of all rows, or of some, has another value."""

    def craft(path: Path) -> None:
        sound(path)
        with sqlite3.connect(path) as connection:
            connection.execute(f"UPDATE {table} SET {name} = ? WHERE {rows}", (value,))
        connection.close()

    return craft


def bombed(
    table: str, name: str, begins: bytes = b"[", filling: bytes = b" ", ends: bytes = b"]"
) -> Craft:
    """A sound one with a value of 4 GB in a column of its last row."""
    last = f"rowid = (SELECT max(rowid) FROM {table})"
    return lambda path: column(
        table, name, deflated(begins, filling, ends, 4 << 30, vocabulary=VOCABULARY), last
    )(path)


def deflated(
    begins: bytes, filling: bytes, ends: bytes, size: int, *, vocabulary: bytes = b""
) -> bytes:
    """A deflated text of ``begins``, a filling of about a size, and ``ends``; quick to make."""
    block = filling * ((16 << 20) // len(filling))
    packing = zlib.compressobj(6, zlib.DEFLATED, -15, zdict=vocabulary)
    first = packing.compress(begins) + packing.flush(zlib.Z_FULL_FLUSH)
    # What follows a full flush does not look back, so it may come any number of times.
    repeated = packing.compress(block) + packing.flush(zlib.Z_FULL_FLUSH)
    last = packing.compress(ends) + packing.flush()
    return first + repeated * (size // len(block)) + last


def message_bomb(path: Path) -> None:
    _deflated_messages(path, 4 << 30, "rowid = (SELECT max(rowid) FROM messages)")


def many_bombs(path: Path) -> None:
    """No message is too long by itself, but there are many."""
    _deflated_messages(path, 32 << 20)


def _deflated_messages(path: Path, size: int, rows: str = "1") -> None:
    packed = b"\x01" + deflated(b'{"role":"user","content":"', b" ", b'"}', size)
    column("messages", "encoded", packed, rows)(path)


def in_circles(path: Path) -> None:
    """Pages of a table name the same page again and again."""
    sound(path)
    journal = SqliteJournal(path)
    term = journal.begin_term()
    journal.commit(term, [a_round(version, "run-2") for version in range(2, 4000)])
    journal.close()
    with sqlite3.connect(path) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'records'"
        root = connection.execute(query).fetchone()[0]
    connection.close()
    data = bytearray(path.read_bytes())
    at = (root - 1) * 4096
    assert data[at] == 5, "the root of a large table is an inner page"
    cells = struct.unpack_from(">H", data, at + 3)[0]
    for cell in range(cells):
        place = struct.unpack_from(">H", data, at + 12 + 2 * cell)[0]
        struct.pack_into(">I", data, at + place, root)
    path.write_bytes(data)


def sparse_log(path: Path) -> None:
    """The log that a killed process left, followed by a hole of a terabyte."""
    _killed(path)
    os.truncate(path.with_name(path.name + "-wal"), 1 << 40)


def sparse_file(path: Path) -> None:
    sound(path)
    os.truncate(path, 1 << 40)


def _killed(path: Path) -> None:
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [added(), a_round(1)])
    kept = {name: path.with_name(name).read_bytes() for name in (path.name, f"{path.name}-wal")}
    journal.close()
    for name, data in kept.items():
        path.with_name(name).write_bytes(data)


def names_another_file(path: Path) -> None:
    """A rollback journal that would have SQLite remove a file: see `victim_of`."""
    sound(path)
    page = path.read_bytes()[:4096]
    victim_of(path).write_bytes(b"precious")
    name = os.fsencode(victim_of(path))
    nonce = 7
    total = nonce + sum(page[place] for place in range(4096 - 200, 0, -200))
    head = bytes.fromhex("d9d505f920a163d7") + struct.pack(">5I", 1, nonce, 2, 512, 4096)
    record = struct.pack(">I", 1) + page + struct.pack(">I", total & 0xFFFFFFFF)
    sizes = struct.pack(">2I", len(name), sum(name))
    tail = struct.pack(">I", (1 << 30) // 4096 + 1) + name + sizes + SUPER_JOURNAL_MAGIC
    undo = head.ljust(512, b"\0") + record + tail
    path.with_name(path.name + "-journal").write_bytes(undo)


def victim_of(path: Path) -> Path:
    return path.with_name("precious")


def half_made(path: Path) -> None:
    sound(path)
    path.with_name(path.name + "-journal").write_bytes(b"\0" * 600)


def linked_log(path: Path) -> None:
    sound(path)
    victim_of(path).write_bytes(b"precious")
    path.with_name(path.name + "-wal").symlink_to(victim_of(path))


def pipe_for_log(path: Path) -> None:
    sound(path)
    os.mkfifo(path.with_name(path.name + "-wal"))


def pipe_for_index(path: Path) -> None:
    """As if a process had the journal open: whoever opens the pipe waits for ever."""
    sound(path)
    path.with_name(path.name + "-wal").write_bytes(b"")
    os.mkfifo(path.with_name(path.name + "-shm"))


def pipe(path: Path) -> None:
    os.mkfifo(path)


def names_pids(*pids: object) -> Craft:
    """Names processes that are no processes at all."""

    def craft(path: Path) -> None:
        sound(path)
        with sqlite3.connect(path) as connection:
            for pid in pids:
                row = (1, "coordinator", "here", pid, 1)
                connection.execute("INSERT INTO processes VALUES (?,?,?,?,?)", row)
        connection.close()

    return craft


def _result(**changed_parts: object) -> bytes:
    plain: dict[str, object] = {
        "run_id": "run-1",
        "status": "done",
        "reason": {"kind": "completed", "message": "", "details": {}},
        "turn_count": 1,
        "output_text": "",
        "completion_verified": True,
        "usage": {"model_calls": 1, "cost_usd": 0.0},
        "deliverables": [],
        "wall_s": 1.0,
    }
    packed = pack({**plain, **changed_parts})
    assert isinstance(packed, bytes)
    return packed


def _made_of(words: str) -> Craft:
    """The table of results, made by other words."""
    return sql("DROP TABLE results", f"CREATE TABLE results {words}")


DEEP = "[" * 900 + "]" * 900
COLUMNS = "run INTEGER PRIMARY KEY REFERENCES runs, result NOT NULL"

REFUSED: dict[str, Craft] = {
    "view in the place of a table": sql(
        "DROP TABLE records",
        f"CREATE VIEW records AS {ENDLESS} SELECT x AS position, 1 AS run, x AS version, "
        "1.0 AS at, 0 AS losses, NULL AS hop, NULL AS delta FROM n",
    ),
    "view that says it is a table": sql(
        "DROP TABLE processes",
        f"CREATE VIEW processes AS {ENDLESS} SELECT x AS term FROM n",
        "UPDATE sqlite_master SET type = 'table' WHERE name = 'processes'",
    ),
    "view besides": sql(f"CREATE VIEW more AS {ENDLESS} SELECT x FROM n"),
    "trigger on results": sql(
        "CREATE TRIGGER t AFTER INSERT ON results BEGIN DELETE FROM runs; END"
    ),
    "trigger on terms": sql(
        "CREATE TRIGGER t BEFORE UPDATE ON terms BEGIN INSERT INTO code VALUES "
        "('x', (SELECT group_concat(run_id) FROM runs)); END"
    ),
    "virtual table besides": sql("CREATE VIRTUAL TABLE f USING fts4(x)"),
    "virtual table in the place of one": sql(
        "DROP TABLE processes",
        "CREATE VIRTUAL TABLE processes USING fts4(term, role, node, pid, started)",
    ),
    "computed column": _made_of(f"({COLUMNS}, x AS (hex(zeroblob(100000000))))"),
    "default that computes": _made_of(
        "(run INTEGER PRIMARY KEY REFERENCES runs, result NOT NULL DEFAULT (randomblob(9)))"
    ),
    "check that computes": _made_of(f"({COLUMNS}, CHECK (length(randomblob(100000000)) > 0))"),
    "collation that is not known": _made_of(
        "(run INTEGER PRIMARY KEY REFERENCES runs, result NOT NULL COLLATE rtrim)"
    ),
    "index on an expression": sql("CREATE INDEX i ON runs (abs(id))"),
    "index that leaves rows out": sql(
        "DROP INDEX records_of_run", "CREATE INDEX records_of_run ON records (run) WHERE run > 9"
    ),
    "table besides": sql("CREATE TABLE more (x)"),
    "thousand tables": sql(*(f"CREATE TABLE more{number} (x)" for number in range(1000))),
    "schema of nonsense": sql("UPDATE sqlite_master SET sql = 'CREATE TABLE' WHERE name = 'runs'"),
    "pages in circles": in_circles,
    "rollback journal that names another file": names_another_file,
    "link for a log": linked_log,
    "pipe for a log": pipe_for_log,
    "pipe for the index of a log": pipe_for_index,
    "pipe": pipe,
}
"""No command works on these, or looks into them."""

BROKEN: dict[str, Craft] = {
    "metadata of 4 GB": bombed("runs", "metadata", b'{"x":"', b" ", b'"}'),
    "settings of 4 GB": bombed("runs", "spec"),
    "result of 4 GB": bombed("results", "result"),
    "changes of 4 GB": bombed("records", "delta"),
    "message of 4 GB": message_bomb,
    "forty messages of 32 MB": many_bombs,
    "a billion lists": bombed("runs", "metadata", b'{"x":[', b"[],", b"1]}"),
    "nine hundred levels": column("runs", "metadata", '{"x":' + DEEP + "}"),
    "rollback journal of nothing": half_made,
    "text for a time": column("runs", "added_at", "\x1b]0;x\x07"),
    "endless time": column("runs", "added_at", 9e999),
    "bytes for a run's id": column("runs", "conversation_id", b"\xff\xfe"),
    "text that is no UTF-8": sql("UPDATE runs SET command = CAST(x'fffe80' AS TEXT)"),
    "list for metadata": column("runs", "metadata", "[1]"),
    "number for settings": column("runs", "spec", "5"),
    "text for usage": column(
        "results", "result", _result(usage={"model_calls": "many", "cost_usd": 0.0})
    ),
    "endless cost": column("results", "result", '{"usage": {"cost_usd": 1e999}}'),
    "status that is none": column("results", "result", _result(status="\x1b[2J")),
    "list for an answer": column("results", "result", _result(output_text=["x"])),
    "message that is no JSON": column("messages", "encoded", b"{"),
    "message of another shape": column("messages", "encoded", b'{"role":"user","content":{}}'),
    "message that is a number": column("messages", "encoded", b"5"),
    "text for a message": column("messages", "encoded", "text"),
    "position at the end": sql("UPDATE records SET position = position + 9223372036854770000"),
    "changes of another shape": column("records", "delta", pack([5])),
}
"""Something in them breaks whoever asks for it; what is sound is still told."""

HARMLESS: dict[str, Craft] = {
    "log with a terabyte of nothing": sparse_log,
    "terabyte of nothing": sparse_file,
    "processes that are none": names_pids(0, -1, 1 << 40, -(1 << 63)),
}
"""These are read like any other."""
