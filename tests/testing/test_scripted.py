"""The scripted model is a function of the conversation."""

import cloudpickle
import pytest

from harness_actors.errors import ModelRefusedError, ModelSetupError
from harness_actors.messages import Message, ToolCall
from harness_actors.ports import ModelRequest, ModelResponse, ToolSet
from harness_actors.testing import Reply, ScriptedModel, an_agent


def asked(*messages: Message) -> ModelRequest:
    return ModelRequest(messages=messages, tools=ToolSet.of([]))


async def test_the_same_conversation_gets_the_same_answer_in_any_process() -> None:
    model = ScriptedModel(lambda messages: Reply.call("f", {"said": messages[-1].text}))
    copy = cloudpickle.loads(cloudpickle.dumps(model))

    answers = [
        await each.complete(asked(Message.user("a"), Message.user("b")))
        for each in (model, model, copy)
    ]

    assert answers[0].tool_calls == (ToolCall("call_2_0", "f", '{"said":"b"}'),)
    assert answers[0] == answers[1] == answers[2]
    assert answers[0].usage.input_tokens > 0


async def test_a_list_is_answered_by_how_often_the_model_has_spoken() -> None:
    model = ScriptedModel([Reply.text("one"), Reply.text("two")])
    begun = asked(Message.user("a"))
    spoken = asked(Message.user("a"), Message.assistant("one"), Message.user("b"))

    assert (await model.complete(spoken)).text == "two"
    assert (await model.complete(begun)).text == "one"


async def test_a_list_at_its_end_says_so() -> None:
    with pytest.raises(ModelSetupError, match="1 replies"):
        await ScriptedModel([Reply.text("x")]).complete(asked(Message.assistant("x")))


async def test_calls_keep_the_ids_that_they_are_given() -> None:
    reply = Reply.calls([("f", "{"), ("g", {})], ids=["same", "same"])

    response = await ScriptedModel([reply]).complete(asked())

    assert [call.id for call in response.tool_calls] == ["same", "same"]
    assert response.tool_calls[0].arguments == "{"
    assert response.finish_reason == "tool_calls"


async def test_a_script_can_fail() -> None:
    model = ScriptedModel(lambda _: Reply.error(ModelRefusedError("m", "no")))

    with pytest.raises(ModelRefusedError):
        await model.complete(asked())


async def test_a_stream_ends_with_the_response() -> None:
    model = ScriptedModel([Reply.text("one two")])

    *pieces, response = [piece async for piece in model.stream(asked())]

    assert pieces == ["one ", "two"]
    assert isinstance(response, ModelResponse)


async def test_an_agent_is_done_at_once() -> None:
    agent = an_agent()

    response = await agent.model.complete(asked(Message.user("Go.")))

    assert [call.name for call in response.tool_calls] == ["work_complete"]
