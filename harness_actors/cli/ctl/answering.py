"""Giving runs their answers, whoever works on their journals."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from harness_actors.cli.ctl.answered_run import AnsweredRun
from harness_actors.cli.ctl.control import cell_for
from harness_actors.cli.ctl.given_answers import FILE, MOST_FAULTS, GivenAnswer
from harness_actors.errors import AnswerError, BadInputError, HarnessError, RunNotFoundError
from harness_actors.records import RunHeading
from harness_actors.stores import JournalReader
from harness_actors.stores.places import find_run


def runs_to_answer(
    stores: Sequence[Path], given: Sequence[GivenAnswer], *, whole_ids: bool
) -> list[AnsweredRun]:
    """The runs of answers, each once, in the order in which they were named.

    Args:
        stores: The journals.
        given: The answers.
        whole_ids: Runs are named by their whole ids; else the beginning of one is enough.

    Raises:
        BadInputError: A run is unknown or ambiguous.
    """
    found = _by_id(stores) if whole_ids else {}
    runs: dict[str, AnsweredRun] = {}
    unknown: list[str] = []
    for answer in given:
        if answer.run not in runs:
            if not whole_ids:
                one = find_run(stores, answer.run)
                runs[answer.run] = answered_run(one.store, one.heading)
            elif answer.run in found:
                runs[answer.run] = found[answer.run]
            else:
                unknown.append(f"there is no run {answer.run!r}")
                continue
        run = runs[answer.run]
        try:
            run.add(answer)
        except AnswerError as error:
            run.refused = run.refused or error
    if unknown:
        raise BadInputError(FILE, tuple(unknown[:MOST_FAULTS]))
    return list(runs.values())


def _by_id(stores: Iterable[Path]) -> dict[str, AnsweredRun]:
    found: dict[str, AnsweredRun] = {}
    for store in stores:
        headings = {heading.run_id: heading for heading in JournalReader(store).headings()}
        for run_id, heading in headings.items():
            top = headings.get(heading.root)
            found[run_id] = (
                AnsweredRun(store, heading) if top is None else AnsweredRun(store, top, run_id)
            )
    return found


def answered_run(store: Path, heading: RunHeading) -> AnsweredRun:
    """A run that is to be answered: for one below others, the one at the top of its tree."""
    if not heading.root:
        return AnsweredRun(store, heading)
    headings = JournalReader(store).headings(heading.root)
    top = next(one for one in headings if one.run_id == heading.root)
    return AnsweredRun(store, top, below=heading.run_id)


async def answer_runs(runs: Iterable[AnsweredRun], address: str | None) -> None:
    """Give runs their answers: of each all, or none, and then it says why.

    Args:
        runs: The runs; their headings are those of afterwards.
        address: Which Ray their cells are on; None finds it.
    """
    by_store: dict[Path, list[AnsweredRun]] = defaultdict(list)
    for run in runs:
        if run.refused is None:
            by_store[run.store].append(run)
    for store, those in by_store.items():
        try:
            async with cell_for(store, address) as cell:
                for run in those:
                    try:
                        await cell.answer(run.run_id, run.answers)
                        run.taken = True
                    except (AnswerError, RunNotFoundError) as error:
                        run.refused = error
        except HarnessError as error:
            for run in those:
                if not run.taken:
                    run.refused = run.refused or error
        beginning = those[0].run_id if len(those) == 1 else ""
        now = {heading.run_id: heading for heading in JournalReader(store).headings(beginning)}
        for run in those:
            run.heading = now.get(run.run_id, run.heading)
