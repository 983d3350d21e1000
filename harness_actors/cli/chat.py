"""`harness chat`: a conversation at the terminal, or from a script."""

import asyncio
import sys
from dataclasses import replace
from io import TextIOWrapper

import typer

from harness_actors.cli import options
from harness_actors.cli.agents import AgentFlags
from harness_actors.cli.answers import COMPACT, Answers
from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.failures import ALL_DONE, NOT_ALL_DONE, failures_told
from harness_actors.cli.screen import JsonLines, Screen, Terminal
from harness_actors.cli.typed_lines import is_command, read_line
from harness_actors.cli.where import check_where, fresh_workspace
from harness_actors.events import (
    ChildEnded,
    ChildrenStarted,
    Event,
    ExecutorLost,
    Repaired,
    ToolCalled,
    ToolReturned,
)

EXIT, NEW = "/exit", "/new"
COMPACTS = "the conversation is summarized before the next line is answered"
COMPACTS_NOT = "nothing is summarized: the settings have no compaction.summaries"


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
    conversation; `/compact [WHAT TO KEEP]` has the next answer begin on a summary of it; `/exit` or
    Ctrl-D leaves. Where the agent asks something, the next line is the
    answer; of several questions, to the first that is open.

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
    answers = Answers(harness, lines, screen, runtime.value, verbose=verbose)
    if isinstance(sys.stdin, TextIOWrapper):
        # Bytes that are no text of this terminal's encoding end no conversation.
        sys.stdin.reconfigure(errors="surrogateescape")
    # One event loop for all answers. While a line is typed it stands still: nothing runs then,
    # and typing needs no thread, which nobody could interrupt.
    with asyncio.Runner() as loop:
        try:
            if runtime is options.RuntimeChoice.ray:
                lines.note("the first answer waits until the actors on Ray are up")
            while (said := read_line(answers.prompt, answers.dropped, quiet=as_json)) is not None:
                if said == EXIT:
                    break
                if said == NEW:
                    answers.leave_open()
                    harness.begin_conversation()
                elif said.split(maxsplit=1)[:1] == [COMPACT]:
                    will_be = loop.run(harness.compact(said.removeprefix(COMPACT).strip()))
                    lines.note(COMPACTS if will_be else COMPACTS_NOT)
                elif is_command(said):
                    there_are = f"{NEW}, {COMPACT} and {EXIT}"
                    lines.note(f"there is no command {said!r}; there are {there_are}")
                elif said or answers.is_asked:
                    loop.run(answers.answer(said))
            answers.leave_open()
        finally:
            loop.run(harness.close())
    return ALL_DONE if answers.all_done else NOT_ALL_DONE


def _is_of_interest(event: Event) -> bool:
    failed = isinstance(event, ToolReturned) and event.is_error
    shown = ToolCalled | ChildrenStarted | ChildEnded | ExecutorLost | Repaired
    return failed or isinstance(event, shown)
