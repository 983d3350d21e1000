"""`OpenAIModel` against providers that answer what no model says."""

import gzip
import json
import time
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.errors import ModelAnswerError, ModelBusyError, ModelError
from harness_actors.messages import ToolCall
from harness_actors.models import Backoff, OpenAIModel
from harness_actors.models.backoff import asked_delay_s
from harness_actors.models.bounded import OutOfBoundsError
from harness_actors.models.failures import AttemptFailedError, Endpoint, KeyFilter, status_failure
from harness_actors.models.prices import FREE
from harness_actors.models.streaming import EventParser, StreamedAnswer
from harness_actors.models.wire import UnusableAnswerError, parse_object, read_completion
from harness_actors.ports import ModelRequest, ModelResponse
from tests.models.endpoints import Exchange, endpoint
from tests.models.requests import a_request
from tests.models.test_openai import streamed, whole

KEY = "canary-0123456789abcdef"
MOST = 64 * 1024

Ask = Callable[[OpenAIModel, ModelRequest], Any]


@pytest.fixture(params=[whole, streamed])
def ask(request: pytest.FixtureRequest) -> Ask:
    way: Ask = request.param
    return way


def a_model(base_url: str, **settings: Any) -> OpenAIModel:
    at_once = Backoff(first_s=0.001, longest_s=0.002, longest_asked_s=0.001)
    given = {"max_answer_bytes": MOST, "backoff": at_once, "api_key": KEY, **settings}
    return OpenAIModel("m", base_url=base_url, price=FREE, **given)


def says(text: Any, **fields: Any) -> bytes:
    return orjson.dumps({"choices": [{"message": {"content": text}}], **fields})


def chunk(**delta: Any) -> bytes:
    return b"data: " + orjson.dumps({"choices": [{"delta": delta}]}) + b"\n\n"


async def failure(ask: Ask, body: bytes, *headers: str, **settings: Any) -> tuple[ModelError, int]:
    """How a call ends that is answered so, and how often it was made."""
    asked = 0

    async def serve(exchange: Exchange) -> None:
        nonlocal asked
        asked += 1
        await exchange.answer(body, *headers)

    async with endpoint(serve) as base_url:
        model = a_model(base_url, **settings)
        with pytest.raises(ModelError) as caught:
            await ask(model, a_request())
        await model.close()
    return caught.value, asked


EVENTS = "Content-Type: text/event-stream"
PACKED = "Content-Encoding: gzip"
DEEP = orjson.dumps({"a": 1})[:-2] + b"[" * 500 + b"]" * 500 + b"}"

TOO_MUCH: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "plain": (says("x" * MOST), ()),
    "packed": (gzip.compress(says("x" * 20 * MOST)), (PACKED,)),
    "nested": (says("x", extra=1)[:-2] + b"[" * 500 + b"]" * 500 + b"}", ()),
    "nested beyond the parser": (b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}", ()),
    "lists": (says([[]] * (MOST // 4)), ()),
    "line": (b"data: " + b"x" * 2 * MOST, (EVENTS,)),
    "packed events": (gzip.compress(b"data: {}\n\n" * 8 * MOST), (EVENTS, PACKED)),
    "empty lines": (b"\n" * MOST, (EVENTS,)),
    "text in pieces": (chunk(content="x" * 1000) * 70, (EVENTS,)),
    "calls in pieces": (
        b"".join(chunk(tool_calls=[{"index": n, "id": "i"}]) for n in range(700)),
        (EVENTS,),
    ),
    "nested event": (b"data: " + DEEP + b"\n\n", (EVENTS,)),
}


@pytest.mark.parametrize(
    ("ask", "case"),
    [
        pytest.param(way, case, id=f"{case}, {way.__name__}")
        for case, (_, headers) in TOO_MUCH.items()
        for way in (whole, streamed)
        if way is streamed or EVENTS not in headers
    ],
)
async def test_what_is_too_much_ends_the_call_and_is_not_asked_for_again(
    ask: Ask, case: str
) -> None:
    body, headers = TOO_MUCH[case]
    error, asked = await failure(ask, body, *headers)

    assert isinstance(error, ModelAnswerError), error
    assert asked == 1


async def test_more_may_be_allowed(ask: Ask) -> None:
    async def serve(exchange: Exchange) -> None:
        await exchange.answer(says("x" * MOST))

    async with endpoint(serve) as base_url:
        model = a_model(base_url, max_answer_bytes=2 * MOST)
        response = await ask(model, a_request())
        await model.close()

    assert len(response.text) == MOST


async def test_of_an_error_only_the_beginning_is_read(ask: Ask) -> None:
    async def serve(exchange: Exchange) -> None:
        # More is announced than ever comes: whoever wants all of it waits.
        body = b"wrong " * 40_000
        length = f"Content-Length: {10 * len(body)}"
        await exchange.write(f"HTTP/1.1 400 Bad Request\r\n{length}\r\n\r\n".encode(), body)
        await exchange.until_left()

    async with endpoint(serve) as base_url:
        model = a_model(base_url, timeout_s=20.0)
        with pytest.raises(ModelError, match="wrong wrong") as caught:
            await ask(model, a_request())
        await model.close()

    assert caught.value.status == 400


async def test_of_an_answer_that_sends_elsewhere_only_the_beginning_is_read(ask: Ask) -> None:
    async def serve(exchange: Exchange) -> None:
        if exchange.head.startswith("POST /there"):
            await exchange.answer(says("found"))
            return
        # Unpacked it has 20 times as much, and more is announced than ever comes.
        body = gzip.compress(b"x" * 20 * 1024 * MOST)
        head = f"Location: /there\r\n{PACKED}\r\nContent-Length: {10 * len(body)}"
        await exchange.write(f"HTTP/1.1 307 There\r\n{head}\r\n\r\n".encode(), body)
        await exchange.until_left()

    async with endpoint(serve) as base_url:
        model = a_model(base_url, timeout_s=20)
        response = await ask(model, a_request())
        await model.close()

    assert response.text == "found"


def test_a_line_of_many_pieces_is_put_together_in_linear_time() -> None:
    pieces, size = 40_000, 400
    parser = EventParser(pieces * size + 100)
    began = time.process_time()
    found = parser.feed(b"data: ")
    for _ in range(pieces):
        found += parser.feed(b"x" * size)
    found += parser.feed(b"\n")

    # Joined anew with each piece, this takes more than a minute.
    assert time.process_time() - began < 10
    assert [len(data) for data in found] == [pieces * size]


@pytest.mark.parametrize("number", ["1e308", "1e18", "9" * 30, "-1", "-1e308", "true", '"7"'])
@pytest.mark.parametrize("field", ["prompt_tokens", "completion_tokens"])
def test_a_usage_that_no_call_has_is_estimated(field: str, number: str) -> None:
    body = says("x")[:-1] + f',"usage":{{"{field}":{number}}}}}'.encode()

    usage = read_completion(parse_object(body), sent_bytes=400, price=FREE).usage

    assert 0 < usage.input_tokens < 1000
    assert 0 < usage.output_tokens < 1000


@pytest.mark.parametrize(
    "asked",
    [
        "Fri, 31 Dec 9999 23:59:59 -2359",
        "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
        "Mon, 01 Jan 0000 00:00:00 +9999",
        "Mon, 99 Foo -1 99:99:99 GMT",
        "nan",
        "inf",
        "1e400",
        "-inf",
        "٣",
    ],
)
def test_an_absurd_wait_is_none_or_a_number(asked: str) -> None:
    for name in ("retry-after", "retry-after-ms"):
        delay_s = asked_delay_s({name: asked})
        assert delay_s is None or 0.0 <= delay_s < 1e12

    endpoint_ = Endpoint(model="m", base_url="http://x", key_name="K", key=KEY)
    assert isinstance(status_failure(endpoint_, 429, {"retry-after": asked}, b""), ModelBusyError)


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
PLACES = st.sampled_from(
    [
        ("choices",),
        ("choices", 0),
        ("choices", 0, "message"),
        ("choices", 0, "finish_reason"),
        ("choices", 0, "message", "content"),
        ("choices", 0, "message", "refusal"),
        ("choices", 0, "message", "tool_calls"),
        ("choices", 0, "message", "tool_calls", 0),
        ("choices", 0, "message", "tool_calls", 0, "id"),
        ("choices", 0, "message", "tool_calls", 0, "index"),
        ("choices", 0, "message", "tool_calls", 0, "function"),
        ("choices", 0, "message", "tool_calls", 0, "function", "name"),
        ("choices", 0, "message", "tool_calls", 0, "function", "arguments"),
        ("usage",),
        ("usage", "prompt_tokens"),
        ("usage", "prompt_tokens_details"),
        ("usage", "prompt_tokens_details", "cached_tokens"),
    ]
)


def an_answer(part: str) -> dict[str, Any]:
    call = {"id": "c", "index": 0, "function": {"name": "f", "arguments": "{}"}}
    message = {"content": "x", "refusal": None, "tool_calls": [call]}
    details = {"cached_tokens": 1}
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "prompt_tokens_details": details}
    return {"choices": [{part: message, "finish_reason": "stop"}], "usage": usage}


@given(PLACES, ANY_JSON)
def test_whatever_stands_anywhere_in_an_answer_it_is_one_or_none(
    place: tuple[Any, ...], value: Any
) -> None:
    for part in ("message", "delta"):
        answer = an_answer(part)
        inner: Any = answer
        *way, last = (part if step == "message" else step for step in place)
        for step in way:
            inner = inner[step]
        inner[last] = value
        try:
            plain = parse_object(json.dumps(answer).encode())
            if part == "message":
                response = read_completion(plain, sent_bytes=4, price=FREE)
            else:
                pieces = StreamedAnswer(4, FREE)
                pieces.take(plain)
                response = pieces.response()
        except (UnusableAnswerError, OutOfBoundsError):
            continue
        assert 0 <= response.usage.tokens < 1 << 40
        assert isinstance(response.finish_reason, str)
        for call in response.tool_calls:
            assert (str, str, str) == (type(call.id), type(call.name), type(call.arguments))


ECHO = f"Authorization: Bearer {KEY} and {KEY}"


@pytest.mark.parametrize(
    "body",
    [
        ECHO.encode(),
        b"x" * 70 + ECHO.encode(),
        b"x" * 490 + ECHO.encode(),
        orjson.dumps([ECHO]),
        orjson.dumps({"error": ECHO}),
        orjson.dumps({"error": {"code": ECHO, "message": ECHO}}),
    ],
)
async def test_the_key_is_in_no_error_whatever_echoes_it(ask: Ask, body: bytes) -> None:
    error, _ = await failure(ask, body, max_retries=1)

    assert "canary" not in f"{error} {error!r} {error.args}"


@pytest.mark.parametrize(("ask", "events"), [(whole, False), (streamed, False), (streamed, True)])
async def test_the_key_is_in_no_answer_that_echoes_it(ask: Ask, events: bool) -> None:
    call = {"index": 0, "id": KEY, "function": {"name": KEY, "arguments": f'{{"a":"{KEY}"}}'}}
    if events:
        # A key that comes in pieces is one all the same.
        parts = [chunk(content=piece) for piece in ("so: can", KEY[3:9], KEY[9:], " can you?")]
        body = b"".join([*parts, chunk(tool_calls=[call]), b"data: [DONE]\n\n"])
    else:
        body = orjson.dumps(
            {"choices": [{"message": {"content": f"so: {KEY} can you?", "tool_calls": [call]}}]}
        )

    async def serve(exchange: Exchange) -> None:
        await exchange.answer(body, *((EVENTS,) if events else ()))

    async with endpoint(serve) as base_url:
        model = a_model(base_url)
        response: ModelResponse = await ask(model, a_request())
        await model.close()

    assert response.text == "so: [key] can you?"
    assert KEY not in repr(response)


async def test_the_key_is_in_none_that_has_no_text() -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": f'{{"a":"{KEY}"}}'}}
    plain = {"message": {"content": None, "tool_calls": [call]}, "finish_reason": KEY}

    async def serve(exchange: Exchange) -> None:
        await exchange.answer(orjson.dumps({"choices": [plain]}))

    async with endpoint(serve) as base_url:
        model = a_model(base_url)
        response = await model.complete(a_request())
        await model.close()

    assert response.text is None
    assert response.tool_calls == (ToolCall("c", "f", '{"a":"[key]"}'),)
    assert response.finish_reason == "[key]"


async def test_an_answer_may_end_in_what_could_begin_the_key() -> None:
    async def serve(exchange: Exchange) -> None:
        await exchange.answer(chunk(content="as you can") + b"data: [DONE]\n\n", EVENTS)

    async with endpoint(serve) as base_url:
        model = a_model(base_url)
        response = await streamed(model, a_request())
        await model.close()

    assert response.text == "as you can"


@given(st.lists(st.sampled_from(["a", "ab", KEY, KEY[:5], KEY[5:], "canary-", " "])))
def test_a_text_in_pieces_is_cleaned_as_a_whole_one(pieces: list[str]) -> None:
    cleaner = KeyFilter(KEY)

    told = "".join([*map(cleaner.feed, pieces), cleaner.rest()])

    assert told == "".join(pieces).replace(KEY, "[key]")


def test_an_error_that_is_nested_deep_has_words() -> None:
    asked = Endpoint(model="m", base_url="http://x", key_name="K", key=KEY)
    for depth in (300, 500, 1000, 5000):
        body = b'{"error":{"message":' + b"[" * depth + b"]" * depth + b',"code":[[{}]]}}'
        assert isinstance(status_failure(asked, 500, {}, body), ModelBusyError)
        with pytest.raises((AttemptFailedError, OutOfBoundsError, UnusableAnswerError)):
            raise AttemptFailedError(status_failure(asked, 503, {}, body))
