"""What is found of a change among packages and programs."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness_actors.batch.installed import (
    Difference,
    compare,
    files_state,
    read_installed,
    tree_state,
)


def make(folder: Path) -> tuple[Path, Path]:
    """Packages and programs."""
    packages, programs = folder / "packages", folder / "programs"
    for name in (
        "one.py",
        "native.so",
        "data.bin",
        "pkg/__init__.py",
        "pkg/deep/in.py",
        "pkg/x.bin",
    ):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text("x")
    (packages / "pkg" / "__pycache__").mkdir()
    (packages / "pkg" / "__pycache__" / "in.pyc").write_text("x")
    (programs / "folder").mkdir(parents=True)
    (programs / "run").write_text("x")
    return packages, programs


def put_back(path: Path) -> None:
    before = path.stat()
    # The clock of the file system moves on every few milliseconds only.
    while path.stat().st_ctime_ns == before.st_ctime_ns:
        path.write_text("y")
        path.write_text("x")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, tuple[Callable[[Path], object], set[str], bool]] = {
    "nothing": (lambda _: None, set(), False),
    "a module": (lambda top: put_back(top / "packages/one.py"), {"packages/one.py"}, False),
    "a module that is gone": (
        lambda top: (top / "packages/native.so").unlink(),
        {"packages/native.so"},
        False,
    ),
    "a module that is new": (
        lambda top: (top / "packages/new.pth").touch(),
        {"packages/new.pth"},
        False,
    ),
    "one deep in a package": (
        lambda top: put_back(top / "packages/pkg/deep/in.py"),
        {"packages/pkg"},
        False,
    ),
    "one that takes the place of another": (
        lambda top: (top / "packages/pkg/__init__.py").replace(top / "packages/pkg/deep/in.py"),
        {"packages/pkg"},
        False,
    ),
    "data": (lambda top: put_back(top / "packages/data.bin"), set(), False),
    "data of a package": (lambda top: put_back(top / "packages/pkg/x.bin"), set(), False),
    "a compiled file": (
        lambda top: put_back(top / "packages/pkg/__pycache__/in.pyc"),
        set(),
        True,
    ),
    "a program": (lambda top: put_back(top / "programs/run"), {"programs/run"}, False),
    "a program that is new": (
        lambda top: (top / "programs/new").symlink_to("run"),
        {"programs/new"},
        False,
    ),
    "a folder among programs": (lambda top: (top / "programs/other").mkdir(), set(), False),
}


@pytest.mark.parametrize(("change", "names", "caches"), CHANGES.values(), ids=CHANGES)
def test_what_runs_is_seen_to_change_and_what_does_not_is_passed_over(
    change: Callable[[Path], object], names: set[str], caches: bool, tmp_path: Path
) -> None:
    packages, programs = make(tmp_path)
    folders = [str(programs), str(tmp_path / "gone"), str(programs)]
    before = read_installed(folders, [packages])
    change(tmp_path)

    found = compare(before, read_installed(folders, [packages]))

    paths = {str(tmp_path / name) for name in names}
    assert found == Difference(
        packages=frozenset(path for path in paths if "/packages/" in path),
        programs=frozenset(path for path in paths if "/programs/" in path),
        caches=caches,
    )


def test_the_state_of_files_changes_with_each_of_them(tmp_path: Path) -> None:
    packages, _ = make(tmp_path)
    files = [packages / "one.py", packages / "data.bin", packages / "gone"]
    states = [(files_state(files), tree_state(packages))]
    changes: tuple[Callable[[], object], ...] = (
        lambda: put_back(files[0]),
        lambda: put_back(files[1]),
        lambda: files[2].touch(),
        lambda: files[1].unlink(),
    )
    for change in changes:
        change()
        states.append((files_state(files), tree_state(packages)))

    for kind in zip(*states, strict=True):
        assert len(set(kind)) == len(states)
    assert files_state([]) == (0, 0, 0)
