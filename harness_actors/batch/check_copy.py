"""The copy of a workspace in which a check runs, with nothing in it that would steer the check."""

import filecmp
import os
import shutil
from pathlib import Path, PurePosixPath

from harness_actors.batch.check_files import CheckFiles
from harness_actors.batch.installed import CACHE
from harness_actors.tools.trees import remove_tree, walk_paths

_COMPILED = (".pyc", ".pyo")


def lay(task: CheckFiles, work: Path) -> tuple[str, ...]:
    """Make a fresh copy of the finished workspace that of the check; blocks.

    Args:
        task: What the task gives.
        work: The copy.

    Returns:
        What of the workspace the check does not see, or not as the run has left it; compiled
        files, which it never sees, are not among it.

    Raises:
        BadInputError: What the task gives was changed meanwhile.
    """
    _drop_compiled(work)
    found = task.steering(work)
    left_out = [name for name in {**found, **task.given} if _settle(task, work, name)]
    if task.files is not None:
        left_out += _clear_shadows(task, work)
        lay_over(task.files, work)
    # Last: what is changed while it is copied is seen, too.
    task.check_standing()
    return tuple(sorted(left_out))


def lay_over(source: Path, target: Path) -> None:
    """Copy the content of a folder into another; what is in the way is replaced.

    The target was written by an agent: a link in it must not lead the copy elsewhere.
    """
    for entry in sorted(source.iterdir()):
        place = target / entry.name
        if entry.is_dir() and not entry.is_symlink():
            if place.is_symlink() or not place.is_dir():
                place.unlink(missing_ok=True)
                place.mkdir()
            lay_over(entry, place)
            continue
        if place.is_dir() and not place.is_symlink():
            remove_tree(place)
        place.unlink(missing_ok=True)
        shutil.copy2(entry, place, follow_symlinks=False)


def _drop_compiled(work: Path) -> None:
    """Remove what Python would run in place of a source that is older than it says."""
    for folder, names, files in walk_paths(work):
        for name in (*names, *files):
            if name == CACHE or name.endswith(_COMPILED):
                _remove(Path(folder, name))
        names[:] = [name for name in names if name != CACHE]


def _settle(task: CheckFiles, work: Path, name: str) -> bool:
    """Have a steering file be what the task gives, or not be there; whether it was not so."""
    place, given = work / name, task.given.get(name)
    if task.may_be(name, place):
        return False
    if given is None:
        is_package = place.name == "__init__.py"
        _remove(place)
        if is_package:
            # Others may need its folder to be a package; what it said is left out.
            place.touch()
        return True
    _make_way(work, place)
    if _same(given, place):
        return False
    _remove(place)
    shutil.copy2(given, place, follow_symlinks=False)
    return True


def _make_way(work: Path, place: Path) -> None:
    """Have real folders above a place: a link must not lead elsewhere what is put there."""
    for relative in reversed(place.parent.relative_to(work).parents[:-1]):
        _make_folder(work / relative)
    _make_folder(place.parent)


def _make_folder(folder: Path) -> None:
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        folder.mkdir()


def _clear_shadows(task: CheckFiles, work: Path) -> list[str]:
    """Remove what Python would import in place of what is laid over."""
    own = task.laid | task.laid_folders
    cleared = []
    for name in own - {"."}:
        path = PurePosixPath(name)
        is_folder = name in task.laid_folders
        folder = work / path.parent
        if not (is_folder or path.suffix == ".py") or not _is_real(folder, work):
            continue
        for entry in list(folder.iterdir()):
            other = entry.relative_to(work).as_posix()
            if other not in own and _shadows(entry, path, is_folder=is_folder):
                cleared.append(other)
                _remove(entry)
    return cleared


def _is_real(folder: Path, work: Path) -> bool:
    """Whether a folder is there, and no link leads to it."""
    real = Path(os.path.realpath(work)) / folder.relative_to(work)
    return folder.is_dir() and Path(os.path.realpath(folder)) == real


def _shadows(entry: Path, laid: PurePosixPath, *, is_folder: bool) -> bool:
    stem = laid.name if is_folder else laid.stem
    if entry.name.startswith(f"{stem}.") and entry.name.endswith(".so"):
        return True
    if is_folder:
        # A module may say that it is a package, and what is in that.
        return entry.name == f"{stem}.py" and not (entry.parent / stem).is_dir()
    return entry.name == stem and entry.is_dir()


def _same(one: Path, other: Path) -> bool:
    if one.is_symlink() or other.is_symlink():
        both = one.is_symlink() and other.is_symlink()
        return both and os.readlink(one) == os.readlink(other)
    return other.is_file() and filecmp.cmp(one, other, shallow=False)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        remove_tree(path)
    else:
        path.unlink(missing_ok=True)
