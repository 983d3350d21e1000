"""`harness ctl run events`: what happened in a run, and what happens."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection
from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.failures import ALL_DONE, failures_told
from harness_actors.printing.plain import json_line, say

if TYPE_CHECKING:
    from harness_actors.events import RunEvent
    from harness_actors.stores import JournalReader

POLL_S = 0.1
"""Between two looks at the journal, in seconds."""


def events(
    run_id: selection.RunIdArgument,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run ends.")
    ] = False,
    run_dir: selection.RunDirOption = None,
    store: selection.StoreOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """The events of a run, oldest first; with --json one a line.

    Examples:

        harness ctl run events 3f2a --follow

        harness ctl run events 3f2a --json | jq -r .type
    """
    with failures_told(as_json=as_json):
        from harness_actors.stores.places import find_run, journals_in

        found = find_run(journals_in(run_dir, store), run_id)
        if follow and found.heading.end is None:
            _tell_if_idle(found.store, found.heading.run_id)
        _print_events(found.store, found.heading.run_id, follow=follow, as_json=as_json)
    raise typer.Exit(ALL_DONE)


def _print_events(store: Path, run_id: str, *, follow: bool, as_json: bool) -> None:
    from harness_actors.events import RunCompleted
    from harness_actors.stores import JournalReader

    journal = JournalReader(store)
    lines = EventLines(out=sys.stdout)
    after = 0
    while True:
        # Before the look: what is committed later is after this position.
        newest = journal.position()
        found = journal.load_events(after, run_id=run_id)
        for event in found:
            if as_json:
                say(json_line(as_plain(event)))
            else:
                lines.show(event)
        if any(isinstance(event.event, RunCompleted) for event in found):
            _print_end(journal, run_id, lines, as_json=as_json)
            return
        if found:
            after = found[-1].position
        elif follow:
            while journal.position() <= newest:
                time.sleep(POLL_S)
        else:
            return


def _tell_if_idle(store: Path, run_id: str) -> None:
    from harness_actors.cli.ctl.facts import is_served

    if not is_served(store):
        from harness_actors.cli.questions import run_command

        say(f"nobody works on it now; {run_command('resume', store, [run_id])}", sys.stderr)


def _print_end(journal: "JournalReader", run_id: str, lines: EventLines, *, as_json: bool) -> None:
    result = journal.load_result(run_id)
    if result is not None and not as_json:
        lines.end(result)


def as_plain(event: "RunEvent") -> dict[str, object]:
    """An event with its place, as plain values."""
    from harness_actors.events import encode_event

    return {
        "position": event.position,
        "run_id": event.run_id,
        "at": event.at,
        **({"path": event.path} if event.path else {}),
        **encode_event(event.event),
    }
