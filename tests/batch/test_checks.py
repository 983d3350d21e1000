import asyncio
import os
from pathlib import Path

import pytest

from harness_actors.batch.checks import Checks, lay_over
from harness_actors.batch.outcomes import CheckResult
from harness_actors.batch.tasks import Check


async def checked(
    folder: Path, command: str, *, files: Path | None = None, timeout_s: float = 30
) -> CheckResult:
    check = Check(command=command, files=str(files) if files else None, timeout_s=timeout_s)
    return await Checks(folder / "copies").run(check, folder / "workspace")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "answer.txt").write_text("42\n")
    (tmp_path / "hidden").mkdir()
    return tmp_path


async def test_a_command_that_exits_with_0_has_passed(folder: Path) -> None:
    result = await checked(folder, "grep 42 answer.txt")

    assert (result.passed, result.exit_code, result.output) == (True, 0, "42")


async def test_any_other_exit_has_failed_and_its_output_is_kept(folder: Path) -> None:
    result = await checked(folder, "echo wrong >&2; exit 3")

    assert (result.passed, result.exit_code, result.output) == (False, 3, "wrong")


async def test_a_check_changes_a_copy_that_is_gone_afterwards(folder: Path) -> None:
    await checked(folder, "rm answer.txt; touch new")

    assert os.listdir(folder / "workspace") == ["answer.txt"]
    assert os.listdir(folder / "copies") == []


async def test_hidden_files_lie_over_what_the_agent_left(folder: Path) -> None:
    (folder / "workspace" / "tests").mkdir()
    (folder / "workspace" / "tests" / "test.sh").write_text("exit 0")
    (folder / "hidden" / "tests").mkdir()
    (folder / "hidden" / "tests" / "test.sh").write_text("exit 5")

    result = await checked(folder, "sh tests/test.sh", files=folder / "hidden")

    assert result.exit_code == 5


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_link_of_the_agent_does_not_lead_hidden_files_elsewhere(folder: Path, kind: str) -> None:
    precious = folder / "precious"
    precious.mkdir()
    (precious / "test.sh").write_text("mine")
    (folder / "hidden" / "tests").mkdir()
    (folder / "hidden" / "tests" / "test.sh").write_text("exit 0")
    if kind == "folder":
        (folder / "workspace" / "tests").symlink_to(precious)
    else:
        (folder / "workspace" / "tests").mkdir()
        (folder / "workspace" / "tests" / "test.sh").symlink_to(precious / "test.sh")

    lay_over(folder / "hidden", folder / "workspace")

    assert (precious / "test.sh").read_text() == "mine"
    assert (folder / "workspace" / "tests" / "test.sh").read_text() == "exit 0"


def test_a_file_and_a_folder_of_one_name_make_way_for_the_hidden_one(folder: Path) -> None:
    (folder / "hidden" / "a").mkdir()
    (folder / "hidden" / "a" / "x").touch()
    (folder / "hidden" / "b").write_text("file")
    (folder / "workspace" / "a").write_text("file")
    (folder / "workspace" / "b").mkdir()
    (folder / "workspace" / "b" / "x").touch()

    lay_over(folder / "hidden", folder / "workspace")

    assert (folder / "workspace" / "a" / "x").is_file()
    assert (folder / "workspace" / "b").read_text() == "file"


async def test_a_check_that_takes_too_long_is_killed_with_its_grandchildren(folder: Path) -> None:
    # One of them in a session of its own, where no signal to the group reaches it.
    command = (
        f"setsid sleep 300 & echo $! >> {folder}/pids; "
        f"(sleep 300 & echo $! >> {folder}/pids; wait) & wait"
    )

    result = await checked(folder, command, timeout_s=1)

    assert (result.passed, result.exit_code) == (False, None)
    assert "killed after 1 s" in result.output
    pids = (folder / "pids").read_text().split()
    assert len(pids) == 2
    assert [pid for pid in pids if _runs(pid)] == []


async def test_what_a_check_leaves_in_the_background_ends_with_it(folder: Path) -> None:
    result = await checked(folder, f"sleep 300 & echo $! > {folder}/pid")

    assert result.passed
    assert result.seconds < 20
    assert not _runs((folder / "pid").read_text().strip())


async def test_much_output_is_cut_in_the_middle(folder: Path) -> None:
    result = await checked(folder, "echo first; seq 100000; echo last")

    assert len(result.output) < 5000
    assert result.output.startswith("first\n")
    assert result.output.endswith("\nlast")


async def test_a_check_sees_no_key_of_the_harness(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")

    result = await checked(folder, "env")

    assert "secret" not in result.output


async def test_a_check_without_a_workspace_begins_with_an_empty_one(tmp_path: Path) -> None:
    result = await Checks(tmp_path).run(Check(command="ls -A"), None)

    assert (result.passed, result.output) == (True, "")


async def test_a_check_that_cannot_be_prepared_says_why(folder: Path) -> None:
    result = await checked(folder, "true", files=folder / "gone")

    assert not result.passed
    assert result.output.startswith("not checked: ")


async def test_no_more_checks_run_than_there_is_room_for(folder: Path) -> None:
    checks = Checks(folder / "copies", at_once=1)
    # Each fails if it meets the mark of another.
    command = f"mkdir {folder}/mark && sleep 0.1 && rmdir {folder}/mark"

    results = await asyncio.gather(
        *(checks.run(Check(command=command), folder / "workspace") for _ in range(4))
    )

    assert all(result.passed for result in results)


def _runs(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
