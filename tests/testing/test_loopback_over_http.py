"""What another process may ask of a loopback server: to wait, and to take long conversations."""

import asyncio
from io import BytesIO
from typing import Any

import aiohttp
import orjson

from harness_actors.testing import LoopbackServer

ASKED = {"model": "scripted", "messages": [{"role": "user", "content": "Say something."}]}


async def test_answers_are_held_until_they_are_released() -> None:
    async with LoopbackServer() as server, aiohttp.ClientSession() as client:
        root = server.base_url.removesuffix("/v1")

        async def ask() -> Any:
            url = f"{server.base_url}/chat/completions"
            async with client.post(url, data=orjson.dumps(ASKED)) as answer:
                return orjson.loads(await answer.read())

        async with client.post(f"{root}/hold") as told:
            assert told.status == 200
        asking = [asyncio.ensure_future(ask()) for _ in range(3)]
        await server.until_open(3)
        assert not any(task.done() for task in asking)
        async with client.post(f"{root}/release") as told:
            counts = orjson.loads(await told.read())
        answers = await asyncio.gather(*asking)

    assert counts["peak"] == 3
    assert {answer["choices"][0]["message"]["content"] for answer in answers} == {"ok"}


async def test_a_conversation_of_several_megabytes_is_taken() -> None:
    said = "so on, " * 500_000
    body = orjson.dumps({**ASKED, "messages": [{"role": "user", "content": said}]})
    async with LoopbackServer(keep=0) as server, aiohttp.ClientSession() as client:
        # As a file: aiohttp warns of so many bytes in one piece.
        url, file = f"{server.base_url}/chat/completions", BytesIO(body)
        async with client.post(url, data=file) as answer:
            status = answer.status
        received = server.bytes_received

    assert status == 200
    assert received == len(body)
