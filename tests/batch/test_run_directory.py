import asyncio
import json
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp

import pytest

from harness_actors.batch.checks import COPY
from harness_actors.batch.run_directory import RunDirectory
from harness_actors.errors import BadInputError, StoreError, StoreInUseError
from harness_actors.stores.lock import is_held
from harness_actors.stores.schema import APPLICATION_ID
from tests.batch.test_results_file import outcome, written
from tests.stores.test_expiry import held_by_another_process

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


async def test_a_command_that_only_answers_a_run_is_waited_for(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    with held_by_another_process(directory.store):
        entering = asyncio.create_task(directory.__aenter__())
        # It has looked, and was refused.
        await asyncio.sleep(0)
        assert not entering.done()
    assert await entering is directory
    assert is_held(directory.store)
    directory.__exit__(None, None, None)
    assert not is_held(directory.store)


async def test_who_is_cut_while_it_waits_has_taken_nothing(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    with held_by_another_process(directory.store):
        entering = asyncio.create_task(directory.__aenter__())
        await asyncio.sleep(0)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
    async with RunDirectory(tmp_path):
        pass


async def test_no_process_waits_for_itself(tmp_path: Path) -> None:
    async with RunDirectory(tmp_path):
        entering = asyncio.create_task(RunDirectory(tmp_path).__aenter__())
        await asyncio.sleep(0)
        with pytest.raises(StoreInUseError, match="this process works on it already"):
            entering.result()


def test_one_process_does_not_work_twice_on_one_directory(tmp_path: Path) -> None:
    with (
        RunDirectory(tmp_path),
        pytest.raises(StoreInUseError, match="this process works on it already"),
    ):
        RunDirectory(tmp_path).__enter__()

    with RunDirectory(tmp_path):
        pass


def test_a_directory_is_given_back_to_other_processes(tmp_path: Path) -> None:
    with RunDirectory(tmp_path):
        pass
    with pytest.raises(BadInputError), RunDirectory(broken(tmp_path)):
        pass
    (tmp_path / "results.jsonl").unlink()

    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    held = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert held.stdout == b"held\n", held.stderr


def broken(folder: Path) -> Path:
    (folder / "results.jsonl").write_text('{"mine": 1}\n')
    return folder


OURS = b"SQLite format 3\0".ljust(68, b"\0") + APPLICATION_ID.to_bytes(4) + b"and so on"


@pytest.mark.parametrize("begins", [b"", OURS], ids=["empty", "begun"])
def test_a_journal_that_is_made_but_empty_is_ours_as_a_whole_one_is(
    tmp_path: Path, begins: bytes
) -> None:
    (tmp_path / "runs.db").write_bytes(begins)

    with RunDirectory(tmp_path) as directory:
        assert directory.has_runs == bool(begins)
        assert directory.is_begun


@pytest.mark.parametrize("name", ["summary.json", "setups.json", "results.jsonl"])
def test_a_file_that_cannot_be_read_is_told_and_the_directory_given_back(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).mkdir()
    for _ in range(2):
        with pytest.raises(BadInputError, match=rf"{name}.*Is a directory.*; fix its rights"):
            RunDirectory(tmp_path).__enter__()


async def test_what_ended_the_work_is_told_and_not_what_it_did_to_the_results(
    tmp_path: Path,
) -> None:
    async def work(error: Exception | None) -> None:
        with RunDirectory(tmp_path) as directory:
            await directory.results.append(outcome("a"))
            await directory.results.append(outcome("a", attempt=2))
            directory.results_path.unlink()
            if error is not None:
                raise error

    with pytest.raises(ZeroDivisionError):
        await work(ZeroDivisionError())
    with pytest.raises(StoreError, match="removed or replaced while"):
        await work(None)


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
    left = Path(mkdtemp(prefix=COPY, dir=make(tmp_path / "checks")))
    (left / "file").touch()

    with RunDirectory(tmp_path) as directory:
        assert not directory.checks_path.exists()
        make(directory.checks_path)
        mkdtemp(prefix=COPY, dir=directory.checks_path)
    assert not directory.checks_path.exists()


def make(folder: Path) -> Path:
    folder.mkdir()
    return folder


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Of all files below a folder, when they were changed and what is in them."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_a_folder_of_something_else_keeps_what_is_in_it(tmp_path: Path) -> None:
    names = ("checks/unit/test.sh", "workspaces/mine/file", "results.jsonl.new", "summary.json.new")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    before = contents(tmp_path)

    for _ in range(2):
        with RunDirectory(tmp_path) as directory:
            directory.write_summary({"ending": "complete", "command": {}})

    assert before.items() <= contents(tmp_path).items()


@pytest.mark.parametrize("text", ['{"summary": "mine"}\n', "[1]", "mine", "\x00"])
def test_a_summary_of_something_else_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text(text)
    folder = make(tmp_path / "run")
    (folder / "summary.json").symlink_to(elsewhere)
    before = contents(tmp_path)

    with pytest.raises(BadInputError, match=r"summary\.json.*no summary of a batch; move it"):
        RunDirectory(folder).__enter__()

    assert before.items() <= contents(tmp_path).items()
    assert (folder / "summary.json").is_symlink()


def test_a_lock_file_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "runs.db.lock").write_text("# This file is generated by a package manager.\n")
    before = contents(tmp_path)

    with pytest.raises(StoreError, match=r"'runs\.db\.lock', but that file is none of ours"):
        RunDirectory(tmp_path).__enter__()

    assert contents(tmp_path) == before


def test_what_a_killed_command_left_beside_a_file_is_removed(tmp_path: Path) -> None:
    for name in (".results.jsonl.harness-0123abcd.new", ".summary.json.harness-0123abcd.new"):
        (tmp_path / name).write_text("half")

    with RunDirectory(tmp_path):
        assert [path.name for path in tmp_path.iterdir()] == ["runs.db.lock"]


def test_the_summary_replaces_an_earlier_one(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as directory:
        directory.write_summary({"tasks": 1})
        directory.write_summary({"tasks": 2})

    assert (tmp_path / "summary.json").read_text() == '{\n  "tasks": 2\n}\n'
    assert not list(tmp_path.glob("*.new"))


def test_a_summary_that_finds_no_room_is_told_and_the_earlier_one_stands(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A bound on the size of files fails a write half-way, as a full disk does.
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with RunDirectory(tmp_path) as directory:
        directory.write_summary({"tasks": 1})
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        try:
            with pytest.raises(StoreError, match=r"summary\.json: File too large; make room"):
                directory.write_summary({"tasks": "2" * 200})
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, handler)

    assert json.loads((tmp_path / "summary.json").read_text()) == {"tasks": 1}
    assert not list(tmp_path.glob("*.new"))


def removed(folder: Path) -> None:
    shutil.rmtree(folder)


def moved(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def taken_by_another(folder: Path) -> None:
    """Removed, and made again by a command that works in it now."""
    shutil.rmtree(folder)
    (folder / "checks").mkdir(parents=True)
    for name in ("runs.db.lock", "results.jsonl", "summary.json"):
        (folder / name).write_text("theirs")


def lock_removed(folder: Path) -> None:
    (folder / "runs.db.lock").unlink()


@pytest.mark.parametrize("take_away", [removed, moved, taken_by_another, lock_removed])
async def test_nothing_is_written_where_the_directory_was_taken_away(
    tmp_path: Path, take_away: Callable[[Path], None]
) -> None:
    folder = tmp_path / "out"
    leaving = pytest.raises(StoreError, match="removed or moved away")
    with leaving, RunDirectory(folder) as directory:
        await directory.results.append(outcome("a"))
        await directory.results.append(outcome("a", attempt=2))
        take_away(folder)
        left = all_below(folder)

        with pytest.raises(StoreError, match="removed or moved away while this command") as told:
            await directory.results.append(outcome("b"))
        assert str(folder) in str(told.value)
        with pytest.raises(StoreError, match="removed or moved away"):
            directory.write_summary({"ending": "complete"})
        with pytest.raises(StoreError, match="removed or moved away"):
            directory.results.compact()

    assert all_below(folder) == left


async def test_results_that_were_removed_are_not_begun_again_in_silence(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as directory:
        await directory.results.append(outcome("a"))
        directory.results_path.unlink()

        with pytest.raises(StoreError, match="the same command writes all of it") as told:
            await directory.results.append(outcome("b"))
        assert str(told.value).startswith(f"{directory.results_path}: it was removed"), "no journal"
        assert not directory.results_path.exists()


async def test_its_own_replacing_of_the_results_is_no_loss_of_them(tmp_path: Path) -> None:
    with RunDirectory(tmp_path) as directory:
        await directory.results.append(outcome("a"))
        await directory.results.append(outcome("a", attempt=2))
        directory.results.compact()
        await directory.results.append(outcome("b"))

    assert directory.results_path.read_bytes() == written(outcome("a", attempt=2), outcome("b"))


def all_below(folder: Path) -> dict[str, bytes | None]:
    """What is below a folder: the bytes of files, None for folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def a_text(place: Path) -> None:
    place.write_text("mine")


def a_folder(place: Path) -> None:
    (place / "mine").mkdir(parents=True)


def a_database(place: Path) -> None:
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("CREATE TABLE mine (one)")


@pytest.mark.parametrize(
    ("name", "make_it", "told"),
    [
        ("runs.db", a_text, "is not a journal; move it away"),
        ("runs.db", a_database, "is not a journal; move it away"),
        ("runs.db", a_folder, r"cannot be read \(Is a directory\)"),
        ("results.jsonl", a_text, "line 1: not a result of a batch"),
        ("results.jsonl", a_folder, r"cannot be read \(Is a directory\)"),
        ("summary.json", a_text, "is no summary of a batch"),
        ("summary.json", a_folder, r"cannot be read \(Is a directory\)"),
        ("setups.json", a_text, "not the set-ups of a batch"),
        ("setups.json", a_folder, r"cannot be read \(Is a directory\)"),
        ("workspaces", a_text, "is not a folder; move it away"),
    ],
)
def test_what_is_none_of_ours_is_refused_and_nothing_is_made(
    tmp_path: Path, name: str, make_it: Callable[[Path], None], told: str
) -> None:
    make_it(tmp_path / name)
    before = all_below(tmp_path)

    with pytest.raises(BadInputError, match=told) as refused:
        RunDirectory(tmp_path).__enter__()

    assert str(refused.value).startswith(f"{tmp_path / name}: ")
    assert all_below(tmp_path) == before


def test_a_lock_that_was_there_stays_where_a_directory_is_refused(tmp_path: Path) -> None:
    with RunDirectory(tmp_path):
        pass
    (tmp_path / "results.jsonl").write_text("mine")

    with pytest.raises(BadInputError, match="not a result of a batch"):
        RunDirectory(tmp_path).__enter__()

    assert (tmp_path / "runs.db.lock").exists()
