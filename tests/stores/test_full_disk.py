"""A disk without room: the commit fails as a whole, says so, and goes on when there is room."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness_actors.errors import StoreError
from harness_actors.stores import SqliteJournal
from tests.stores.contents import contents_of
from tests.stores.entries import a_round, added

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


def test_a_full_file_system_takes_the_group_back_and_the_file_goes_on(tmp_path: Path) -> None:
    mounted = tmp_path / "small"
    mounted.mkdir()
    mount = 'mount -t tmpfs -o size=600k tmpfs "$0" && exec "$@"'
    ran = subprocess.run(
        [
            *("unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(mounted)),
            *(sys.executable, "-m", "tests.stores.children", "fill_a_small_disk"),
            str(mounted / "runs.db"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert "disk is full; make room and run the same command again" in seen["error"]
    assert str(mounted / "runs.db") in seen["error"]
    assert seen["acknowledged"] > 0
    assert seen["read_while_full"] == seen["reopened"] == seen["acknowledged"]
    assert seen["next_position"] == seen["acknowledged"] + 2
