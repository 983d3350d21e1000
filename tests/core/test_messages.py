"""Messages: encoded once, read when somebody asks, never broken by odd text."""

import pickle
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import orjson
import pytest
from hypothesis import given

from harness_actors.errors import WorkflowError
from harness_actors.messages import (
    FAILURES,
    Message,
    MessageFacts,
    ToolCall,
    check_plain,
    encode_json,
    estimate_tokens,
)
from tests.data import recorded


def test_each_role_has_its_wire_format() -> None:
    call = ToolCall("c1", "read", '{"path": "a"}')
    assert orjson.loads(Message.system("s").encoded) == {"role": "system", "content": "s"}
    assert orjson.loads(Message.user("u").encoded) == {"role": "user", "content": "u"}
    assert orjson.loads(Message.assistant("hm", [call]).encoded) == {
        "role": "assistant",
        "content": "hm",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "read", "arguments": '{"path": "a"}'},
            }
        ],
    }
    assert orjson.loads(Message.tool_result("c1", "r").encoded) == {
        "role": "tool",
        "tool_call_id": "c1",
        "content": "r",
    }


def test_an_assistant_message_has_text_or_calls() -> None:
    assert Message.assistant(None).body["content"] == ""
    assert Message.assistant(None, [ToolCall("c", "f", "{}")]).body["content"] is None


def test_what_was_encoded_is_read_back() -> None:
    calls = (ToolCall("a", "f", "{}"), ToolCall("b", "g", "no json"))
    message = Message.assistant("text", calls)
    assert (message.text, message.tool_calls, message.tool_call_id) == ("text", calls, None)
    result = Message.tool_result("a", "out", is_error=True)
    assert (result.text, result.tool_calls, result.tool_call_id) == ("out", (), "a")
    assert result.is_error


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "ab"),
        ([{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "b"}], "b"),
    ],
)
def test_the_text_of_any_content_is_read(content: Any, text: str) -> None:
    assert Message.from_wire({"role": "user", "content": content}).text == text


@pytest.mark.parametrize("conversation", recorded()[:4], ids=lambda recorded: recorded.id)
def test_recorded_messages_are_kept_as_they_came(conversation: Any) -> None:
    for message in conversation.messages:
        assert Message.from_wire(message.body).encoded == message.encoded


def test_a_message_travels_as_its_bytes_alone() -> None:
    message = Message.user("x" * 1000)
    unread = pickle.dumps(message)
    _ = message.body
    assert pickle.dumps(message) == unread, "what was read of it does not travel"
    copy = pickle.loads(unread)
    assert copy == message
    assert copy.text == message.text
    assert len(unread) < 1200


def test_pickling_keeps_the_mark_of_an_error_and_the_tokens() -> None:
    copy = pickle.loads(pickle.dumps(Message.tool_result("c", "no", is_error=True, tokens=7)))
    assert (copy.is_error, copy.tokens) == (True, 7)


def test_pickling_keeps_what_became_of_a_call_and_what_is_told_with_it() -> None:
    facts = MessageFacts(limit="time", traceback="line 3")
    for message in (
        Message.tool_result("c", "no", failure="timed_out", facts=facts),
        Message.tool_result("c", "no", failure="refused"),
        replace(Message.assistant("so"), facts=MessageFacts(finish_reason="length")),
    ):
        copy = pickle.loads(pickle.dumps(message))
        assert copy == message
        assert copy.facts == message.facts


def test_what_became_of_a_call_is_no_part_of_what_its_model_reads() -> None:
    results = [Message.tool_result("c", "no", failure=how) for how in FAILURES]
    results.append(Message.tool_result("c", "no"))

    assert len({result.encoded for result in results}) == 1
    assert [result.disposition for result in results] == [*FAILURES, "done"]
    assert [result.is_error for result in results] == [True] * len(FAILURES) + [False]


def test_tokens_are_given_or_estimated() -> None:
    assert Message.user("x", tokens=42).tokens == 42
    assert Message.user("x" * 400).tokens == pytest.approx(100, abs=15)
    assert estimate_tokens(b"") == 1


@given(st.text(alphabet=st.characters(categories=["Cs", "L", "So", "Cc"])))
def test_any_text_that_a_tool_returns_can_be_sent(text: str) -> None:
    message = Message.tool_result("c", text)
    message.encoded.decode("utf-8")
    assert len(message.text) == len(text)


def test_lone_surrogates_are_replaced_anywhere() -> None:
    broken = "a\ud800b"
    encoded = encode_json({"key" + broken: [broken, (broken,), {"x": broken}, 1, None]})
    assert orjson.loads(encoded) == {"keya?b": ["a?b", ["a?b"], {"x": "a?b"}, 1, None]}


def test_numbers_above_64_bits_are_rounded_and_no_numbers_are_null() -> None:
    encoded = encode_json({"a": [2**64, -(2**64), 10**400, float("nan"), 2**63 - 1, True]})
    assert orjson.loads(encoded) == {"a": [2.0**64, -(2.0**64), None, None, 2**63 - 1, True]}


@pytest.mark.parametrize("value", [{1, 2}, object(), 1j, b"bytes"])
def test_what_is_not_plain_is_refused_with_its_owner(value: object) -> None:
    with pytest.raises(WorkflowError, match="'mine'"):
        check_plain("mine", {"a": value})


def test_what_is_plain_passes() -> None:
    check_plain("mine", {"a": [1, 2.5, None, True, "x\ud800", {"b": []}]})
