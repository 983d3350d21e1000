"""`harness ctl store`: expiring and compacting journals."""

import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from harness_actors.cli.app import app
from tests.stores.test_expiry import a_run, held_by_another_process, runs_of, stored

DAY_S = 86_400.0


def ctl(*words: str) -> Result:
    return CliRunner().invoke(app, ["ctl", "store", *words], catch_exceptions=False)


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    """A run directory with a run of 60 days ago, and one of 10."""
    now = time.time()
    runs = (
        a_run("old", ended_at=now - 60 * DAY_S),
        a_run("young", ended_at=now - 10 * DAY_S),
    )
    stored(tmp_path / "runs.db", *runs)
    return tmp_path


def test_runs_that_ended_long_ago_are_removed_and_counted(run_dir: Path) -> None:
    result = ctl("expire", "--run-dir", str(run_dir))
    assert result.exit_code == 0
    assert "1 runs and" in result.stdout
    assert runs_of(run_dir / "runs.db") == ["young", "newest"]


def test_how_long_is_long_may_be_said(run_dir: Path) -> None:
    result = ctl("expire", "--run-dir", str(run_dir), "--days", "90", "--json")
    (told,) = json.loads(result.stdout)
    assert (told["store"], told["runs"]) == (str(run_dir / "runs.db"), 0)
    assert runs_of(run_dir / "runs.db") == ["old", "young", "newest"]


def test_all_that_is_over_may_be_removed_but_the_newest_conversation(run_dir: Path) -> None:
    assert ctl("expire", "--run-dir", str(run_dir), "--days", "0").exit_code == 0
    assert runs_of(run_dir / "runs.db") == ["newest"]


def test_where_a_user_keeps_everything_nothing_is_removed_unless_that_is_said(
    run_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_KEEP_DAYS", "0")
    assert ctl("expire", "--run-dir", str(run_dir)).exit_code == 0
    assert runs_of(run_dir / "runs.db") == ["old", "young", "newest"]
    ctl("expire", "--run-dir", str(run_dir), "--days", "30")
    assert runs_of(run_dir / "runs.db") == ["young", "newest"]


def test_compacting_removes_no_run(run_dir: Path) -> None:
    result = ctl("compact", "--run-dir", str(run_dir), "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)[0]["runs"] == 0
    assert runs_of(run_dir / "runs.db") == ["old", "young", "newest"]


def test_a_journal_that_is_being_worked_on_is_left_out_and_named(run_dir: Path) -> None:
    with held_by_another_process(run_dir / "runs.db"):
        result = ctl("expire", "--run-dir", str(run_dir))
    assert result.exit_code == 1
    assert "left out" in result.stderr
    assert runs_of(run_dir / "runs.db") == ["old", "young", "newest"]
