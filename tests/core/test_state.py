"""State: entries change by their rule, deltas apply whole, and replay gives the same state."""

import copy
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from harness_actors.conversation import Conversation
from harness_actors.errors import WorkflowError
from harness_actors.messages import Message
from harness_actors.results import Usage
from harness_actors.state import (
    AGENT_TURN,
    OPEN_CALLS,
    REPAIR,
    TURN,
    USAGE,
    OpenCall,
    SharedState,
    StateDelta,
    StateKey,
    TurnProgress,
    Write,
)


def changed(*writes: tuple[str, Any, Any]) -> SharedState:
    state = SharedState()
    for write in writes:
        state.apply(StateDelta((Write(*write),)))
    return state


def test_set_replaces() -> None:
    assert changed(("k", "set", 1), ("k", "set", [2])).values == {"k": [2]}


def test_append_collects() -> None:
    assert changed(("k", "append", 1), ("k", "append", [2])).values == {"k": [1, [2]]}


def test_increment_adds_numbers_and_mappings_of_numbers() -> None:
    state = changed(
        ("n", "increment", 1),
        ("n", "increment", 2.5),
        ("m", "increment", {"a": 1}),
        ("m", "increment", {"a": 2, "b": 3}),
    )
    assert state.values == {"n": 3.5, "m": {"a": 3, "b": 3}}


def test_put_gives_one_item_another_value_and_leaves_the_others() -> None:
    state = changed(("m", "put", ["a", 1]), ("m", "put", ("b", [2])), ("m", "put", ["a", 3]))
    assert state.values == {"m": {"a": 3, "b": [2]}}
    assert changed(("m", "set", {"a": 1}), ("m", "put", ["b", 2])).values["m"] == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("first", "change", "second"),
    [
        ("text", "put", ["a", 1]),
        ([1], "put", ["a", 1]),
        ({"a": 1}, "put", {"a": 1}),
        ({"a": 1}, "put", "ab"),
        ({"a": 1}, "put", ["a"]),
        ({"a": 1}, "put", [1, 1]),
        ("text", "increment", 1),
        (1, "increment", "text"),
        (1, "increment", {"a": 1}),
        ({"a": 1}, "increment", {"a": "x"}),
        ({"a": 1}, "increment", 2),
        (5, "append", 1),
        ("text", "append", "more"),
        ({"a": 1}, "append", 1),
    ],
)
def test_a_change_that_does_not_fit_names_the_entry(first: Any, change: Any, second: Any) -> None:
    state = changed(("mine", "set", first))
    with pytest.raises(WorkflowError, match="mine"):
        state.apply(StateDelta((Write("mine", change, second),)))


def test_a_delta_that_fails_changes_nothing() -> None:
    state = changed(("a", "set", 1), ("b", "set", "text"))
    delta = StateDelta(
        (Write("a", "set", 2), Write("new", "append", 1), Write("b", "increment", 1)),
        messages=(Message.user("x"),),
    )
    with pytest.raises(WorkflowError):
        state.apply(delta)
    assert (state.values, state.version, len(state.log)) == ({"a": 1, "b": "text"}, 2, 0)


def test_writes_of_one_delta_are_applied_in_their_order() -> None:
    state = SharedState()
    writes = [("n", "set", 1), ("n", "increment", 2), ("n", "increment", 3)]
    state.apply(StateDelta(tuple(Write(*write) for write in writes)))  # type: ignore[arg-type]
    assert (state.values, state.version) == ({"n": 6}, 1)


def test_a_delta_of_events_alone_is_a_version_too() -> None:
    state = SharedState()
    state.apply(StateDelta())
    assert state.version == 1
    assert not StateDelta()
    assert StateDelta(messages=(Message.user("x"),))


def test_applying_does_not_change_what_was_sent_before() -> None:
    state = changed(("l", "append", 1), ("m", "increment", {"a": 1}))
    sent = dict(state.values)
    before = copy.deepcopy(sent)
    state.apply(StateDelta((Write("l", "append", 2), Write("m", "increment", {"a": 1}))))
    state.apply(StateDelta((Write("m", "put", ["a", 7]),)))
    assert sent == before, "values are replaced, never changed in place"


VALUES = st.one_of(st.integers(-5, 5), st.none(), st.lists(st.integers(), max_size=2))
WRITES = st.one_of(
    st.builds(Write, st.sampled_from("ab"), st.just("set"), VALUES),
    st.builds(Write, st.sampled_from("lm"), st.just("append"), VALUES),
    st.builds(Write, st.sampled_from("nx"), st.just("increment"), st.integers(-5, 5)),
    st.builds(Write, st.just("p"), st.just("put"), st.tuples(st.sampled_from("ab"), VALUES)),
)
DELTAS = st.lists(
    st.builds(
        StateDelta,
        st.lists(WRITES, max_size=4).map(tuple),
        st.lists(st.builds(Message.user, st.text(max_size=3)), max_size=2).map(tuple),
    ),
    max_size=8,
)


@given(DELTAS, st.integers(0, 8))
def test_replaying_deltas_from_any_snapshot_gives_the_same_state(
    deltas: list[StateDelta], at: int
) -> None:
    state, snapshot = SharedState(), SharedState()
    for number, delta in enumerate(deltas, start=1):
        state.apply(delta)
        if number == at:
            snapshot = SharedState(dict(state.values), Conversation(state.log), state.version)
    for delta in deltas[snapshot.version :]:
        snapshot.apply(delta)
    assert (snapshot.values, snapshot.version) == (state.values, state.version)
    assert list(snapshot.log) == list(state.log)
    assert snapshot.log.tokens == state.log.tokens


# ---- keys ------------------------------------------------------------------------------------


def test_values_are_plain_in_the_state_and_typed_at_the_executor() -> None:
    calls = (OpenCall(call_id="a", tool_name="f", idempotent=True, turn=1),)
    plain = OPEN_CALLS.encode(calls)
    assert plain == [{"call_id": "a", "tool_name": "f", "idempotent": True, "turn": 1}]
    assert OPEN_CALLS.decode(plain) == calls
    assert USAGE.decode(USAGE.encode(Usage(model_calls=2, cost_usd=0.5))) == Usage(
        model_calls=2, cost_usd=0.5
    )
    assert TURN.decode(TURN.encode(TurnProgress(rounds=3))) == TurnProgress(rounds=3)
    assert TURN.decode(TURN.encode(None)) is None


def test_defaults_are_values_of_their_type() -> None:
    assert OPEN_CALLS.decode(OPEN_CALLS.default) == ()
    assert USAGE.decode(USAGE.default) == Usage()


@dataclass(frozen=True)
class Note:
    text: str


def test_items_of_an_appended_entry_have_the_type_of_the_key() -> None:
    notes: StateKey[Any] = StateKey("notes", Note, "mine", "append")
    state = changed(("notes", "append", notes.encode(Note("a"))))
    assert notes.decode(state.values["notes"]) == (Note("a"),)
    assert notes.decode(None) is None


def test_items_that_are_put_have_the_type_of_the_key() -> None:
    key: StateKey[Any] = StateKey("mine", OpenCall, AGENT_TURN, "put", {})
    call = OpenCall(call_id="c", tool_name="t", idempotent=True, turn=1)
    state = changed(("mine", "put", ["first", key.encode(call)]))
    assert key.decode(state.values["mine"]) == {"first": call}
    assert key.decode(key.default) == {}


def test_an_entry_is_set_by_its_owners() -> None:
    assert OPEN_CALLS.may_be_set_by(AGENT_TURN)
    assert OPEN_CALLS.may_be_set_by(REPAIR)
    assert not OPEN_CALLS.may_be_set_by("mine")
