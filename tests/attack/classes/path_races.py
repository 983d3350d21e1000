"""A process swaps a folder and a file for links that lead out, while tools are at work there."""

import asyncio
import ctypes
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from harness_actors.errors import BadInputError, ToolError
from harness_actors.ports import ChildCopy, Tool, ToolContext
from harness_actors.ports.child_copies import copy_places
from harness_actors.records import WorkspaceSpec
from harness_actors.subagents.bringing_in import agent_apply
from harness_actors.tools import tool
from harness_actors.tools.child_copy import make_copy
from harness_actors.tools.files import create_directory, edit_file, read_file, write_file
from harness_actors.tools.search import find_files, grep_files, list_directory
from tests.attack.attacks import Attack, NotTriedError, Outcome

CANARY = "canary"
"""Part of all names and texts outside, and of none inside."""
RATES = {"without a pause": 0.0, "every 20 µs": 20e-6, "every ms": 1e-3}
"""How long the swapping process waits between two swaps, in seconds."""

SWAPPER = """
import ctypes, os, sys, time
pause = float(sys.argv[1])
swap = ctypes.CDLL(None, use_errno=True).renameat2
pairs = [(f"{name}".encode(), f"{name}.other".encode()) for name in ("top/sub", "leaf.txt")]
print("ready", flush=True)
parent = os.getppid()
while os.getppid() == parent:
    for one, other in pairs:
        if swap(-100, one, -100, other, 2):
            sys.exit(f"renameat2: {os.strerror(ctypes.get_errno())}")
        if pause:
            time.sleep(pause)
"""


@dataclass(frozen=True, slots=True)
class Try:
    """A call that aims at what is swapped; `arguments` are made anew for each try.

    Attributes:
        before: Called with the folder beside the workspace in which copies of that are, and the
            number of the try.
    """

    tool: Tool
    arguments: Callable[[int], dict[str, Any]]
    before: Callable[[Path, int], None] | None = None


@tool(effect="read_only")
def copy_all(context: ToolContext, number: int) -> str:
    """Copy the workspace, as for an agent that works in a copy, and say what is in it."""
    assert context.workspace is not None
    place = context.workspace.parent / "copies" / "parent" / f"agent-{number}"
    work, base = copy_places(place)
    spec = WorkspaceSpec(path=str(work), source=str(context.workspace), base=str(base))
    make_copy(spec)
    try:
        files = [one for one in place.rglob("*") if one.is_file() and not one.is_symlink()]
        return "\n".join(f"{one.relative_to(place)}: {one.read_text()}" for one in files)
    finally:
        shutil.rmtree(place)


class OneCopy:
    """Answers `ChildCopies`: there is one."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def find(self, handle: str) -> ChildCopy:
        work, base = copy_places(self._place)
        return ChildCopy(handle=handle, work=work, base=base, record=self._place / "applied.jsonl")


def change_copy(place: Path, number: int) -> None:
    """Have a copy in which what is swapped was changed or removed, and another file was made."""
    if place.exists():
        # What was brought in before, too: all is taken, merged or removed anew.
        shutil.rmtree(place)
    work, base = (folder / "top" / "sub" for folder in copy_places(place))
    for folder in (work, base):
        folder.mkdir(parents=True)
    text = _text_inside(place.with_name("workspace"))
    if text is not None:
        (base / "a.txt").write_text(text)
    if number % 2:
        (work / "a.txt").write_text(f"a {number}")
    (work / f"new{number}").mkdir()
    (work / f"new{number}" / "b.txt").write_text("made")


def _text_inside(workspace: Path) -> str | None:
    """What the file in the folder has that is swapped, wherever that is just now; None for none."""
    for name in ("sub", "sub.other") * 20:
        with suppress(OSError):
            folder = os.open(workspace / "top" / name, os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                with open(os.open("a.txt", os.O_RDONLY, dir_fd=folder)) as file:
                    return file.read()
            except FileNotFoundError:
                return None
            finally:
                os.close(folder)
    return None


TRIES = {
    "read_file": Try(read_file, lambda _: {"path": "leaf.txt"}),
    "read_file_in_folder": Try(read_file, lambda _: {"path": "top/sub/a.txt"}),
    "edit_file": Try(
        edit_file,
        lambda n: {
            "path": "top/sub/a.txt",
            "old_text": "a" if n % 2 else "b",
            "new_text": "b" if n % 2 else "a",
        },
    ),
    "write_file": Try(write_file, lambda n: {"path": "top/sub/a.txt", "content": f"a {n}"}),
    "write_file_in_new_folder": Try(
        write_file, lambda n: {"path": f"top/sub/new{n}/deep/a.txt", "content": "made"}
    ),
    "create_directory": Try(create_directory, lambda n: {"path": f"top/sub/made{n}/deep"}),
    "list_directory": Try(list_directory, lambda _: {"depth": 5}),
    "list_directory_in_folder": Try(list_directory, lambda _: {"path": "top/sub"}),
    "find_files": Try(find_files, lambda _: {"pattern": "*"}),
    "find_files_in_folder": Try(find_files, lambda _: {"pattern": "*", "path": "top/sub"}),
    "grep_files": Try(grep_files, lambda _: {"pattern": "."}),
    "grep_files_in_folder": Try(grep_files, lambda _: {"pattern": ".", "path": "top/sub"}),
    "agent_apply": Try(agent_apply, lambda _: {"agent": "fix-1"}, before=change_copy),
    "copy_for_an_agent": Try(copy_all, lambda n: {"number": n}),
}


class Ground:
    """A workspace, and what lies outside of it."""

    def __init__(self, place: Path) -> None:
        self.workspace, self.outside = place / "workspace", place / "elsewhere"
        for folder in (self.outside / f"{CANARY}-folder", self.workspace / "top" / "sub"):
            folder.mkdir(parents=True)
            (folder / "a.txt").write_text("a")
        (self.outside / "a.txt").write_text(CANARY)
        (self.outside / f"{CANARY}.txt").write_text(CANARY)
        (self.workspace / "leaf.txt").write_text("leaf")
        # A listing may show where a link leads.
        (self.workspace / "leaf.txt.other").symlink_to(self.outside / "a.txt")
        (self.workspace / "top" / "sub.other").symlink_to(self.outside)
        self._before = self._seen()

    def changes(self) -> set[tuple[str, str]]:
        """What is outside now and was not, or is no more; by name and text."""
        return self._seen() ^ self._before

    def _seen(self) -> set[tuple[str, str]]:
        found = self.outside.rglob("*")
        return {(str(one), one.read_text() if one.is_file() else "") for one in found}


@contextmanager
def swapping(workspace: Path, pause_s: float) -> Iterator[None]:
    """Somebody who swaps folder and link, file and link, all the time."""
    if not hasattr(ctypes.CDLL(None), "renameat2"):
        raise NotTriedError("this C library has no renameat2, so nothing can be swapped at once")
    program = [sys.executable, "-I", "-S", "-c", SWAPPER, str(pause_s)]
    with subprocess.Popen(program, cwd=workspace, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        try:
            yield
            assert process.poll() is None, "the swapping process ended by itself"
        finally:
            process.kill()


def race(name: str, pause_s: float, tries: int) -> tuple[list[str], int]:
    """What got through in so many tries of one tool, and how often it met the folder inside."""
    with tempfile.TemporaryDirectory() as place:
        ground = Ground(Path(place).resolve())
        with swapping(ground.workspace, pause_s):
            copy = Path(place).resolve() / "copy"
            said = asyncio.run(_call(TRIES[name], ground.workspace, copy, tries))
        shown = [text for text, _ in said if CANARY in text]
        through = [f"{name}: showed {text[:100]!r}" for text in shown]
        through += [f"{name}: {path} is changed" for path, _ in sorted(ground.changes())]
    return through, sum(inside for _, inside in said)


async def _call(one: Try, workspace: Path, copy: Path, tries: int) -> list[tuple[str, bool]]:
    """What the tool said each time, and whether it was no error."""
    context = ToolContext(
        run_id="run",
        call_id="call",
        workspace=workspace,
        in_thread=_at_once,
        copies=OneCopy(copy),
    )
    said = []
    for number in range(tries):
        if one.before is not None:
            one.before(copy, number)
        try:
            said.append((await one.tool.run(json.dumps(one.arguments(number)), context), True))
        except (ToolError, BadInputError) as error:
            said.append((str(error), False))
    return said


async def _at_once(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def run(name: str, tries: int) -> Outcome:
    """Race a tool at each rate so many times."""
    through: list[str] = []
    inside = 0
    for pause_s in RATES.values():
        found, met = race(name, pause_s, tries)
        through += found
        inside += met
    total = tries * len(RATES)
    figure = ("answered from inside, of 1", round(inside / total, 3))
    return Outcome(total, tuple(through), (figure,))


# One each, so that parts can be tried: a search starts a process, and takes as long as all others.
ATTACKS = tuple(
    Attack(
        name=f"path_races:{name}",
        what=f"a process swaps a folder and a file for links that lead out, at {len(RATES)} rates, "
        "while this tool is called",
        run=partial(run, name),
        tries=20_000,
        quick=8,
    )
    for name in TRIES
)
