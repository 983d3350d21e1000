"""The journals of the home, where a cell that outlived its command has one open."""

import os
import time
from pathlib import Path

import pytest

from harness_actors.stores.expiry import DAYS_KEPT
from harness_actors.stores.home import SECONDS_PER_DAY, free_journal
from harness_actors.stores.lock import is_held, release
from tests.stores.test_expiry import a_run, runs_of, stored


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path))
    monkeypatch.delenv("HARNESS_KEEP_DAYS", raising=False)
    return tmp_path


def test_it_is_taken_by_a_command_that_shares_the_cell_and_nothing_is_removed(home: Path) -> None:
    cut = time.time() - DAYS_KEPT * SECONDS_PER_DAY
    served = home / "runs.db"
    stored(served, a_run("old", ended_at=cut - 60), a_run("kept", ended_at=cut + 60))

    path = free_journal(lambda path: path == served)
    release(path)

    assert path == served
    assert "old" in runs_of(path)
    assert "runs.db.expired" not in os.listdir(home)


def test_it_is_not_free_for_a_command_that_does_not(home: Path) -> None:
    served = home / "runs.db"

    path = free_journal(lambda path: path == served, shares_cell=False)
    release(path)

    assert path == home / "runs-2.db"
    assert not is_held(served)
