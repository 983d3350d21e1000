"""Runs that a command takes up or begins, shown while they happen."""

import asyncio
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harness_actors.cli.event_lines import EventLines, event_line
from harness_actors.cli.interrupts import Interrupts

if TYPE_CHECKING:
    from harness_actors.actors import Runtime
    from harness_actors.events import RunEvent
    from harness_actors.results import HarnessResult

ID_CHARS = 6
"""Of several runs, each line begins with so much of its run's id."""


async def show_runs(
    stream: "AsyncIterator[RunEvent | HarnessResult]",
    runtime: "Runtime",
    run_ids: Sequence[str],
    lines: EventLines,
    *,
    store: Path,
    quiet: bool,
) -> "dict[str, HarnessResult]":
    """Show runs to their ends. Ctrl-C puts them aside after their rounds; twice, at once.

    Returns:
        How they ended, by run id, without those that were put aside.
    """
    from harness_actors.errors import HarnessError
    from harness_actors.results import HarnessResult

    command = asyncio.current_task()
    assert command is not None
    parking: list[asyncio.Task[None]] = []
    ended: dict[str, HarnessResult] = {}

    def park() -> None:
        lines.note("stopping after this round; press Ctrl-C again to leave at once")
        parking.append(asyncio.create_task(runtime.stop(run_ids, "park")))

    def leave() -> None:
        command.cancel()

    def note_left() -> None:
        if left := [run_id for run_id in run_ids if run_id not in ended]:
            them = "it" if len(left) == 1 else "them"
            lines.note(f"interrupted; {resume_command(store, left)} goes on with {them}")

    seen = False
    try:
        with Interrupts(park, leave) as interrupts:
            async for item in stream:
                if isinstance(item, HarnessResult):
                    ended[item.run_id] = item
                    lines.end(item)
                    continue
                if not seen:
                    interrupts.arm()
                    if parking:
                        # Nobody served them yet when it was asked for, so it was not heard.
                        parking.append(asyncio.create_task(runtime.stop(run_ids, "park")))
                seen = True
                if len(run_ids) == 1:
                    lines.show(item)
                elif not quiet and (line := event_line(item.event)):
                    lines.note(f"{item.run_id[:ID_CHARS]} {line.strip()}")
    except asyncio.CancelledError:
        # Nobody waits for them any more, so they must not go on spending.
        with suppress(HarnessError):
            await asyncio.shield(runtime.stop(run_ids, "park_now"))
        note_left()
        raise
    note_left()
    return ended


def resume_command(store: Path, run_ids: Sequence[str]) -> str:
    """What takes up runs of a journal again, to be copied by a person."""
    from harness_actors.stores.home import home

    where = "" if store.parent == home() else f" --store {shlex.quote(str(store))}"
    return f"harness ctl run resume {' '.join(run_ids)}{where}"
