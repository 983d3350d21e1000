"""A disk without room: the commit fails as a whole, says so, and goes on when there is room."""

import json
import os
import subprocess
import sys
from base64 import b85encode
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors.errors import StoreError
from harness_actors.messages import Message
from harness_actors.records import Entry
from harness_actors.stores import JournalReader, SqliteJournal
from harness_actors.stores.expiry import expire
from tests.stores.contents import contents_of
from tests.stores.entries import a_round, added, an_end, changed
from tests.stores.test_expiry import stored

ROOT = Path(__file__).parents[2]


def test_a_full_database_takes_the_group_back_and_the_file_goes_on(path: Path) -> None:
    journal = SqliteJournal(path)
    term = journal.begin_term()
    journal.commit(term, [added(), a_round(1)])
    before = contents_of(journal)
    (pages,) = journal._writer.execute("PRAGMA page_count").fetchone()
    journal._writer.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(StoreError, match=r"disk is full; make room .*SQLITE_FULL") as full:
        journal.commit(term, [a_round(version) for version in range(2, 500)])

    assert str(path) in str(full.value)
    assert contents_of(journal) == before
    journal.close()
    journal = SqliteJournal(path)
    assert contents_of(journal) == before
    assert journal.commit(term, [a_round(version) for version in range(2, 500)])[-1] == 500
    journal.close()


def on_a_small_disk(what: str, mounted: Path, path: Path, **environment: str) -> Any:
    """What a function of `children` prints where a file system of 600 kB is mounted."""
    mounted.mkdir()
    mount = 'mount -t tmpfs -o size=600k tmpfs "$0" && exec "$@"'
    ran = subprocess.run(
        [
            *("unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(mounted)),
            *(sys.executable, "-m", "tests.stores.children", what, str(path)),
        ],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def test_a_full_file_system_takes_the_group_back_and_the_file_goes_on(tmp_path: Path) -> None:
    mounted = tmp_path / "small"

    seen = on_a_small_disk("fill_a_small_disk", mounted, mounted / "runs.db")

    assert "disk is full; make room and run the same command again" in seen["error"]
    assert str(mounted / "runs.db") in seen["error"]
    assert seen["acknowledged"] > 0
    assert seen["read_while_full"] == seen["reopened"] == seen["acknowledged"]
    assert seen["next_position"] == seen["acknowledged"] + 2


def test_what_ended_long_ago_goes_though_the_file_cannot_be_made_smaller(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    large = [b85encode(os.urandom(160_000)).decode() for _ in range(30)]
    said = [changed(at, "old", messages=[Message.user(text)]) for at, text in enumerate(large, 1)]

    def a_large_run(run_id: str, ended_at: float) -> list[Entry]:
        end = replace(changed(31, run_id, end=an_end(run_id)), at=ended_at)
        return [added(run_id), *(replace(change, run_id=run_id) for change in said), end]

    stored(path, a_large_run("old", 100.0), a_large_run("young", 900.0))
    before = contents_of(JournalReader(path))
    size = path.stat().st_size
    small = tmp_path / "small"

    seen = on_a_small_disk("clear_where_a_disk_is_full", small, path, SQLITE_TMPDIR=str(small))

    assert (seen["runs"], seen["freed"]) == (1, 0)
    assert "disk is full; make room and run the same command again" in seen["error"]
    assert contents_of(JournalReader(path))["runs"] == before["runs"][1:]
    assert path.stat().st_size == size
    assert expire(path, ended_before=500.0).freed_bytes > size / 3
    assert contents_of(JournalReader(path))["runs"] == before["runs"][1:]
