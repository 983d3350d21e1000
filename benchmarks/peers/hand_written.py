"""The loop that most people write, over the provider's client as its documentation shows it."""

import asyncio
import json
from typing import Any

from openai import AsyncOpenAI

from benchmarks.peers.conversations import INSTRUCTIONS, KEY, MODEL, Work, hold

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


def _arguments(call: Any) -> Any:
    return json.loads(call.function.arguments)


async def contend(work: Work) -> None:
    async with AsyncOpenAI(base_url=work.base_url, api_key=KEY) as client:

        async def converse(task: str) -> None:
            messages: list[Any] = [
                {"role": "system", "content": INSTRUCTIONS},
                {"role": "user", "content": task},
            ]
            while True:
                completion = await client.chat.completions.create(
                    model=MODEL, messages=messages, tools=[TOOL]
                )
                message = completion.choices[0].message
                messages.append(message)
                if not message.tool_calls:
                    return
                given = [_arguments(call) for call in message.tool_calls]
                if len(given) == 1:
                    texts = [await work.tool(**given[0])]
                else:
                    texts = await asyncio.gather(*(work.tool(**one) for one in given))
                for call, text in zip(message.tool_calls, texts, strict=True):
                    messages.append({"role": "tool", "tool_call_id": call.id, "content": text})

        await hold(converse, work)
