"""Tools that look around in a workspace: list_directory, find_files, grep_files."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from harness_actors.errors import ToolError
from harness_actors.ports import ToolContext
from harness_actors.tools.function import tool
from harness_actors.tools.paths import errors_of, resolve_inside, workspace_of
from harness_actors.tools.scan import is_skipped, name_matches, walk_files

MAX_ENTRIES = 500
"""Entries that one listing shows."""
MAX_DEPTH = 10
MAX_RESULTS = 1000
SEARCH_TIME_S = 10.0
"""How long one search may take, in seconds."""

_SCAN = Path(__file__).with_name("scan.py")


@tool(effect="read_only")
def list_directory(context: ToolContext, path: str = ".", depth: int = 2) -> str:
    """List the files and folders in a folder of the workspace, indented by level.

    Hidden entries, __pycache__ and node_modules are left out.

    Args:
        path: The folder, relative to the top folder of the workspace.
        depth: Levels of folders to show; 1 shows the folder alone.
    """
    folder = _folder(context, path)
    with errors_of(path):
        lines = list(islice(_tree(folder, 0, max(1, min(depth, MAX_DEPTH))), MAX_ENTRIES + 1))
    if not lines:
        return f"{path} is empty."
    if len(lines) > MAX_ENTRIES:
        lines[-1] = f"[Cut after {MAX_ENTRIES} entries; list a folder below, or less deep.]"
    return "\n".join(lines)


@tool(effect="read_only")
def find_files(pattern: str, context: ToolContext, path: str = ".", max_results: int = 50) -> str:
    """Find files by name.

    Args:
        pattern: Glob for the name or the path, such as "*.md" or "src/**/test_*.py".
        path: The folder to look in, relative to the top folder of the workspace.
        max_results: How many paths to show at most.
    """
    folder = _folder(context, path)
    most = max(1, min(max_results, MAX_RESULTS))
    until = time.monotonic() + SEARCH_TIME_S
    found: list[str] = []
    for name in walk_files(str(folder)):
        if time.monotonic() > until:
            found.append(f"[Stopped after {SEARCH_TIME_S:g} s; look in a folder below.]")
            break
        if not name_matches(name, pattern):
            continue
        if len(found) == most:
            found.append(f"[Cut after {most} files; narrow the pattern or raise max_results.]")
            break
        found.append(_joined(path, name))
    return "\n".join(found) or f"No files match {pattern!r} in {path!r}."


@tool(effect="read_only")
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
    place = resolve_inside(workspace_of(context), path)
    if not place.exists():
        raise ToolError(f"there is no {path!r} in the workspace")
    most = max(1, min(max_results, MAX_RESULTS))
    question = {
        "top": str(place if place.is_dir() else place.parent),
        "files": None if place.is_dir() else [place.name],
        "pattern": pattern,
        "file_glob": file_glob,
        "max_results": most,
    }
    base = path if place.is_dir() else os.path.dirname(path)
    answers = _scan(question)
    files = [answer for answer in answers if "path" in answer]
    blocks = [_block(base, answer, include_lines) for answer in files[:most]]
    if not blocks:
        blocks.append(f"No matches for {pattern!r} in {path!r} (files {file_glob!r}).")
    return "\n".join([*blocks, *_notes(answers, most, len(files))])


def _folder(context: ToolContext, path: str) -> Path:
    folder = resolve_inside(workspace_of(context), path)
    if not folder.exists():
        raise ToolError(f"there is no folder {path!r} in the workspace")
    if not folder.is_dir():
        raise ToolError(f"{path!r} is a file, not a folder")
    return folder


def _tree(folder: Path, level: int, depth: int) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except PermissionError:
        yield f"{'  ' * level}[not readable]"
        return
    for entry in entries:
        if is_skipped(entry.name):
            continue
        indented = "  " * level + entry.name
        if entry.is_symlink():
            yield f"{indented} -> {os.readlink(entry.path)}"
        elif entry.is_dir():
            yield f"{indented}/"
            if level + 1 < depth:
                yield from _tree(Path(entry.path), level + 1, depth)
        else:
            yield indented


def _scan(question: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers of the scanning process, as many as it found in time."""
    # -I -S: nothing of ours or the user's is imported, and it starts in 15 ms.
    program = [sys.executable, "-I", "-S", "-X", "utf8", str(_SCAN)]
    try:
        output = subprocess.run(
            program,
            input=json.dumps(question).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            timeout=SEARCH_TIME_S,
            check=False,
        ).stdout
    except subprocess.TimeoutExpired as late:
        output = late.output or b""
    # What follows the last line end was cut off in the middle.
    return [json.loads(line) for line in output.split(b"\n")[:-1]]


def _block(base: str, answer: dict[str, Any], include_lines: bool) -> str:
    path = _joined(base, answer["path"])
    if not include_lines:
        return path
    return "\n".join([path, *(f"  {number}: {line}" for number, line in answer["lines"])])


def _notes(answers: list[dict[str, Any]], most: int, found: int) -> list[str]:
    notes = []
    fault = answers[0]["fault"] if answers else None
    if fault:
        notes.append(f"[Not a regular expression ({fault}); searched for the text as it is.]")
    if found > most:
        notes.append(f"[Cut after {most} files; narrow the search or raise max_results.]")
    if not answers or "done" not in answers[-1]:
        notes.append(
            f"[Stopped after {SEARCH_TIME_S:g} s, not everything was searched; "
            "simplify the pattern, or narrow path or file_glob.]"
        )
    return notes


def _joined(base: str, name: str) -> str:
    return os.path.normpath(os.path.join(base, name))
