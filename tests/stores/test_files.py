"""Which files are opened, and which are refused without a byte of them changed."""

import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_actors.errors import StoreError
from harness_actors.records import Entry, Hop, ProcessMark, SnapshotTaken
from harness_actors.signals import RepairComplete
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.stores.expiry import compact
from harness_actors.stores.schema import APPLICATION_ID, VERSION
from harness_actors.stores.vocabulary import MESSAGE_VOCABULARY, VOCABULARY
from tests.stores.contents import contents_of
from tests.stores.entries import COMMAND, a_round, added, an_end, changed
from tests.stores.open_files import open_files


def a_journal(path: Path) -> None:
    """A file of some 50 pages, closed."""
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [added(), *(a_round(v) for v in range(1, 500))])
    journal.close()


def patch(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        file.write(data)


def text(path: Path) -> None:
    path.write_text("These are my notes, not a journal.\n" * 10)


def short_text(path: Path) -> None:
    path.write_bytes(b"x")


def foreign_database(path: Path) -> None:
    other = sqlite3.connect(path)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("CREATE TABLE runs (run_id TEXT)")
    other.close()


def newer_version(path: Path) -> None:
    a_journal(path)
    other = sqlite3.connect(path)
    other.execute(f"PRAGMA user_version = {VERSION + 1}")
    other.close()


def version_zero(path: Path) -> None:
    a_journal(path)
    patch(path, 60, bytes(4))


def truncated(path: Path) -> None:
    a_journal(path)
    os.truncate(path, path.stat().st_size // 2)


def cut_in_its_header(path: Path) -> None:
    a_journal(path)
    os.truncate(path, 50)


def torn_pages(path: Path) -> None:
    a_journal(path)
    for page in range(10, 30):
        patch(path, page * 4096, os.urandom(4096))


def torn_first_page(path: Path) -> None:
    a_journal(path)
    patch(path, 100, os.urandom(3000))


def a_table_short(path: Path) -> None:
    a_journal(path)
    other = sqlite3.connect(path)
    other.execute("DROP TABLE snapshots")
    other.close()


def zeroed_page(path: Path) -> None:
    a_journal(path)
    patch(path, 12 * 4096, bytes(4096))


def flipped_bytes(path: Path) -> None:
    a_journal(path)
    # Where the pages of tables say how many cells they have.
    for page in range(5, 15):
        patch(path, page * 4096 + 3, b"\xff\xff")


def foreign_with_our_tables(path: Path) -> None:
    a_journal(path)
    patch(path, 68, b"Else")


def changed_by(statement: str, path: Path) -> None:
    a_journal(path)
    other = sqlite3.connect(path)
    other.execute(statement)
    other.close()


def named(make: Callable[[Path], None]) -> str:
    return str(make.args[0]) if isinstance(make, partial) else make.__name__


LONG = "n" * 61
a_trigger = partial(
    changed_by, "CREATE TRIGGER it AFTER INSERT ON records BEGIN DELETE FROM runs; END"
)
a_view = partial(changed_by, f"CREATE VIEW {LONG} AS SELECT 1")
a_further_table = partial(changed_by, "CREATE TABLE further (x)")
a_further_column = partial(changed_by, "ALTER TABLE runs ADD COLUMN further")
another_index = partial(changed_by, "CREATE INDEX further ON runs (command)")
an_index_short = partial(changed_by, "DROP INDEX records_of_run")

REFUSED: list[tuple[Callable[[Path], None], str]] = [
    (text, "not a journal of this program; move it away or name another"),
    (short_text, "not a journal of this program"),
    (foreign_database, "not a journal of this program"),
    (newer_version, r"version 8, and this program knows 1 to 7; use the harness_actors"),
    (version_zero, "version 0"),
    (cut_in_its_header, "not a journal of this program"),
    (truncated, "damaged; restore it from a copy, or move it away"),
    (torn_pages, "damaged; restore it from a copy, or move it away"),
    (torn_first_page, "damaged; restore it from a copy, or move it away"),
    (zeroed_page, "damaged; restore it from a copy, or move it away"),
    (flipped_bytes, "damaged; restore it from a copy, or move it away"),
    (foreign_with_our_tables, "not a journal of this program"),
    (a_table_short, "damaged; .*it has no snapshots"),
    (an_index_short, "damaged; .*it has no records_of_run"),
    (a_trigger, "its schema was changed: the trigger 'it' is none of ours. Nothing of it was run"),
    (a_view, f"its schema was changed: the view '{LONG[1:]}' is none of ours"),
    (a_further_table, "its schema was changed: the table 'further' is none of ours"),
    (a_further_column, "its schema was changed: the table 'runs' is none of ours"),
    (another_index, "its schema was changed: the index 'further' is none of ours"),
]


@pytest.mark.parametrize("opened", [SqliteJournal, JournalReader, compact])
@pytest.mark.parametrize(("make", "problem"), REFUSED, ids=[named(make) for make, _ in REFUSED])
def test_a_file_that_is_refused_stays_as_it_was(
    path: Path,
    make: Callable[[Path], None],
    problem: str,
    opened: Callable[[Path], object],
) -> None:
    make(path)
    before = path.read_bytes()

    with pytest.raises(StoreError, match=problem) as refused:
        opened(path)

    assert str(path) in str(refused.value)
    assert path.read_bytes() == before
    # The lock of the store is not the journal's, and stays.
    assert {file.name for file in path.parent.iterdir()} <= {path.name, f"{path.name}.lock"}


@pytest.mark.parametrize("opened", [SqliteJournal, JournalReader])
@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
def test_what_stands_beside_a_foreign_file_stays_too(
    path: Path, suffix: str, opened: Callable[[Path], object]
) -> None:
    foreign_database(path)
    beside = path.with_name(path.name + suffix)
    beside.write_bytes(b"not of SQLite, but who knows whose" * 100)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}

    with pytest.raises(StoreError, match="not a journal of this program"):
        opened(path)

    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""Ends a rollback journal that names another file, which SQLite would remove."""
LARGEST = 1 << 20


@pytest.mark.parametrize(
    ("undo", "ours"),
    [
        (b"\0", True),
        (bytes(600), True),
        (bytes(LARGEST), True),
        (bytes(LARGEST + 1), False),
        (SUPER_JOURNAL, False),
        (bytes(600) + SUPER_JOURNAL, False),
        (bytes(LARGEST - 8) + SUPER_JOURNAL, False),
        (SUPER_JOURNAL + b"\0", True),
    ],
    ids=lambda undo: f"{len(undo)} bytes" if isinstance(undo, bytes) else str(undo),
)
def test_a_rollback_journal_that_is_none_of_ours_is_refused_and_changes_nothing(
    path: Path, undo: bytes, ours: bool
) -> None:
    a_journal(path)
    beside = path.with_name("runs.db-journal")
    beside.write_bytes(undo)
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    if ours:
        journal = SqliteJournal(path)
        assert journal.position() == 500
        journal.close()
        return
    for opened in (SqliteJournal, compact):
        with pytest.raises(StoreError, match=r"'runs\.db-journal' beside it is none that this"):
            opened(path)
    after = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    assert after | {"runs.db.lock": b""} == before | {"runs.db.lock": b""}


def test_who_only_reads_a_half_made_file_is_told_what_sets_it_right(path: Path) -> None:
    a_journal(path)
    path.with_name("runs.db-journal").write_bytes(bytes(600))
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}

    with pytest.raises(StoreError, match=r"half made, with 'runs\.db-journal' .* store compact"):
        JournalReader(path)

    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


@pytest.mark.parametrize("opened", [SqliteJournal, JournalReader, compact])
@pytest.mark.parametrize("make", [text, newer_version, torn_pages, a_table_short])
def test_of_a_file_that_is_refused_nothing_stays_open(
    path: Path, make: Callable[[Path], None], opened: Callable[[Path], object]
) -> None:
    make(path)
    # The error, which knows where it came from, is still there.
    with pytest.raises(StoreError) as refused:
        opened(path)

    assert open_files(path.parent) == []
    del refused


def test_a_closed_journal_has_nothing_open(path: Path) -> None:
    a_journal(path)
    journal, reader = SqliteJournal(path), JournalReader(path)
    assert journal.position() == reader.position()

    journal.close()
    reader.close()

    assert open_files(path.parent) == []


def test_a_damaged_file_with_a_log_beside_it_stays_as_it_was(path: Path) -> None:
    a_journal(path)
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [a_round(500)])
    # What a process leaves that is killed here: a file with its log.
    log = path.with_name("runs.db-wal").read_bytes()
    file = path.read_bytes()
    journal.close()
    path.write_bytes(file)
    torn_pages_only = bytearray(file)
    torn_pages_only[10 * 4096 : 30 * 4096] = os.urandom(20 * 4096)
    path.write_bytes(torn_pages_only)
    path.with_name("runs.db-wal").write_bytes(log)

    with pytest.raises(StoreError, match="it is damaged"):
        SqliteJournal(path)

    assert path.read_bytes() == torn_pages_only
    assert path.with_name("runs.db-wal").read_bytes() == log


NO_MESSAGE = "CAST('{\"content\": 7}' AS BLOB)"


@pytest.mark.parametrize("opened", [SqliteJournal, JournalReader])
@pytest.mark.parametrize(
    "nonsense",
    [
        "runs SET run_id = x'00' WHERE id = 1",
        *(f"runs SET {column} = x'00'" for column in ("conversation_id", "command")),
        *(f"runs SET {column} = x'00112233'" for column in ("metadata", "spec")),
        "runs SET metadata = '[]'",
        "runs SET added_at = 'soon'",
        "records SET at = 'soon' WHERE version IS NOT NULL",
        "records SET version = 'last' WHERE version IS NOT NULL",
        "records SET losses = 'none' WHERE version IS NOT NULL",
        "records SET hop = x'00' WHERE hop IS NOT NULL",
        "records SET delta = x'00' WHERE delta IS NOT NULL",
        "messages SET role = x'00'",
        "messages SET tokens = 'many'",
        "messages SET encoded = 'a text'",
        f"messages SET encoded = {NO_MESSAGE}",
        "results SET result = x'00'",
        "snapshots SET version = 'last'",
        "snapshots SET state = '[]'",
        *(f"processes SET {column} = x'00'" for column in ("role", "node", "pid", "started")),
    ],
)
def test_damage_that_shows_only_on_reading_is_reported_too(
    path: Path, nonsense: str, opened: type[SqliteJournal] | type[JournalReader]
) -> None:
    journal = SqliteJournal(path)
    hop = Hop(to="repair", signal=RepairComplete())
    entries: list[Entry] = [
        ProcessMark(role="coordinator", node="n", pid=1, started=1),
        added(),
        changed(1, end=an_end()),
        added("run-2"),
        a_round(1, "run-2"),
        SnapshotTaken(run_id="run-2", version=1, values={}),
        changed(2, "run-2", hop=hop),
    ]
    journal.commit(journal.begin_term(), entries)
    journal.close()
    # A well-formed database with nonsense in a column: no check of pages finds it.
    other = sqlite3.connect(path)
    other.execute(f"UPDATE {nonsense}")
    assert other.total_changes > 0
    other.commit()
    other.close()
    broken = opened(path)

    with pytest.raises(StoreError, match="it is damaged; restore it from a copy"):
        contents_of(broken)

    assert broken.position() == 5
    broken.close()


def test_a_message_that_is_none_is_told_where_it_is_read_and_not_where_it_is_used(
    path: Path,
) -> None:
    journal = SqliteJournal(path)
    journal.commit(journal.begin_term(), [added(), a_round(1)])
    journal.close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute(f"UPDATE messages SET encoded = {NO_MESSAGE}")
    other.close()

    for read in (JournalReader(path).load_conversation, JournalReader(path).load_own_messages):
        with pytest.raises(StoreError, match="it is damaged; restore it from a copy"):
            read("talk-of-run-1" if "conversation" in read.__name__ else "run-1")


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small journal."""
    path = tmp_path_factory.mktemp("sound") / "runs.db"
    journal = SqliteJournal(path)
    entries: list[Entry] = [
        added(),
        *(a_round(v) for v in range(1, 20)),
        changed(20, end=an_end()),
        added("b"),
    ]
    journal.commit(journal.begin_term(), entries)
    journal.close()
    return path


faults = st.one_of(
    st.tuples(st.just("flip"), st.integers(0, 2**31), st.binary(min_size=1, max_size=64)),
    st.tuples(st.just("cut"), st.integers(0, 2**31), st.just(b"")),
    st.tuples(st.just("zero"), st.integers(0, 2**31), st.just(b"")),
    # The header and the schema are where most of the rules are.
    st.tuples(st.just("flip"), st.integers(0, 600), st.binary(min_size=1, max_size=4)),
)


def with_fault(sound: bytes, fault: tuple[str, int, bytes]) -> bytes:
    kind, at, data = fault
    torn = bytearray(sound)
    at %= len(torn)
    match kind:
        case "cut":
            return bytes(torn[:at])
        case "zero":
            page = at // 4096 * 4096
            torn[page : page + 4096] = bytes(4096)
        case _:
            torn[at : at + len(data)] = data[: len(torn) - at]
    return bytes(torn)


@settings(max_examples=60, deadline=None)
@given(fault=faults, opened=st.sampled_from([SqliteJournal, JournalReader]))
def test_whatever_is_damaged_is_refused_untouched_or_reported_on_reading(
    sound: Path, fault: tuple[str, int, bytes], opened: type[SqliteJournal] | type[JournalReader]
) -> None:
    torn = with_fault(sound.read_bytes(), fault)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.db"
        path.write_bytes(torn)
        try:
            journal = opened(path)
        except StoreError:
            assert path.read_bytes() == torn
            assert [file.name for file in path.parent.iterdir()] == [path.name]
            return
        for read in (
            journal.headings,
            partial(journal.load_run, "run-1"),
            partial(journal.load_events, 0),
            partial(journal.load_changes, "run-1"),
            partial(journal.load_unfinished, COMMAND),
        ):
            with suppress(StoreError):
                read()
        journal.close()


def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b c#?%" / "runs.db"

    SqliteJournal(path).close()
    SqliteJournal(str(path)).close()

    assert path.is_file()


def test_an_empty_file_becomes_a_journal(path: Path) -> None:
    path.touch()

    journal = SqliteJournal(path)

    assert journal.begin_term() == 1
    journal.close()


def test_a_link_to_a_journal_is_followed(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    a_journal(path)

    journal = SqliteJournal(link)

    assert journal.position() == 500
    journal.close()


def test_a_path_that_cannot_be_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="Is a directory"):
        SqliteJournal(tmp_path)
    blocker = tmp_path / "blocker"
    blocker.write_text("a file, not a folder")
    with pytest.raises(StoreError, match="cannot open it"):
        SqliteJournal(blocker / "runs.db")


def test_the_file_says_what_it_is(path: Path) -> None:
    a_journal(path)

    header = path.read_bytes()[:100]

    assert int.from_bytes(header[68:72], "big") == APPLICATION_ID
    assert int.from_bytes(header[60:64], "big") == VERSION == 7


def test_the_vocabularies_never_change() -> None:
    # Journals that exist are read with them: another text needs another schema version.
    digests = [hashlib.sha256(words).hexdigest() for words in (VOCABULARY, MESSAGE_VOCABULARY)]

    assert digests == [
        "df733fbf57e4aeae5a31fb571caa55433eede6038e7b07a7bc06752e80027b96",
        "ade7d719402619d809c25a8f541ebb536a8144db3d0d81c31637fc690a93df51",
    ]
    for words in (VOCABULARY, MESSAGE_VOCABULARY):
        assert len(words) < 4096 - 262, "words beyond the window would never be found"
