"""`OpenAIModel` through the real client against a real server on this machine."""

import asyncio
import gc
import re
import socket
import time
from collections.abc import Callable
from typing import Any

import cloudpickle
import orjson
import pytest

from harness_actors.errors import (
    ConfigError,
    ContextOverflowError,
    ModelBusyError,
    ModelError,
    ModelRefusedError,
    ModelSetupError,
)
from harness_actors.messages import Message, ToolCall
from harness_actors.models import Backoff, OpenAIModel, Price
from harness_actors.ports import ModelRequest, ModelResponse, ToolSet
from harness_actors.testing import LoopbackServer, Reply, faults
from harness_actors.testing.faults import BreakOff, Fault, NeverAnswer, Raw, Refuse
from tests.models.endpoints import Exchange, endpoint
from tests.models.requests import a_request, a_tool

AT_ONCE = Backoff(first_s=0.001, longest_s=0.002)
LONG_TEXT = "a sentence of several words " * 200
KEY = "sk-test-0123456789abcdef"

Ask = Callable[[OpenAIModel, ModelRequest], Any]


@pytest.fixture(autouse=True)
def no_ambient_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of whoever runs the tests must not reach them."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


async def whole(model: OpenAIModel, request: ModelRequest) -> ModelResponse:
    return await model.complete(request)


async def streamed(model: OpenAIModel, request: ModelRequest) -> ModelResponse:
    *pieces, response = [piece async for piece in model.stream(request)]
    assert isinstance(response, ModelResponse)
    assert "".join(str(piece) for piece in pieces) == (response.text or "")
    return response


@pytest.fixture(params=[whole, streamed])
def ask(request: pytest.FixtureRequest) -> Ask:
    """Either way of asking keeps the same promises."""
    way: Ask = request.param
    return way


def a_model(server: LoopbackServer, **settings: Any) -> OpenAIModel:
    return OpenAIModel(
        settings.pop("name", "gpt-4.1"),
        base_url=server.base_url,
        **{"backoff": AT_ONCE, **settings},
    )


async def test_an_answer_has_its_text_its_calls_and_its_usage(ask: Ask) -> None:
    reply = Reply.calls(
        [("read_file", {"path": "a"}), ("read_file", "no JSON {")], said="I look", ids=("x", "x")
    )
    async with LoopbackServer(lambda _: reply) as server:
        response = await ask(a_model(server), a_request(tools=[a_tool()]))

    assert response.text == "I look"
    assert response.tool_calls == (
        ToolCall("x", "read_file", '{"path":"a"}'),
        ToolCall("x", "read_file", "no JSON {"),
    )
    assert response.finish_reason == "tool_calls"
    assert response.usage.model_calls == 1
    assert response.usage.input_tokens > 0
    assert response.waited_s == 0.0


async def test_the_bytes_on_the_wire_are_the_joined_fragments() -> None:
    messages = [
        Message.system("Be brief."),
        Message.user("naïve – 你好 🙂 \ud800"),
        Message.assistant(None, [ToolCall("c1", "read_file", "{}")]),
        Message.tool_result("c1", "line\n" * 100),
    ]
    tools = ToolSet.of([a_tool()])
    async with LoopbackServer() as server:
        model = a_model(server, settings={"temperature": 0.2})
        await model.complete(ModelRequest(messages=messages, tools=tools))

    body = server.seen[0].body
    assert body == (
        b'{"model":"gpt-4.1","messages":['
        + b",".join(message.encoded for message in messages)
        + b'],"tools":'
        + tools.encoded
        + b',"temperature":0.2}'
    )
    assert server.seen[0].headers["content-type"] == "application/json"


async def test_without_tools_no_field_about_tools_is_sent() -> None:
    async with LoopbackServer() as server:
        model = a_model(server, settings={"tool_choice": "auto", "seed": 1})
        await model.complete(a_request())
        await model.complete(a_request(tools=[a_tool()]))

    without, having = (orjson.loads(seen.body) for seen in server.seen)
    assert without.keys() == {"model", "messages", "seed"}
    assert having.keys() == {"model", "messages", "seed", "tools", "tool_choice"}


async def test_cached_tokens_are_counted_and_cost_less() -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 800},
    }
    answer = {
        "choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}],
        "usage": usage,
    }
    async with LoopbackServer(lambda _: answer) as server:
        listed = await a_model(server).complete(a_request())
        own = await a_model(server, price=Price(1.0, None, 10.0)).complete(a_request())
        named = await a_model(
            server, name="mine-2", prices={"mine": Price(0, 0, 0), "mine-2": Price(3, 0, 0)}
        ).complete(a_request())

    assert (listed.usage.input_tokens, listed.usage.cached_tokens) == (1000, 800)
    assert listed.usage.cost_usd == pytest.approx((200 * 2.0 + 800 * 0.5 + 100 * 8.0) / 1e6)
    assert own.usage.cost_usd == pytest.approx((1000 * 1.0 + 100 * 10.0) / 1e6)
    assert named.usage.cost_usd == pytest.approx(200 * 3 / 1e6)


async def test_missing_usage_is_estimated_from_sizes(ask: Ask) -> None:
    answer = {"choices": [{"message": {"content": "x" * 400}}], "usage": None}
    async with LoopbackServer(lambda _: answer) as server:
        response = await ask(a_model(server), a_request("y" * 4000))

    assert 1000 <= response.usage.input_tokens <= 1100
    assert 100 <= response.usage.output_tokens <= 120


async def test_a_server_that_answers_whole_when_asked_to_stream_is_understood() -> None:
    answer = Raw(b'{"choices":[{"message":{"content":"all at once"}}]}')
    async with LoopbackServer(faults=faults.always(answer)) as server:
        response = await streamed(a_model(server), a_request())

    assert response.text == "all at once"


@pytest.mark.parametrize(
    "fault",
    [
        faults.rate_limited(),
        faults.SERVER_ERROR,
        faults.OVERLOADED,
        Refuse(408),
        Refuse(409),
        BreakOff("before_headers"),
        BreakOff("in_body"),
        faults.EMPTY_CHOICES,
        faults.NOT_JSON,
        Raw(b'{"choices":[{"message":{"cont'),
        Raw(b'{"error":{"code":502,"message":"upstream is down"}}'),
        Raw(b"[]"),
        Raw(b'{"choices":[{}]}'),
    ],
    ids=str,
)
async def test_what_may_pass_is_asked_again(fault: Fault) -> None:
    async with LoopbackServer(
        lambda _: Reply.text(LONG_TEXT), faults=faults.first(2, fault)
    ) as server:
        response = await a_model(server, max_retries=2).complete(a_request())

    assert response.text == LONG_TEXT
    assert server.requests == 3
    assert 0 < response.waited_s < 1


@pytest.mark.parametrize(
    "fault", [faults.SERVER_ERROR, BreakOff("in_body"), faults.NOT_JSON], ids=str
)
async def test_retries_are_made_once_in_all_and_then_the_cause_is_told(fault: Fault) -> None:
    async with LoopbackServer(faults=faults.always(fault)) as server:
        with pytest.raises(ModelBusyError, match="attempt 3, the last"):
            await a_model(server, max_retries=2).complete(a_request())

    assert server.requests == 3


async def test_the_last_refusal_tells_its_status_and_the_wait_that_was_asked_for(ask: Ask) -> None:
    short = Backoff(first_s=0.001, longest_asked_s=0.001)
    async with LoopbackServer(faults=faults.always(faults.rate_limited(7))) as server:
        with pytest.raises(ModelBusyError) as caught:
            await ask(a_model(server, max_retries=1, backoff=short), a_request())

    assert (caught.value.status, caught.value.retry_after_s) == (429, 7.0)


async def test_what_came_in_place_of_an_answer_is_shown_in_short() -> None:
    page = Raw(b"<html>502 Bad Gateway" + b" x" * 10_000, "text/html")
    async with LoopbackServer(faults=faults.always(page)) as server:
        with pytest.raises(ModelBusyError, match="502 Bad Gateway") as caught:
            await a_model(server, max_retries=0).complete(a_request())

    assert len(str(caught.value)) < 300


async def test_the_wait_that_a_provider_asks_for_is_kept_and_counted(ask: Ask) -> None:
    async with LoopbackServer(faults=faults.first(1, faults.rate_limited(0.3))) as server:
        began = time.monotonic()
        response = await ask(a_model(server), a_request())

    assert response.waited_s >= 0.3
    assert time.monotonic() - began >= 0.3
    assert server.requests == 2


async def test_the_waits_of_several_retries_add_up(ask: Ask) -> None:
    async with LoopbackServer(faults=faults.first(3, faults.rate_limited(0.1))) as server:
        response = await ask(a_model(server), a_request())

    assert response.waited_s >= 0.3
    assert server.requests == 4


async def test_an_unreasonable_wait_is_capped() -> None:
    capped = Backoff(first_s=0.001, longest_asked_s=0.05)
    async with LoopbackServer(faults=faults.first(1, faults.rate_limited(3600))) as server:
        response = await a_model(server, backoff=capped).complete(a_request())

    assert 0.05 <= response.waited_s < 1


async def test_no_answer_in_time_is_told_as_such(ask: Ask) -> None:
    async with LoopbackServer(faults=faults.always(NeverAnswer())) as server:
        with pytest.raises(ModelBusyError, match=r"no answer within 0\.2 s"):
            await ask(a_model(server, timeout_s=0.2, max_retries=1), a_request())

    assert server.requests == 2


@pytest.mark.parametrize(
    ("fault", "error", "says"),
    [
        (faults.WRONG_KEY, ModelSetupError, "OPENAI_API_KEY"),
        (Refuse(403, "", "no"), ModelSetupError, "OPENAI_API_KEY"),
        (faults.UNKNOWN_MODEL, ModelSetupError, "'gpt-4.1'"),
        (faults.OUT_OF_QUOTA, ModelSetupError, "billing"),
        (Refuse(400, "", "temperature must be a number"), ModelSetupError, "temperature"),
        (Refuse(422, "", "unprocessable"), ModelSetupError, "unprocessable"),
        (faults.CONTENT_FILTERED, ModelRefusedError, "filtered"),
        (faults.CONTEXT_OVERFLOW, ContextOverflowError, "8192"),
        (Refuse(413, "", ""), ContextOverflowError, "413"),
        (Refuse(429, "rate_limit_exceeded", "Request too large for gpt-4.1 on tokens per min"),
         ContextOverflowError, "too large"),
        (Refuse(400, "", "request (9031 tokens) exceeds the available context size"),
         ContextOverflowError, "9031"),
        (Refuse(400, "", "prompt is too long: 210000 tokens > 200000 maximum"),
         ContextOverflowError, "210000"),
        (Refuse(500, "", "input is too large to process"), ContextOverflowError, "too large"),
    ],
    ids=str,
)  # fmt: skip
async def test_what_will_not_pass_is_asked_once_and_classified(
    ask: Ask, fault: Fault, error: type[ModelError], says: str
) -> None:
    async with LoopbackServer(faults=faults.always(fault)) as server:
        with pytest.raises(ModelError, match=says) as caught:
            await ask(a_model(server), a_request())

    assert type(caught.value) is error
    assert isinstance(fault, Refuse)
    assert caught.value.status == fault.status
    assert server.requests == 1


async def test_a_filtered_answer_is_a_refusal(ask: Ask) -> None:
    reply = Reply.text("I must", finish_reason="content_filter")
    async with LoopbackServer(lambda _: reply) as server:
        with pytest.raises(ModelRefusedError):
            await ask(a_model(server), a_request())

    assert server.requests == 1


async def test_an_unknown_model_is_named_with_its_endpoint() -> None:
    async with LoopbackServer(models=["gpt-4.1"]) as server:
        assert (await a_model(server).complete(a_request())).text == "ok"
        with pytest.raises(ModelSetupError) as caught:
            await a_model(server, name="gpt-9").complete(a_request())

    assert "'gpt-9'" in str(caught.value)
    assert server.base_url in str(caught.value)


async def test_a_wrong_key_is_named_and_never_shown() -> None:
    async with LoopbackServer(key="sk-another-0123456789") as server:
        with pytest.raises(ModelSetupError) as caught:
            await a_model(server, api_key=KEY).complete(a_request())

    assert "OPENAI_API_KEY" in str(caught.value)
    assert KEY not in repr(caught.value)
    assert "sk-" not in str(caught.value)


async def test_where_no_key_was_sent_none_is_called_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    async with LoopbackServer(key="sk-another-0123456789") as server:
        with pytest.raises(ModelSetupError, match=r"wants a key .*; set OPENAI_API_KEY in"):
            await OpenAIModel("gpt-4.1", base_url=server.base_url).complete(a_request())


async def test_a_wait_that_may_be_taken_for_a_hang_is_told(
    ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    busy = Refuse(429, "rate_limit_exceeded", "slow down", {"retry-after": "30"})
    async with LoopbackServer(faults=faults.always(busy)) as server:
        asking = asyncio.create_task(ask(a_model(server), a_request()))
        while not caplog.messages:  # noqa: ASYNC110 - a log has nobody to tell
            await asyncio.sleep(0.01)
        asking.cancel()

    (said,) = caplog.messages
    assert re.search(r"slow down.*; it is asked again in 30 s", said)


async def test_a_dead_endpoint_is_told_within_seconds(ask: Ask) -> None:
    with socket.socket() as taken:
        # Bound and not listening: nothing else can take the port meanwhile.
        taken.bind(("127.0.0.1", 0))
        base_url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        began = time.monotonic()
        with pytest.raises(ModelSetupError) as caught:
            await ask(OpenAIModel("gpt-4.1", base_url=base_url), a_request())

    assert base_url in str(caught.value)
    assert "base_url" in str(caught.value)
    assert "4 attempts" in str(caught.value)
    assert time.monotonic() - began < 8


async def test_a_dead_endpoint_is_asked_no_more_often_than_allowed(ask: Ask) -> None:
    async with LoopbackServer() as server:
        base_url = server.base_url
    with pytest.raises(ModelSetupError, match="after 2 attempts"):
        await ask(OpenAIModel("m", base_url=base_url, max_retries=1, backoff=AT_ONCE), a_request())


async def test_an_endpoint_that_has_only_refused_is_there_all_the_same() -> None:
    async with LoopbackServer(faults=faults.always(faults.OVERLOADED)) as server:
        model = a_model(server, max_retries=4)
        with pytest.raises(ModelBusyError, match="attempt 5, the last"):
            await model.complete(a_request())
    with pytest.raises(ModelBusyError, match="attempt 5, the last"):
        await model.complete(a_request())


async def test_an_answer_to_another_process_is_none_to_this_one() -> None:
    async with LoopbackServer() as server:
        model = a_model(server)
        await model.complete(a_request())
        await model.close()
    with pytest.raises(ModelSetupError, match="cannot connect"):
        await cloudpickle.loads(cloudpickle.dumps(model)).complete(a_request())


@pytest.mark.parametrize("connected", [True, False])
async def test_an_endpoint_that_has_answered_is_given_time_to_come_back(
    ask: Ask, connected: bool
) -> None:
    async with LoopbackServer() as server:
        model = a_model(server, max_retries=6)
        await ask(model, a_request())
        if not connected:
            # Else the first that is noticed is a connection that broke.
            await model.close()
    with pytest.raises(ModelBusyError, match="attempt 7, the last"):
        await ask(model, a_request())


async def test_three_hundred_calls_are_open_at_once() -> None:
    async with LoopbackServer() as server:
        server.hold()
        model = a_model(server)
        calls = [asyncio.create_task(model.complete(a_request(str(n)))) for n in range(300)]
        await server.until_open(300)
        server.release()
        answers = await asyncio.gather(*calls)

    assert server.peak == 300
    assert {answer.text for answer in answers} == {"ok"}


async def test_no_more_sockets_are_opened_than_allowed() -> None:
    async with LoopbackServer(latency_s=0.01) as server:
        model = a_model(server, max_connections=5)
        await asyncio.gather(*(model.complete(a_request()) for _ in range(20)))

    assert server.peak == 5


async def test_one_connection_serves_one_call_after_another(ask: Ask) -> None:
    async with LoopbackServer() as server:
        model = a_model(server)
        for _ in range(5):
            await ask(model, a_request())

    assert len({seen.port for seen in server.seen}) == 1


async def test_a_cancelled_call_is_hung_up() -> None:
    async with LoopbackServer() as server:
        server.hold()
        call = asyncio.create_task(a_model(server).complete(a_request()))
        await server.until_open(1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await server.until_idle()

    assert server.requests == 1


async def test_a_stream_comes_in_pieces_and_ends_with_the_response() -> None:
    async with LoopbackServer(lambda _: Reply.text("one two three")) as server:
        pieces = [piece async for piece in a_model(server).stream(a_request())]

    assert pieces[:-1] == ["one ", "two ", "three"]
    assert isinstance(pieces[-1], ModelResponse)
    body = orjson.loads(server.seen[0].body)
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}


async def test_stream_options_of_ones_own_take_the_place_of_ours() -> None:
    own = {"stream_options": {"include_usage": False}}
    async with LoopbackServer() as server:
        await streamed(a_model(server, settings=own), a_request())

    body = server.seen[0].body
    assert orjson.loads(body)["stream_options"] == own["stream_options"]
    assert body.count(b"stream_options") == 1


async def test_a_stream_cut_after_its_first_words_ends_without_a_second_text() -> None:
    async with LoopbackServer(
        lambda _: Reply.text(LONG_TEXT), faults=faults.always(BreakOff("in_body"))
    ) as server:
        pieces: list[object] = []

        async def read() -> None:
            async for piece in a_model(server).stream(a_request()):
                pieces.append(piece)

        with pytest.raises(ModelBusyError, match="connection broke"):
            await read()

    assert server.requests == 1
    assert LONG_TEXT.startswith("".join(map(str, pieces)))
    assert pieces


@pytest.mark.parametrize(
    "fault",
    [
        BreakOff("before_headers"),
        faults.SERVER_ERROR,
        Raw(b"", "text/event-stream"),
        Raw(b'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n', "text/event-stream"),
        Raw(b'data: {"error":{"code":500,"message":"died"}}\n\n', "text/event-stream"),
        Raw(b"data: {not json\n\n", "text/event-stream"),
        Raw(b"data: [DONE]\n\n", "text/event-stream"),
    ],
    ids=str,
)
async def test_a_stream_that_breaks_before_its_first_word_is_asked_again(fault: Fault) -> None:
    async with LoopbackServer(faults=faults.first(1, fault)) as server:
        response = await streamed(a_model(server), a_request())

    assert response.text == "ok"
    assert response.waited_s > 0
    assert server.requests == 2


async def test_a_stream_that_nobody_reads_to_its_end_is_hung_up() -> None:
    async with LoopbackServer(lambda _: Reply.text(LONG_TEXT)) as server:
        model = a_model(server)
        stream = model.stream(a_request())
        assert await anext(stream) == "a "
        await stream.aclose()  # type: ignore[attr-defined]
        assert (await model.complete(a_request())).text == LONG_TEXT


def test_neither_a_key_nor_a_connection_is_pickled() -> None:
    async def ask_and_pickle() -> tuple[OpenAIModel, bytes, str]:
        async with LoopbackServer(key=KEY) as server:
            model = a_model(server, api_key=KEY)
            model.use_keys({"OPENAI_API_KEY": "sk-handed-in-0123456789", "OTHER": "x"})
            await model.complete(a_request())
            return model, cloudpickle.dumps(model), server.base_url

    model, pickled, base_url = asyncio.run(ask_and_pickle())

    assert KEY.encode() not in pickled
    assert b"sk-handed-in" not in pickled
    copy = cloudpickle.loads(pickled)
    assert (copy.name, copy.base_url) == ("gpt-4.1", base_url)
    assert copy.secrets == {}
    assert copy.key_names == model.key_names


async def test_a_key_given_in_code_is_handed_to_another_process_by_name() -> None:
    async with LoopbackServer(key=KEY) as server:
        here = a_model(server, api_key=KEY)
        (name,) = here.key_names
        assert name.startswith("OPENAI_API_KEY#")
        assert here.secrets == {name: KEY}

        there = cloudpickle.loads(cloudpickle.dumps(here))
        with pytest.raises(ModelSetupError, match="has not reached this process"):
            await there.complete(a_request())
        there.use_keys(here.secrets)
        assert (await there.complete(a_request())).text == "ok"


async def test_two_keys_given_in_code_have_two_names() -> None:
    one, two = (OpenAIModel("m", api_key=key) for key in ("sk-one-000000", "sk-two-000000"))

    assert one.key_names != two.key_names


async def test_a_key_in_the_environment_is_needed_by_name_and_read_when_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with LoopbackServer(key=KEY) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-old-0123456789")
        model = a_model(server)
        assert model.key_names == ("OPENAI_API_KEY",)
        assert model.secrets == {}
        with pytest.raises(ModelSetupError):
            await model.complete(a_request())
        monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
        assert (await model.complete(a_request())).text == "ok"


async def test_an_endpoint_of_ones_own_needs_no_key() -> None:
    async with LoopbackServer() as server:
        model = a_model(server)
        assert model.key_names == ()
        assert (await model.complete(a_request())).text == "ok"


async def test_openai_without_a_key_says_which_variable_to_set() -> None:
    model = OpenAIModel("gpt-4.1")

    assert model.key_names == ("OPENAI_API_KEY",)
    with pytest.raises(ModelSetupError, match="set OPENAI_API_KEY"):
        await model.complete(a_request())


async def test_a_key_with_a_line_break_in_it_is_refused_before_it_is_sent() -> None:
    async with LoopbackServer() as server:
        with pytest.raises(ModelSetupError, match="characters") as caught:
            await a_model(server, api_key="sk-one\nsk-two").complete(a_request())

    assert "sk-one" not in str(caught.value)
    assert server.requests == 0


async def test_another_variable_can_hold_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTER_KEY", KEY)
    async with LoopbackServer(key=KEY) as server:
        model = a_model(server, key_name="ROUTER_KEY")
        assert model.key_names == ("ROUTER_KEY",)
        assert (await model.complete(a_request())).text == "ok"
        monkeypatch.delenv("ROUTER_KEY")
        model = a_model(server, key_name="ROUTER_KEY")
        assert model.key_names == ("ROUTER_KEY",), "it was asked for"
        with pytest.raises(ModelSetupError, match="set ROUTER_KEY"):
            await model.complete(a_request())


@pytest.mark.parametrize("around", ["{}/", " {}", "{}\n"])
async def test_a_slash_and_spaces_around_an_address_do_no_harm(
    around: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LoopbackServer() as server:
        address = around.format(server.base_url)
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        for model in (
            OpenAIModel("m", base_url=address),
            OpenAIModel("m"),
            OpenAIModel("m", base_url="http://elsewhere.invalid").changed(base_url=address),
        ):
            assert (await model.complete(a_request())).text == "ok"
            await model.close()
    assert OpenAIModel("m", base_url="https://api.openai.com/v1/").key_names == ("OPENAI_API_KEY",)


def test_settings_are_those_of_when_the_model_was_made() -> None:
    settings = {"seed": 1}
    model = OpenAIModel("m", settings=settings)
    settings["seed"] = 2

    assert model.settings == {"seed": 1}


def test_the_endpoint_is_settled_when_the_model_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1234/v1")
    model = OpenAIModel("m")
    monkeypatch.delenv("OPENAI_BASE_URL")

    assert cloudpickle.loads(cloudpickle.dumps(model)).base_url == "http://127.0.0.1:1234/v1"


def test_one_model_serves_one_loop_after_another() -> None:
    async def ask(model: OpenAIModel | None) -> OpenAIModel:
        async with LoopbackServer(port=0) as server:
            model = model or a_model(server)
            model.base_url = server.base_url
            assert (await model.complete(a_request())).text == "ok"
            return model

    asyncio.run(ask(asyncio.run(ask(None))))


async def test_a_model_that_ends_in_a_cycle_leaves_no_connection_open() -> None:
    async with LoopbackServer() as server:
        model = a_model(server)
        await model.complete(a_request())
        model.backreference = model  # type: ignore[attr-defined]
        del model
        # What is unclosed among what it finds is a warning, and so an error of this test.
        gc.collect()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.sleep(0)
        closing = asyncio.all_tasks() - {asyncio.current_task()} - tasks
        assert len(closing) == 1
        await asyncio.wait(closing)


async def test_a_closed_model_has_no_connection_any_more() -> None:
    left = asyncio.Event()

    async def serve(exchange: Exchange) -> None:
        await exchange.answer()
        await exchange.until_left()
        left.set()

    async with endpoint(serve) as base_url:
        model = OpenAIModel("m", base_url=base_url)
        await model.complete(a_request())
        await model.close()
        async with asyncio.timeout(10):
            await left.wait()


async def test_a_closed_model_opens_again() -> None:
    async with LoopbackServer() as server:
        model = a_model(server)
        await model.complete(a_request())
        await model.close()
        assert (await model.complete(a_request())).text == "ok"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"base_url": "localhost:8000"}, "base_url"),
        ({"base_url": "http://host:port/v1"}, "base_url"),
        ({"base_url": "http:///v1"}, "base_url"),
        ({"max_retries": -1}, "model.max_retries"),
        ({"timeout_s": 0}, "model.timeout_s"),
        ({"max_connections": 0}, "model.max_connections"),
        ({"max_answer_bytes": 0}, "model.max_answer_bytes"),
        ({"base_url": "http://host:0/v1"}, "base_url"),
        ({"settings": {"messages": []}}, "model.settings.messages"),
        ({"settings": {"stream": True}}, "model.settings.stream"),
        ({"settings": {"stop": {1, 2}}}, "model.settings"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIModel("m", **settings)

    assert caught.value.field == field


def test_the_smallest_settings_are_taken() -> None:
    OpenAIModel("m", max_retries=0, timeout_s=0.001, max_connections=1, max_answer_bytes=1)


def test_an_address_with_a_login_is_refused_without_showing_it() -> None:
    with pytest.raises(ConfigError, match=r"no login before 'models\.example'") as caught:
        OpenAIModel("m", base_url="https://user:hunter2@models.example/v1")

    assert "hunter2" not in str(caught.value)


def test_an_empty_name_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"model\.name"):
        OpenAIModel("")


async def test_a_model_that_is_changed_keeps_all_else() -> None:
    async with LoopbackServer() as first, LoopbackServer() as second:
        price = Price(1.0, None, 7.0)
        model = a_model(first, name="mine", price=price, settings={"seed": 1, "top_p": 0.5})
        await model.complete(a_request())
        elsewhere = model.changed(base_url=second.base_url, settings={"seed": 2})
        response = await elsewhere.complete(a_request())
        await model.complete(a_request())
        await model.close()
        await elsewhere.close()

    assert [orjson.loads(seen.body)["seed"] for seen in first.seen] == [1, 1]
    body = orjson.loads(second.seen[0].body)
    assert (body["seed"], body["top_p"], body["model"]) == (2, 0.5, "mine")
    usage = response.usage
    assert usage.cost_usd == price.cost_usd(
        input_tokens=usage.input_tokens, cached_tokens=0, output_tokens=usage.output_tokens
    )
    assert usage.cost_usd > 0


async def test_a_model_that_is_changed_leaves_the_calls_of_the_other_alone() -> None:
    async with LoopbackServer() as first, LoopbackServer() as second:
        first.hold()
        model = a_model(first, max_retries=0)
        call = asyncio.create_task(model.complete(a_request()))
        await first.until_open(1)
        elsewhere = model.changed(base_url=second.base_url)
        await elsewhere.complete(a_request())
        await elsewhere.close()
        first.release()
        assert (await call).text == "ok"
        await model.close()


async def test_a_key_that_was_given_in_code_stays_with_its_endpoint() -> None:
    async with LoopbackServer() as first, LoopbackServer() as second:
        model = a_model(first, api_key=KEY)
        assert model.changed(settings={"seed": 2}).secrets == model.secrets
        elsewhere = model.changed(base_url=second.base_url)
        await elsewhere.complete(a_request())
        await elsewhere.close()

    assert elsewhere.secrets == {}
    assert KEY not in repr(second.seen)
