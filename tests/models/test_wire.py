"""What the bytes of an answer say, of providers that write them differently."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.messages import ToolCall
from harness_actors.models.prices import FREE
from harness_actors.models.streaming import EventParser, StreamedAnswer
from harness_actors.models.wire import UnusableAnswerError, parse_object, read_completion
from harness_actors.ports import ModelResponse


def read(message: dict[str, Any], **fields: Any) -> ModelResponse:
    return read_completion({"choices": [{"message": message}], **fields}, sent_bytes=4, price=FREE)


def test_text_in_parts_is_joined() -> None:
    content = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}, "?"]

    assert read({"content": content}).text == "one two"


@pytest.mark.parametrize("content", ["", None, []])
def test_no_text_is_none(content: Any) -> None:
    assert read({"content": content}).text is None


def test_a_refusal_is_what_the_model_says() -> None:
    assert read({"content": None, "refusal": "I cannot"}).text == "I cannot"


@pytest.mark.parametrize(
    ("arguments", "text"), [({"a": 1}, '{"a":1}'), (None, "{}"), ("", ""), ("{", "{")]
)
def test_arguments_become_the_text_that_they_are(arguments: Any, text: str) -> None:
    call = {"function": {"name": "f", "arguments": arguments}}

    assert read({"tool_calls": [call]}).tool_calls == (ToolCall("", "f", text),)


@pytest.mark.parametrize("call", [None, "f", {}, {"function": None}])
def test_a_call_without_a_function_is_no_answer(call: Any) -> None:
    with pytest.raises(UnusableAnswerError):
        read({"tool_calls": [call]})


@pytest.mark.parametrize("usage", [None, [], {"prompt_tokens": "many"}, {"prompt_tokens": -1}])
def test_usage_that_is_none_is_estimated(usage: Any) -> None:
    assert read({"content": "x"}, usage=usage).usage.input_tokens == 1


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'"x"', b"{", b"\xff"])
def test_what_is_no_object_is_no_answer(body: bytes) -> None:
    with pytest.raises(UnusableAnswerError):
        parse_object(body)


@given(st.lists(st.text(max_size=20), max_size=8), st.data())
def test_events_are_the_same_however_the_bytes_are_cut(texts: list[str], data: Any) -> None:
    events = [orjson.dumps({"text": text}) for text in texts]
    stream = b": comment\r\n\r\n" + b"".join(b"data: " + event + b"\r\n\r\n" for event in events)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    parser, found = EventParser(), []
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += parser.feed(stream[start:stop])

    assert found == events


def test_calls_that_come_interleaved_are_put_together_by_their_index() -> None:
    def chunk(*calls: dict[str, Any]) -> dict[str, Any]:
        return {"choices": [{"delta": {"tool_calls": list(calls)}}]}

    answer = StreamedAnswer(4, FREE)
    answer.take(chunk({"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}}))
    answer.take(chunk({"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":'}}))
    answer.take(chunk({"index": 0, "function": {"arguments": "1}"}}, {"index": 1, "function": {
        "arguments": "}"}}))  # fmt: skip
    answer.take({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]})

    assert answer.response().tool_calls == (
        ToolCall("a", "f", '{"x":1}'),
        ToolCall("b", "g", "{}"),
    )
