"""The loops that somebody writes by hand: nothing survives a crash, nothing is bounded."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import orjson

from benchmarks.notes import INSTRUCTIONS, KEY, MODEL, Work, note
from benchmarks.windows import window

Conversation = Callable[[str], Awaitable[None]]


async def run_openai(work: Work, warm_up: Work) -> None:
    """Over the provider's client, as its documentation shows it."""
    import openai

    tools: Any = [note.spec.as_wire()]
    async with openai.AsyncOpenAI(base_url=work.base_url, api_key=KEY, max_retries=0) as client:

        async def converse(task: str) -> None:
            messages: list[Any] = [
                {"role": "system", "content": INSTRUCTIONS},
                {"role": "user", "content": task},
            ]
            while True:
                completion = await client.chat.completions.create(
                    model=MODEL, messages=messages, tools=tools
                )
                message = completion.choices[0].message
                messages.append(message)
                if not message.tool_calls:
                    return
                for call in message.tool_calls:
                    assert call.type == "function"
                    text = await note(**orjson.loads(call.function.arguments))
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": text})

        await _measure(converse, work, warm_up)


async def run_post(work: Work, warm_up: Work) -> None:
    """Over the same client's `post`, with bytes that are joined: the wire path of the harness."""
    import openai
    from httpx2 import Response

    http = openai.DefaultAioHttpClient()
    client = openai.AsyncOpenAI(
        base_url=work.base_url, api_key=KEY, max_retries=0, http_client=http
    )
    head = b'{"model":"%s","messages":[' % MODEL.encode()
    tail = b'],"tools":%s}' % orjson.dumps([note.spec.as_wire()])
    options: Any = {"headers": {"Content-Type": "application/json"}}

    async def converse(task: str) -> None:
        messages = [
            orjson.dumps({"role": "system", "content": INSTRUCTIONS}),
            orjson.dumps({"role": "user", "content": task}),
        ]
        while True:
            body = head + b",".join(messages) + tail
            response = await client.post(
                "/chat/completions", content=body, cast_to=Response, options=options
            )
            message = orjson.loads(response.content)["choices"][0]["message"]
            messages.append(orjson.dumps(message))
            if not message.get("tool_calls"):
                return
            for call in message["tool_calls"]:
                text = await note(**orjson.loads(call["function"]["arguments"]))
                result = {"role": "tool", "tool_call_id": call["id"], "content": text}
                messages.append(orjson.dumps(result))

    async with client:
        await _measure(converse, work, warm_up)


async def run_aiohttp(work: Work, warm_up: Work) -> None:
    """Over a bare HTTP client: near the least that a round can cost in Python."""
    import aiohttp

    url, tools = f"{work.base_url}/chat/completions", [note.spec.as_wire()]
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    async with aiohttp.ClientSession(headers=headers) as session:

        async def converse(task: str) -> None:
            messages: list[dict[str, Any]] = [
                {"role": "system", "content": INSTRUCTIONS},
                {"role": "user", "content": task},
            ]
            while True:
                body = orjson.dumps({"model": MODEL, "messages": messages, "tools": tools})
                async with session.post(url, data=body) as response:
                    answer = orjson.loads(await response.read())
                message = answer["choices"][0]["message"]
                messages.append(message)
                if not message.get("tool_calls"):
                    return
                for call in message["tool_calls"]:
                    text = await note(**orjson.loads(call["function"]["arguments"]))
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})

        await _measure(converse, work, warm_up)


async def _measure(converse: Conversation, work: Work, warm_up: Work) -> None:
    await _all(converse, warm_up, warm_up.folder / "warm-up")
    with window("work"):
        await _all(converse, work, work.log)


async def _all(converse: Conversation, work: Work, log: Path) -> None:
    tasks = (work.task(number, log) for number in range(work.conversations))
    await asyncio.gather(*map(converse, tasks))
