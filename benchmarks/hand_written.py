"""The loops that somebody writes by hand: nothing survives a crash, nothing is bounded."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

from benchmarks.notes import INSTRUCTIONS, KEY, MODEL, TOOLS, Work
from benchmarks.windows import window

Conversation = Callable[[str], Awaitable[None]]
Ask = Callable[[bytes], Awaitable[bytes]]


async def run_openai(work: Work, warm_up: Work) -> None:
    """Over the provider's client, as its documentation shows it."""
    import openai

    tool = TOOLS[work.tool]
    tools: Any = [tool.spec.as_wire()]
    async with openai.AsyncOpenAI(base_url=work.base_url, api_key=KEY, max_retries=0) as client:

        async def converse(task: str) -> None:
            messages: list[Any] = _opening(task)
            while True:
                completion = await client.chat.completions.create(
                    model=MODEL, messages=messages, tools=tools
                )
                message = completion.choices[0].message
                messages.append(message)
                if not message.tool_calls:
                    return
                calls = message.tool_calls
                for call, text in zip(calls, await _texts(calls, tool), strict=True):
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": text})

        await _measure(converse, work, warm_up)


async def _texts(calls: Sequence[Any], tool: Callable[..., Awaitable[str]]) -> Sequence[str]:
    """What the calls of a message give; of several, at once."""
    given = [orjson.loads(call.function.arguments) for call in calls]
    if len(given) == 1:
        return [await tool(**given[0])]
    return await asyncio.gather(*(tool(**arguments) for arguments in given))


async def run_post(work: Work, warm_up: Work) -> None:
    """Over the same client's `post`, with bytes that are joined: the wire path of the harness."""
    import openai
    from httpx2 import Limits, Response

    limits = Limits(max_connections=work.conversations, max_keepalive_connections=None)
    http = openai.DefaultAioHttpClient(limits=limits)
    client = openai.AsyncOpenAI(
        base_url=work.base_url, api_key=KEY, max_retries=0, http_client=http
    )
    options: Any = {"headers": {"Content-Type": "application/json"}}

    async def ask(body: bytes) -> bytes:
        response = await client.post(
            "/chat/completions", content=body, cast_to=Response, options=options
        )
        return response.content

    async with client:
        await _measure(_joining(ask, work), work, warm_up)


async def run_joined(work: Work, warm_up: Work) -> None:
    """Over a bare HTTP client, with bytes that are joined: what only sending them costs."""
    async with _aiohttp(work) as ask:
        await _measure(_joining(ask, work), work, warm_up)


async def run_aiohttp(work: Work, warm_up: Work) -> None:
    """Over a bare HTTP client: near the least that a round can cost in Python."""
    tool = TOOLS[work.tool]
    tools = [tool.spec.as_wire()]
    async with _aiohttp(work) as ask:

        async def converse(task: str) -> None:
            messages = _opening(task)
            while True:
                body = orjson.dumps({"model": MODEL, "messages": messages, "tools": tools})
                message = orjson.loads(await ask(body))["choices"][0]["message"]
                messages.append(message)
                if not message.get("tool_calls"):
                    return
                messages += await _results(message, work)

        await _measure(converse, work, warm_up)


def _joining(ask: Ask, work: Work) -> Conversation:
    """A loop that encodes each message once."""
    head = b'{"model":"%s","messages":[' % MODEL.encode()
    tail = b'],"tools":%s}' % orjson.dumps([TOOLS[work.tool].spec.as_wire()])

    async def converse(task: str) -> None:
        messages = [orjson.dumps(message) for message in _opening(task)]
        while True:
            answer = await ask(head + b",".join(messages) + tail)
            message = orjson.loads(answer)["choices"][0]["message"]
            messages.append(orjson.dumps(message))
            if not message.get("tool_calls"):
                return
            messages += [orjson.dumps(result) for result in await _results(message, work)]

    return converse


@asynccontextmanager
async def _aiohttp(work: Work) -> AsyncIterator[Ask]:
    import aiohttp

    url = f"{work.base_url}/chat/completions"
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    # It stops at 100 connections by itself.
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as session:

        async def ask(body: bytes) -> bytes:
            async with session.post(url, data=body) as response:
                return await response.read()

        yield ask


def _opening(task: str) -> list[dict[str, Any]]:
    return [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": task}]


async def _results(message: dict[str, Any], work: Work) -> Sequence[dict[str, Any]]:
    """Do what a message asks for."""
    tool = TOOLS[work.tool]
    return [
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": await tool(**orjson.loads(call["function"]["arguments"])),
        }
        for call in message["tool_calls"]
    ]


async def _measure(converse: Conversation, work: Work, warm_up: Work) -> None:
    await _all(converse, warm_up, warm_up.folder / "warm-up")
    with window("work"):
        await _all(converse, work, work.log)


async def _all(converse: Conversation, work: Work, log: Path) -> None:
    free = asyncio.Semaphore(work.at_once or work.conversations)

    async def one(number: int) -> None:
        async with free:
            await converse(work.task(number, log))

    await asyncio.gather(*map(one, range(work.conversations)))
