"""Text is told while it comes, and no answer is lost for it."""

from collections.abc import AsyncIterator, Sequence

import pytest

from harness_actors.errors import ModelBusyError, ModelError, ModelSetupError
from harness_actors.events import Event, ToolCalled
from harness_actors.ports import ModelRequest, ModelResponse, ToolSet
from harness_actors.results import Usage
from harness_actors.signals import CompactionComplete, TurnComplete
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.turn.voice import Voice
from tests.executors.driver import Driver, RecordingModel, SimpleAgent, a_tool, calls

REQUEST = ModelRequest(messages=(), tools=ToolSet.of(()))


class Heard:
    """A sink that keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def begin(self, turn: int, round: int) -> None:
        self.said.append(f"<{turn}.{round}>")

    def say(self, text: str) -> None:
        self.said.append(text)

    def end(self) -> None:
        self.said.append("<end>")

    def announce(self, turn: int, round: int, event: Event) -> None:
        call = f" {event.call_id}" if isinstance(event, ToolCalled) else ""
        self.said.append(f"<{turn}.{round} {event.type}{call}>")


class Streaming:
    """A model whose streams hold the given pieces, an error among them raised."""

    name = "streaming"

    def __init__(self, pieces: Sequence[str | Exception], whole: str = "whole") -> None:
        self._pieces = pieces
        self._whole = ModelResponse(text=whole, usage=Usage(model_calls=1))
        self.completed = 0

    async def complete(self, request: ModelRequest) -> ModelResponse:
        self.completed += 1
        return self._whole

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        for piece in self._pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece
        yield ModelResponse(text="".join(map(str, self._pieces)))


async def spoken(model: Streaming) -> tuple[ModelResponse, list[str]]:
    heard = Heard()
    response: ModelResponse = await Voice(heard, 2, 3).speak(model, REQUEST)
    return response, heard.said


async def test_the_text_is_told_piece_by_piece_and_the_response_is_the_last_item() -> None:
    model = Streaming(["one ", "two"])

    response, heard = await spoken(model)

    assert response.text == "one two"
    assert heard == ["<2.3>", "one ", "two", "<end>"]
    assert model.completed == 0


@pytest.mark.parametrize(
    "pieces",
    [
        [NotImplementedError("no streams here")],
        [ModelSetupError("streaming", "stream is not supported", 400)],
        ["one ", ModelBusyError("streaming", "broke off")],
    ],
)
async def test_what_is_no_whole_stream_is_asked_for_whole_and_told_anew(
    pieces: list[str | Exception],
) -> None:
    model = Streaming(pieces)

    response, heard = await spoken(model)

    assert response.text == "whole"
    assert heard[-3:] == ["<2.3>", "whole", "<end>"]
    assert model.completed == 1


@pytest.mark.parametrize(
    "pieces",
    [
        [ModelSetupError("streaming", "wrong key", 401)],
        [ModelBusyError("streaming", "all retries were made")],
        ["one ", ModelError("streaming", "refused")],
        ["one ", ModelSetupError("streaming", "stream is not supported", 400)],
    ],
)
async def test_what_asking_again_does_not_help_is_raised(pieces: list[str | Exception]) -> None:
    model = Streaming(pieces)

    with pytest.raises(ModelError):
        await spoken(model)
    assert model.completed == 0


async def test_a_stream_is_closed_when_its_answer_is_there() -> None:
    closed = []

    class Closing(Streaming):
        async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
            try:
                yield ModelResponse(text="")
                yield "more"
            finally:
                closed.append(True)

    await spoken(Closing([]))
    assert closed == [True]


async def test_a_model_that_knows_no_streams_is_asked_for_whole_answers() -> None:
    class Whole:
        name = "whole"

        async def complete(self, request: ModelRequest) -> ModelResponse:
            return ModelResponse(text="whole")

    heard = Heard()
    response = await Voice(heard, 2, 3).speak(Whole(), REQUEST)  # type: ignore[arg-type]

    assert response.text == "whole"
    assert heard.said == ["<2.3>", "whole", "<end>"]


@pytest.mark.parametrize("answer", [ModelResponse(text=None), "a bare text", None])
def test_of_what_is_no_text_nothing_is_told(answer: object) -> None:
    heard = Heard()
    Voice(heard, 2, 3).tell(answer)
    assert heard.said == []


class NeverStreams(RecordingModel):
    def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        pytest.fail("nobody reads, so nothing is to be streamed")


class Late:
    """A filter that lets nothing pass before the end."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        self._held += piece
        return ""

    def end(self) -> str:
        return self._held


class Loud:
    """A filter that lets all pass at once, in capitals."""

    def feed(self, piece: str) -> str:
        return piece.upper()

    def end(self) -> str:
        return ""


@pytest.mark.parametrize("streams", [True, False])
async def test_what_a_filter_lets_go_at_the_end_passes_those_after_it(streams: bool) -> None:
    model = Streaming(["one ", "two"] if streams else [NotImplementedError()], whole="one two")
    heard = Heard()

    await Voice(heard, 2, 3).speak(model, REQUEST, lambda: [Late(), Loud()])

    assert [text for text in heard.said if not text.startswith("<")] == ["ONE TWO"]


async def test_a_turn_that_nobody_listens_to_asks_for_whole_answers() -> None:
    driver = Driver(SimpleAgent(NeverStreams([Reply.text("done")])))

    outcome = await driver.serve("agent_turn", CompactionComplete())

    assert isinstance(outcome, TurnComplete)
    assert outcome.text == "done"


async def test_a_turn_tells_the_text_of_each_round_with_its_number() -> None:
    script = [Reply.call("look", said="I look."), calls(("a", "look")), Reply.text("It is so.")]
    driver = Driver(SimpleAgent(ScriptedModel(script), [a_tool("look", idempotent=True)]))
    driver.texts = heard = Heard()

    await driver.serve("agent_turn", CompactionComplete())

    assert "".join(heard.said) == (
        "<1.1>I look.<end><1.1 agent_response><1.1 tool_called call_2_0>"
        "<1.2><end><1.2 agent_response><1.2 tool_called a>"
        "<1.3>It is so.<end>"
    )


async def test_of_a_round_only_what_is_not_on_disk_yet_is_told_beside_its_text() -> None:
    two, fenced = calls(("a", "look"), ("b", "look", "[]")), calls(("c", "look"), ("d", "note"))
    tools = [a_tool("look", idempotent=True), a_tool("note")]
    refused = calls(("e", "unknown"))
    driver = Driver(SimpleAgent(ScriptedModel([two, fenced, refused, Reply.text("x")]), tools))
    driver.texts = heard = Heard()

    await driver.serve("agent_turn", CompactionComplete())

    told = [said for said in heard.said if "response" in said or "called" in said]
    assert told == ["<1.1 agent_response>", "<1.1 tool_called a>", "<1.1 tool_called b>"]


async def test_who_begins_to_listen_in_the_middle_of_a_call_gets_its_text_whole() -> None:
    heard = Heard()

    async def attach() -> None:
        assert driver.context is not None
        driver.context.texts = heard

    driver = Driver(SimpleAgent(NeverStreams([Reply.text("one two")], before=attach)))

    await driver.serve("agent_turn", CompactionComplete())

    assert heard.said == ["<1.1>", "one two", "<end>"]
