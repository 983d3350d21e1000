"""`harness ctl run resume`: take up runs that were interrupted or put aside."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from harness_actors.cli import options
from harness_actors.cli.asking import Asker, is_somebody_there
from harness_actors.cli.ctl import selection
from harness_actors.cli.event_lines import EventLines
from harness_actors.cli.failures import ALL_DONE, INTERRUPTED, NOT_ALL_DONE, failures_told, tell
from harness_actors.cli.interrupts import Interrupts
from harness_actors.cli.questions import resume_command, tell_waiting
from harness_actors.cli.streams import show_runs
from harness_actors.cli.where import check_where
from harness_actors.printing.plain import json_line, say

if TYPE_CHECKING:
    from harness_actors.actors import Runtime
    from harness_actors.records import RunHeading
    from harness_actors.results import HarnessResult


def resume(
    run_ids: selection.RunIdsArgument,
    run_dir: selection.RunDirOption = None,
    store: selection.StoreOption = None,
    runtime: options.RuntimeOption = options.RuntimeChoice.ray,
    address: options.AddressOption = None,
    trust_ray: options.TrustRayOption = False,
    as_json: options.JsonOption = False,
    verbose: options.VerboseOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Take up runs with the agent and settings that they have, and show them to their ends.

    Keys are looked up in the environment by the names that the runs know. A batch is
    resumed by its own command instead, which writes its results too. A run whose workspace is
    gone is refused, and so is a cut one whose conversation another run has continued. A tree
    goes on as one: with a run that another one has begun, it is the one at its top that is shown.

    What runs ask is asked at the terminal. Elsewhere, and with --json, one that still waits for
    an answer is left waiting: it is said what for, and the exit status is 1.

    Examples:

        harness ctl run resume 3f2a

        harness ctl run resume 3f2a 91bc --runtime local --json

        harness ctl run resume 3f2a -v --debug
    """
    with failures_told(as_json=as_json):
        from harness_actors.cli.ctl.control import find_runs
        from harness_actors.stores.places import journals_in

        check_where(runtime, address)
        found = find_runs(journals_in(run_dir, store), run_ids)
        taking = Taking(runtime, address, as_json=as_json, verbose=verbose, debug=debug)
        status = take_up(found, taking)
    raise typer.Exit(status)


@dataclass(frozen=True, slots=True)
class Taking:
    """How runs are taken up.

    Attributes:
        runtime: What runs them.
        address: Which Ray; None finds it.
        as_json: Print results for scripts, and ask nobody.
        verbose: Show what code of the user prints.
        debug: Show where code of the user failed.
    """

    runtime: options.RuntimeChoice
    address: str | None
    _: KW_ONLY
    as_json: bool
    verbose: bool
    debug: bool


def take_up(found: Mapping[Path, Sequence[str]], taking: Taking) -> int:
    """Take up runs and show them until each is over, or waits for its user; the exit status.

    At a terminal what they ask is asked there, when all of a journal are over or wait.

    Args:
        found: The runs, by their journals.
        taking: How.

    Raises:
        HarnessError: One cannot be taken up; nothing was done.
    """
    from harness_actors.cli.ctl.control import check_keys
    from harness_actors.stores.taking_up import check_taking_up

    asker = None if taking.as_json or not is_somebody_there() else Asker()
    found = _at_the_top(found, EventLines(quiet=taking.as_json))
    results: dict[str, HarnessResult] = {}
    ready: dict[Path, list[str]] = {}
    for path, named in found.items():
        if asker is None:
            results |= _unanswered(path, named)
        ready[path] = [run_id for run_id in named if run_id not in results]
        check_keys(path, ready[path])
        check_taking_up(path, ready[path])
    for path, named in ready.items():
        if named:
            results |= asyncio.run(_take_up(path, named, taking, asker))
    asked = [(path, run_id) for path, named in found.items() for run_id in named]
    _tell(asked, results, taking)
    if len(results) < len(asked) or (asker is not None and asker.was_stopped):
        return INTERRUPTED
    done = all(result.ok for result in results.values())
    return ALL_DONE if done else NOT_ALL_DONE


def _at_the_top(found: Mapping[Path, Sequence[str]], lines: EventLines) -> dict[Path, list[str]]:
    """The same runs, with the tops of their trees in the place of children that are not over."""
    from harness_actors.cli.ctl.control import trees_of

    tops: dict[Path, list[str]] = {}
    for path, named in found.items():
        roots = trees_of(path, named)
        for run_id, root in roots.items():
            lines.tell(f"run {run_id} is one of the tree of {root}, all of which goes on")
        tops[path] = list(dict.fromkeys(roots.get(run_id, run_id) for run_id in named))
    return tops


def _unanswered(store: Path, run_ids: Sequence[str]) -> "dict[str, HarnessResult]":
    """Those that wait for answers, with what they ask: nobody need be started for them."""
    from harness_actors.actors.driver.awaiting import still_waiting
    from harness_actors.stores import JournalReader

    named = set(run_ids)
    headings = (one for one in JournalReader(store).headings() if one.run_id in named)
    return {one.run_id: still_waiting(one) for one in headings if _asks(one)}


def _asks(heading: "RunHeading") -> bool:
    return heading.phase == "waiting" and not heading.is_answered


async def _take_up(
    store: Path, run_ids: Sequence[str], taking: Taking, asker: Asker | None
) -> "dict[str, HarnessResult]":
    from harness_actors.actors.driver.open_cells import close_cell, open_cell
    from harness_actors.cli.ctl.control import ended_among

    lines = EventLines(quiet=taking.as_json, debug=taking.debug)
    ended = ended_among(store, run_ids)
    _tell_over(ended, lines)
    if len(ended) == len(run_ids):
        return ended
    if taking.runtime is options.RuntimeChoice.ray:
        lines.note("starting the actors on Ray")
    cell = await open_cell(store, taking.runtime.value, taking.address)
    try:
        # In a cell that outlived its command, they may have ended by themselves.
        cursor = await cell.position()
        since = await asyncio.to_thread(ended_among, store, _without(run_ids, ended))
        _tell_over(since, lines)
        results = {**ended, **since}
        # The budget of a batch is no matter of those who take up runs one by one.
        await cell.allow(None)
        left = _without(run_ids, results)
        while left:
            shown = await _show(cell, store, left, lines, cursor, taking)
            results |= shown
            waiting = [run for run in shown.values() if run.status == "awaiting_input"]
            if asker is None or not waiting or len(shown) < len(left):
                break
            cursor = await cell.position()
            results |= await _ask(cell, store, waiting, asker)
            left = [run.run_id for run in waiting if not results[run.run_id].questions]
            if asker.was_stopped:
                break
        if aside := [run_id for run_id, one in results.items() if _goes_on(one)]:
            command = resume_command(store, aside, taking.runtime.value)
            lines.note(f"{command} goes on with what is answered")
        return {run_id: one for run_id, one in results.items() if run_id not in aside}
    finally:
        await close_cell(store, taking.runtime.value)


async def _show(
    cell: "Runtime",
    store: Path,
    run_ids: Sequence[str],
    lines: EventLines,
    cursor: int,
    taking: Taking,
) -> "dict[str, HarnessResult]":
    from harness_actors.actors.driver.below import Below
    from harness_actors.actors.driver.following import follow
    from harness_actors.cli.ctl.control import keys_of

    begin = partial(cell.resume, run_ids, secrets=keys_of(store, run_ids))
    below = Below(cell, run_ids)
    async with aclosing(follow(cell, run_ids, begin, cursor, below=below)) as stream:
        return await show_runs(
            stream,
            cell,
            run_ids,
            lines,
            store=store,
            where=taking.runtime.value,
            verbose=taking.verbose,
        )


async def _ask(
    cell: "Runtime", store: Path, waiting: "Sequence[HarnessResult]", asker: Asker
) -> "dict[str, HarnessResult]":
    """Ask what runs wait for, each answer on disk before the next question; what is open then."""
    from harness_actors.actors.driver.awaiting import without_answered
    from harness_actors.errors import AnswerError

    left: dict[str, HarnessResult] = {}
    with Interrupts(asker.stop):
        for run in waiting:
            answered: set[str] = set()
            for question in run.questions:
                while (answer := await asker.ask(question)) is not None:
                    try:
                        await cell.answer(run.run_id, {question.id: answer})
                        answered.add(question.id)
                        break
                    except AnswerError as error:
                        tell(error, as_json=False)
                    # Its tool does not take such arguments; or somebody else was faster.
                    if not await asyncio.to_thread(_is_open, store, run.run_id, question.id):
                        answered.add(question.id)
                        break
            left[run.run_id] = without_answered(run, answered)
    return left


def _is_open(store: Path, run_id: str, question_id: str) -> bool:
    from harness_actors.stores import JournalReader

    asked = (one for heading in JournalReader(store).headings(run_id) for one in heading.questions)
    return any(one["id"] == question_id and one["answer"] is None for one in asked)


def _goes_on(result: "HarnessResult") -> bool:
    """It has all of its answers, and was not taken up with them."""
    return result.status == "awaiting_input" and not result.questions


def _without(run_ids: Sequence[str], others: "Mapping[str, HarnessResult]") -> list[str]:
    return [run_id for run_id in run_ids if run_id not in others]


def _tell(
    asked: Sequence[tuple[Path, str]], results: "Mapping[str, HarnessResult]", taking: Taking
) -> None:
    lines = EventLines(quiet=taking.as_json)
    for path, run_id in asked:
        if run_id not in results:
            continue
        result = results[run_id]
        _print(result, alone=len(asked) == 1, as_json=taking.as_json)
        if result.status == "awaiting_input":
            tell_waiting(result, path, lines, taking.runtime.value)


def _tell_over(ended: "Mapping[str, HarnessResult]", lines: EventLines) -> None:
    for run_id, result in ended.items():
        lines.note(f"run {run_id} was over: {result.status}({result.reason.kind})")


def _print(result: "HarnessResult", *, alone: bool, as_json: bool) -> None:
    from harness_actors.results import encode_result

    if as_json:
        say(json_line(encode_result(result)))
    elif not alone:
        told = f"{result.run_id}: {result.status}({result.reason.kind}) {result.output_text}"
        say(told.rstrip())
    elif result.output_text.strip():
        say(result.output_text)
