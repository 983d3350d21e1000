"""A model that answers from a file.

``HARNESS_RECORD=all python -m pytest tests/testing/test_recorded.py`` records the file of the
embedded model anew; that needs the package's extra `local`.
"""

import os
import pickle
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest

from harness_actors import AgentHarness, ChatAgent, tool
from harness_actors.errors import BadInputError, ConfigError, ModelSetupError
from harness_actors.models import LocalModel, LocalServer, OpenAIModel
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.results import HarnessResult
from harness_actors.testing import LoopbackServer, RecordedModel, Reply
from tests.models.requests import a_request, a_tool

CASSETTE = Path(__file__).parent / "cassettes" / "embedded.jsonl"
ANEW = os.environ.get("HARNESS_RECORD") == "all"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.jsonl"


@pytest.fixture
async def server() -> AsyncIterator[LoopbackServer]:
    async with LoopbackServer(lambda body: Reply.text("one two three")) as opened:
        yield opened


def real(server: LoopbackServer) -> OpenAIModel:
    return OpenAIModel("recorded-model", base_url=server.base_url, api_key="sk-secret-key")


def contents(path: Path) -> str:
    return path.read_text()


async def test_what_is_missing_is_asked_once(path: Path, server: LoopbackServer) -> None:
    recording = RecordedModel(path, real(server), record="missing")

    first = await recording.complete(a_request("hello"))
    again = await recording.complete(a_request("hello"))
    elsewhere = await RecordedModel(path).complete(a_request("hello"))

    assert server.requests == 1
    assert first.text == "one two three"
    assert first == again == elsewhere
    assert first.usage.input_tokens > 0


async def test_all_asks_everything_anew(path: Path, server: LoopbackServer) -> None:
    await RecordedModel(path, real(server), record="missing").complete(a_request("hello"))
    replies = iter(["other words"])
    async with LoopbackServer(lambda body: Reply.text(next(replies))) as changed:
        await RecordedModel(path, real(changed), record="all").complete(a_request("hello"))

    assert (await RecordedModel(path).complete(a_request("hello"))).text == "other words"


async def test_calls_and_finish_reasons_are_kept(path: Path) -> None:
    reply = Reply.calls([("read_file", {"path": "a"}), ("read_file", {"path": "b"})], said="both")
    async with LoopbackServer(lambda body: reply) as server:
        recording = RecordedModel(path, real(server), record="missing")
        request = a_request("look", tools=[a_tool()])
        live = await recording.complete(request)

    recorded = await RecordedModel(path).complete(request)

    assert recorded == live
    assert [call.arguments for call in recorded.tool_calls] == ['{"path":"a"}', '{"path":"b"}']
    assert recorded.finish_reason == "tool_calls"


async def streamed(model: RecordedModel, request: ModelRequest) -> list[str | ModelResponse]:
    return [piece async for piece in model.stream(request)]


async def test_a_stream_is_recorded_in_its_pieces(path: Path, server: LoopbackServer) -> None:
    live = await streamed(RecordedModel(path, real(server), record="missing"), a_request("hello"))

    assert await streamed(RecordedModel(path), a_request("hello")) == live
    assert live[:-1] == ["one ", "two ", "three"]
    assert await RecordedModel(path).complete(a_request("hello")) == live[-1]


async def test_a_whole_answer_is_streamed_word_by_word(path: Path, server: LoopbackServer) -> None:
    await RecordedModel(path, real(server), record="missing").complete(a_request("hello"))

    *pieces, whole = await streamed(RecordedModel(path), a_request("hello"))

    assert pieces == ["one ", "two ", "three"]
    assert isinstance(whole, ModelResponse)


async def test_a_request_that_is_not_there_is_told_by_the_nearest(
    path: Path, server: LoopbackServer
) -> None:
    recording = RecordedModel(path, real(server), record="missing")
    await recording.complete(a_request("good morning"))
    await recording.complete(a_request("look", tools=[a_tool()]))

    with pytest.raises(ModelSetupError) as other_words:
        await RecordedModel(path).complete(a_request("good evening"))
    with pytest.raises(ModelSetupError) as other_tools:
        await RecordedModel(path).complete(a_request("look", tools=[a_tool("delete")]))

    told = str(other_words.value)
    assert "'user: good evening'" in told
    assert "record='missing'" in told
    assert str(path) in told
    assert "recorded with other tools: read_file; asked: delete" in str(other_tools.value)


async def test_an_empty_file_says_so(path: Path) -> None:
    with pytest.raises(ModelSetupError, match="holds no answer at all"):
        await RecordedModel(path).complete(a_request("hello"))


async def test_no_key_is_in_the_file_or_in_the_pickled_model(
    path: Path, server: LoopbackServer
) -> None:
    recording = RecordedModel(path, real(server), record="missing")
    await recording.complete(a_request("hello"))

    assert "sk-secret-key" not in contents(path)
    assert b"sk-secret-key" not in pickle.dumps(recording)
    assert set(recording.secrets.values()) == {"sk-secret-key"}
    assert RecordedModel(path).key_names == ()


async def test_it_answers_in_another_process(path: Path, server: LoopbackServer) -> None:
    recording = RecordedModel(path, real(server), record="missing")
    await recording.complete(a_request("hello"))

    travelled = pickle.loads(pickle.dumps(RecordedModel(path)))

    assert (await travelled.complete(a_request("hello"))).text == "one two three"
    assert travelled.name == "recorded-model"


def with_text(path: Path, text: str) -> tuple[str, int]:
    path.write_text(text)
    return found_in(path)


def found_in(path: Path) -> tuple[str, int]:
    """The text of a file, and when it was written."""
    return path.read_text(), path.stat().st_mtime_ns


@pytest.mark.parametrize("text", ["mine", '{"part": "a", "shows": "b"}\n', "[1]\n", "\n"])
@pytest.mark.parametrize("record", ["all", "missing"])
async def test_nothing_is_recorded_into_a_file_of_something_else(
    text: str, record: Literal["all", "missing"], path: Path, server: LoopbackServer
) -> None:
    before = with_text(path, text)

    with pytest.raises(BadInputError, match="no cassette"):
        await RecordedModel(path, real(server), record=record).complete(a_request("hello"))

    assert found_in(path) == before


def test_settings_are_checked(path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a model"):
        RecordedModel(path, record="missing")
    with pytest.raises(ConfigError, match="must be 'never'"):
        RecordedModel(path, record="sometimes")  # type: ignore[arg-type]
    path.write_text("no json\n")
    with pytest.raises(BadInputError, match="no cassette"):
        RecordedModel(path)


# ---- the embedded model, recorded -------------------------------------------------------


@tool(effect="read_only")
def weather(city: str) -> str:
    """Tell the weather of a city.

    Args:
        city: Its name.
    """
    return f"It rains in {city}."


async def test_the_embedded_model_is_recorded_over_http(path: Path) -> None:
    server = LocalServer(context_tokens=512)
    try:
        embedded = LocalModel(max_tokens=4)
        embedded.connect(server.start())
        recording = RecordedModel(path, embedded, record="missing")
        answer = await recording.complete(a_request("Say hello."))
        stream = await streamed(recording, a_request("Count to three."))
    finally:
        server.close()

    recorded = RecordedModel(path)
    assert await recorded.complete(a_request("Say hello.")) == answer
    assert await streamed(recorded, a_request("Count to three.")) == stream
    assert recorded.name == embedded.name


async def a_whole_run(store: Path) -> HarnessResult:
    if not ANEW:
        return await _run(RecordedModel(CASSETTE), store)
    CASSETTE.unlink(missing_ok=True)
    return await _run(RecordedModel(CASSETTE, LocalModel(max_tokens=64), record="all"), store)


async def _run(model: RecordedModel, store: Path) -> HarnessResult:
    agent = ChatAgent(model=model, instructions="You answer briefly.", tools=[weather])
    limits = {"model_calls": 3}
    async with AgentHarness(agent, runtime="local", store=store, limits=limits) as harness:
        return await harness.run("What is the weather in Paris?")


async def test_a_whole_run_needs_the_recording_alone(tmp_path: Path) -> None:
    first = await a_whole_run(tmp_path / "one.db")
    again = await _run(RecordedModel(CASSETTE), tmp_path / "two.db")

    assert (again.status, again.reason.kind) == (first.status, first.reason.kind)
    assert first.reason.kind in {"completed", "model_calls"}
    assert again.output_text == first.output_text
    assert again.usage.model_calls == first.usage.model_calls > 0
    assert again.usage.input_tokens == first.usage.input_tokens > 0
