"""A loop by hand with every countermeasure that needs no knowledge of the task.

It retries, nudges, tells a model what was wrong with a call and that it repeats itself, and asks
once more before it believes that the task is done. Nothing of it survives a crash.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from openai import AsyncOpenAI

NUDGES = 5
TIMES = 3
"""The same call with the same result, so often, is going in circles."""
MOST_CALLS = 200

NOT_DONE = "You have not called work_complete. Go on, or call it when the task is done."
SURE = "Look at the task again. Is everything done? If so, call work_complete again; else go on."
CIRCLES = "You have made the same call several times with the same result: make another one."


async def write_file(folder: Path, path: str, content: str) -> str:
    (folder / path).write_text(content)
    return f"wrote {path}"


async def read_file(folder: Path, path: str) -> str:
    return (folder / path).read_text()


async def edit_file(folder: Path, path: str, old_text: str, new_text: str) -> str:
    text = (folder / path).read_text()
    if text.count(old_text) != 1:
        raise ValueError(f"old_text stands in the file {text.count(old_text)} times")
    (folder / path).write_text(text.replace(old_text, new_text))
    return f"edited {path}"


async def run_command(folder: Path, command: str) -> str:
    process = await asyncio.create_subprocess_shell(
        command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    return f"exit code {process.returncode}\n{said.decode('utf-8', 'replace')}"


async def work_complete(folder: Path, summary: str) -> str:
    return "noted"


TOOLS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "write_file": (write_file, ("path", "content")),
    "read_file": (read_file, ("path",)),
    "edit_file": (edit_file, ("path", "old_text", "new_text")),
    "run_command": (run_command, ("command",)),
    "work_complete": (work_complete, ("summary",)),
}


def _spec(name: str, parameters: tuple[str, ...]) -> dict[str, Any]:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


async def run_by_hand(client: AsyncOpenAI, task: str, folder: Path) -> bool:
    """Do a task; whether the loop holds it to be done."""
    messages: list[Any] = [{"role": "user", "content": task}]
    tools: Any = [_spec(name, parameters) for name, (_, parameters) in TOOLS.items()]
    seen: Counter[tuple[str, str, str]] = Counter()
    nudges, was_asked = 0, False
    for _ in range(MOST_CALLS):
        completion = await client.chat.completions.create(
            model="fallible", messages=messages, tools=tools
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
            result = await _result(folder, name, arguments)
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


async def _result(folder: Path, name: str, arguments: str) -> str:
    """What a call gives: what is wrong with it, too."""
    if name not in TOOLS:
        return f"error: there is no tool {name}; there are {', '.join(TOOLS)}"
    function, _ = TOOLS[name]
    try:
        return str(await function(folder, **orjson.loads(arguments)))
    except (orjson.JSONDecodeError, TypeError, ValueError, OSError) as error:
        return f"error: {error}"
