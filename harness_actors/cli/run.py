"""`harness run`: one run, streamed to the terminal."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated

import typer

from harness_actors.cli import options
from harness_actors.cli.agents import AgentFlags
from harness_actors.cli.asking import Asker
from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.failures import ALL_DONE, INTERRUPTED, NOT_ALL_DONE, failures_told
from harness_actors.cli.interrupts import Interrupts
from harness_actors.cli.printed import Printed
from harness_actors.cli.questions import resume_command, tell_waiting
from harness_actors.cli.screen import JsonLines, JsonResult, Screen, Terminal
from harness_actors.cli.where import check_where, fresh_workspace
from harness_actors.cli.window_use import WindowUse

if TYPE_CHECKING:
    from harness_actors.cli.screen import Shown
    from harness_actors.harness import AgentHarness
    from harness_actors.results import HarnessResult

    Stream = AsyncGenerator[Shown | HarnessResult]


def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="What is to be done.")],
    agent: options.AgentOption = None,
    model: options.ModelOption = None,
    model_base_url: options.BaseUrlOption = None,
    setting: options.SettingsOption = None,
    workspace: options.WorkspaceOption = None,
    contract: options.ContractOption = None,
    max_turns: options.MaxTurnsOption = None,
    token_limit: options.TokenLimitOption = None,
    cost_limit: options.CostLimitOption = None,
    time_limit: options.TimeLimitOption = None,
    working_limit: options.WorkingLimitOption = None,
    on_question: options.OnQuestionOption = None,
    runtime: options.RuntimeOption = options.RuntimeChoice.ray,
    address: options.AddressOption = None,
    trust_ray: options.TrustRayOption = False,
    as_json: options.JsonOption = False,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Print the answer while the model says it, also where stdout is no terminal; with "
            "--json a line for each event and each piece of text, the result last.",
        ),
    ] = False,
    verbose: options.VerboseOption = False,
    debug: options.DebugOption = False,
) -> None:
    """One run: its events on stderr as they happen, its answer on stdout.

    On a terminal the answer is written while the model says it. With --json stdout is the
    result; with --json --stream it is a JSON object a line: events, pieces of text
    (`text_delta`, void where a later `attempt` of the same `round` follows; `text_gap`), and
    last the `result`.

    What the agent asks its user is asked at the terminal, and so is whether a call may be made
    that needs approval; the run goes on with the answer. Elsewhere, and with --json, the run
    waits: it is said how to answer, and the exit status is 1.

    With --contract the run is over when that is met; without, the exit status is 1.

    Examples:

        harness run "Why do the tests fail?" --model gpt-4.1-mini --workspace .

        harness run "Say hello." --model local --runtime local

        harness run "Say hello." --model local --json | jq .status

        harness run "Say hello." --model local --json --stream |
          jq -j 'select(.type == "text_delta").text'

        harness run "Refund order 17." --agent billing.yaml -v --debug

        harness run "Write the report." --agent writer.yaml --contract contract.yaml
    """
    flags = AgentFlags(
        agent=agent,
        model=model,
        base_url=model_base_url,
        settings=tuple(setting or ()),
        workspace=workspace,
        contract=contract,
        max_turns=max_turns,
        token_limit=token_limit,
        cost_limit=cost_limit,
        time_limit=time_limit,
        working_limit=working_limit,
        on_question=None if on_question is None else on_question.value,
        address=address,
    )
    with failures_told(as_json=as_json):
        check_where(runtime, address)
        screen = _screen(EventLines(quiet=as_json, debug=debug), as_json=as_json, stream=stream)
        asker = None if as_json else Asker()
        if asker is not None:
            asker.before = screen.lines.rest
        status = asyncio.run(_run(task, flags, runtime, address, screen, asker, verbose=verbose))
    raise typer.Exit(status)


async def _run(
    task: str,
    flags: AgentFlags,
    runtime: options.RuntimeChoice,
    address: str | None,
    screen: Screen,
    asker: Asker | None,
    *,
    verbose: bool,
) -> int:
    from harness_actors.errors import RunParkedError
    from harness_actors.harness import AgentHarness
    from harness_actors.results import HarnessResult

    loaded = flags.load(with_tools=flags.workspace is not None)
    lines = screen.lines
    harness = AgentHarness(
        loaded.agent,
        config=loaded.config,
        runtime=runtime.value,
        address=address,
        workspace=flags.workspace_folder() or fresh_workspace(loaded, lines),
        on_question=None if asker is None else asker.ask,
        on_loss=lines.note,
    )
    if runtime is options.RuntimeChoice.ray:
        lines.note("starting the actors on Ray")  # for which it is silent for some seconds
    result: HarnessResult | None = None
    run_id, window = "", WindowUse(harness.window_tokens)
    printed = Printed(lines, shown=verbose)
    async with harness:
        try:
            with Interrupts(_parking(harness, lines, asker), _cancelling()) as interrupts:
                async for item in _stream(harness, task, screen):
                    if asker is not None:
                        # A run below has asked, while others go on.
                        await asker.until_free()
                    if isinstance(item, HarnessResult):
                        result = item
                    else:
                        if not run_id:
                            interrupts.arm()
                            lines.seen, run_id = True, harness.run_id or item.run_id
                            printed.begin(harness.store, run_id)
                        printed.before(item)
                        screen.show(item)
                        window.take(item)
                        printed.after(item)
        except (RunParkedError, asyncio.CancelledError):
            screen.cut()
            if run_id:
                assert harness.store is not None, "the run is in it"
                command = resume_command(harness.store, [run_id], runtime.value)
                lines.note(f"parked; {command} goes on with it")
            return INTERRUPTED
        finally:
            await printed.end()
    assert result is not None, "a stream of a run ends with its result"
    screen.end(result)
    if line := window.line:
        lines.tell(line)
    printed.tell()
    if result.status == "awaiting_input":
        assert harness.store is not None, "the run is in it"
        tell_waiting(result, harness.store, lines, runtime.value)
        return INTERRUPTED if asker is not None and asker.was_stopped else NOT_ALL_DONE
    return ALL_DONE if result.ok else NOT_ALL_DONE


async def _stream(harness: "AgentHarness", task: str, screen: Screen) -> "Stream":
    """A run, event by event. Where an answer is not taken it is said why, and asked again."""
    from harness_actors.errors import AnswerError

    wanted = screen.wants_text
    stream = harness.run_stream(task, text=wanted, children=wanted)
    while True:
        try:
            async with aclosing(stream):
                async for item in stream:
                    yield item
            return
        except AnswerError as error:
            # The tool does not take such arguments; or somebody else has answered meanwhile.
            assert harness.run_id is not None, "it has asked"
            screen.lines.note(f"{error}")
            stream = harness.resume_stream(harness.run_id, text=wanted, children=wanted)


def _screen(lines: EventLines, *, as_json: bool, stream: bool) -> Screen:
    if as_json:
        return JsonLines(lines) if stream else JsonResult(lines)
    return Terminal(lines, live=stream or None)


def _parking(harness: "AgentHarness", lines: EventLines, asker: Asker | None) -> Callable[[], None]:
    """Put the run aside after its round; before it has begun, leave at once.

    One that asks is left waiting: it is at no host.
    """
    parks: list[asyncio.Task[None]] = []
    leave = _cancelling()

    def park() -> None:
        if asker is not None and asker.is_asking:
            asker.stop()
        elif lines.seen:
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
