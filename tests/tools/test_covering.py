"""A command sees its own workspace and no other, where the machine lets that be done."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness_actors.errors import ToolError
from harness_actors.ports import Cover, ToolContext
from harness_actors.tools.command import run_command
from harness_actors.tools.files import read_file, write_file
from harness_actors.tools.processes import read_process
from harness_actors.tools.search import list_directory
from harness_actors.tools.spawn import DirectProcesses
from harness_actors.tools.supervision.client import SupervisedProcesses
from harness_actors.tools.supervision.trial import hides_workspaces
from tests.tools.conftest import Call
from tests.tools.test_supervision import ALL, CHILD, ESCAPED, gone_within, numbers, pids_in

REPOSITORY = Path(__file__).parents[2]
SECRET = "the words of a neighbour"


def can_be_hidden(*, required: bool) -> bool:
    """What the harness itself says of this machine."""
    try:
        return asyncio.run(hides_workspaces(required=required))
    except OSError:
        return False


@pytest.fixture(scope="module")
def hidden() -> bool:
    return can_be_hidden(required=False)


@pytest.fixture
def needs_hiding(hidden: bool) -> None:
    if not hidden:
        pytest.skip("what is covered is not hidden on this machine")


@pytest.fixture
def run_directory(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "workspaces" / "other").mkdir(parents=True)
    (folder / "workspaces" / "other" / "notes.txt").write_text(SECRET)
    (folder / "runs.db").write_text(SECRET)
    return folder


@pytest.fixture
def workspace(run_directory: Path) -> Path:
    folder = run_directory / "workspaces" / "own"
    folder.mkdir()
    return folder


@pytest.fixture
def context(
    context: ToolContext, run_directory: Path, workspace: Path, processes: SupervisedProcesses
) -> ToolContext:
    cover = Cover(folder=run_directory, spared=workspace)
    return replace(context, processes=processes, cover=cover)


@pytest.fixture(autouse=True)
def nothing_is_left_mounted() -> Iterator[None]:
    before = Path("/proc/self/mountinfo").read_text()
    yield
    assert Path("/proc/self/mountinfo").read_text() == before


async def test_a_command_sees_no_more_than_is_said_of_this_machine(
    call: Call, hidden: bool
) -> None:
    said = await call(run_command, command="ls ../..; ls ..; cat ../other/notes.txt")

    assert ("runs.db" in said, "other\n" in said, SECRET in said) == 3 * (not hidden,)


async def test_a_command_works_where_it_is_as_if_nothing_were_covered(
    call: Call, workspace: Path
) -> None:
    (workspace / "before.txt").write_text("before")

    said = await call(
        run_command,
        command="pwd; pwd -P; echo $HOME; cat before.txt; mkdir made; mv before.txt made/after.txt",
    )

    assert said == "exit code: 0\n" + f"{workspace}\n" * 3 + "before"
    assert (workspace / "made" / "after.txt").read_text() == "before"


async def test_a_command_and_the_file_tools_work_in_the_same_folder(call: Call) -> None:
    await call(run_command, command="(while [ ! -e go ]; do sleep 0.01; done; mv go gone) &")
    await call(write_file, path="go", content="from the tool")

    said = await call(run_command, command="while [ ! -e gone ]; do sleep 0.01; done; cat gone")

    assert said == "exit code: 0\nfrom the tool"
    assert await call(read_file, path="gone") == await call(read_file, path="../own/gone")
    assert "gone" in await call(list_directory)


@pytest.mark.usefixtures("needs_hiding")
async def test_a_command_is_the_same_user_in_the_same_namespaces_but_one(call: Call) -> None:
    names = ("user", "pid", "net", "ipc", "uts", "cgroup", "mnt")
    links = " ".join(f"/proc/self/ns/{name}" for name in names)

    said = (await call(run_command, command=f"id -u; readlink {links}")).splitlines()[1:]

    ours = [str(os.geteuid()), *(os.readlink(f"/proc/self/ns/{name}") for name in names)]
    assert said[:-1] == ours[:-1]
    assert said[-1] != ours[-1]


@pytest.mark.usefixtures("needs_hiding")
async def test_the_way_to_a_workspace_cannot_be_changed_from_inside(
    call: Call, workspace: Path, run_directory: Path
) -> None:
    ways = ("mv own moved", "rmdir own", "touch new", "mkdir other", "mv ../workspaces ../w")

    said = await call(run_command, command=f"cd ..; {'; '.join(ways)}; true")

    assert said.count("\n") == 5
    assert sorted(os.listdir(workspace.parent)) == ["other", "own"]
    assert sorted(os.listdir(run_directory)) == ["runs.db", "workspaces"]


@pytest.mark.usefixtures("needs_hiding")
async def test_a_workspace_can_be_moved_and_removed_while_a_command_has_it(
    call: Call, workspace: Path, run_directory: Path, processes: SupervisedProcesses
) -> None:
    await call(run_command, command=f"{CHILD} true")
    (pid,) = await pids_in(workspace / "pids", 1)

    os.rename(run_directory, run_directory.with_name("moved"))
    await asyncio.to_thread(shutil.rmtree, run_directory.with_name("moved"))

    assert read_process(pid) is not None
    processes.end_run("run-1")
    assert gone_within([pid], 5)


async def test_what_a_covered_command_starts_ends_with_it_and_its_namespace(
    call: Call, workspace: Path, hidden: bool
) -> None:
    running = asyncio.ensure_future(call(run_command, command=ALL, timeout_s=300))
    pids = await pids_in(workspace / "pids", 5)
    views = {os.readlink(f"/proc/{pid}/ns/mnt") for pid in pids}
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert gone_within(pids, 1)
    assert len(views) == 1
    assert (views == {os.readlink("/proc/self/ns/mnt")}) is not hidden


async def test_a_folder_that_does_not_hold_the_workspace_is_not_covered(
    context: ToolContext, tmp_path: Path, workspace: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    cover = Cover(folder=elsewhere, spared=workspace)
    arguments = '{"command": "cat ../other/notes.txt"}'

    assert SECRET in await run_command.run(arguments, replace(context, cover=cover))
    required = replace(context, cover=replace(cover, required=True))
    with pytest.raises(ToolError, match="other workspaces cannot be hidden"):
        await run_command.run(arguments, required)


async def test_where_nobody_can_cover_nothing_starts_that_must_be_covered(
    context: ToolContext, workspace: Path
) -> None:
    assert context.cover is not None
    direct = replace(context, processes=DirectProcesses())

    arguments = '{"command": "cat ../other/notes.txt"}'
    assert SECRET in await run_command.run(arguments, direct)
    required = replace(direct, cover=replace(context.cover, required=True))
    with pytest.raises(ToolError, match="nobody is there who could cover"):
        await run_command.run(arguments, required)


# Without the capability


def without_capability(run_directory: Path, workspace: Path, *arguments: str) -> str:
    """What a command prints that a process has started without CAP_SYS_ADMIN."""
    return subprocess.run(
        [
            *(sys.executable, "-m", "tests.tools.without_capability"),
            *(str(run_directory), str(workspace), *arguments),
        ],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=60,
    ).stdout


def test_without_the_capability_a_command_runs_and_sees_all(
    run_directory: Path, workspace: Path
) -> None:
    command = "readlink /proc/self/ns/user; cat ../other/notes.txt"

    said = without_capability(run_directory, workspace, command)

    assert said.splitlines() == [os.readlink("/proc/self/ns/user"), SECRET]


def test_without_it_what_must_be_covered_is_in_a_user_namespace_or_does_not_start(
    run_directory: Path, workspace: Path
) -> None:
    command = "ls .. ../..; id -u; readlink /proc/self/ns/user"

    said = without_capability(run_directory, workspace, "--required", command).splitlines()

    if can_be_hidden(required=True):
        assert said[:-1] == ["..:", "own", "", "../..:", "workspaces", str(os.geteuid())]
        assert said[-1] != os.readlink("/proc/self/ns/user")
    else:
        assert said[0].startswith("refused: other workspaces cannot be hidden")


def test_what_is_started_in_a_user_namespace_ends_as_ever(
    run_directory: Path, workspace: Path
) -> None:
    if not can_be_hidden(required=True):
        pytest.skip("what must be covered does not start on this machine")
    command = f"{ESCAPED} while [ ! -s pids ]; do sleep 0.01; done"

    without_capability(run_directory, workspace, "--required", command)

    (pid,) = numbers(workspace / "pids")
    assert gone_within([pid], 5)
