"""Who wrote the index of open calls: the coordinator, for calls answered elsewhere, or a turn."""

from collections.abc import Sequence

import pytest

from harness_actors.messages import Message
from harness_actors.records import StoredChange
from harness_actors.replay.open_calls import closings
from harness_actors.state import OPEN_CALLS, StateDelta, Write

SENT = (Message.assistant("go"),)


def lists(*ids: str, said: Sequence[Message] = ()) -> StateDelta:
    value = [{"call_id": one, "tool_name": "t", "idempotent": True, "turn": 1} for one in ids]
    return StateDelta((Write(OPEN_CALLS.name, "set", value),), tuple(said))


def ended(count: int) -> StateDelta:
    return StateDelta((Write(OPEN_CALLS.name, "drop", count),), SENT)


@pytest.mark.parametrize(
    ("deltas", "found"),
    [
        ([lists("a", "b", said=SENT), lists("a", "b")], []),
        ([lists("a", "b", said=SENT), lists("b")], [1]),
        ([lists("a", "b", "c", said=SENT), ended(1), lists("b", "c"), ended(1), lists("c")], []),
        ([lists("a", "b", "c", said=SENT), ended(1), lists("c")], [2]),
        ([lists("a", said=SENT), ended(1), lists()], [2]),
        ([lists("a", said=SENT), lists(said=SENT), lists("b", said=SENT), lists()], [3]),
    ],
)
def test_calls_were_answered_elsewhere_only_where_they_are_open_no_more(
    deltas: Sequence[StateDelta], found: Sequence[int]
) -> None:
    changes = [
        StoredChange(position=at, at=0.0, version=at, delta=delta, hop=None, losses=0)
        for at, delta in enumerate(deltas, 1)
    ]
    assert list(closings(changes)) == found
