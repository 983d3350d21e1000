"""What the tests of tools share: a call's context over an empty workspace."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from harness_actors.ports import Tool, ToolContext, ToolProcesses
from harness_actors.tools.spawn import DirectProcesses
from harness_actors.tools.supervision.client import SupervisedProcesses

Call = Callable[..., Coroutine[Any, Any, str]]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
async def processes(request: pytest.FixtureRequest) -> AsyncIterator[ToolProcesses]:
    """What starts the processes of tools; see `both`."""
    direct = getattr(request, "param", "supervised") == "direct"
    processes: ToolProcesses = DirectProcesses() if direct else SupervisedProcesses()
    yield processes
    processes.close()


both = pytest.mark.parametrize("processes", ["supervised", "direct"], indirect=True)
"""The same promises must hold however processes are started."""


@pytest.fixture
def context(workspace: Path) -> ToolContext:
    return ToolContext(
        run_id="run-1",
        call_id="call-1",
        workspace=workspace,
        in_thread=asyncio.to_thread,
        environment={"HARNESS_RUN": "run-1"},
    )


@pytest.fixture
def call(context: ToolContext) -> Call:
    """Calls a tool as a model does: with arguments in JSON."""

    async def do_call(tool: Tool, **arguments: object) -> str:
        return await tool.run(json.dumps(arguments), context)

    return do_call
