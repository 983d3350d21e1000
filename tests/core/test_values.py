"""Signals, results and events come back from their plain form as they were."""

from dataclasses import fields
from typing import Any, get_args

import orjson
import pytest

from harness_actors import events
from harness_actors.events import (
    DERIVED_EVENTS,
    EVENT_TYPES,
    PREVIEW_CHARS,
    AgentResponse,
    CustomEvent,
    Event,
    RunCompleted,
    RunEvent,
    ToolCalled,
    ToolReturned,
    decode_event,
    encode_event,
    message_events,
)
from harness_actors.messages import Message, ToolCall
from harness_actors.results import (
    REASONS,
    Deliverable,
    HarnessResult,
    LimitKind,
    Reason,
    Status,
    Usage,
    decode_result,
    encode_result,
)
from harness_actors.signals import (
    CompactionComplete,
    CustomSignal,
    RepairComplete,
    RepairTrigger,
    RunEnd,
    Signal,
    TurnComplete,
    decode_signal,
    encode_signal,
)

SIGNALS: list[Signal] = [
    RepairTrigger(resumed=True),
    RepairComplete(repairs_made=2),
    CompactionComplete(tokens=7, compaction_needed=True),
    TurnComplete(ending="limit", text="so far", progressed=True, limit="tokens"),
    TurnComplete(ending="error", error={"type": "X", "message": "y"}),
    CustomSignal(name="mine", data={"a": [1, None]}),
]


@pytest.mark.parametrize("signal", SIGNALS, ids=lambda signal: type(signal).__name__)
def test_signals_come_back_through_json(signal: Signal) -> None:
    assert decode_signal(orjson.loads(orjson.dumps(encode_signal(signal)))) == signal


def test_every_signal_is_tested() -> None:
    assert {type(signal) for signal in SIGNALS} == set(get_args(Signal))


def test_a_signal_of_unknown_kind_is_told() -> None:
    with pytest.raises(KeyError):
        decode_signal({"kind": "Whatever"})


# ---- results ---------------------------------------------------------------------------------


def test_every_status_has_reasons_and_every_limit_is_one() -> None:
    assert set(REASONS) == set(get_args(Status))
    assert REASONS["limit"] == get_args(LimitKind)


@pytest.mark.parametrize("status", REASONS)
def test_a_run_ends_by_a_reason_of_its_status(status: Status) -> None:
    for kind in REASONS[status]:
        reason = Reason(kind=kind)
        assert RunEnd(status=status, reason=reason).reason is reason
        assert HarnessResult(run_id="r", status=status, reason=reason).status == status


@pytest.mark.parametrize("status", ["done", "finished"])
def test_other_endings_are_refused_where_they_are_made(status: Any) -> None:
    wrong = Reason(kind="because")
    with pytest.raises(ValueError, match=r"there are \w+"):
        RunEnd(status=status, reason=wrong)
    with pytest.raises(ValueError, match=r"there are \w+"):
        HarnessResult(run_id="r", status=status, reason=wrong)


def a_result() -> HarnessResult:
    return HarnessResult(
        run_id="r",
        status="limit",
        reason=Reason(kind="cost", message="spent", details={"turn": 3}),
        turn_count=3,
        output_text="so far",
        usage=Usage(model_calls=2, cost_usd=0.25),
        deliverables=(Deliverable(item_id="1", title="t", content="c"),),
        wall_s=1.5,
    )


def test_results_come_back_through_json_without_their_transcript() -> None:
    event = RunEvent(position=1, run_id="r", at=0.0, event=CustomEvent(name="x"))
    whole = a_result().with_transcript((event,))
    assert whole.transcript == (event,)
    assert decode_result(orjson.loads(orjson.dumps(encode_result(whole)))) == a_result()


def test_usage_adds_up_field_by_field() -> None:
    one = Usage(**{field.name: number for number, field in enumerate(fields(Usage), start=1)})
    two = one + one + Usage()
    assert [getattr(two, f.name) for f in fields(Usage)] == [2 * n for n in range(1, 8)]
    assert two.tokens == two.input_tokens + two.output_tokens


# ---- events ----------------------------------------------------------------------------------


def shipped() -> list[type[Event]]:
    found = [kind for name, kind in vars(events).items() if name[0] != "_"]
    kinds = [kind for kind in found if isinstance(kind, type) and issubclass(kind, Event)]
    return [kind for kind in kinds if kind is not Event]


def an_event(kind: type[Event]) -> Event:
    samples: dict[str, Any] = {"str": "x", "int": 3, "float": 0.5, "bool": True}
    samples |= {"tuple[str, ...]": ("a", "b"), "Mapping[str, Any]": {"a": 1}}
    samples |= {"Mapping[str, int]": {"a": 1}}
    samples |= {"tuple[Mapping[str, Any], ...]": ({"id": "q1"}, {"id": "q2"})}
    values = {f.name: samples[_name(f.type)] for f in fields(kind)}
    return kind(**values)


def _name(annotation: Any) -> str:
    return str(getattr(annotation, "__name__", annotation) if annotation in (str, int, float, bool)
               else annotation).replace("typing.", "").replace("collections.abc.", "")  # fmt: skip


@pytest.mark.parametrize("kind", shipped(), ids=lambda kind: kind.__name__)
def test_events_come_back_through_json(kind: type[Event]) -> None:
    event = an_event(kind)
    plain = orjson.loads(orjson.dumps(encode_event(event)))
    assert plain["type"] == kind.type
    assert decode_event(plain) == event


def test_every_kind_of_event_has_a_name_of_its_own() -> None:
    names = [kind.type for kind in shipped()]
    assert len(set(names)) == len(names)
    assert set(names) == EVENT_TYPES
    assert RunCompleted.type == "run_completed"


def test_fields_that_this_version_does_not_know_are_left_out() -> None:
    plain = {"type": "custom_event", "name": "x", "data": {}, "added_later": 1}
    assert decode_event(plain) == CustomEvent(name="x")


def test_an_event_of_unknown_kind_is_told() -> None:
    with pytest.raises(KeyError, match="whatever"):
        decode_event({"type": "whatever"})


def test_events_are_derived_from_messages_in_their_order() -> None:
    calls = [ToolCall("a", "read", "{}"), ToolCall("b", "write", "x" * 1000)]
    derived = message_events(
        [
            Message.user("not told"),
            Message.assistant("let me see", calls),
            Message.tool_result("a", "y" * 1000),
            Message.tool_result("b", "no", is_error=True),
        ]
    )
    assert [type(event) for event in derived] == [
        AgentResponse,
        ToolCalled,
        ToolCalled,
        ToolReturned,
        ToolReturned,
    ]
    response, _, called, returned, failed = derived
    assert response == AgentResponse(text="let me see", tool_names=("read", "write"))
    assert isinstance(called, ToolCalled)
    assert len(called.arguments) == PREVIEW_CHARS + 1
    assert isinstance(returned, ToolReturned)
    assert returned.text.endswith("…")
    assert isinstance(failed, ToolReturned)
    assert failed.is_error
    assert all(isinstance(event, DERIVED_EVENTS) for event in derived)
