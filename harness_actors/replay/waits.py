"""What became of a run while it waited: for its user, or for runs that it had begun."""

from collections.abc import Iterator, Sequence

from harness_actors.events import ChildEnded, Event, InputAwaited, RunParked
from harness_actors.records import StoredChange
from harness_actors.replay.cell import RerunCell
from harness_actors.replay.ends import as_end
from harness_actors.replay.old_records import answers_in
from harness_actors.replay.visits import Visit, is_used_below
from harness_actors.results import HarnessResult
from harness_actors.state import CHILD_RESULTS, CHILD_WAITS, CHILDREN_USAGE, WAITING_SINCE

_TAKEN_UP = "the run was put aside, and taken up again where it goes on"
_LEFT = "the run was put aside, and nobody has taken it up again"
_ANSWERS = frozenset((CHILD_RESULTS.name, CHILD_WAITS.name))
_CANCELLED = "its user cancelled it while it waited"


def go_on_later(cell: RerunCell, position: int | None, *, left: bool = False) -> None:
    """A run was put aside.

    Args:
        cell: Serves it.
        position: Where the recorded journal has what follows; None for nothing.
        left: It ended before anybody has taken it up again.
    """
    cell.tell(_LEFT if position is None or left else _TAKEN_UP)
    if position is not None:
        cell.adopt(position, newest_first=left)


def go_on_answered(cell: RerunCell, visit: Visit) -> None:
    """A run had asked its user."""
    for change in visit.meanwhile:
        if answers := answers_in(change.delta):
            cell.tell("what its user answered")
            cell.answer(answers)
        else:
            cell.adopt(change.position)
    if visit.end is not None:
        cell.tell(_CANCELLED)
        cell.end_idle(visit.end)
    elif visit.next_position is not None:
        cell.adopt(visit.next_position)


def go_on_with_children(cell: RerunCell, visit: Visit) -> None:
    """A run had begun others."""
    if any(isinstance(event, ChildEnded) for event in _events(visit.meanwhile)):
        cell.tell("what came of the runs that it began")
    positions = [*(change.position for change in visit.meanwhile[1:]), visit.next_position]
    pairs = zip(visit.meanwhile, positions, strict=bool(visit.meanwhile))
    for at, (change, position) in enumerate(pairs):
        ended = next((e for e in change.delta.events if isinstance(e, ChildEnded)), None)
        if ended is not None and cell.is_idle:
            cell.end_idle_child(ended.run_id)
            behind = visit.meanwhile[at + 1 :]
            if _stays_aside(cell, visit, behind, position):
                return
        elif ended is not None:
            cell.end_child(ended.run_id)
        elif is_used_below(change):
            continue  # it is written again when they end with the run
        elif any(write.key in _ANSWERS for write in change.delta.writes):
            cell.tell("what came of its questions about the runs that it began")
            cell.answer_requests(change.delta.writes)
        elif _waits_with_those_below(change):
            behind = visit.meanwhile[at + 1 :]
            if any(write.key == WAITING_SINCE.name for write in change.delta.writes):
                if visit.end is not None and all(map(is_used_below, behind)):
                    use_up(cell)
                cell.leave_with_those_below()
            if _stays_aside(cell, visit, behind, position):
                return
        elif any(isinstance(event, RunParked) for event in change.delta.events):
            behind = visit.meanwhile[at + 1 :]
            left = visit.end is not None and _was_left(cell, behind)
            if left:
                use_up(cell)
            cell.stop("park_now")
            go_on_later(cell, position, left=left)
    if visit.end is not None:
        use_up(cell)
        _end(cell, visit.end)


def _stays_aside(
    cell: RerunCell, visit: Visit, behind: Sequence[StoredChange], position: int | None
) -> bool:
    """A run is at nobody, for those below it wait for their user: it is taken up, or one below it
    ends first.

    Returns:
        Whether it was cancelled there.
    """
    if visit.end is not None and all(map(is_used_below, behind)):
        cell.tell(_CANCELLED)
        cell.end_idle(visit.end)
        return True
    follows = behind[0].delta.events if behind else ()
    if position is not None and not any(isinstance(event, ChildEnded) for event in follows):
        cell.adopt(position)
    return False


def _waits_with_those_below(change: StoredChange) -> bool:
    """Whether a run has left service because those below it wait for their user, or says so
    again."""
    left = any(w.key == WAITING_SINCE.name and w.value is not None for w in change.delta.writes)
    return left or any(isinstance(event, InputAwaited) for event in change.delta.events)


def _was_left(cell: RerunCell, behind: Sequence[StoredChange]) -> bool:
    """Whether a run has ended while nobody served it: the newest of those below it end first
    then."""
    writes = [write for change in behind for write in change.delta.writes]
    used = [write.value for write in writes if write.key == CHILDREN_USAGE.name]
    ended = [write.value["run_id"] for write in writes if write.key == CHILD_RESULTS.name]
    newest_first = cell.children[::-1]
    in_order = ended == [one for child in newest_first if (one := child.spec.run_id) in ended]
    below = [cell.used_by(child) for child in newest_first]
    return not any(True for _ in _events(behind)) and used == below and in_order


def use_up(cell: RerunCell) -> None:
    """Those end with a run that it has begun: by then they have used what the journal has."""
    for child in cell.children:
        cell.child_used(child)


def _end(cell: RerunCell, end: HarnessResult) -> None:
    if (end.status, end.reason.kind) == ("cancelled", "user"):
        cell.tell(_CANCELLED)
        cell.stop("cancel")
    else:
        cell.tell(f"what ended the run: {end.reason.message}")
        cell.end_waiting(as_end(end))


def _events(changes: Sequence[StoredChange]) -> Iterator[Event]:
    return (event for change in changes for event in change.delta.events)
