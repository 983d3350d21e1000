"""The journals of the home, where a cell that outlived its command has one open."""

import os
import time
from pathlib import Path

import pytest

from harness_actors.errors import RunNotFoundError, StoreError, StoreInUseError
from harness_actors.stores.expiry import DAYS_KEPT
from harness_actors.stores.home import SECONDS_PER_DAY, free_journal, journal_of
from harness_actors.stores.lock import hold, is_held, lock_of, release
from tests.stores.open_files import open_files
from tests.stores.test_expiry import a_run, held_by_another_process, runs_of, stored


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


def test_commands_at_once_get_a_journal_each_and_no_more_than_that(home: Path) -> None:
    with held_by_another_process(home / "runs.db"), held_by_another_process(home / "runs-2.db"):
        third = free_journal()
        assert third == home / "runs-3.db"
        release(third)
    for _ in range(2):
        first = free_journal()
        assert first == home / "runs.db"
        release(first)


@pytest.mark.parametrize("names", [("runs.db", "runs-2.db"), ("runs-2.db", "runs.db")])
def test_a_run_in_a_journal_that_somebody_works_on_is_not_taken_for_unknown(
    home: Path, names: tuple[str, str]
) -> None:
    busy, free = (home / name for name in names)
    stored(busy, a_run("busy"))
    stored(free, a_run("free"))

    with held_by_another_process(busy) as pid:
        with pytest.raises(StoreInUseError, match=f"process {pid} works on it"):
            journal_of("busy")
        assert not is_held(free)
        assert journal_of("free") == free
    release(free)
    assert journal_of("busy") == busy
    assert open_files(home) == [lock_of(busy)]
    release(busy)


def test_a_journal_that_cannot_be_read_is_told_and_free_for_others(home: Path) -> None:
    broken = home / "runs.db"
    broken.write_text("no journal")
    for held_before in (False, True):
        if held_before:
            hold(broken)
        with pytest.raises(StoreError, match="not a journal"):
            journal_of("run")
        assert is_held(broken) == held_before
    release(broken)


def test_a_home_of_before_is_closed_by_whoever_looks_for_a_run(home: Path) -> None:
    stored(home / "runs.db", a_run("run"))
    home.chmod(0o777)

    release(journal_of("run"))

    assert home.stat().st_mode & 0o777 == 0o700


def test_where_there_is_no_home_yet_no_run_is_known_and_none_is_made(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_HOME", str(home / "none"))
    with pytest.raises(RunNotFoundError, match=f"no run 'run' in {home}/none"):
        journal_of("run")
    assert list(home.iterdir()) == []


def test_only_the_journal_that_has_a_run_is_held_for_it(home: Path) -> None:
    first, second = home / "runs-2.db", home / "runs.db"
    stored(first, a_run("other"))
    stored(second, a_run("run"))

    assert journal_of("run") == second

    assert (is_held(first), is_held(second)) == (False, True)
    release(second)


def test_where_none_has_it_all_are_free_but_what_was_held_before(home: Path) -> None:
    first, second = home / "runs-2.db", home / "runs.db"
    stored(first, a_run("other"))
    stored(second, a_run("another"))
    hold(second)

    with pytest.raises(RunNotFoundError, match="run"):
        journal_of("run")

    assert (is_held(first), is_held(second)) == (False, True)
    release(second)
