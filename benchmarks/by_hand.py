"""A loop by hand with every countermeasure that needs no knowledge of the task.

It retries, nudges, tells a model what was wrong with a call and that it repeats itself, and asks
once more before it believes that the task is done. Nothing of it survives a crash.
"""

from collections import Counter
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

import orjson
from openai import AsyncOpenAI

from benchmarks.file_tools import FileTool, file_tools

NUDGES = 5
TIMES = 3
"""The same call with the same result, so often, is going in circles."""
MOST_CALLS = 200

NOT_DONE = "You have not called work_complete. Go on, or call it when the task is done."
SURE = "Look at the task again. Is everything done? If so, call work_complete again; else go on."
CIRCLES = "You have made the same call several times with the same result: make another one."


async def work_complete(summary: str) -> str:
    return "noted"


def _spec(tool: FileTool) -> dict[str, Any]:
    parameters = list(signature(tool).parameters)
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": parameters}
    return {"type": "function", "function": {"name": tool.__name__, "parameters": schema}}


async def run_by_hand(client: AsyncOpenAI, task: str, folder: Path) -> bool:
    """Do a task; whether the loop holds it to be done."""
    messages: list[Any] = [{"role": "user", "content": task}]
    tools = {tool.__name__: tool for tool in (*file_tools(folder), work_complete)}
    specs: Any = [_spec(tool) for tool in tools.values()]
    seen: Counter[tuple[str, str, str]] = Counter()
    nudges, was_asked = 0, False
    for _ in range(MOST_CALLS):
        completion = await client.chat.completions.create(
            model="fallible", messages=messages, tools=specs
        )
        message = completion.choices[0].message
        calls: list[Any] = list(message.tool_calls or ())
        if not calls:
            if nudges == NUDGES:
                return False
            nudges += 1
            messages.append({"role": "assistant", "content": message.content or "(nothing)"})
            messages.append({"role": "user", "content": NOT_DONE})
            continue
        nudges = 0
        messages.append(message)
        repeated = False
        for call in calls:
            name, arguments = call.function.name, call.function.arguments
            result = await _result(tools, name, arguments)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
            key = (name, arguments, result)
            seen[key] += 1
            repeated = repeated or seen[key] >= TIMES
            if name != "work_complete":
                was_asked = False
            elif result == "noted":
                if was_asked:
                    return True
                was_asked = True
                messages.append({"role": "user", "content": SURE})
        if repeated:
            messages.append({"role": "user", "content": CIRCLES})
    return False


async def _result(tools: Mapping[str, FileTool], name: str, arguments: str) -> str:
    """What a call gives: what is wrong with it, too."""
    if name not in tools:
        return f"error: there is no tool {name}; there are {', '.join(tools)}"
    try:
        return await tools[name](**orjson.loads(arguments))
    except (orjson.JSONDecodeError, TypeError) as error:
        return f"error: {error}"
