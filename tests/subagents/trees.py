"""Small trees of folders, as values: what tests of copies and merges begin with and look at."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness_actors.tools.changes import changes_between
from harness_actors.tools.merging import Merging, Outcome, Record
from harness_actors.tools.tree_files import Tree

Node = str | bytes | tuple[str, str]
"""The text of a file, its bytes, or ("program", text) and ("link", where it leads)."""
Files = Mapping[str, Node]


def make(folder: Path, files: Files) -> Path:
    """Make a folder with some files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, node in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        match node:
            case ("link", text):
                path.symlink_to(text)
            case ("program", text):
                path.write_text(text)
                path.chmod(0o755)
            case str():
                path.write_text(node)
            case bytes():
                path.write_bytes(node)
    return folder


def files_in(folder: Path) -> dict[str, Node]:
    """All that is in a folder; what is no UTF-8 as bytes."""
    found: dict[str, Node] = {}
    for top, folders, names in os.walk(folder):
        links = [name for name in folders if Path(top, name).is_symlink()]
        for name in (*names, *links):
            path = Path(top, name)
            found[path.relative_to(folder).as_posix()] = _node(path)
    return found


def _node(path: Path) -> Node:
    if path.is_symlink():
        return ("link", os.readlink(path))
    data = path.read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    return ("program", text) if os.access(path, os.X_OK) else text


@contextmanager
def open_trees(*folders: Path) -> Iterator[list[Tree]]:
    handles = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY) for folder in folders]
    try:
        yield [Tree(handle) for handle in handles]
    finally:
        for handle in handles:
            os.close(handle)


def brought_in(top: Path, only: Sequence[str] | None = None) -> dict[str, Outcome]:
    """What becomes of the changes from `base` to `work` when they are brought into `ours`."""
    with open_trees(top / "base", top / "work", top / "ours") as (base, work, ours):
        changes = changes_between(base, work)
        chosen = [one for one in changes if only is None or one.path in only]
        merging = Merging(base, work, ours, Record(top / "applied.jsonl"))
        return {one.path: one for one in merging.bring_in(chosen)}


def three(top: Path, *, base: Files, work: Files, ours: Files) -> Path:
    """A folder with what a copy began as, the copy, and the workspace."""
    make(top / "base", base)
    make(top / "work", work)
    make(top / "ours", ours)
    return top
