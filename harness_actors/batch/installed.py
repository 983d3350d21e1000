"""What is installed where checks run: told apart from what it becomes later.

Every change of a file moves its change time, which no program can set; so a look at a tree costs
one call for each file, and what was changed and put back is seen, too.
"""

import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

CACHE = "__pycache__"
_CODE = (".py", ".so", ".pth", ".txt", ".zip", ".cfg")

State = tuple[int, int, int]
"""How many files, and sums of their ids and change times."""


@dataclass(frozen=True, slots=True)
class Installed:
    """What is installed, at one moment.

    Attributes:
        library: The interpreter and each entry of its standard library.
        packages: Each entry of the folders of packages.
        programs: Each program of the folders of PATH.
        caches: Compiled files of both.
    """

    library: dict[str, State] = field(default_factory=dict)
    packages: dict[str, State] = field(default_factory=dict)
    programs: dict[str, State] = field(default_factory=dict)
    caches: dict[str, State] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Difference:
    """How the states of two moments differ.

    Attributes:
        library: Entries of the standard library that were changed, added or removed.
        packages: The same of packages.
        programs: The same of programs.
        caches: Compiled files were.
    """

    library: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    programs: frozenset[str] = frozenset()
    caches: bool = False


def compare(before: Installed, now: Installed) -> Difference:
    """What is not now what it was before."""
    return Difference(
        library=_changed(before.library, now.library),
        packages=_changed(before.packages, now.packages),
        programs=_changed(before.programs, now.programs),
        caches=before.caches != now.caches,
    )


def base_interpreter() -> Path:
    """The interpreter that the harness's virtual environment was made of."""
    return Path(sys._base_executable)  # type: ignore[attr-defined]


def library_folder() -> Path:
    """The folder of the standard library."""
    return Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))


def package_folders() -> tuple[Path, ...]:
    """Where packages of that interpreter are installed."""
    found = map(Path, site.getsitepackages([sys.base_prefix, sys.base_exec_prefix]))
    return tuple(dict.fromkeys(folder for folder in found if folder.is_dir()))


def read_installed(program_folders: Sequence[str], packages: Sequence[Path]) -> Installed:
    """The state of all that is installed; blocks for some 3 µs for each file.

    Args:
        program_folders: Those of PATH.
        packages: Folders of packages; other ones are not looked at.
    """
    found = Installed()
    library = library_folder()
    besides = {os.path.realpath(folder) for folder in package_folders()}
    for path in _interpreter_files():
        found.library[path] = _single(path)
    for entry in _entries(library):
        if os.path.realpath(entry.path) not in besides:
            _look_at(entry, found.library, found.caches)
    for folder in packages:
        for entry in _entries(folder):
            _look_at(entry, found.packages, found.caches)
    for name in dict.fromkeys(program_folders):
        for entry in _entries(name):
            if not entry.is_dir():
                found.programs[entry.path] = _single(entry.path)
    return found


def _changed(before: dict[str, State], now: dict[str, State]) -> frozenset[str]:
    return frozenset(dict(before.items() ^ now.items()))


def _interpreter_files() -> Iterator[str]:
    yield os.path.realpath(base_interpreter())
    for folder in (sysconfig.get_config_var("LIBDIR"), sys.base_prefix + "/lib"):
        yield from (entry.path for entry in _entries(folder) if entry.name.startswith("libpython"))


def _single(path: str) -> State:
    try:
        found = os.stat(path)
    except OSError:
        return (0, 0, 0)
    return (1, found.st_ino, found.st_ctime_ns)


def _look_at(entry: "os.DirEntry[str]", found: dict[str, State], caches: dict[str, State]) -> None:
    if entry.name == CACHE:
        caches[entry.path] = _tree(entry.path, {}, every=True)
    elif entry.is_dir():
        found[entry.path] = _tree(entry.path, caches)
    elif entry.name.endswith(_CODE):
        found[entry.path] = _single(entry.path)


def _tree(top: str, caches: dict[str, State], *, every: bool = False) -> State:
    count = ids = times = 0
    waiting = [top]
    while waiting:
        for entry in _entries(waiting.pop()):
            if entry.is_dir(follow_symlinks=False):
                if entry.name == CACHE and not every:
                    caches[entry.path] = _tree(entry.path, caches, every=True)
                else:
                    waiting.append(entry.path)
            elif every or entry.name.endswith(_CODE):
                try:
                    facts = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                count, ids, times = count + 1, ids + facts.st_ino, times + facts.st_ctime_ns
    return (count, ids, times)


def tree_state(top: Path) -> State:
    """The state of all files below a folder."""
    return _tree(str(top), {}, every=True)


def files_state(paths: Iterable[Path]) -> State:
    """The state of some files, which need not be there."""
    states = [_single(str(path)) for path in paths]
    count, ids, times = (sum(numbers) for numbers in zip((0, 0, 0), *states, strict=True))
    return (count, ids, times)


def _entries(folder: str | Path | None) -> list["os.DirEntry[str]"]:
    if folder is None:
        return []
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []
