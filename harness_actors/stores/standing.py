"""Whether an open file is still the one at its path."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harness_actors.errors import StoreError
from harness_actors.stores.traceless import beside

WHAT_NOW = (
    "nothing more is written to it, and what worked on it was stopped; the same command begins "
    "anew there, and goes on where the journal is back"
)
_COMPANIONS = ("-wal", "-shm")


@dataclass(frozen=True, slots=True)
class FileId:
    """Which file it is, whatever its name: no other has both while somebody has it open."""

    device: int
    inode: int

    @classmethod
    def of(cls, path: str | Path) -> Self | None:
        """That of the file at a path; None where there is none.

        Raises:
            OSError: It cannot be seen.
        """
        try:
            found = os.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return cls(found.st_dev, found.st_ino)


class StandingFiles:
    """The files of a journal that this process has open.

    A file that is removed or replaced under SQLite is written to as before, and everything
    seems well; but nobody else will ever read it.

    Args:
        path: The journal.
        expected: Which file it must be; None for the one that is there.

    Raises:
        StoreError: It is another one, or there is none.
    """

    def __init__(self, path: Path, expected: FileId | None = None) -> None:
        self._path = path
        names = (path.absolute(), *(beside(path, suffix) for suffix in _COMPANIONS))
        # As text: a path object costs as much again at each look.
        self._files: Sequence[tuple[str, FileId | None]] = [
            (str(name), FileId.of(name)) for name in names
        ]
        if expected is not None and self._files[0][1] != expected:
            raise out_of_place(path, expected)

    def check(self) -> int:
        """Refuse to go on where one of them is no longer at its path.

        Returns:
            The size of the write-ahead log, in bytes.

        Raises:
            StoreError: It was removed, moved or replaced; says which.
            OSError: It cannot be seen.
        """
        sizes = [self._size(name, known) for name, known in self._files]
        return sizes[1]

    def check_main(self) -> None:
        """Look at the journal's file alone, at a third of the cost of `check`; raises the same."""
        self._size(*self._files[0])

    def _size(self, name: str, known: FileId | None) -> int:
        if known is None:
            return 0
        # At every commit, so nothing is made for it.
        try:
            found = os.stat(name)
        except (FileNotFoundError, NotADirectoryError):
            found = None
        if found is None or found.st_ino != known.inode or found.st_dev != known.device:
            raise out_of_place(self._path, known, Path(name), is_open=True)
        return found.st_size


def out_of_place(
    path: Path,
    known: FileId,
    file: Path | None = None,
    *,
    is_open: bool = False,
    what_now: str = WHAT_NOW,
) -> StoreError:
    """A file of a journal is not the one that it was.

    Args:
        path: The journal.
        known: Which file it was.
        file: The one that is meant; None for the journal itself.
        is_open: This process has had it open ever since. Else another file may have its inode.
        what_now: What became of it, and what to do.
    """
    file = file or path
    name = f"{file.name!r} beside it" if file.name.endswith(_COMPANIONS) else "it"
    if FileId.of(file) is not None:
        what = "another file was put in its place"
        what = what if name == "it" else f"another file was put in the place of {name}"
    elif not file.parent.exists():
        what = f"its folder {str(file.parent)!r} was removed or moved away"
    else:
        what = f"{name} was removed or moved away"
    gone_to = _open_at(known) if is_open else None
    moved = "" if gone_to is None else f" (it is {str(gone_to)!r} now)"
    return StoreError(str(path), f"{what}{moved} while it was in use; {what_now}")


def _open_at(known: FileId) -> Path | None:
    """Where a file is that this process has open; None where it is nowhere any more."""
    folder = Path("/proc/self/fd")
    for name in os.listdir(folder) if folder.is_dir() else ():
        with suppress(OSError):
            handle = folder / name
            if FileId.of(handle) == known:
                place = Path(os.readlink(handle))
                # Of one that was removed it names a place, too.
                return place if FileId.of(place) == known else None
    return None
