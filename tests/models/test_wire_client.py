"""What a request keeps of openai's client, though it does not pass through it."""

import gzip
import os
import socket
import ssl
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import openai
import orjson
import pytest
from httpx2 import URL, Request, Response

from harness_actors.errors import ContextOverflowError, ModelBusyError, ModelSetupError
from harness_actors.models import Backoff, OpenAIModel, client
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.testing import LoopbackServer
from tests.models.certificate import CERTIFICATE, KEY
from tests.models.endpoints import ANSWER, Exchange, endpoint
from tests.models.requests import a_request

EVENTS = (
    b'data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


@pytest.fixture(autouse=True)
def no_ambient_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of whoever runs the tests must not reach them."""
    for name in list(os.environ):
        if name.upper().endswith("_PROXY") or name.startswith(("OPENAI_", "SSL_CERT_")):
            monkeypatch.delenv(name)


def a_model(base_url: str, **settings: Any) -> OpenAIModel:
    at_once = Backoff(first_s=0.001, longest_s=0.002)
    return OpenAIModel("gpt-4.1", base_url=base_url, **{"backoff": at_once, **settings})


async def streamed(model: OpenAIModel, request: ModelRequest) -> ModelResponse:
    *_, response = [piece async for piece in model.stream(request)]
    assert isinstance(response, ModelResponse)
    return response


async def headers_of_the_client(server: LoopbackServer, **settings: Any) -> Mapping[str, str]:
    """What openai's client sends by itself, without what it says of its own retries."""
    http = openai.DefaultAioHttpClient()
    async with openai.AsyncOpenAI(
        base_url=server.base_url, http_client=http, max_retries=0, **settings
    ) as theirs:
        body = orjson.dumps({"model": "gpt-4.1", "messages": []})
        await theirs.post("/chat/completions", content=body, cast_to=Response)
    return without_lengths(server.seen[-1].headers)


def without_lengths(headers: Mapping[str, str]) -> dict[str, str]:
    own = ("content-length", "x-stainless-retry-count", "x-stainless-read-timeout")
    return {name: value for name, value in headers.items() if name not in own}


@pytest.mark.parametrize("other_transport", [False, True])
async def test_the_headers_are_those_of_the_client(
    other_transport: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-one")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-two")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: blue\nUser-Agent: ours")
    async with LoopbackServer() as server:
        expected = await headers_of_the_client(server, api_key="sk-a-key")
        if other_transport:
            # What the package has where aiohttp is missing: no session to be used directly.
            monkeypatch.setattr(openai, "DefaultAioHttpClient", openai.DefaultAsyncHttpxClient)
        model = a_model(server.base_url, api_key="sk-a-key")
        assert (await model.complete(a_request())).text == "ok"
        plain = without_lengths(server.seen[-1].headers)
        assert (await streamed(model, a_request())).text == "ok"

    assert plain == expected
    assert without_lengths(server.seen[-1].headers) == expected
    assert expected["authorization"] == "Bearer sk-a-key"
    assert expected["openai-organization"] == "org-one"
    assert expected["openai-project"] == "proj-two"
    assert expected["x-team"] == "blue"


async def test_an_authorization_in_the_environment_goes_before_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "authorization: Token of-a-gateway")
    async with LoopbackServer() as server:
        expected = await headers_of_the_client(server, api_key="sk-a-key")
        await a_model(server.base_url, api_key="sk-a-key").complete(a_request())

    assert without_lengths(server.seen[-1].headers) == expected
    assert expected["authorization"] == "Token of-a-gateway"


async def test_requests_go_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with LoopbackServer() as server:
        proxy = server.base_url.removesuffix("/v1").replace("http://", "http://me:se%40cret@")
        monkeypatch.setenv("HTTP_PROXY", proxy)
        model = a_model("http://a-model.invalid/v1", api_key="sk-a-key")
        assert (await model.complete(a_request())).text == "ok"
        assert (await streamed(model, a_request())).text == "ok"

    for seen in server.seen:
        assert seen.headers["host"] == "a-model.invalid"
        assert seen.headers["authorization"] == "Bearer sk-a-key"
        assert seen.headers["proxy-authorization"] == "Basic bWU6c2VAY3JldA=="  # me:se@cret


@pytest.mark.parametrize("around", ["127.0.0.1", "127.0.0.0/8", "*"])
async def test_no_proxy_is_used_for_hosts_that_are_exempt(
    around: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://a-proxy.invalid:3128")
    monkeypatch.setenv("NO_PROXY", around)
    async with LoopbackServer() as server:
        assert (await a_model(server.base_url).complete(a_request())).text == "ok"


async def test_a_proxy_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with pytest.raises(ModelSetupError, match="cannot connect"):
        await a_model("http://a-model.invalid/v1", max_retries=0).complete(a_request())


async def test_certificates_are_trusted_as_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "certificate.pem").write_text(CERTIFICATE)
    (tmp_path / "key.pem").write_text(KEY)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    async with endpoint(Exchange.answer, tls=tls) as base_url:
        with pytest.raises(ModelSetupError, match="CERTIFICATE_VERIFY_FAILED"):
            await a_model(base_url, max_retries=0, api_key="k").complete(a_request())
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        model = a_model(base_url, max_retries=0, api_key="k")
        assert (await model.complete(a_request())).text == "ok"
        await model.close()


async def test_a_packed_answer_is_unpacked() -> None:
    async def packed(exchange: Exchange) -> None:
        assert "gzip" in exchange.head.lower().partition("accept-encoding: ")[2].splitlines()[0]
        body = EVENTS if b'"stream":true' in exchange.body else ANSWER
        kind = "text/event-stream" if body is EVENTS else "application/json"
        await exchange.answer(
            gzip.compress(body), "Content-Encoding: gzip", f"Content-Type: {kind}"
        )

    async with endpoint(packed) as base_url:
        model = a_model(base_url)
        assert (await model.complete(a_request())).text == "ok"
        assert (await streamed(model, a_request())).text == "ok"


async def test_megabytes_go_either_way() -> None:
    text = "x" * 3_000_000
    answer = {"choices": [{"message": {"content": text}}]}
    async with LoopbackServer(lambda _: answer) as server:
        model = a_model(server.base_url)
        response = await model.complete(a_request(text))
        await model.complete(a_request(*(str(n) * 1_000 for n in range(1_000, 2_000))))

    assert response.text == text
    assert orjson.loads(server.seen[0].body)["messages"][0]["content"] == text
    many = orjson.loads(server.seen[1].body)["messages"]
    assert [message["content"] for message in many] == [str(n) * 1_000 for n in range(1_000, 2_000)]


async def test_a_refusal_in_the_middle_of_a_request_is_told() -> None:
    async def too_large(exchange: Exchange) -> None:
        await exchange.answer(b"", "Connection: close", status="413 Content Too Large")
        await exchange.until_left()

    async with endpoint(too_large, reads_bodies=False) as base_url:
        with pytest.raises(ContextOverflowError):
            await a_model(base_url, max_retries=0).complete(a_request("x" * 9_000_000))


async def test_a_connection_that_the_server_had_closed_is_replaced() -> None:
    heard: list[int] = []

    async def once_a_connection(exchange: Exchange) -> None:
        heard.append(exchange.number)
        # It was idle for too long: what comes on it next is not answered.
        if exchange.number == 1:
            exchange.hang_up()
        else:
            await exchange.answer()

    async with endpoint(once_a_connection) as base_url:
        model = a_model(base_url)
        assert (await model.complete(a_request())).waited_s == 0.0
        assert (await model.complete(a_request())).waited_s > 0.0

    assert heard == [0, 1, 2]


@pytest.mark.parametrize("other_transport", [False, True])
@pytest.mark.parametrize(
    ("head", "pieces"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n", b'{"choices":['),
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", b"data: {"),
    ],
)
async def test_an_answer_that_stops_half_way_is_late(
    head: bytes, pieces: bytes, other_transport: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if other_transport:
        monkeypatch.setattr(openai, "DefaultAioHttpClient", openai.DefaultAsyncHttpxClient)

    async def half(exchange: Exchange) -> None:
        await exchange.write(head, pieces)
        await exchange.until_left()

    async with endpoint(half) as base_url:
        model = a_model(base_url, timeout_s=0.2, max_retries=0)
        ask = streamed if b"event-stream" in head else OpenAIModel.complete
        with pytest.raises(ModelBusyError, match=r"no answer within 0\.2 s"):
            await ask(model, a_request())


async def test_a_host_that_takes_no_connection_is_unreachable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client, "CONNECT_TIMEOUT_S", 0.1)
    with socket.socket() as full, socket.socket() as waiting:
        # A queue of one that is taken: the kernel answers no further connection.
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting.connect(full.getsockname())
        base_url = f"http://127.0.0.1:{full.getsockname()[1]}/v1"
        with pytest.raises(ModelSetupError, match="cannot connect"):
            await a_model(base_url, timeout_s=60.0, max_retries=0).complete(a_request())


async def test_an_answer_that_sends_to_another_path_is_followed() -> None:
    seen: list[bytes] = []

    async def moved(exchange: Exchange) -> None:
        if "/v1/chat/completions" in exchange.head:
            location = "Location: /v2/chat/completions"
            await exchange.answer(b"", location, status="307 Temporary Redirect")
        else:
            seen.append(exchange.body)
            await exchange.answer()

    async with endpoint(moved) as base_url:
        model = a_model(base_url)
        assert (await model.complete(a_request("as it was"))).text == "ok"
        assert (await streamed(model, a_request("as it was"))).text == "ok"

    assert [b"as it was" in body for body in seen] == [True, True]


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 T", "308 P"])
@pytest.mark.parametrize("hops", [1, 2])
async def test_an_answer_that_sends_to_another_host_is_not_followed(status: str, hops: int) -> None:
    async with LoopbackServer() as elsewhere:

        async def moved(exchange: Exchange) -> None:
            first = hops == 2 and "/v2" not in exchange.head
            there = "/v2" if first else f"{elsewhere.base_url}/chat/completions"
            await exchange.answer(b"", f"Location: {there}", status=status)

        async with endpoint(moved) as base_url:
            model = a_model(base_url)
            for ask in (model.complete, partial(streamed, model)):
                with pytest.raises(ModelSetupError, match="which is not followed") as caught:
                    await ask(a_request())
                assert elsewhere.base_url.removesuffix("/v1") in str(caught.value)

    assert elsewhere.requests == 0
    assert not elsewhere.seen


@pytest.mark.parametrize(
    ("base_url", "there", "follows"),
    [
        ("http://one.example/v1", "https://one.example/v1", True),
        ("https://one.example/v1", "http://one.example/v1", False),
        ("https://one.example/v1", "https://one.example:8443/v1", False),
        ("https://one.example/v1", "https://one.example.two.example/v1", False),
        ("http://one.example:80/v1", "http://one.example/other", True),
    ],
)
async def test_a_way_leads_on_only_where_the_host_and_its_port_are_the_same(
    base_url: str, there: str, follows: bool
) -> None:
    check = client._staying_with(URL(base_url))
    if follows:
        await check(Request("POST", there))
    else:
        with pytest.raises(client._SentElsewhereError):
            await check(Request("POST", there))


async def test_what_is_neither_an_answer_nor_a_way_is_refused() -> None:
    async def not_modified(exchange: Exchange) -> None:
        await exchange.answer(b"", status="304 Not Modified")

    async with endpoint(not_modified) as base_url:
        with pytest.raises(ModelSetupError) as caught:
            await a_model(base_url, max_retries=0).complete(a_request())

    assert caught.value.status == 304
