"""Bugs that nobody has chosen: drawn edits, each planted as one."""

from pathlib import Path

from tests.planted_bugs.bug import Bug
from tests.planted_bugs.tree import ROOT
from tests.sweep.drawn import drawn_edits
from tests.sweep.edits import edited_text


def drawn(seed: int, root: Path = ROOT) -> list[Bug]:
    """The choice of a seed, as `drawn_edits` makes it.

    Args:
        seed: Any; the same one draws the same from the same code.
        root: Of the project.
    """
    choice = [
        (path, edit, (root / path).read_text("utf-8")) for path, edit in drawn_edits(seed, root)
    ]
    return [
        Bug(
            name=f"line {edit.line} of {path.relative_to('harness_actors')}: {edit.what}",
            path=str(path),
            before=text,
            after=edited_text(text, edit.number),
            promise="",
        )
        for path, edit, text in choice
    ]
