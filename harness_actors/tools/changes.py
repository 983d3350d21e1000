"""What differs between two trees."""

from dataclasses import dataclass

from harness_actors.tools.tree_files import Found, Tree, is_same


@dataclass(frozen=True, slots=True)
class Change:
    """A file or link that is not the same in two trees.

    Attributes:
        path: Where.
        before: What was there; None for nothing.
        after: What is there; None for nothing.
    """

    path: str
    before: Found | None
    after: Found | None


def changes_between(before: Tree, after: Tree) -> list[Change]:
    """What differs between two trees, in the order of paths.

    Raises:
        OSError: One of them cannot be read.
    """
    old, new = before.files(), after.files()
    return [
        Change(path, old.get(path), new.get(path))
        for path in sorted(old.keys() | new.keys())
        if not is_same(path, (before, old.get(path)), (after, new.get(path)))
        # What cannot be brought anywhere was not changed where it stays what it is.
        and not _is_other(old.get(path), new.get(path))
    ]


def _is_other(before: Found | None, after: Found | None) -> bool:
    return {one.kind for one in (before, after) if one is not None} <= {"other"}
