"""The loop that most people write, over the provider's client as its documentation shows it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from openai import AsyncOpenAI

from benchmarks.peers.conversations import (
    AGENT,
    DELEGATES,
    DESCRIPTION,
    INSTRUCTIONS,
    KEY,
    MODEL,
    Work,
    hold,
)

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "note",
        "description": "Write a line to the end of a file.",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "The file."},
                "line": {"type": "string", "description": "What to write."},
            },
            "required": ["path", "line"],
            "additionalProperties": False,
        },
    },
}

DELEGATE: Any = {
    "type": "function",
    "function": {
        "name": AGENT,
        "description": DESCRIPTION,
        "parameters": {
            "type": "object",
            "properties": {"prompt": {"type": "string", "description": "What is to be done."}},
            "required": ["prompt"],
            "additionalProperties": False,
        },
    },
}


async def contend(work: Work) -> None:
    async with AsyncOpenAI(base_url=work.base_url, api_key=KEY) as client:

        async def converse(task: str) -> None:
            await _loop(client, task, INSTRUCTIONS, TOOL, work.tool)

        await hold(converse, work)


async def delegate(work: Work) -> None:
    """A tool of the loop is the same loop, with another tool."""
    async with AsyncOpenAI(base_url=work.base_url, api_key=KEY) as client:

        async def child(prompt: str) -> str:
            return await _loop(client, prompt, INSTRUCTIONS, TOOL, work.tool)

        async def converse(task: str) -> None:
            await _loop(client, task, DELEGATES, DELEGATE, child)

        await hold(converse, work)


async def _loop(
    client: AsyncOpenAI,
    task: str,
    instructions: str,
    tool: Any,
    call: Callable[..., Awaitable[str]],
) -> str:
    """One conversation, to its answer."""
    messages: list[Any] = [
        {"role": "system", "content": instructions},
        {"role": "user", "content": task},
    ]
    while True:
        completion = await client.chat.completions.create(
            model=MODEL, messages=messages, tools=[tool]
        )
        message = completion.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return message.content or ""
        given = [_arguments(one) for one in message.tool_calls]
        if len(given) == 1:
            texts = [await call(**given[0])]
        else:
            texts = await asyncio.gather(*(call(**one) for one in given))
        for one, text in zip(message.tool_calls, texts, strict=True):
            messages.append({"role": "tool", "tool_call_id": one.id, "content": text})


def _arguments(call: Any) -> Any:
    return json.loads(call.function.arguments)
