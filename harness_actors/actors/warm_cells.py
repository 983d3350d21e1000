"""Which of a node's idle cells stay warm for the next command, and which leave."""

import os
from collections.abc import Iterable

from harness_actors.actors.cell_facts import CellFacts
from harness_actors.errors import BadInputError

WARM_CELLS = 1
"""Idle cells that stay on a node besides the one that was used last. Each is six processes."""
WARM_VARIABLE = "HARNESS_WARM_CELLS"


def warm_cells() -> int:
    """How many idle cells stay besides the newest: ``$HARNESS_WARM_CELLS``.

    Raises:
        BadInputError: The variable is no number of cells.
    """
    named = os.environ.get(WARM_VARIABLE) or str(WARM_CELLS)
    if not named.isdecimal():
        raise BadInputError(WARM_VARIABLE, (f"must be a number of cells, not {named!r}",))
    return int(named)


def by_age(cells: Iterable[CellFacts]) -> list[tuple[CellFacts, int]]:
    """The cells of one node that may be asked to leave, the longest idle first.

    Args:
        cells: All cells of the node.

    Returns:
        Each idle one, with how many of the others were used later. Those in use count for
        one together: they are there because they are needed, and not to stay warm.
    """
    known = list(cells)
    idle = sorted((cell for cell in known if is_idle(cell)), key=_last_used, reverse=True)
    newest = 1 if len(idle) < len(known) else 0
    return [(cell, number + newest) for number, cell in enumerate(idle)][::-1]


def is_idle(cell: CellFacts) -> bool:
    """Whether a cell serves no run, and no command works on its journal."""
    return not (cell.in_progress or cell.in_use or cell.problem)


def _last_used(cell: CellFacts) -> tuple[float, str]:
    # The same order for whoever looks, also at the same moment.
    return cell.idle_since, cell.store
