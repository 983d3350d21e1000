"""Walks the files of a folder and searches their lines.

`grep_files` has that run by `scan_process`, so it imports nothing but the standard library.

Folders are gone through by descriptor, one name at a time and never through a symlink:
whatever is put in the place of a folder meanwhile, nothing outside is seen.
"""

import fnmatch
import heapq
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any

FLAGS = 0
MAX_FILE_BYTES = 2_000_000
"""Larger files are not searched."""
MAX_LINE_CHARS = 10_000
"""Of longer lines, only the beginning is searched."""
MAX_SHOWN_CHARS = 300
"""Of longer lines, only a part is shown."""
LINES_PER_FILE = 10
SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})
MAX_SEEN = 250_000
"""Entries that one search looks at."""
MAX_PATH_BYTES = 4_096
"""Of longer paths, no tool and no system call could make use."""
SORTED_AT_ONCE = 5_000
KEPT_OPEN = 64
"""Folders that one walk keeps open at most, however deep it is."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_skipped(name: str) -> bool:
    """Whether tools pass over a file or folder: hidden, or made by others' tools."""
    return name.startswith(".") or name in SKIPPED_FOLDERS


class Descent:
    """A way down from a folder, name by name, which follows no symlink.

    Args:
        top: The folder, open; it stays open.
    """

    def __init__(self, top: int) -> None:
        self._top = top
        self._open = [os.dup(top)]
        self.names: list[str] = []
        """The way from the top to where it is."""

    @property
    def folder(self) -> int:
        """The folder where it is, open until it moves."""
        return self._open[-1]

    def enter(self, name: str) -> None:
        """Go into a folder of this one.

        Raises:
            OSError: It is not there, cannot be opened, or is no folder, as a symlink is.
        """
        self._open.append(os.open(name, FOLDER, dir_fd=self.folder))
        self.names.append(name)
        if len(self._open) > KEPT_OPEN:
            os.close(self._open.pop(0))

    def leave(self) -> None:
        """Go back to the folder above.

        Raises:
            OSError: It has to be opened anew, and is no longer there.
        """
        os.close(self._open.pop())
        self.names.pop()
        if self._open:
            return
        names, self.names, self._open = self.names, [], [os.dup(self._top)]
        for name in names:
            self.enter(name)

    def restart(self) -> None:
        """Go back to the top."""
        self.close()
        self.names, self._open = [], [os.dup(self._top)]

    def close(self) -> None:
        while self._open:
            os.close(self._open.pop())


class Reach:
    """How far one walk goes; what it leaves out is told by `notes`.

    Args:
        look: Called with each entry that is come by; what it raises ends the walk.
    """

    def __init__(self, look: Callable[[], None] = lambda: None) -> None:
        self._look = look
        self._left = MAX_SEEN
        self._cut = self._deep = False

    def within(self, found: "Iterable[os.DirEntry[str]]") -> "Iterator[os.DirEntry[str]]":
        """What of a folder's entries is looked at."""
        for entry in found:
            self._look()
            if self._left == 0:
                self._cut = True
                return
            self._left -= 1
            yield entry

    def goes_below(self, above: str) -> bool:
        """Whether folders in one of this path are looked into."""
        near = len(os.fsencode(above)) < MAX_PATH_BYTES
        self._deep |= not near
        return near

    def notes(self) -> list[str]:
        """What was left out, for whoever asked."""
        notes = []
        if self._cut:
            notes.append(f"[Only {MAX_SEEN:,} entries were looked at; look in a folder below.]")
        if self._deep:
            notes.append(f"[Folders with paths above {MAX_PATH_BYTES:,} bytes were left out.]")
        return notes


def walk(
    top: int,
    refused: Callable[[OSError], None] = lambda _error: None,
    reach: Reach | None = None,
) -> Iterator[tuple[Descent, "list[os.DirEntry[str]] | None"]]:
    """Each folder below one, itself first, and once more when all below it was gone through.

    Args:
        top: The folder, open.
        refused: Told of folders that cannot be opened or read; what it raises ends the walk.
        reach: How many entries are looked at; None for all.

    Yields:
        Where it is, and what is there, by name; None the second time. Folders that are taken
        out of the list are passed by.
    """
    descent = Descent(top)
    try:
        entries = _entries(descent, refused, reach)
        yield descent, entries
        waiting = [_folders(entries)]
        while waiting:
            if waiting[-1]:
                try:
                    descent.enter(waiting[-1].pop())
                except OSError as error:
                    refused(error)
                    continue
                entries = _entries(descent, refused, reach)
                yield descent, entries
                waiting.append(_folders(entries))
                continue
            yield descent, None
            waiting.pop()
            if waiting and not _left(descent, refused):
                return
    finally:
        descent.close()


def walk_files(top: int, reach: Reach | None = None) -> Iterator[tuple[str, int]]:
    """The regular files below a folder, in order: path relative to it, and folder, open."""
    reach = reach or Reach()
    for descent, entries in walk(top, reach=reach):
        if entries is None:
            continue
        entries[:] = [entry for entry in entries if not is_skipped(entry.name)]
        above = "".join(f"{name}/" for name in descent.names)
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                yield above + entry.name, descent.folder
        if any(map(_is_folder, entries)) and not reach.goes_below(above):
            entries.clear()


def in_order(found: "Iterable[os.DirEntry[str]]") -> "list[os.DirEntry[str]]":
    """Entries by name. Sorting many at once would hold up the interpreter's other threads."""
    entries = list(found)
    parts = [
        sorted(entries[low : low + SORTED_AT_ONCE], key=_name_of)
        for low in range(0, len(entries), SORTED_AT_ONCE)
    ]
    return parts[0] if len(parts) == 1 else list(heapq.merge(*parts, key=_name_of))


def _name_of(entry: "os.DirEntry[str]") -> str:
    return entry.name


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    return entry.is_dir(follow_symlinks=False)


def is_foreign(found: os.stat_result) -> bool:
    """Whether a file is another user's and has a second name, which may be outside.

    Whoever may not read a file can still give it a name in a folder of their own.
    """
    return found.st_nlink > 1 and found.st_uid != os.geteuid()


def compile_glob(pattern: str) -> Callable[[str], bool]:
    """Whether a relative path, or its last part, matches a glob pattern.

    >>> [compile_glob(glob)("src/app.py") for glob in ("*.py", "src/**/*.py", "lib/*.py")]
    [True, True, False]
    """
    pattern = pattern.removeprefix("./")
    # Compiled here: `fnmatch` keeps the last 32,768 that it has seen. `**/` may stand for no
    # folder at all.
    shapes = {pattern, pattern.replace("**/", "")}
    matches = [re.compile(fnmatch.translate(shape)).match for shape in shapes]

    def is_meant(path: str) -> bool:
        names = path, os.path.basename(path)
        return any(match(name) is not None for match in matches for name in names)

    return is_meant


def matching_lines(name: str, folder: int, wanted: "re.Pattern[str]") -> list[tuple[int, str]]:
    """The first lines of a file that match, numbered from 1; none of what is no text."""
    data = _read(name, folder)
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


def answers(question: dict[str, Any], wanted: "re.Pattern[str]") -> Iterator[dict[str, Any]]:
    """The files of a folder with lines that match, one more than asked for; see `scan_process`."""
    top, file = question["folder"], question["file"]
    left = question["max_results"] + 1
    is_meant = compile_glob(question["file_glob"])
    reach = Reach()
    for path, folder in walk_files(top, reach) if file is None else [(file, top)]:
        if not is_meant(path):
            continue
        lines = matching_lines(os.path.basename(path), folder, wanted)
        if lines:
            yield {"path": path, "lines": lines}
            left -= 1
        if not left:
            break
    yield {"done": True, "notes": reach.notes()}


def _entries(
    descent: Descent, refused: Callable[[OSError], None], reach: Reach | None
) -> "list[os.DirEntry[str]]":
    try:
        with os.scandir(descent.folder) as found:
            return in_order(found if reach is None else reach.within(found))
    except OSError as error:
        refused(error)
        return []


def _left(descent: Descent, refused: Callable[[OSError], None]) -> bool:
    try:
        descent.leave()
    except OSError as error:
        # Far below, a folder above was removed or moved away meanwhile.
        refused(error)
        return False
    return True


def _folders(entries: "list[os.DirEntry[str]]") -> list[str]:
    """The names of the folders, the first one last."""
    return [entry.name for entry in reversed(entries) if _is_folder(entry)]


def _read(name: str, folder: int) -> bytes | None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(name, flags, dir_fd=folder)
    except OSError:
        return None
    with open(handle, "rb") as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or is_foreign(found):
            return None
        return file.read(MAX_FILE_BYTES) if found.st_size <= MAX_FILE_BYTES else None


def _shown(line: str, place: int) -> str:
    if len(line) <= MAX_SHOWN_CHARS:
        return line
    start = max(0, min(place - 50, len(line) - MAX_SHOWN_CHARS))
    end = start + MAX_SHOWN_CHARS
    return f"{'...' if start else ''}{line[start:end]}{'...' if end < len(line) else ''}"
