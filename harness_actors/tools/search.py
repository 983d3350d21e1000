"""Tools that look around in a workspace: list_directory, find_files, grep_files."""

import os
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.tools.function import tool
from harness_actors.tools.paths import open_folder, open_root
from harness_actors.tools.scan import (
    Descent,
    Reach,
    compile_glob,
    in_order,
    is_skipped,
    walk_files,
)
from harness_actors.tools.scanning import SEARCH_TIME_S, scan
from harness_actors.tools.stopping import check_stopped
from harness_actors.tools.way import Root, find_inside

MAX_ENTRIES = 500
"""Entries that one listing shows."""
MAX_DEPTH = 10
MAX_RESULTS = 1000
MAX_GLOB_CHARS = 1_000
MAX_PATTERN_CHARS = 10_000

_SCAN = Path(__file__).with_name("scan_process.py")


# Others than the run may change files: each of these looks anew.
@tool(effect="read_only", volatile=True, polled=False, needs=["filesystem"])
def list_directory(context: ToolContext, path: str = ".", depth: int = 2) -> str:
    """List the files and folders in a folder of the workspace, indented by level.

    Hidden entries, __pycache__ and node_modules are left out.

    Args:
        path: The folder, relative to the top folder of the workspace.
        depth: Levels of folders to show; 1 shows the folder alone.
    """
    levels = max(1, min(depth, MAX_DEPTH))
    with (
        open_root(context) as root,
        open_folder(root, path) as folder,
        closing(Descent(folder)) as descent,
    ):
        lines = list(islice(_tree(descent, levels), MAX_ENTRIES + 1))
    if not lines:
        return f"{path} is empty."
    if len(lines) > MAX_ENTRIES:
        lines[-1] = f"[Cut after {MAX_ENTRIES} entries; list a folder below, or less deep.]"
    return "\n".join(lines)


@tool(effect="read_only", volatile=True, polled=False, needs=["filesystem"])
def find_files(pattern: str, context: ToolContext, path: str = ".", max_results: int = 50) -> str:
    """Find files by name.

    Args:
        pattern: Glob for the name or the path, such as "*.md" or "src/**/test_*.py".
        path: The folder to look in, relative to the top folder of the workspace.
        max_results: How many paths to show at most.
    """
    _check_length("pattern", pattern, MAX_GLOB_CHARS)
    is_meant = compile_glob(pattern)
    most = max(1, min(max_results, MAX_RESULTS))
    until = time.monotonic() + SEARCH_TIME_S
    found: list[str] = []
    reach = Reach(lambda: _check_time(until))
    with open_root(context) as root, open_folder(root, path) as folder:
        try:
            for name, _ in walk_files(folder, reach):
                _check_time(until)
                if not is_meant(name):
                    continue
                if len(found) == most:
                    cut = f"[Cut after {most} files; narrow the pattern or raise max_results.]"
                    found.append(cut)
                    break
                found.append(_joined(path, name))
        except _TimeUpError:
            found.append(f"[Stopped after {SEARCH_TIME_S:g} s; look in a folder below.]")
    if not found:
        found.append(f"No files match {pattern!r} in {path!r}.")
    return "\n".join([*found, *reach.notes()])


@tool(effect="read_only", volatile=True, polled=False, needs=["filesystem"])
def grep_files(
    pattern: str,
    context: ToolContext,
    path: str = ".",
    file_glob: str = "*",
    include_lines: bool = True,
    max_results: int = 20,
) -> str:
    """Search the lines of text files with a regular expression.

    Args:
        pattern: Python regular expression; one that is faulty is searched as plain text.
        path: A folder or file, relative to the top folder of the workspace.
        file_glob: Only files whose name or path matches this glob, such as "*.py".
        include_lines: Show the lines found, up to 10 of a file, and not only the files.
        max_results: How many files to show at most.
    """
    _check_length("pattern", pattern, MAX_PATTERN_CHARS)
    _check_length("file_glob", file_glob, MAX_GLOB_CHARS)
    most = max(1, min(max_results, MAX_RESULTS))
    question = {
        "module": "scan",
        "pattern": pattern,
        "file_glob": file_glob,
        "max_results": most,
    }
    with open_root(context) as root, _searched(root, path) as (folder, file):
        answers = scan(_SCAN, question | {"folder": folder, "file": file}, folder)
    base = path if file is None else os.path.dirname(path)
    files = [answer for answer in answers if "path" in answer]
    blocks = [_block(base, answer, include_lines) for answer in files[:most]]
    if not blocks:
        blocks.append(f"No matches for {pattern!r} in {path!r} (files {file_glob!r}).")
    return "\n".join([*blocks, *_notes(answers, most, len(files))])


@contextmanager
def _searched(root: Root, path: str) -> Iterator[tuple[int, str | None]]:
    """The folder to search, open, and the one file there that is meant; None for all."""
    with find_inside(root, path) as place:
        found = place.stat()
        if found is None:
            raise FileNotFoundError
        if stat.S_ISDIR(found.st_mode):
            with place.enter() as folder:
                yield folder, None
        else:
            yield place.folder, place.name


def _tree(descent: Descent, depth: int) -> Iterator[str]:
    level, folder = len(descent.names), descent.folder
    indent = "  " * level
    try:
        with os.scandir(folder) as found:
            # One listing shows far fewer than that.
            entries = in_order(Reach(check_stopped).within(found))
    except PermissionError:
        yield f"{indent}[not readable]"
        return
    for entry in entries:
        if is_skipped(entry.name):
            continue
        if entry.is_symlink():
            yield f"{indent}{entry.name}{_target(entry.name, folder)}"
        elif not entry.is_dir(follow_symlinks=False):
            yield f"{indent}{entry.name}"
        else:
            yield f"{indent}{entry.name}/"
            if level + 1 < depth:
                yield from _below(entry.name, descent, depth)


def _below(name: str, descent: Descent, depth: int) -> Iterator[str]:
    try:
        descent.enter(name)
    except PermissionError:
        yield f"{'  ' * (len(descent.names) + 1)}[not readable]"
    except OSError:
        # It was removed or replaced meanwhile.
        return
    else:
        yield from _tree(descent, depth)
        descent.leave()


def _target(link: str, folder: int) -> str:
    try:
        return f" -> {os.readlink(link, dir_fd=folder)}"
    except OSError:
        return ""


class _TimeUpError(Exception):
    """A search has taken its time. No `OSError`, as a folder that cannot be read is."""


def _check_time(until: float) -> None:
    check_stopped()
    if time.monotonic() > until:
        raise _TimeUpError


def _check_length(name: str, pattern: str, most: int) -> None:
    if len(pattern) > most:
        raise ToolError(
            f"{name} has {len(pattern):,} characters, and may have {most:,}; use a shorter one"
        )


def _block(base: str, answer: dict[str, Any], include_lines: bool) -> str:
    path = _joined(base, answer["path"])
    if not include_lines:
        return path
    return "\n".join([path, *(f"  {number}: {line}" for number, line in answer["lines"])])


def _notes(answers: list[dict[str, Any]], most: int, found: int) -> list[str]:
    notes = []
    fault = answers[0].get("fault") if answers else None
    if fault:
        notes.append(f"[Not a regular expression ({fault}); searched for the text as it is.]")
    if found > most:
        notes.append(f"[Cut after {most} files; narrow the search or raise max_results.]")
    end = answers[-1] if answers else {}
    if "done" not in end:
        why = end.get("broken", "its process ended")
        notes.append(
            f"[Stopped because {why}; not everything was searched; "
            "simplify the pattern, or narrow path or file_glob.]"
        )
    return [*notes, *end.get("notes", ())]


def _joined(base: str, name: str) -> str:
    return os.path.normpath(os.path.join(base, name))
