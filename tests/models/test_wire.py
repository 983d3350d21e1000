"""What the bytes of an answer say, of providers that write them differently."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.messages import ToolCall
from harness_actors.models.bounded import OutOfBoundsError, read_at_most, read_start
from harness_actors.models.failures import Endpoint
from harness_actors.models.prices import FREE, Price
from harness_actors.models.streaming import (
    BREATH_BYTES,
    BYTES_PER_LINE,
    CALL_BYTES,
    EventParser,
    StreamedAnswer,
    read_events,
)
from harness_actors.models.wire import (
    BYTES_PER_BRACKET,
    FINISH_REASON_CHARS,
    MOST_LEVELS,
    MOST_TOKENS,
    UnusableAnswerError,
    count_of,
    parse_object,
    read_completion,
)
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


def chunk(*, usage: Any = None, reason: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"delta": delta, "finish_reason": reason}], "usage": usage}


def streamed(*chunks: dict[str, Any], price: Price = FREE, sent_bytes: int = 4) -> ModelResponse:
    answer = StreamedAnswer(sent_bytes, price)
    for each in chunks:
        answer.take(each)
    return answer.response()


def test_the_usage_of_a_stream_is_what_it_reported_whichever_chunk_that_came_with() -> None:
    reported = {"prompt_tokens": 1000, "completion_tokens": 100}
    response = streamed(
        chunk(content="ok"),
        chunk(reason="stop"),
        {"choices": [], "usage": reported},
        {"choices": [], "usage": None},
        price=Price(1.0, None, 10.0),
    )

    usage = response.usage
    assert (usage.model_calls, usage.input_tokens, usage.output_tokens) == (1, 1000, 100)
    assert usage.cost_usd == pytest.approx(2000 / 1e6)


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "x" * 400},
        {"refusal": "x" * 400},
        {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "x" * 400}}]},
        {"tool_calls": [{"index": 0, "function": {"name": "x" * 400}}]},
    ],
    ids=["text", "refusal", "arguments", "name"],
)
def test_a_stream_without_usage_is_estimated_from_all_that_was_said(delta: dict[str, Any]) -> None:
    usage = streamed(chunk(**delta), sent_bytes=4000).usage

    assert usage.input_tokens == 1000
    assert 100 <= usage.output_tokens <= 120


def test_tokens_from_the_cache_are_a_part_of_those_that_were_sent() -> None:
    details = {"cached_tokens": 5000}
    usage = {"prompt_tokens": 1000, "completion_tokens": 0, "prompt_tokens_details": details}
    answer = {"choices": [{"message": {"content": "x"}}], "usage": usage}

    read = read_completion(answer, sent_bytes=4, price=Price(2.0, 1.0, 8.0)).usage

    assert (read.input_tokens, read.cached_tokens) == (1000, 1000)
    assert read.cost_usd == pytest.approx(1000 / 1e6)


@pytest.mark.parametrize(
    ("reported", "count"),
    [(0, 0), (3, 3), (3.0, 3), (MOST_TOKENS, MOST_TOKENS), (MOST_TOKENS + 1, None), (-1, None),
     (True, None), ("3", None), (None, None)],
)  # fmt: skip
def test_a_count_is_a_number_that_a_call_may_have(reported: Any, count: int | None) -> None:
    assert count_of(reported) == count


def test_what_a_model_refuses_in_a_stream_is_what_it_says() -> None:
    assert streamed(chunk(refusal="I "), chunk(refusal="cannot")).text == "I cannot"


@pytest.mark.parametrize("arguments", [{"a": 1}, '{"a":1}'])
def test_calls_without_an_index_are_told_apart_by_their_place(arguments: Any) -> None:
    calls = [
        {"id": name, "function": {"name": name, "arguments": arguments}} for name in ("f", "g")
    ]

    assert streamed(chunk(tool_calls=calls)).tool_calls == (
        ToolCall("f", "f", '{"a":1}'),
        ToolCall("g", "g", '{"a":1}'),
    )


def test_an_id_and_a_name_that_come_again_with_each_piece_are_one() -> None:
    piece = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "1"}}

    assert streamed(*[chunk(tool_calls=[piece])] * 2).tool_calls == (ToolCall("a", "f", "11"),)


def test_the_reason_to_stop_is_the_provider_s_and_short() -> None:
    long = "r" * 100
    assert read({"content": "x"}).finish_reason == "stop"
    assert streamed(chunk(content="x")).finish_reason == "stop"
    assert streamed(chunk(content="x", reason="length"), chunk()).finish_reason == "length"
    for response in (
        streamed(chunk(content="x", reason=long)),
        read_completion(
            {"choices": [{"message": {"content": "x"}, "finish_reason": long}]},
            sent_bytes=4,
            price=FREE,
        ),
    ):
        assert response.finish_reason == "r" * FINISH_REASON_CHARS


def call_of(part: str, text: str) -> dict[str, Any]:
    if part == "id":
        return {"index": 0, "id": text, "function": {}}
    return {"index": 0, "function": {part: text}}


@pytest.mark.parametrize("part", ["id", "name", "arguments", "content", "refusal"])
def test_all_that_is_kept_of_a_stream_is_bounded_together(part: str) -> None:
    most = 1000
    told = part in ("content", "refusal")

    def of(size: int) -> dict[str, Any]:
        text = "x" * size
        return chunk(**{part: text}) if told else chunk(tool_calls=[call_of(part, text)])

    answer = StreamedAnswer(4, FREE, most)
    answer.take(of(most if told else most - CALL_BYTES))
    with pytest.raises(OutOfBoundsError, match="more than 1,000 bytes"):
        answer.take(chunk(content="x"))


def test_lines_are_bounded_in_their_length_and_their_number() -> None:
    most = 10 * BYTES_PER_LINE
    EventParser(most).feed(b"x" * most + b"\n")
    parser = EventParser(most)
    parser.feed(b"x" * most)
    with pytest.raises(OutOfBoundsError, match=f"more than {most} bytes"):
        parser.feed(b"x")
    parser = EventParser(most)
    parser.feed(b"\n" * 10)
    with pytest.raises(OutOfBoundsError, match="more than 10 lines"):
        parser.feed(b"\n")


def test_a_line_begins_anew_after_each_end() -> None:
    parser = EventParser(100 * BYTES_PER_LINE)
    found = []
    for _ in range(20):
        # Together they are longer than one line may be.
        found += parser.feed(b"data: " + b"x" * 100)
        found += parser.feed(b"\ndata: y")
        found += parser.feed(b"\n")
    assert found == [b"x" * 100, b"y"] * 20


ASKED = Endpoint(model="m", base_url="http://here", key_name="K", key="none")


async def events(*data: bytes, sizes: int = 0) -> AsyncIterator[bytes]:
    for each in data:
        yield b"data: " + each + b"\n\n"
    for _ in range(sizes):
        yield b": " + b"x" * (BREATH_BYTES // 4) + b"\n"


async def heard(pieces: AsyncIterator[bytes], most: int = 1 << 22) -> tuple[str, StreamedAnswer]:
    answer = StreamedAnswer(4, FREE, most)
    text = "".join([text async for text in read_events(pieces, answer, ASKED)])
    return text, answer


SAYS = orjson.dumps(chunk(content="ok"))
ENDS = orjson.dumps(chunk(reason="stop"))


@pytest.mark.parametrize("last", [(ENDS,), (b"[DONE]",), (ENDS, b"[DONE]"), (b"[DONE]", SAYS)])
async def test_a_stream_is_over_by_its_mark_or_by_the_reason_that_it_gives(
    last: tuple[bytes, ...],
) -> None:
    text, answer = await heard(events(SAYS, *last))

    assert (text, answer.response().text) == ("ok", "ok")


@pytest.mark.parametrize("data", [(), (SAYS,)])
async def test_a_stream_without_an_end_broke_off(data: tuple[bytes, ...]) -> None:
    with pytest.raises(UnusableAnswerError, match="broke off"):
        await heard(events(*data))


async def test_others_have_their_turn_while_a_stream_never_waits() -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    others = asyncio.create_task(take_turns())
    await heard(events(ENDS, sizes=40))
    others.cancel()

    assert turns >= 5


async def test_a_stream_of_what_is_not_kept_is_bounded_too() -> None:
    most = BREATH_BYTES
    assert await heard(events(ENDS, sizes=100), most)
    with pytest.raises(OutOfBoundsError, match="the stream has more than"):
        await heard(events(ENDS, sizes=140), most)


def test_an_answer_may_be_nested_as_deep_as_it_can_be_written_again() -> None:
    inner = MOST_LEVELS - 1
    assert parse_object(b'{"a":' + b"[" * inner + b"]" * inner + b"}")
    for deeper in (inner + 1, 5 * inner):
        with pytest.raises(OutOfBoundsError, match="nested"):
            parse_object(b'{"a":' + b"[" * deeper + b"]" * deeper + b"}")


def test_an_answer_may_have_many_lists_beside_one_another() -> None:
    assert len(parse_object(b'{"a":[' + b"[]," * MOST_LEVELS + b"[]]}")["a"]) == MOST_LEVELS + 1


def test_an_answer_may_have_so_many_lists_and_objects_for_its_size() -> None:
    body = b'{"a":[[],{}]}'
    assert parse_object(body, 4 * BYTES_PER_BRACKET) == {"a": [[], {}]}
    with pytest.raises(OutOfBoundsError, match="4 lists and objects"):
        parse_object(body, 4 * BYTES_PER_BRACKET - 1)


async def pieces_of(*sizes: int) -> AsyncIterator[bytes]:
    for size in sizes:
        yield b"x" * size


async def test_a_body_is_read_to_its_bound_and_no_further() -> None:
    assert await read_at_most(pieces_of(5, 5), 10) == b"x" * 10
    with pytest.raises(OutOfBoundsError):
        await read_at_most(pieces_of(5, 5, 1), 10)
    pieces = pieces_of(5, 10, 5)
    assert await read_start(pieces, 12) == b"x" * 12
    assert [piece async for piece in pieces] == [b"x" * 5], "the rest is not read"
