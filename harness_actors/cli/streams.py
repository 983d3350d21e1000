"""Runs that a command takes up or begins, shown while they happen."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.interrupts import Interrupts
from harness_actors.cli.printed import Printed
from harness_actors.cli.questions import resume_command
from harness_actors.records import CHILD_MARK

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
    where: str,
    verbose: bool,
    new: bool = False,
) -> "dict[str, HarnessResult]":
    """Show runs until each is over, or waits for its user.

    Ctrl-C puts them aside after their rounds; twice, at once. What those ask that wait is not
    shown: they may be answered here.

    Args:
        stream: What happens, from the moment on when it is first asked for; also in runs below.
        runtime: Where it does.
        run_ids: The runs.
        lines: Where to.
        store: Their journal.
        where: ``"ray"`` or ``"local"``, for what is said about going on.
        verbose: Show what code of the user prints.
        new: They begin here.

    Returns:
        How they ended, or what they wait for, by run id, without those that were put aside.
    """
    from harness_actors.actors.driver.awaiting import result_of_waiting
    from harness_actors.errors import HarnessError
    from harness_actors.events import InputAwaited
    from harness_actors.results import HarnessResult

    command = asyncio.current_task()
    assert command is not None
    parking: list[asyncio.Task[tuple[str, ...]]] = []
    ended: dict[str, HarnessResult] = {}

    def park() -> None:
        lines.note("stopping after this round; press Ctrl-C again to leave at once")
        parking.append(asyncio.create_task(runtime.stop(run_ids, "park")))

    def leave() -> None:
        command.cancel()

    def note_left() -> None:
        lines.clear()
        if left := [run_id for run_id in run_ids if run_id not in ended]:
            them = "it" if len(left) == 1 else "them"
            lines.note(f"interrupted; {resume_command(store, left, where)} goes on with {them}")

    seen = False
    several = len(run_ids) > 1
    whose = {run_id: run_id[:ID_CHARS] if several else "" for run_id in run_ids}
    printed = {run_id: Printed(lines, shown=verbose, whose=whose[run_id]) for run_id in run_ids}
    for run_id in run_ids:
        printed[run_id].begin(store, run_id, new=new)
    try:
        with Interrupts(park, leave) as interrupts:
            async for item in stream:
                if isinstance(item, HarnessResult):
                    ended[item.run_id] = item
                    await printed[item.run_id].end()
                    lines.end(item)
                    printed[item.run_id].tell()
                    continue
                if not seen:
                    interrupts.arm()
                    if parking:
                        # Nobody served them yet when it was asked for, so it was not heard.
                        parking.append(asyncio.create_task(runtime.stop(run_ids, "park")))
                seen = True
                if item.path:
                    above = next(one for one in run_ids if item.run_id.startswith(one + CHILD_MARK))
                    lines.show(item, whose[above])
                    continue
                if isinstance(item.event, InputAwaited):
                    waiting = await result_of_waiting(runtime, item.run_id, item.event)
                    ended[item.run_id] = waiting
                    await printed[item.run_id].end()
                    continue
                printed[item.run_id].before(item)
                lines.show(item, whose[item.run_id])
                printed[item.run_id].after(item)
    except asyncio.CancelledError:
        # Nobody waits for them any more, so they must not go on spending.
        with suppress(HarnessError):
            await asyncio.shield(runtime.stop(run_ids, "park_now"))
        note_left()
        raise
    finally:
        for run_id in run_ids:
            if run_id not in ended:
                await printed[run_id].end()
    note_left()
    return ended
