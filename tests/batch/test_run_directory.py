import json
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness_actors.batch.run_directory import RunDirectory
from harness_actors.errors import BadInputError, StoreError, StoreInUseError

HOLD = """
import sys
from pathlib import Path
from harness_actors.batch.run_directory import RunDirectory
with RunDirectory(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_command_is_told_who_works_on_the_directory(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"

    with pytest.raises(StoreInUseError, match=f"the process {holder.pid} works on it"):
        RunDirectory(tmp_path).__enter__()

    # It dies with its owner, who had no time to give it back.
    holder.kill()
    holder.communicate()
    with RunDirectory(tmp_path):
        pass


def test_one_process_does_not_work_twice_on_one_directory(tmp_path: Path) -> None:
    with (
        RunDirectory(tmp_path),
        pytest.raises(StoreInUseError, match="this process works on it already"),
    ):
        RunDirectory(tmp_path).__enter__()

    with RunDirectory(tmp_path):
        pass


def test_a_file_is_no_run_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(BadInputError, match="cannot be used as a run directory"):
        RunDirectory(tmp_path / "file").__enter__()


def test_a_directory_with_results_of_somebody_else_is_given_back(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text('{"mine": 1}\n')

    for _ in range(2):
        with pytest.raises(BadInputError, match="not a result of a batch"):
            RunDirectory(tmp_path).__enter__()


def test_copies_of_checks_that_were_killed_are_removed(tmp_path: Path) -> None:
    (tmp_path / "checks" / "left").mkdir(parents=True)

    with RunDirectory(tmp_path) as directory:
        assert not directory.checks_path.exists()


def test_the_summary_replaces_an_earlier_one(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as directory:
        directory.write_summary({"tasks": 1})
        directory.write_summary({"tasks": 2})

    assert json.loads((tmp_path / "summary.json").read_text()) == {"tasks": 2}
    assert not list(tmp_path.glob("*.new"))


def test_a_summary_that_finds_no_room_is_told_and_the_earlier_one_stands(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A bound on the size of files fails a write half-way, as a full disk does.
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with RunDirectory(tmp_path) as directory:
        directory.write_summary({"tasks": 1})
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        try:
            with pytest.raises(StoreError, match=r"summary\.json': File too large; make room"):
                directory.write_summary({"tasks": "2" * 200})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, handler)

    assert json.loads((tmp_path / "summary.json").read_text()) == {"tasks": 1}
    assert not list(tmp_path.glob("*.new"))
