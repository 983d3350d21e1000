"""`harness chat`: a conversation at the terminal, or from a script."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import replace
from io import TextIOWrapper
from typing import TYPE_CHECKING

import typer

from harness_actors.cli import options
from harness_actors.cli.agents import AgentFlags
from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.failures import ALL_DONE, NOT_ALL_DONE, failures_told
from harness_actors.cli.interrupts import Interrupts
from harness_actors.cli.printed import Printed
from harness_actors.cli.screen import JsonLines, Screen, Terminal
from harness_actors.cli.where import check_where
from harness_actors.cli.workspaces import fresh_workspace
from harness_actors.events import Event, ExecutorLost, Repaired, ToolCalled, ToolReturned

if TYPE_CHECKING:
    from harness_actors.harness import AgentHarness
    from harness_actors.results import HarnessResult

PROMPT = "> "
EXIT, NEW = "/exit", "/new"


def chat(
    agent: options.AgentOption = None,
    model: options.ModelOption = None,
    model_base_url: options.BaseUrlOption = None,
    setting: options.SettingsOption = None,
    workspace: options.WorkspaceOption = None,
    max_turns: options.MaxTurnsOption = None,
    token_limit: options.TokenLimitOption = None,
    cost_limit: options.CostLimitOption = None,
    time_limit: options.TimeLimitOption = None,
    working_limit: options.WorkingLimitOption = None,
    runtime: options.RuntimeOption = options.RuntimeChoice.ray,
    address: options.AddressOption = None,
    trust_ray: options.TrustRayOption = False,
    as_json: options.JsonOption = False,
    verbose: options.VerboseOption = False,
    debug: options.DebugOption = False,
) -> None:
    """A conversation: each line of standard input is answered, tools and all.

    The bounds hold for each answer. Ctrl-C cuts an answer; `/new` begins another
    conversation; `/exit` or Ctrl-D leaves.

    Examples:

        harness chat --model gpt-4.1-mini --workspace .

        printf 'My name is Ada.\\nWhat is my name?\\n' | harness chat --model local
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
        check_where(runtime, address)
        lines = EventLines(quiet=as_json, debug=debug)
        status = _chat(flags, runtime, address, lines, as_json=as_json, verbose=verbose)
    raise typer.Exit(status)


def _chat(
    flags: AgentFlags,
    runtime: options.RuntimeChoice,
    address: str | None,
    lines: EventLines,
    *,
    as_json: bool,
    verbose: bool,
) -> int:
    from harness_actors.harness import AgentHarness

    loaded = flags.load(with_tools=flags.workspace is not None)
    harness = AgentHarness(
        loaded.agent,
        config=replace(loaded.config, completion="answer"),
        runtime=runtime.value,
        address=address,
        workspace=flags.workspace_folder() or fresh_workspace(loaded, lines),
        on_loss=lines.note,
    )
    screen: Screen = (
        JsonLines(lines) if as_json else Terminal(lines, of_interest=_is_of_interest, ending=False)
    )
    answers = Answers(harness, lines, screen, verbose=verbose)
    if isinstance(sys.stdin, TextIOWrapper):
        # Bytes that are no text of this terminal's encoding end no conversation.
        sys.stdin.reconfigure(errors="surrogateescape")
    # One event loop for all answers. While a line is typed it stands still: nothing runs then,
    # and typing needs no thread, which nobody could interrupt.
    with asyncio.Runner() as loop:
        try:
            if runtime is options.RuntimeChoice.ray:
                lines.note("the first answer waits until the actors on Ray are up")
            while (said := _read_line(quiet=as_json)) is not None:
                if said == EXIT:
                    break
                if said == NEW:
                    harness.begin_conversation()
                elif _is_command(said):
                    lines.note(f"there is no command {said!r}; there are {NEW} and {EXIT}")
                elif said:
                    loop.run(answers.answer(said))
        finally:
            loop.run(harness.close())
    return ALL_DONE if answers.all_done else NOT_ALL_DONE


class Answers:
    """Answers lines, one after the other.

    Args:
        harness: Whose conversation it is.
        lines: Where notes go.
        screen: Where answers go.
        verbose: Show what code of the user prints.

    Attributes:
        all_done: Each answer came to its end, or was cut on purpose.
    """

    def __init__(
        self,
        harness: "AgentHarness",
        lines: EventLines,
        screen: Screen,
        *,
        verbose: bool = False,
    ) -> None:
        self._harness = harness
        self._lines = lines
        self._screen = screen
        self._verbose = verbose
        self._told = False
        """Where it prints was said once, which is enough for a conversation."""
        self._run_id = ""
        self.all_done = True

    async def answer(self, said: str) -> None:
        """Answer one line. Ctrl-C cuts the answer; twice, it leaves the command."""
        from harness_actors.errors import RunParkedError

        printed = Printed(self._lines, shown=self._verbose)
        try:
            with Interrupts(self._cutting(), _leaving()) as interrupts:
                result = await self._follow(said, interrupts, printed)
        except RunParkedError:
            self._tell_cut()
            return
        except asyncio.CancelledError:
            if self._run_id:
                self._tell_cut()
            raise
        finally:
            await printed.end()
        self._screen.end(result)
        self._told = self._told or printed.tell()
        self.all_done = self.all_done and result.status == "done"

    def _tell_cut(self) -> None:
        self._screen.cut()
        self._lines.note(f"cut; harness ctl run resume {self._run_id} would go on with it")

    async def _follow(self, said: str, interrupts: Interrupts, printed: Printed) -> "HarnessResult":
        from harness_actors.results import HarnessResult

        self._run_id = ""
        result: HarnessResult | None = None
        async with aclosing(self._harness.run_stream(said, text=self._screen.wants_text)) as stream:
            async for item in stream:
                if isinstance(item, HarnessResult):
                    result = item
                    continue
                if not self._run_id:
                    # Starting Ray may have taken the signals.
                    interrupts.arm()
                    self._run_id = item.run_id
                    printed.begin(self._harness.store, item.run_id)
                printed.before(item)
                self._screen.show(item)
                printed.behind(item)
        assert result is not None, "a stream of a run ends with its result"
        return result

    def _cutting(self) -> Callable[[], None]:
        cuts: list[asyncio.Task[None]] = []

        def cut() -> None:
            cuts.append(asyncio.create_task(self._harness.park(now=True)))

        return cut


def _leaving() -> Callable[[], None]:
    command = asyncio.current_task()
    assert command is not None

    def leave() -> None:
        command.cancel()

    return leave


def _read_line(*, quiet: bool) -> str | None:
    """A line of standard input, without its margins; None where there are no more."""
    asks = sys.stdin.isatty() and not quiet
    while True:
        try:
            if asks and sys.stdout.isatty():
                with suppress(ImportError):
                    # With it, `input` can edit a line and bring earlier ones back.
                    import readline  # noqa: F401
                return input(PROMPT).strip()
            if asks:
                print(PROMPT, end="", file=sys.stderr, flush=True)
            line = sys.stdin.readline()
            return line.strip() if line else None
        except EOFError:
            # What follows begins in a line of its own.
            print(file=sys.stderr)
            return None
        except KeyboardInterrupt:
            if not asks:
                raise
            # As in a shell: the line is dropped.
            print(file=sys.stderr)


def _is_command(said: str) -> bool:
    """Whether a line is meant for this program, such as `/help`; a path is not."""
    return said.startswith("/") and said.count("/") == 1 and len(said.split()) == 1


def _is_of_interest(event: Event) -> bool:
    failed = isinstance(event, ToolReturned) and event.is_error
    return failed or isinstance(event, ToolCalled | ExecutorLost | Repaired)
