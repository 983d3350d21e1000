"""How long a cell stays when nobody needs it, and the error of one that has left."""

import os

from harness_actors.errors import BadInputError

IDLE_S = 300.0
"""How long a cell waits for the next run under a Ray that was there before."""
IDLE_VARIABLE = "HARNESS_CELL_IDLE_S"
WARM_CELLS = 1
"""Idle cells that stay on a node besides the one that was used last. Each is six processes."""
WARM_VARIABLE = "HARNESS_WARM_CELLS"


def idle_s() -> float:
    """How long an idle cell stays: ``$HARNESS_CELL_IDLE_S``; 0 is until its command ends.

    Raises:
        BadInputError: The variable is not a number of seconds.
    """
    named = os.environ.get(IDLE_VARIABLE) or str(IDLE_S)
    try:
        seconds = float(named)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise BadInputError(IDLE_VARIABLE, (f"must be a number of seconds, not {named!r}",))
    return seconds


def warm_cells() -> int:
    """How many idle cells stay besides the newest: ``$HARNESS_WARM_CELLS``.

    Raises:
        BadInputError: The variable is not a number of cells.
    """
    named = os.environ.get(WARM_VARIABLE) or str(WARM_CELLS)
    if not named.isdecimal():
        raise BadInputError(WARM_VARIABLE, (f"must be a number of cells, not {named!r}",))
    return int(named)


class GoneError(Exception):
    """The coordinator has left for good, as an idle one does; another can be started.

    Only for those who call it; they tell their callers something else.

    Attributes:
        problem: What is known of why.
        waited: The call was open when it left: there was nothing that it could be told.
    """

    def __init__(self, problem: str, waited: bool = False) -> None:
        super().__init__(problem, waited)
        self.problem = problem
        self.waited = waited

    def __str__(self) -> str:
        return self.problem
