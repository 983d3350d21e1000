"""Patterns, texts and trees that would hold up or outlast whoever searches them."""

import asyncio
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.ports import Tool, ToolContext
from harness_actors.tools.files import edit_file, read_file
from harness_actors.tools.search import find_files, grep_files, list_directory
from harness_actors.turn.threads import ToolThreads
from tests.attack.attacks import Attack, Outcome
from tests.attack.memory import peak_of_this_process_mb

LOOP_MS = 50.0
CALL_S = 15.0
GONE_S = 1.0
"""How long a thread may take to end once its call was stopped."""
MEMORY_MB = 300.0
BEAT_S = 0.002
TRIES = 5
"""Of one search. What the machine does meanwhile delays some of them, a fault all."""


@dataclass(frozen=True, slots=True)
class Search:
    """A hostile call of a tool.

    Attributes:
        name: What it is.
        tool: What is called.
        arguments: Of the call.
        prepare: Fills the workspace.
        stop_s: When the call is stopped, in seconds; None lets it end.
    """

    name: str
    tool: Tool
    arguments: Mapping[str, Any]
    prepare: Callable[[Path], None] = lambda folder: None
    stop_s: float | None = None


def _text(text: str) -> Callable[[Path], None]:
    def prepare(folder: Path) -> None:
        (folder / "a.txt").write_text(text)

    return prepare


def _many(folder: Path) -> None:
    for number in range(200_000):
        os.close(os.open(folder / f"{number * 7919 % 200_000}", os.O_CREAT | os.O_WRONLY))


def _many_folders(folder: Path) -> None:
    for number in range(50_000):
        (folder / f"{number * 7919 % 50_000}").mkdir()


def _deep(folder: Path) -> None:
    here = os.open(folder, os.O_RDONLY)
    for _ in range(5_000):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


LINES = "\n" * 20_000_000
ENDLESS = {"pattern": "(a+)+$b"}
SEARCHES = (
    Search("brackets", find_files, {"pattern": "[" * 25_000}),
    Search("long glob", find_files, {"pattern": "[a" * 5_000_000}),
    Search("most stars", find_files, {"pattern": "*a" * 500}, _text("x")),
    Search("brackets of files", grep_files, {"pattern": "x", "file_glob": "[" * 25_000}),
    Search("long expression", grep_files, {"pattern": "(a|b)" * 2_000_000}, _text("a")),
    Search("remembers", grep_files, {"pattern": f"^(?:{'(a)?' * 2_000})*$"}, _text("a" * 9_999)),
    Search("endless, stopped", grep_files, ENDLESS, _text("a" * 5_000), stop_s=0.5),
    Search(
        "overlaps",
        edit_file,
        {"path": "a.txt", "old_text": "a" * 100_000, "new_text": "b"},
        _text("a" * 2_000_000),
    ),
    Search(
        "other white space",
        edit_file,
        {"path": "a.txt", "old_text": " a\n" * 30_000 + "b", "new_text": "b"},
        _text("a\n" * 500_000),
    ),
    Search("deep", find_files, {"pattern": "*.txt"}, _deep),
    Search("deep, lines", grep_files, {"pattern": "x"}, _deep),
    Search("lines", read_file, {"path": "a.txt"}, _text(LINES)),
    Search("last lines", read_file, {"path": "a.txt", "start_line": 19_999_990}, _text(LINES)),
    Search(
        "nearly there",
        edit_file,
        {"path": "a.txt", "old_text": "a" * 50_000 + "b" + "a" * 49_999, "new_text": "b"},
        _text("a" * 20_000_000),
    ),
    Search("endless", grep_files, ENDLESS, _text("a" * 5_000)),
    Search(
        "lines, edited",
        edit_file,
        {"path": "a.txt", "old_text": "x\ny", "new_text": ""},
        _text(LINES),
    ),
    Search(
        "wide letters",
        edit_file,
        {"path": "a.txt", "old_text": "😀b", "new_text": ""},
        _text("é" * 9_000_000 + "😀"),
    ),
    Search("many", find_files, {"pattern": "*x"}, _many),
    Search("many, stopped", find_files, {"pattern": "*x"}, _many, stop_s=0.1),
    Search("many, listed", list_directory, {}, _many),
    Search("many, lines", grep_files, {"pattern": "x"}, _many),
    Search("many folders", find_files, {"pattern": "*x"}, _many_folders),
)


@dataclass(frozen=True, slots=True)
class _Seen:
    took_s: float
    loop_ms: float
    gone_s: float


async def _try(search: Search, folder: Path) -> _Seen:
    threads = ToolThreads(2)
    context = ToolContext(
        run_id="run", call_id="call", workspace=folder, in_thread=threads.run, environment={}
    )
    # Its signature is read in the loop, once; that is no search.
    await _answered(search.tool.run('{"no": "such"}', context))
    # Before the beat: to write 10 MB of arguments holds the loop as long as anything here.
    text = json.dumps(search.arguments)
    worst = [0.0]
    beating = asyncio.create_task(_beat(worst))
    await asyncio.sleep(10 * BEAT_S)
    worst[0] = 0.0
    began = time.perf_counter()
    call = asyncio.create_task(_answered(search.tool.run(text, context)))
    await asyncio.wait((call,), timeout=search.stop_s or CALL_S)
    call.cancel()
    took_s = time.perf_counter() - began
    while threads.held and time.perf_counter() - began < took_s + 10 * GONE_S:  # noqa: ASYNC110
        await asyncio.sleep(BEAT_S)
    beating.cancel()
    return _Seen(took_s, 1000 * worst[0], time.perf_counter() - began - took_s)


async def _answered(call: Awaitable[str]) -> None:
    try:
        await call
    except ToolError:
        return


async def _beat(worst: list[float]) -> None:
    """Note how late the loop comes to it, while this process and no other one works."""
    before, worked = time.perf_counter(), time.process_time()
    while True:
        await asyncio.sleep(BEAT_S)
        late_s = time.perf_counter() - before - BEAT_S
        worst[0] = max(worst[0], min(late_s, time.process_time() - worked))
        before, worked = time.perf_counter(), time.process_time()


def _try_often(search: Search, folder: Path) -> _Seen:
    """The best of some tries, in each respect."""
    seen: list[_Seen] = []
    while len(seen) < TRIES and (not seen or _faults(search, _best(seen))):
        seen.append(asyncio.run(_try(search, folder)))
    return _best(seen)


@contextmanager
def _workspaces() -> Iterator[Callable[[Search], Path]]:
    """Makes the workspace of a search; those that begin alike share it."""
    with tempfile.TemporaryDirectory(prefix="ha", ignore_cleanup_errors=True) as top:
        made: dict[Callable[[Path], None], Path] = {}

        def workspace(search: Search) -> Path:
            if search.prepare not in made:
                made[search.prepare] = Path(top, str(len(made)))
                made[search.prepare].mkdir()
                search.prepare(made[search.prepare])
            return made[search.prepare]

        yield workspace
        # Python's own would go as deep in itself.
        subprocess.run(["rm", "-rf", top], check=True)


def _best(seen: list[_Seen]) -> _Seen:
    return _Seen(
        min(one.took_s for one in seen),
        min(one.loop_ms for one in seen),
        min(one.gone_s for one in seen),
    )


def _faults(search: Search, seen: _Seen) -> list[str]:
    faults = []
    if seen.took_s >= CALL_S:
        faults.append(f"{search.name}: has not ended within {CALL_S:g} s")
    if seen.loop_ms > LOOP_MS:
        faults.append(f"{search.name}: held the event loop for {seen.loop_ms:.0f} ms")
    if seen.gone_s > GONE_S:
        faults.append(f"{search.name}: its thread went on for {seen.gone_s:.1f} s")
    return faults


def try_searches(tries: int) -> Outcome:
    """Try the first so many searches."""
    searches = SEARCHES[:tries]
    before_mb = peak_of_this_process_mb()
    with _workspaces() as workspace:
        seen = {search.name: _try_often(search, workspace(search)) for search in searches}
    through = [fault for search in searches for fault in _faults(search, seen[search.name])]
    # What the searches are made of is held here, too.
    grown_mb = peak_of_this_process_mb() - before_mb
    if grown_mb > MEMORY_MB:
        through.append(f"this process took {grown_mb:.0f} MB more")
    worst = max(seen.values(), key=lambda one: one.loop_ms)
    return Outcome(
        len(searches),
        tuple(through),
        (
            ("slowest, s", round(max(one.took_s for one in seen.values()), 1)),
            ("loop, ms", round(worst.loop_ms)),
            ("memory, MB", round(grown_mb)),
        ),
    )


ATTACKS = (
    Attack(
        "hostile_searches",
        "patterns, texts and trees that are to hold up the event loop, memory or a thread",
        try_searches,
        len(SEARCHES),
        10,
    ),
)
