"""list_directory, find_files, grep_files."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.tools import scan, scan_process, scanning, search
from harness_actors.tools.processes import list_processes
from harness_actors.tools.search import find_files, grep_files, list_directory
from tests.tools.conftest import Call


@pytest.fixture(autouse=True)
def project(workspace: Path) -> None:
    files = {
        "README.md": "# Title\nhello world\n",
        "src/app.py": "import os\n\ndef main():\n    print('hello')\n",
        "src/lib/deep.py": "def deep(): ...\n",
        "docs/guide.md": "say hello[0] (twice)\n",
        ".hidden/secret.py": "hello\n",
        "src/__pycache__/app.pyc": "hello\n",
        "node_modules/x/index.js": "hello\n",
    }
    for name, text in files.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)


async def test_matching_lines_are_shown_below_their_file(call: Call) -> None:
    expected = (
        "README.md\n  2: hello world\ndocs/guide.md\n  1: say hello[0] (twice)\n"
        "src/app.py\n  4:     print('hello')"
    )
    assert await call(grep_files, pattern="hello") == expected


async def test_only_files_are_shown_without_lines(call: Call) -> None:
    shown = await call(grep_files, pattern="hello", include_lines=False)
    assert shown == "README.md\ndocs/guide.md\nsrc/app.py"


async def test_a_glob_chooses_the_files_that_are_searched(call: Call) -> None:
    shown = await call(grep_files, pattern="hello", file_glob="*.md", include_lines=False)
    assert shown == "README.md\ndocs/guide.md"


async def test_a_folder_or_one_file_can_be_searched(call: Call) -> None:
    below = await call(grep_files, pattern="def", path="src", include_lines=False)
    assert below == "src/app.py\nsrc/lib/deep.py"
    assert (
        await call(grep_files, pattern="def", path="src/app.py") == "src/app.py\n  3: def main():"
    )


async def test_a_pattern_is_a_regular_expression(call: Call) -> None:
    assert await call(grep_files, pattern=r"^def \w+\(\):$") == "src/app.py\n  3: def main():"


async def test_a_faulty_regular_expression_is_searched_as_text(call: Call) -> None:
    shown = await call(grep_files, pattern="(twice")
    assert shown.startswith("docs/guide.md\n  1: say hello[0] (twice)\n[Not a regular expression")


async def test_no_match_is_said(call: Call) -> None:
    shown = await call(grep_files, pattern="absent", path="src", file_glob="*.py")
    assert shown == "No matches for 'absent' in 'src' (files '*.py')."


async def test_files_and_lines_shown_are_bounded(call: Call, workspace: Path) -> None:
    (workspace / "many.txt").write_text("hello\n" * 50)
    shown = await call(grep_files, pattern="hello", max_results=2)
    assert [line for line in shown.split("\n") if line[0] not in " ["] == ["README.md", "many.txt"]
    assert shown.endswith("[Cut after 2 files; narrow the search or raise max_results.]")
    lines = await call(grep_files, pattern="hello", path="many.txt")
    assert lines.count("hello") == 10


async def test_long_lines_and_binary_and_large_files_do_no_harm(
    call: Call, workspace: Path
) -> None:
    (workspace / "long.txt").write_text("x" * 5000 + "needle" + "y" * 100_000)
    (workspace / "late.txt").write_text("x" * 50_000 + "needle")
    (workspace / "a.bin").write_bytes(b"\0needle")
    (workspace / "latin.txt").write_bytes(b"caf\xe9 needle")
    (workspace / "large.txt").write_text("needle\n" * 400_000)
    shown = await call(grep_files, pattern="needle")
    assert [line for line in shown.split("\n") if not line.startswith(" ")] == [
        "latin.txt",
        "long.txt",
    ]
    assert len(shown) < 1000


async def test_an_expression_that_never_ends_is_stopped_and_keeps_what_was_found(
    call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "SEARCH_TIME_S", 1.0)
    (workspace / "a.txt").write_text("aaa\n")
    (workspace / "b.txt").write_text("a" * 100 + "!\n")
    started = time.monotonic()
    shown = await call(grep_files, pattern=r"^(a+)+$", file_glob="?.txt")
    assert time.monotonic() - started < 10
    assert shown.startswith(
        "a.txt\n  1: aaa\n[Stopped because it took 1 s; not everything was searched"
    )


async def test_an_expression_that_remembers_too_much_is_stopped(
    call: Call, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("a" * 9_999 + "!")
    shown = await call(grep_files, pattern=f"^(?:{'(a)?' * 2_000})*$", file_glob="a.txt")
    assert "[Stopped because it took more than 250 MB; not everything was searched" in shown


async def test_a_search_that_is_stopped_ends_its_process_and_its_thread(
    context: ToolContext, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("a" * 100 + "!\n")
    ended = threading.Event()

    def until_ended(function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        finally:
            ended.set()

    async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
        return await asyncio.to_thread(until_ended, function, *args)

    asked = replace(context, in_thread=in_thread)
    searching = asyncio.create_task(grep_files.run('{"pattern": "^(a+)+$"}', asked))
    async with asyncio.timeout(30):
        while not (scans := _scans()):  # noqa: ASYNC110 - another process is waited for
            await asyncio.sleep(0.01)
        searching.cancel()
        # Its own time is up much later.
        assert await asyncio.to_thread(ended.wait, scanning.SEARCH_TIME_S / 2)
    assert searching.cancelled() or searching.cancelling()
    assert not scans & _scans()


def _scans() -> set[int]:
    """Processes that search for this one."""
    return {
        process.pid
        for process in list_processes().values()
        if process.parent == os.getpid()
        and b"scan_process.py" in Path(f"/proc/{process.pid}/cmdline").read_bytes()
    }


async def test_a_search_that_nobody_waits_for_any_more_ends_itself(workspace: Path) -> None:
    (workspace / "a.txt").write_text("a" * 100 + "!\n")
    folder = os.open(workspace, os.O_RDONLY)
    question = {
        "module": "scan",
        "folder": folder,
        "file": None,
        "pattern": "^(a+)+$",
        "file_glob": "*",
        "max_results": 1,
        "seconds": 0.2,
    }
    ended = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-I", "-S", scan_process.__file__],
        input=json.dumps(question).encode(),
        capture_output=True,
        pass_fds=(folder,),
        timeout=60,
        check=False,
    )
    os.close(folder)
    assert ended.returncode == -signal.SIGALRM


@pytest.mark.parametrize("pattern", ["[" * 25_000, "a" * 10_000_000])
async def test_a_pattern_that_is_too_long_is_refused_at_once(pattern: str, call: Call) -> None:
    began = time.process_time()
    with pytest.raises(ToolError, match=r"pattern has .* may have 1,000"):
        await call(find_files, pattern=pattern)
    with pytest.raises(ToolError, match="may have 10,000"):
        await call(grep_files, pattern=pattern)
    with pytest.raises(ToolError, match=r"file_glob has .* may have 1,000"):
        await call(grep_files, pattern="x", file_glob=pattern)
    assert time.process_time() - began < 5


async def test_a_missing_place_is_an_error(call: Call) -> None:
    with pytest.raises(ToolError, match="there is no 'nowhere'"):
        await call(grep_files, pattern="x", path="nowhere")
    with pytest.raises(ToolError, match="there is no folder 'nowhere'"):
        await call(find_files, pattern="*", path="nowhere")
    with pytest.raises(ToolError, match="there is no folder 'nowhere'"):
        await call(list_directory, path="nowhere")
    with pytest.raises(ToolError, match=r"'README\.md' is a file"):
        await call(list_directory, path="README.md")


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("*.py", ".", ["src/app.py", "src/lib/deep.py"]),
        ("*.md", ".", ["README.md", "docs/guide.md"]),
        ("*.md", "docs", ["docs/guide.md"]),
        ("src/*.py", ".", ["src/app.py", "src/lib/deep.py"]),
        ("src/**/*.py", ".", ["src/app.py", "src/lib/deep.py"]),
        ("**/deep.py", ".", ["src/lib/deep.py"]),
        ("./README.md", ".", ["README.md"]),
        ("app.py", "src", ["src/app.py"]),
    ],
)
async def test_files_are_found_by_name(
    pattern: str, path: str, found: list[str], call: Call
) -> None:
    assert (await call(find_files, pattern=pattern, path=path)).split("\n") == found


async def test_found_files_are_bounded_and_none_is_said(call: Call) -> None:
    shown = await call(find_files, pattern="*", max_results=2)
    assert shown.split("\n")[:2] == ["README.md", "docs/guide.md"]
    assert shown.endswith("[Cut after 2 files; narrow the pattern or raise max_results.]")
    assert await call(find_files, pattern="*.rs") == "No files match '*.rs' in '.'."


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"depth": 1}, "README.md\ndocs/\nsrc/"),
        ({}, "README.md\ndocs/\n  guide.md\nsrc/\n  app.py\n  lib/"),
        ({"depth": 3}, "README.md\ndocs/\n  guide.md\nsrc/\n  app.py\n  lib/\n    deep.py"),
        ({"path": "src", "depth": 1}, "app.py\nlib/"),
    ],
)
async def test_a_listing_is_indented_by_level_and_leaves_out_what_is_hidden(
    arguments: dict[str, object], shown: str, call: Call
) -> None:
    assert await call(list_directory, **arguments) == shown


async def test_a_listing_is_bounded(call: Call, workspace: Path) -> None:
    (workspace / "empty").mkdir()
    assert await call(list_directory, path="empty") == "empty is empty."
    for number in range(600):
        (workspace / "empty" / f"{number}").touch()
    assert (await call(list_directory, path="empty")).count("\n") == 500


@pytest.fixture
def deep(workspace: Path) -> Iterator[Path]:
    """A file in a folder so deep that its path is longer than the system takes."""
    folder = os.open(workspace, os.O_RDONLY)
    for _ in range(2100):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(os.open("x.txt", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.close(folder)
    yield workspace
    # Python's own would go as deep in itself.
    subprocess.run(["rm", "-rf", workspace / "d"], check=True)


async def test_folders_deeper_than_a_path_may_be_are_left_out_and_told(
    call: Call, deep: Path
) -> None:
    note = "[Folders with paths above 4,096 bytes were left out.]"
    found = await call(find_files, pattern="*.txt")
    assert found == f"No files match '*.txt' in '.'.\n{note}"
    found = await call(grep_files, pattern="main", include_lines=False)
    assert found == f"src/app.py\n{note}"
    assert (await call(list_directory, depth=99)).count("d/\n") == 10


async def test_entries_are_looked_at_in_order_up_to_a_bound(
    call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "SORTED_AT_ONCE", 10)
    for number in range(95):
        (workspace / "docs" / f"{number * 37 % 95:02}.csv").touch()
    everything = [f"docs/{number:02}.csv" for number in range(95)]
    found = await call(find_files, pattern="*.csv", path="docs", max_results=99)
    assert found.split("\n") == everything
    listed = await call(list_directory, path="docs")
    assert listed.split("\n")[:95] == [path.removeprefix("docs/") for path in everything]

    monkeypatch.setattr(scan, "MAX_SEEN", 20)
    *names, note = (await call(find_files, pattern="*", path="docs")).split("\n")
    assert names == sorted(names)
    assert len(names) == 20
    assert note == "[Only 20 entries were looked at; look in a folder below.]"


async def test_a_search_ends_in_time_where_it_finds_no_file_at_all(
    call: Call, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SEARCH_TIME_S", -1.0)
    (workspace / "docs/guide.md").unlink()
    (workspace / "docs/below").mkdir()
    assert "[Stopped after" in await call(find_files, pattern="*", path="docs")


def test_what_ends_a_walk_is_passed_on(workspace: Path) -> None:
    def stop() -> None:
        raise ToolError("the call was stopped")

    folder = os.open(workspace, os.O_RDONLY)
    with pytest.raises(ToolError, match="stopped"):
        list(scan.walk_files(folder, scan.Reach(stop)))
    os.close(folder)
