"""Under which name the coordinator of a cell is known: which commands share a warm one."""

import hashlib
import os
import sys
import sysconfig
from functools import cache
from importlib.metadata import version
from pathlib import Path

PREFIX = "coordinator"


def cell_name(store: Path) -> str:
    """The name of the cell that serves a journal for commands like this process.

    Two processes share it that would run the same code: the same version of this package
    from the same place, the same Python, and the same installed packages.
    """
    return f"{PREFIX}:{_environment()}:{store.resolve()}"


def store_of(name: str) -> Path | None:
    """The journal of the cell with a name; None where it is no name of a cell."""
    parts = name.split(":", 2)
    return Path(parts[2]) if len(parts) == 3 and parts[0] == PREFIX else None


@cache
def _environment() -> str:
    package = Path(__file__).resolve().parents[1]
    facts = (
        version("harness_actors"),
        sys.version,
        sys.prefix,
        str(package),
        str(_newest(package)),
        # Packages that were installed or removed since are not those that a warm cell has.
        *(str(_changed_at(sysconfig.get_path(kind))) for kind in ("purelib", "platlib")),
    )
    return hashlib.sha256("\0".join(facts).encode()).hexdigest()[:16]


def _newest(package: Path) -> int:
    """When a module of ours was changed last: one that is worked on keeps its version."""
    folders = (folder for folder, _, _ in os.walk(package) if not folder.endswith("__pycache__"))
    files = (file for folder in folders for file in os.scandir(folder))
    return max(file.stat().st_mtime_ns for file in files if file.name.endswith(".py"))


def _changed_at(folder: str) -> int:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return 0
