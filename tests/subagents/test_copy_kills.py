"""Processes that are killed while a copy is made, or while its changes are brought in."""

import subprocess
import sys
from pathlib import Path

import pytest

from harness_actors import AgentHarness, HarnessResult
from harness_actors.stores import JournalReader
from harness_actors.tools import coding_tools
from tests.pages import ROOT
from tests.subagents.copies import applies, fix, fixer, writes
from tests.subagents.team import DONE, Team, in_order, told
from tests.subagents.test_background import replays_as_it_was
from tests.subagents.trees import files_in, make

WORK = dict.fromkeys("abcde", "2")
PROGRAM = """
import asyncio, os, signal, sys
from pathlib import Path

from harness_actors.tools import child_copy, tree_files, workspace
from tests.subagents.test_copy_kills import harness

def killed_after(owner, name, calls):
    real, left = getattr(owner, name), [calls]
    def called(*given, **named):
        done = real(*given, **named)
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        return done
    setattr(owner, name, called)

{kill}

async def main():
    async with harness(Path(sys.argv[1])) as one:
        await one.run("Go.")

asyncio.run(main())
"""
KILLS = {
    "in the middle of a copy": "killed_after(child_copy, '_copy', 1)",
    "when both are there, and not in their place": "killed_after(child_copy, '_copy', 2)",
    "when the copy is there, and its run has not begun": (
        "killed_after(child_copy, 'make_copy', 1)"
    ),
    "with one file brought in": "killed_after(tree_files.Tree, 'put', 1)",
    "with some files brought in": "killed_after(tree_files.Tree, 'put', 2)",
}


def harness(folder: Path) -> AgentHarness:
    steps = in_order(fix(WORK), applies(), DONE)
    team = Team(steps, {"You repair": writes}, [fixer()], {"tools": coding_tools()})
    return team.harness(folder / "runs.db", workspace=folder / "workspace")


def how_it_ended(folder: Path, kill: str) -> int:
    """Begin in a process that is killed there; its exit code."""
    command = [sys.executable, "-c", PROGRAM.format(kill=kill), str(folder)]
    return subprocess.run(command, cwd=ROOT, check=False, timeout=60).returncode


async def taken_up(folder: Path) -> HarnessResult:
    (run_id,) = [one.run_id for one in JournalReader(folder / "runs.db").headings() if not one.root]
    async with harness(folder) as one:
        return await one.resume(run_id)


@pytest.mark.parametrize("kill", KILLS.values(), ids=KILLS.keys())
async def test_a_killed_process_costs_nothing(tmp_path: Path, kill: str) -> None:
    make(tmp_path / "workspace", {"a": "1", "own": "1"})
    assert how_it_ended(tmp_path, kill) == -9
    result = await taken_up(tmp_path)
    assert (result.status, result.children) == ("done", 1)
    journal = JournalReader(tmp_path / "runs.db")
    said = told(journal, result.run_id)
    assert "changed 5 files there: a, b, c, d, e." in said[0]
    assert all(name in said[1] for name in WORK)
    assert "conflict" not in said[1]
    assert files_in(tmp_path / "workspace") == {**WORK, "own": "1"}
    (place,) = (tmp_path / "runs.db.copies").glob("*/*")
    assert files_in(place / "base") == {"a": "1", "own": "1"}
    await replays_as_it_was(journal, result.run_id, f"{result.run_id}.1")
