"""The loopback server, seen by the official client and as a process of its own."""

import os
import signal
import subprocess
import sys

import openai
import pytest

from harness_actors.messages import Message
from harness_actors.models import OpenAIModel
from harness_actors.testing import LoopbackProcess, LoopbackServer, Reply, over_messages
from tests.models.requests import a_request


def echoes(body: dict[str, object]) -> Reply:
    """A script that another process finds by name."""
    messages = body["messages"]
    assert isinstance(messages, list)
    return Reply.text(str(messages[-1]["content"]))


async def test_the_official_client_understands_it() -> None:
    reply = Reply.calls([("f", {"a": 1})], said="I look")
    async with (
        LoopbackServer(lambda _: reply, key="k") as server,
        openai.AsyncOpenAI(base_url=server.base_url, api_key="k") as client,
    ):
        models = await client.models.list()
        answer = await client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hi"}]
        )
        chunks = [
            chunk
            async for chunk in await client.chat.completions.create(
                model="m",
                messages=[{"role": "user", "content": "hi"}],
                stream=True,
                stream_options={"include_usage": True},
            )
        ]

    assert models.data[0].id == "scripted"
    message = answer.choices[0].message
    assert message.content == "I look"
    assert message.tool_calls is not None
    assert message.tool_calls[0].id == "call_1_0"
    assert answer.usage is not None
    assert chunks[-1].usage is not None
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "I look"


async def test_it_counts_what_it_sees() -> None:
    async with LoopbackServer() as server:
        model = OpenAIModel("m", base_url=server.base_url)
        await model.complete(a_request())
        await model.complete(a_request())

    stats = server.stats()
    assert (stats["requests"], stats["open_now"], stats["peak"]) == (2, 0, 1)
    assert stats["bytes_received"] == sum(len(seen.body) for seen in server.seen)
    assert stats["bytes_sent"] > 0


async def test_a_script_of_a_model_can_be_served() -> None:
    def script(messages: object) -> Reply:
        assert isinstance(messages, list)
        assert isinstance(messages[0], Message)
        return Reply.text(messages[0].text.upper())

    async with LoopbackServer(over_messages(script)) as server:
        response = await OpenAIModel("m", base_url=server.base_url).complete(a_request("hi"))

    assert response.text == "HI"


async def test_what_is_held_is_answered_when_the_server_goes() -> None:
    async with LoopbackServer() as server:
        server.hold()
        assert server.requests == 0


async def test_it_runs_in_a_process_of_its_own() -> None:
    with LoopbackProcess(f"{__name__}:echoes", key="k") as server:
        model = OpenAIModel("m", base_url=server.base_url, api_key="k")
        response = await model.complete(a_request("again"))
        assert response.text == "again"
        assert server.stats()["requests"] == 1
        pid = server.pid

    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_script_that_is_not_there_is_told() -> None:
    with pytest.raises(OSError, match="nowhere:nothing"), LoopbackProcess("nowhere:nothing"):
        pass


def test_alone_it_serves_until_it_is_interrupted() -> None:
    command = [sys.executable, "-m", "harness_actors.testing.loopback"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
