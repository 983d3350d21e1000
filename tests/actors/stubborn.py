"""Agents whose model or tool does not end: told to or not, until a file is there."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from harness_actors.actors import Runtime
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig, Limits
from harness_actors.events import Event, RunCompleted, ToolCalled, TurnStarted
from harness_actors.messages import Message
from harness_actors.ports import ModelRequest, ModelResponse, Tool
from harness_actors.records import RunSpec, WorkspaceSpec
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool
from harness_actors.tools.command import run_command
from harness_actors.tools.processes import carries, list_processes
from harness_actors.turn.services import RUN_VARIABLE
from tests.actors.followers import submit, until
from tests.actors.tasks import replies

WAYS = ("model_hangs", "model_swallows", "hang", "swallow", "block", "run_command")
"""How a run of `stubborn` gets stuck: in its model, or in the tool of this name.

`stall` is another way, and none of these: in one process it would hold up the test, too."""
STALLED_S = 60.0


class StuckModel(ScriptedModel):
    """A model that does not answer; it heeds a cancellation, or not."""

    def __init__(self, release: Path, *, swallows: bool) -> None:
        super().__init__([])
        self._release = release
        self._swallows = swallows

    async def complete(self, request: ModelRequest) -> ModelResponse:
        await (_swallow if self._swallows else _hang)(self._release)
        return await super().complete(request)


async def _hang(release: Path) -> str:
    while not release.exists():  # noqa: ASYNC110, ASYNC240 - another process may make it
        await asyncio.sleep(0.02)
    return "released"


async def _swallow(release: Path) -> str:
    while True:
        try:
            return await _hang(release)
        except BaseException:  # noqa: BLE001 - which is what it is for
            continue


@tool
async def hang(release: str) -> str:
    """Wait.

    Args:
        release: The file that is waited for.
    """
    return await _hang(Path(release))


@tool
async def swallow(release: str) -> str:
    """Wait, and do not heed a cancellation.

    Args:
        release: The file that is waited for.
    """
    return await _swallow(Path(release))


@tool
def block(release: str) -> str:
    """Wait in a thread.

    Args:
        release: The file that is waited for.
    """
    while not Path(release).exists():
        time.sleep(0.02)
    return "released"


@tool
async def stall(release: str) -> str:
    """Wait, and let nothing else happen in this process's event loop.

    Args:
        release: The file that is waited for; `stalled_in` is made beside it.
    """
    stalled_in(Path(release)).write_text(str(os.getpid()))
    until_s = time.monotonic() + STALLED_S
    while time.monotonic() < until_s and not Path(release).exists():  # noqa: ASYNC240
        time.sleep(0.02)  # noqa: ASYNC251 - which is what it is for
    return "released"


def stalled_in(release: Path) -> Path:
    """The file with the process that `stall` holds up."""
    return release.with_name("stalled in")


async def stalled(release: Path) -> int:
    """Return when `stall` holds up a process, and which."""
    path = stalled_in(release)
    while not path.exists() or not path.read_text():  # noqa: ASYNC110 - see `_hang`
        await asyncio.sleep(0.01)
    return int(path.read_text())


def hangs_then_completes(release: Path) -> Program:
    """An agent that hangs in its first call, and completes when it has an answer to that."""

    def script(messages: Sequence[Message]) -> Reply:
        if not replies(messages):
            return Reply.call("hang", {"release": str(release)})
        return Reply.call("work_complete", {"summary": "went on"})

    return Program.of(ChatAgent(model=ScriptedModel(script), tools=[hang]))


def stubborn(way: str, release: Path) -> Program:
    """An agent that gets stuck in its first round.

    Args:
        way: One of `WAYS`, or `stall`.
        release: The file that lets everything go; to be made at the end of the test.
    """
    if way.startswith("model"):
        return Program.of(ChatAgent(model=StuckModel(release, swallows=way == "model_swallows")))
    arguments = {"release": str(release)}
    if way == "run_command":
        arguments = {"command": "sleep 300 & sleep 301"}

    def script(messages: Sequence[Message]) -> Reply:
        return Reply.call(way, arguments)

    tools: list[Tool] = [hang, swallow, block, stall, run_command]
    return Program.of(ChatAgent(model=ScriptedModel(script), tools=tools))


StuckRuns = Mapping[str, tuple[Program, RunSpec]]
"""By the way in which they get stuck."""


def stuck_runs(release: Path, limits: Limits | None = None) -> StuckRuns:
    """A run for each way to get stuck."""
    config = HarnessConfig(limits=limits or Limits())
    workspace = WorkspaceSpec(path=str(release.with_name("work")))
    programs = {way: stubborn(way, release) for way in WAYS}
    return {
        way: (program, program.spec("get stuck", config, workspace=workspace))
        for way, program in programs.items()
    }


async def begin(runtime: Runtime, runs: StuckRuns) -> None:
    """Submit runs; returns when all of them are stuck, or over if they have little time."""
    for program, spec in runs.values():
        await submit(runtime, program, [spec])
    for way, (_, spec) in runs.items():
        kind = TurnStarted if way.startswith("model") else ToolCalled
        await until(runtime, spec.run_id, partial(_is, (kind, RunCompleted)))


async def command_is_gone(run_id: str) -> None:
    async with asyncio.timeout(2):
        while any(carries(pid, {RUN_VARIABLE: run_id}) for pid in list_processes()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def _is(kinds: tuple[type[Event], ...], event: Event) -> bool:
    return isinstance(event, kinds)
