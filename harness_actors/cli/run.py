"""`harness run`: one run, streamed to the terminal."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Annotated

import typer

from harness_actors.cli import options
from harness_actors.cli.agents import AgentFlags
from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.failures import ALL_DONE, INTERRUPTED, NOT_ALL_DONE, failures_told
from harness_actors.cli.interrupts import Interrupts

if TYPE_CHECKING:
    from harness_actors.batch.agent_file import LoadedAgent
    from harness_actors.harness import AgentHarness


def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What is to be done.")],
    agent: options.AgentOption = None,
    model: options.ModelOption = None,
    model_base_url: options.BaseUrlOption = None,
    setting: options.SettingsOption = None,
    workspace: Annotated[
        Path | None,
        typer.Option("--workspace", metavar="DIR", help="The folder to work in, in place."),
    ] = None,
    max_turns: options.MaxTurnsOption = None,
    token_limit: options.TokenLimitOption = None,
    cost_limit: options.CostLimitOption = None,
    time_limit: options.TimeLimitOption = None,
    working_limit: options.WorkingLimitOption = None,
    runtime: options.RuntimeOption = options.RuntimeChoice.ray,
    address: options.AddressOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """One run: its events on stderr as they happen, its answer on stdout.

    Examples:

        harness run "Why do the tests fail?" --model gpt-4.1-mini --workspace .

        harness run "Say hello." --model local --runtime local
    """
    flags = AgentFlags(
        agent=agent,
        model=model,
        base_url=model_base_url,
        settings=tuple(setting or ()),
        workspace=workspace,
        max_turns=max_turns,
        token_limit=token_limit,
        cost_limit=cost_limit,
        time_limit=time_limit,
        working_limit=working_limit,
        address=address,
    )
    with failures_told(as_json=as_json):
        status = asyncio.run(_run(task, flags, runtime, address, as_json))
    raise typer.Exit(status)


async def _run(
    task: str,
    flags: AgentFlags,
    runtime: options.RuntimeChoice,
    address: str | None,
    as_json: bool,
) -> int:
    from harness_actors.errors import RunParkedError
    from harness_actors.harness import AgentHarness
    from harness_actors.results import HarnessResult, encode_result

    loaded = flags.load(with_tools=flags.workspace is not None)
    lines = EventLines(quiet=as_json)
    harness = AgentHarness(
        loaded.agent,
        config=loaded.config,
        runtime=runtime.value,
        address=address,
        workspace=flags.workspace_folder() or _fresh_workspace(loaded, lines),
    )
    if runtime is options.RuntimeChoice.ray:
        lines.note("starting the actors on Ray")  # for which it is silent for some seconds
    result: HarnessResult | None = None
    async with harness:
        try:
            with Interrupts(_parking(harness, lines), _cancelling()) as interrupts:
                async for item in harness.run_stream(task):
                    if isinstance(item, HarnessResult):
                        result = item
                    else:
                        if not lines.seen:
                            interrupts.arm()
                        lines.show(item)
        except RunParkedError as parked:
            lines.note(f"interrupted; harness ctl run resume {parked.run_id}")
            return INTERRUPTED
    assert result is not None, "a stream of a run ends with its result"
    if as_json:
        print(json.dumps(encode_result(result)))
    else:
        lines.end(result)
        print(result.output_text)
    return ALL_DONE if result.status == "done" else NOT_ALL_DONE


def _parking(harness: "AgentHarness", lines: EventLines) -> Callable[[], None]:
    """Put the run aside after its round; before it has begun, leave at once."""
    parks: list[asyncio.Task[None]] = []
    leave = _cancelling()

    def park() -> None:
        if lines.seen:
            lines.note("stopping after this round; press Ctrl-C again to leave at once")
            parks.append(asyncio.create_task(harness.park()))
        else:
            leave()

    return park


def _cancelling() -> Callable[[], None]:
    command = asyncio.current_task()
    assert command is not None

    def leave() -> None:
        command.cancel()

    return leave


def _fresh_workspace(loaded: "LoadedAgent", lines: EventLines) -> str | None:
    """A folder for an agent with tools that was given none: a copy of its own, or empty."""
    if loaded.workspace is None and not loaded.innermost.tools:
        return None
    folder = mkdtemp(prefix="harness-run-")
    if loaded.workspace is not None:
        shutil.copytree(loaded.workspace, folder, symlinks=True, dirs_exist_ok=True)
    lines.note(f"workspace {folder}")
    return folder
