"""Values that travel in large numbers: they arrive as they left, and cheaply."""

import pickle
from dataclasses import dataclass, fields
from typing import Any

import pytest

from harness_actors.coordination.protocol import (
    Answered,
    Changed,
    Committed,
    Deliver,
    Envelope,
    Slot,
)
from harness_actors.events import RoundCompleted, RunEvent
from harness_actors.messages import Message
from harness_actors.pickling import pickled_by_position
from harness_actors.policies import Hooks
from harness_actors.ports import ToolSpec
from harness_actors.signals import CompactionComplete, RepairComplete, RepairTrigger, TurnComplete
from harness_actors.state import StateDelta, Write
from harness_actors.tools.options import ToolOptions

DELTA = StateDelta((Write("key", "set", {"a": [1]}),), (Message.user("hello"),))
ROUND = RoundCompleted(
    turn=1,
    round=2,
    input_tokens=3,
    output_tokens=4,
    cached_tokens=5,
    cost_usd=0.5,
    tool_calls=6,
)

VALUES = [
    Envelope("run", 1, 2, 3, Committed(4)),
    Envelope("run", 1, 2, 3, Changed(DELTA)),
    Answered(DELTA, TurnComplete(ending="error", error={"type": "ValueError"})),
    Deliver(
        signal=RepairTrigger(resumed=True),
        values={"a": 1},
        log_from=2,
        log=(Message.user("hello"),),
        started_at=3.5,
        parking=True,
        spec=None,
    ),
    Slot("agent_turn", index=1),
    ROUND,
    RunEvent(position=1, run_id="run", at=2.5, event=ROUND),
    RepairComplete(repairs_made=1),
    CompactionComplete(tokens=7),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_a_value_arrives_as_it_left(value: Any) -> None:
    arrived = pickle.loads(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    assert type(arrived) is type(value)
    assert arrived == value


@pickled_by_position
@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """What an earlier or later version of this program sends."""

    first: int
    second: int = 2


def test_a_value_of_another_number_of_fields_is_refused() -> None:
    # Both ends are of one version; were they not, fields must not be mixed up in silence.
    for state in [(1, 2, 3), ()]:
        with pytest.raises(ValueError, match="Sent was pickled with other fields"):
            Sent.__new__(Sent).__setstate__(state)  # type: ignore[attr-defined]


def test_what_has_its_default_takes_no_bytes() -> None:
    assert Sent(first=1).__getstate__() == (1,)
    assert Sent(first=1, second=3).__getstate__() == (1, 3)
    assert pickle.loads(pickle.dumps(Sent(first=1))) == Sent(first=1)
    assert pickle.loads(pickle.dumps(StateDelta())) == StateDelta()


@pytest.mark.parametrize(
    "value",
    [
        ToolOptions(name="look"),
        ToolSpec(name="look", description="", parameters={}, timeout_s=2.0),
        Hooks(pre_tool=print, output_guard=print),
    ],
)
def test_what_was_pickled_before_its_newest_field_was_there_has_the_default(
    value: Any,
) -> None:
    assert without_fields(value, 1) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_a_value_that_lacks_a_field_it_needs_is_refused() -> None:
    with pytest.raises(TypeError, match="ToolOptions was pickled without a field that it needs"):
        without_fields(ToolOptions(name="look"), len(fields(ToolOptions)))


def without_fields(value: Any, count: int) -> Any:
    """A value as a journal has it that was written before its newest fields were there."""
    earlier = object.__new__(type(value))
    earlier.__setstate__(value.__getstate__()[:-count])
    return earlier
