"""Which of a node's idle cells stay warm for the next command, and which leave."""

from collections.abc import Iterable

from harness_actors.actors.cell_facts import CellFacts


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
