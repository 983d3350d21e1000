"""Who has begun whom, and what is written with one of them about another."""

from collections.abc import Mapping
from dataclasses import asdict

from harness_actors.coordination.active import ActiveRun
from harness_actors.state import CHILD_RESULTS, ChildResult, Write


def is_child_of(run: ActiveRun, parent_id: str) -> bool:
    """Whether a run was begun by the one of this id."""
    return run.spec.parent is not None and run.spec.parent.run_id == parent_id


def stands_below(run: ActiveRun, other: ActiveRun, known: Mapping[str, ActiveRun]) -> bool:
    """Whether a run was begun by another one, or by one that was begun by it, and so on.

    Args:
        run: The run.
        other: The other one.
        known: Those between them, by id.
    """
    link = run.spec.parent
    while link is not None:
        if link.run_id == other.spec.run_id:
            return True
        above = known.get(link.run_id)
        link = None if above is None else above.spec.parent
    return False


def given(came_to: ChildResult) -> Write:
    """What a call came to, for the run that made it."""
    return Write(CHILD_RESULTS.name, "append", asdict(came_to))
