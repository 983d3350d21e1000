"""Edits that nobody has chosen, drawn by a seed: how many of them do the tests find?"""

import random
from pathlib import Path

from tests.sweep.edits import Edit, edits

CHOICE = {
    "coordination": 5,
    "turn": 6,
    "actors": 6,
    "stores": 4,
    "batch": 5,
    "tools/supervision": 4,
}
"""How many of each room, whatever its size."""


def drawn_edits(seed: int, root: Path) -> list[tuple[Path, Edit]]:
    """The choice of a seed: no two are in one file, whose path below the root comes first.

    Args:
        seed: Any; the same one draws the same from the same code.
        root: Of the project.
    """
    draw = random.Random(seed)
    return [
        (file.relative_to(root), draw.choice(edits(file.read_text("utf-8"))))
        for room, count in CHOICE.items()
        for file in _files(draw, root / "harness_actors" / room, count)
    ]


def _files(draw: random.Random, room: Path, count: int) -> list[Path]:
    """Files of a room, those with many edits rather than those with few."""
    left = {file: len(edits(file.read_text("utf-8"))) for file in sorted(room.rglob("*.py"))}
    chosen = []
    for _ in range(count):
        (file,) = draw.choices(list(left), list(left.values()))
        del left[file]
        chosen.append(file)
    return chosen
