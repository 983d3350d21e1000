"""A message of many calls that only wait, and a model that notes when it asked for them."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from harness_actors import AgentHarness, ChatAgent, tool
from harness_actors.actors import RuntimeKind
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import FunctionTool

NAP_S = 0.05


@tool(effect="read_only")
async def nap(number: int) -> str:
    """Wait without blocking."""
    await asyncio.sleep(NAP_S)
    return f"{number} is awake"


@tool(effect="read_only")
def doze(number: int) -> str:
    """Wait in a thread."""
    time.sleep(NAP_S)
    return f"{number} is awake"


NAPS: Mapping[str, FunctionTool[..., Any]] = {"async": nap, "blocking": doze}


class TimingModel:
    """Asks for so many calls at once, and writes down when, and when it has their results."""

    name = "timing"
    key_names: tuple[str, ...] = ()

    def __init__(self, times: Path, name: str, calls: int) -> None:
        self._times = times
        asking = Reply.calls([(name, {"number": number}) for number in range(calls)])
        self._model = ScriptedModel([asking, Reply.text("All are awake.")])

    async def complete(self, request: ModelRequest) -> ModelResponse:
        began = time.monotonic()
        answer = await self._model.complete(request)
        # The clock is that of the machine, so that it may be read in another process.
        with self._times.open("a") as file:
            file.write(f"{began} {time.monotonic()}\n")
        return answer

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        yield await self.complete(request)


async def wall_ms(
    folder: Path, runtime: RuntimeKind, kind: str, calls: int, repeats: int
) -> list[float]:
    """Milliseconds between a message and the request with its results, of each repetition.

    Args:
        folder: For files.
        runtime: Where the runs are.
        kind: Which of `NAPS`.
        calls: How many a message has.
        repeats: Runs that are counted; one goes before them.

    Raises:
        RuntimeError: A run did not end well.
    """
    times, used = folder / f"times-{kind}", NAPS[kind]
    agent = ChatAgent(model=TimingModel(times, used.spec.name, calls), tools=[used])
    found = []
    for number in range(repeats + 1):
        store = str(folder / f"{kind}.db")
        async with AgentHarness(agent, runtime=runtime, completion="answer", store=store) as one:
            result = await one.run(f"sleep {number}")
        if result.status != "done":
            raise RuntimeError(f"a run ended {result.status}: {result.reason.message}")
        asked, told = times.read_text().splitlines()[-2:]
        found.append(1e3 * (float(told.split()[0]) - float(asked.split()[1])))
    return found[1:]
