"""Walks the files of a folder and searches their lines; also a program of its own.

`grep_files` runs this file in a process, for a regular expression can run for ever and
hold the interpreter while it does, and only a process can be stopped. It therefore
imports nothing but the standard library.
"""

import fnmatch
import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from typing import Any

MAX_FILE_BYTES = 2_000_000
"""Larger files are not searched."""
MAX_LINE_CHARS = 10_000
"""Of longer lines, only the beginning is searched."""
MAX_SHOWN_CHARS = 300
"""Of longer lines, only a part is shown."""
LINES_PER_FILE = 10
SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})


def is_skipped(name: str) -> bool:
    """Whether tools pass over a file or folder: hidden, or made by others' tools."""
    return name.startswith(".") or name in SKIPPED_FOLDERS


def walk_files(top: str) -> Iterator[str]:
    """Paths of the regular files below a folder, relative to it, in order.

    Symlinks are not followed: they could lead out of the folder, or in a circle.
    """
    for folder, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if not is_skipped(name))
        for name in sorted(files):
            path = os.path.join(folder, name)
            if not is_skipped(name) and _is_regular(path):
                yield os.path.relpath(path, top)


def name_matches(path: str, pattern: str) -> bool:
    """Whether a relative path, or its last part, matches a glob pattern.

    >>> name_matches("src/app.py", "*.py"), name_matches("src/app.py", "src/**/*.py")
    (True, True)
    >>> name_matches("src/app.py", "lib/*.py")
    False
    """
    pattern = pattern.removeprefix("./")
    # `**/` may stand for no folder at all.
    for shape in (pattern, pattern.replace("**/", "")):
        if fnmatch.fnmatchcase(path, shape) or fnmatch.fnmatchcase(os.path.basename(path), shape):
            return True
    return False


def matching_lines(path: str, wanted: "re.Pattern[str]") -> list[tuple[int, str]]:
    """The first lines of a file that match, numbered from 1; none of what is no text."""
    data = _read(path)
    if data is None or b"\0" in data[:8192]:
        return []
    found = []
    for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), start=1):
        match = wanted.search(line[:MAX_LINE_CHARS].rstrip("\r"))
        if match is None:
            continue
        found.append((number, _shown(line.rstrip("\r"), match.start())))
        if len(found) == LINES_PER_FILE:
            break
    return found


def compile_pattern(pattern: str) -> tuple["re.Pattern[str]", str | None]:
    """A regular expression, and None; of a faulty one its text, and what is wrong."""
    try:
        return re.compile(pattern), None
    except (re.error, RecursionError, OverflowError) as error:
        return re.compile(re.escape(pattern)), str(error)


def main() -> None:
    """Read a question from stdin; write a line of JSON as each answer is found."""
    question: dict[str, Any] = json.load(sys.stdin)
    wanted, fault = compile_pattern(question["pattern"])
    _say({"fault": fault})
    top = question["top"]
    left = question["max_results"] + 1
    for path in question["files"] or walk_files(top):
        if not name_matches(path, question["file_glob"]):
            continue
        lines = matching_lines(os.path.join(top, path), wanted)
        if lines:
            _say({"path": path, "lines": lines})
            left -= 1
        if not left:
            break
    _say({"done": True})


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


def _is_regular(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


def _read(path: str) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_FILE_BYTES:
            return None
        return file.read(MAX_FILE_BYTES)


def _shown(line: str, place: int) -> str:
    if len(line) <= MAX_SHOWN_CHARS:
        return line
    start = max(0, min(place - 50, len(line) - MAX_SHOWN_CHARS))
    end = start + MAX_SHOWN_CHARS
    return f"{'...' if start else ''}{line[start:end]}{'...' if end < len(line) else ''}"


if __name__ == "__main__":
    main()
