"""`harness replay`: a run once more from its journal, or onwards from one of its turns."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection
from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.failures import ALL_DONE, INTERRUPTED, NOT_ALL_DONE, failures_told
from harness_actors.cli.questions import tell_waiting
from harness_actors.cli.streams import show_runs
from harness_actors.cli.where import check_where
from harness_actors.printing.plain import json_line, say

if TYPE_CHECKING:
    from harness_actors.cli.forks import ForkFlags
    from harness_actors.replay import Recording, Replay

SHOWN_DIFFERENCES = 10
FORKING = "Going on from a turn"


def replay(
    run_id: selection.RunIdArgument,
    run_dir: selection.RunDirOption = None,
    store: selection.StoreOption = None,
    from_turn: Annotated[
        int | None,
        typer.Option(
            "--from",
            metavar="TURN",
            help="Begin a new run with the log up to this turn, and go on with a live model.",
            rich_help_panel=FORKING,
        ),
    ] = None,
    model: options.ModelOption = None,
    model_base_url: options.BaseUrlOption = None,
    setting: options.SettingsOption = None,
    workspace: Annotated[
        Path | None,
        typer.Option(
            "--workspace",
            metavar="DIR",
            help="With --from: the folder to work in, in place.",
            rich_help_panel=FORKING,
        ),
    ] = None,
    runtime: options.RuntimeOption = options.RuntimeChoice.ray,
    address: options.AddressOption = None,
    trust_ray: options.TrustRayOption = False,
    as_json: options.JsonOption = False,
    verbose: options.VerboseOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Run a journal's run again, without model or network, and compare the logs.

    The rules of the harness are applied anew; what the model and the tools answered, and
    when something died or was stopped, is taken from the journal. No tool is called.
    Exits with 0 where the same log and the same ending come out, with 1 where they differ.

    With --from TURN, a new run begins with the log up to the start of that turn and goes
    on with its agent, or on another model. Files are not brought back to that moment: its
    workspace is a fresh copy of the template, or an empty folder, or --workspace.

    Examples:

        harness replay 3f2a

        harness replay 3f2a --from 2 --model gpt-4.1-mini
    """
    with failures_told(as_json=as_json):
        from harness_actors.cli.forks import ForkFlags
        from harness_actors.replay import load_recording
        from harness_actors.stores import JournalReader
        from harness_actors.stores.conversations import code_of
        from harness_actors.stores.places import find_run, journals_in

        flags = ForkFlags(
            model=model,
            base_url=model_base_url,
            settings=tuple(setting or ()),
            workspace=workspace,
            runtime=runtime.value,
            address=address,
        )
        if from_turn is None:
            flags.refuse_any()
        else:
            check_where(runtime, address)
        found = find_run(journals_in(run_dir, store), run_id)
        journal = JournalReader(found.store)
        recording = load_recording(journal, found.heading.run_id)
        if from_turn is None:
            status = asyncio.run(_replay(recording, as_json=as_json))
        else:
            code = code_of(journal, recording.spec.code)
            lines = EventLines(quiet=as_json, debug=debug)
            origin = (found.store, recording)
            forking = _fork(origin, code, from_turn, flags, lines, as_json=as_json, verbose=verbose)
            status = asyncio.run(forking)
    raise typer.Exit(status)


async def _replay(recording: "Recording", *, as_json: bool) -> int:
    from harness_actors.replay import replay

    replayed = await replay(recording)
    if as_json:
        say(json_line(_as_json(replayed)))
    else:
        _print(replayed)
    return ALL_DONE if replayed.same else NOT_ALL_DONE


def _as_json(replayed: "Replay") -> dict[str, object]:
    from dataclasses import asdict

    end = replayed.end
    return {
        "run_id": replayed.run_id,
        "same": replayed.same,
        "messages": replayed.messages,
        "same_messages": replayed.same_messages,
        "status": None if end is None else end.status,
        "reason": None if end is None else end.reason.kind,
        "taken_from_journal": list(replayed.facts),
        "differences": [asdict(difference) for difference in replayed.differences],
    }


def _print(replayed: "Replay") -> None:
    from harness_actors.batch.words import counted

    end, messages = replayed.end, counted(replayed.messages, "message")
    ending = "not over yet" if end is None else f"{end.status}({end.reason.kind})"
    say(f"run {replayed.run_id}: {messages}, {ending}")
    say("taken from the journal:")
    for fact in replayed.facts:
        say(f"  {fact}")
    for difference in replayed.differences[:SHOWN_DIFFERENCES]:
        say(f"differs in {difference.where}: {difference.what}")
        if difference.journal:
            say(f"  journal: {difference.journal}")
        say(f"  rerun:   {difference.rerun or 'nothing'}")
    if (more := len(replayed.differences) - SHOWN_DIFFERENCES) > 0:
        say(f"and {more} more; --json has them all")
    if replayed.same:
        say(f"the same log: all {messages}, byte for byte, and the same end")
    else:
        same = replayed.same_messages
        if same == replayed.messages:
            say(f"all {messages} are the same, but not what was written with them")
        else:
            say(f"another log: the first {same} of {messages} are the same")


async def _fork(
    origin: "tuple[Path, Recording]",
    code: "Mapping[str, bytes]",
    turn: int,
    flags: "ForkFlags",
    lines: EventLines,
    *,
    as_json: bool,
    verbose: bool,
) -> int:
    from harness_actors.actors.driver.below import Below
    from harness_actors.actors.driver.following import follow
    from harness_actors.actors.driver.open_cells import close_cell, open_cell
    from harness_actors.cli.forks import begin_fork, bring_artifacts, journal_for_forks
    from harness_actors.results import encode_result

    begun = begin_fork(origin[1], code, turn, flags)
    for note in begun.notes:
        lines.note(note)
    store = await journal_for_forks()
    await asyncio.to_thread(bring_artifacts, origin, begun.spec, store)
    cell = await open_cell(store, flags.runtime, flags.address)
    run_id = begun.spec.run_id
    try:
        below = Below(cell, [run_id])
        told = follow(cell, [run_id], begun.submission(cell), below=below)
        async with aclosing(told) as stream:
            ended = await show_runs(
                stream,
                cell,
                [run_id],
                lines,
                store=store,
                where=flags.runtime,
                verbose=verbose,
                new=True,
            )
    finally:
        await close_cell(store, flags.runtime)
    if run_id not in ended:
        return INTERRUPTED
    if ended[run_id].status == "awaiting_input":
        tell_waiting(ended[run_id], store, lines, flags.runtime)
    if as_json:
        say(json_line(encode_result(ended[run_id])))
    elif text := ended[run_id].output_text.strip():
        say(text)
    return ALL_DONE if ended[run_id].ok else NOT_ALL_DONE
