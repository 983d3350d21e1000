"""What the changes of a recorded run say of its index of open calls."""

from collections.abc import Iterator, Sequence
from typing import Any

from harness_actors.records import StoredChange
from harness_actors.state import OPEN_CALLS


def closings(changes: Sequence[StoredChange]) -> Iterator[int]:
    """Find where the coordinator took calls out of the index that were answered elsewhere.

    A turn that goes on lists what is open, too, and may write nothing else with it; then the calls
    are as they were.

    Args:
        changes: Those of the run, oldest first.

    Returns:
        The places of such changes.
    """
    listed: Sequence[Any] = ()
    ended = 0
    for at, change in enumerate(changes):
        only_lists = _only_lists(change)
        before = list(listed[ended:]) if only_lists else []
        for write in change.delta.writes:
            if write.key == OPEN_CALLS.name and write.change == "set":
                listed, ended = write.value or (), 0
            elif write.key == OPEN_CALLS.name:
                ended += write.value
        if only_lists and not (listed and before == list(listed)):
            yield at


def _only_lists(change: StoredChange) -> bool:
    delta = change.delta
    only_write = [(write.key, write.change) for write in delta.writes] == [(OPEN_CALLS.name, "set")]
    return only_write and not delta.messages and not delta.events and change.hop is None
