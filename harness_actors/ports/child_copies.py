"""The copies of a run's workspace in which others work for it: where they are, and how they are
found."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildCopy:
    """A copy of a run's workspace, in which another run has worked.

    Attributes:
        handle: What the run calls that other one.
        work: The copy, as it was left.
        base: What it began as.
        record: A file for what was brought in from it; it need not be there yet.
    """

    handle: str
    work: Path
    base: Path
    record: Path


class ChildCopies(Protocol):
    """The copies of one run's workspace in which others work for it."""

    def find(self, handle: str) -> ChildCopy:
        """The copy of one that has ended; blocks.

        Args:
            handle: As the model wrote it.

        Raises:
            ToolError: There is none of that handle, or it is still at work.
        """


def copies_name(run_id: str) -> str:
    """The name of the folder with the copies in which those work that a run has begun."""
    # Ids may hold what no name of a file may.
    return hashlib.sha256(run_id.encode("utf-8", "replace")).hexdigest()[:32]


def copy_places(place: Path) -> tuple[Path, Path]:
    """Where a child works in a copy, and where what that was made from is kept.

    Args:
        place: The folder of that child alone.
    """
    return place / "work", place / "base"
