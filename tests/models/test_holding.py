"""A provider that does not take the form that its model is to be held to is asked without it."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from harness_actors.errors import ModelSetupError
from harness_actors.messages import Message, encode_json
from harness_actors.models import OpenAIModel
from harness_actors.models.body import RequestBody
from harness_actors.models.holding import complete_held, stream_held
from harness_actors.ports import ModelRequest, ModelResponse, StrictForm, ToolSet
from harness_actors.testing import LoopbackServer, Reply
from harness_actors.testing.faults import Refuse
from tests.models.requests import a_request

FORM = StrictForm(response_format=b'{"type":"json_schema"}')


def held_request() -> ModelRequest:
    return ModelRequest(messages=(Message.user("go"),), tools=ToolSet.of(()), strict=FORM)


def encode(*, strict: bool = False) -> RequestBody:
    return RequestBody(b"{", (b'"strict"',) if strict else (), b"}")


class Provider:
    """Answers in two pieces, or refuses."""

    def __init__(self, status: int | None, *, after: int = 0, always: bool = False) -> None:
        self.status = status
        self.after = after
        self.always = always
        self.asked: list[bool] = []
        self.noted = 0

    def note(self) -> None:
        self.noted += 1

    def _refuses(self, body: RequestBody) -> bool:
        strict = b"strict" in bytes(body)
        self.asked.append(strict)
        return self.status is not None and (strict or self.always)

    async def answer(self, body: RequestBody) -> ModelResponse:
        if self._refuses(body):
            raise ModelSetupError("m", "no", self.status)
        return ModelResponse(text="ab")

    async def pieces(self, body: RequestBody) -> AsyncGenerator[str | ModelResponse]:
        refuses = self._refuses(body)
        for at, text in enumerate("ab"):
            if refuses and at == self.after:
                raise ModelSetupError("m", "no", self.status)
            yield text
        yield ModelResponse(text="ab")

    async def said(self, *, stream: bool) -> list[Any]:
        if not stream:
            return [(await complete_held(self.answer, encode, self.note)).text]
        pieces = stream_held(self.pieces, encode, self.note)
        return [piece async for piece in pieces if isinstance(piece, str)]


@pytest.mark.parametrize("stream", [False, True])
async def test_who_takes_it_is_asked_once(stream: bool) -> None:
    provider = Provider(None)
    assert "".join(await provider.said(stream=stream)) == "ab"
    assert (provider.asked, provider.noted) == ([True], 0)


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("stream", [False, True])
async def test_who_refuses_it_is_asked_without(status: int, stream: bool) -> None:
    provider = Provider(status)
    assert "".join(await provider.said(stream=stream)) == "ab"
    assert (provider.asked, provider.noted) == ([True, False], 1)


@pytest.mark.parametrize("stream", [False, True])
async def test_another_fault_is_told_and_says_nothing_of_the_form(stream: bool) -> None:
    for provider, asked in (
        (Provider(401), [True]),
        (Provider(400, always=True), [True, False]),
    ):
        with pytest.raises(ModelSetupError):
            await provider.said(stream=stream)
        assert (provider.asked, provider.noted) == (asked, 0)


async def test_what_was_said_is_not_said_again() -> None:
    provider = Provider(400, after=1)
    with pytest.raises(ModelSetupError):
        await provider.said(stream=True)
    assert provider.asked == [True]


async def said(model: OpenAIModel, request: ModelRequest, *, stream: bool) -> str | None:
    if not stream:
        return (await model.complete(request)).text
    return "".join([piece async for piece in model.stream(request) if isinstance(piece, str)])


@pytest.mark.parametrize("stream", [False, True])
async def test_it_is_not_sent_to_who_has_refused_it(stream: bool) -> None:
    def refuses(_: int, body: dict[str, Any]) -> Refuse | None:
        return Refuse(400, "bad", "what is that?") if "response_format" in body else None

    async with LoopbackServer(lambda _: Reply.text("yes"), faults=refuses) as server:
        model = OpenAIModel("m", base_url=server.base_url, structured_output=True)
        for _ in range(2):
            assert await said(model, held_request(), stream=stream) == "yes"
        again = [b"response_format" in one.body for one in server.seen]
        await model.close()
    assert again == [True, False, False]


async def test_only_who_can_is_sent_it_and_a_setting_of_the_user_comes_first() -> None:
    async with LoopbackServer(lambda _: Reply.text("yes")) as server:
        own = {"response_format": {"type": "json_object"}}
        models = [
            OpenAIModel("m", base_url=server.base_url),
            OpenAIModel("m", base_url=server.base_url, structured_output=True),
            OpenAIModel("m", base_url=server.base_url, structured_output=True, settings=own),
        ]
        for model in models:
            await model.complete(held_request())
            await model.close()
        ours = b'"response_format":' + encode_json({"type": "json_schema"})
        formats = [one.body.count(ours) for one in server.seen]
        own_formats = [one.body.count(b'"response_format"') for one in server.seen]
    assert formats == [0, 1, 0]
    assert own_formats == [0, 1, 1]


async def test_a_request_without_a_form_is_the_same_for_all() -> None:
    async with LoopbackServer(lambda _: Reply.text("yes")) as server:
        for structured in (False, True):
            model = OpenAIModel("m", base_url=server.base_url, structured_output=structured)
            await model.complete(a_request("go"))
            await model.close()
        first, second = (one.body for one in server.seen)
    assert first == second
