"""`harness ctl run answer`: answer what runs ask."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection
from harness_actors.cli.ctl.resume import Taking, take_up
from harness_actors.cli.failures import ALL_DONE, NOT_ALL_DONE, failures_told, tell
from harness_actors.cli.where import check_where
from harness_actors.printing.plain import json_line, one_line, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from harness_actors.cli.ctl.answered_run import AnsweredRun


ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Go on at once with what is answered.")
]


def answer(
    run_id: Annotated[
        str,
        typer.Argument(metavar="[RUN_ID]", help="The run, or the beginning of its id."),
    ] = "",
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[QUESTION] TEXT",
            help="The id of the question, which may be left out where one is open, and the "
            "answer; - reads it from standard input.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="With a question: its answer. With a run alone: JSON or YAML, answers by the ids "
            "of its questions. With neither: a line of JSON for each answer, "
            '{"run": …, "question": …, "answer": …}, with whole ids. - is standard input.',
        ),
    ] = None,
    resume: ResumeOption = False,
    run_dir: selection.RunDirOption = None,
    store: selection.StoreOption = None,
    runtime: options.RuntimeOption = options.RuntimeChoice.ray,
    address: options.AddressOption = None,
    trust_ray: options.TrustRayOption = False,
    as_json: options.JsonOption = False,
    verbose: options.VerboseOption = False,
    debug: options.DebugOption = False,
) -> None:
    """Answer what runs ask; the first answer to a question counts.

    Where a run asks whether a call may be made, the answer is yes or no; `harness ctl run approve`
    and `deny` say more.

    An answer is on disk when this ends, whoever works on the journal, and needs neither the
    agent's code nor a key. Of each run all answers are taken, or none. The run goes on when it is
    taken up: by --resume, by `harness ctl run resume`, or by the command of its batch.

    Exits with 0 where all answers were taken (and, with --resume, all ended well).

    Examples:

        harness ctl run answer 3f2a blue

        harness ctl run answer 3f2a q2 "the large one" --resume

        git diff | harness ctl run answer 3f2a -

        harness ctl run answer --file answers.jsonl --run-dir runs/one
    """
    with failures_told(as_json=as_json):
        from harness_actors.cli.ctl.answering import runs_to_answer
        from harness_actors.cli.ctl.given_answers import given_answers
        from harness_actors.stores.places import journals_in

        check_where(runtime, address)
        given = given_answers(run_id, words or [], file)
        runs = runs_to_answer(journals_in(run_dir, store), given, whole_ids=not run_id)
        taking = Taking(runtime, address, as_json=as_json, verbose=verbose, debug=debug)
        status = give(runs, taking, resume=resume)
    raise typer.Exit(status)


def give(runs: "Sequence[AnsweredRun]", taking: Taking, *, resume: bool) -> int:
    """Give runs their answers and say what became of these; the exit status.

    Args:
        runs: The runs.
        taking: How they are taken up, and told of.
        resume: Take up those that were answered.

    Raises:
        HarnessError: Why the only run was not answered.
    """
    from harness_actors.cli.ctl.answering import answer_runs

    asyncio.run(answer_runs(runs, taking.address))
    refused = [run.refused for run in runs if run.refused is not None]
    if len(runs) == 1 and refused:
        raise refused[0]
    for error in refused:
        tell(error, as_json=taking.as_json)
    taken: dict[Path, list[str]] = {}
    for run in runs:
        if run.taken:
            _print(run, as_json=taking.as_json, tell_how=not resume)
            taken.setdefault(run.store, []).append(run.run_id)
    status = NOT_ALL_DONE if refused else ALL_DONE
    return take_up(taken, taking) or status if resume else status


def _print(run: "AnsweredRun", *, as_json: bool, tell_how: bool) -> None:
    from harness_actors.cli.event_lines import question_lines
    from harness_actors.cli.questions import run_command

    still_open = run.open_in_tree
    if as_json:
        plain = {"run_id": run.run_id, "answered": list(run.answers), "open": still_open}
        say(json_line(plain))
        return
    for word, ids in run.said().items():
        those = ", ".join(map(one_line, ids))
        say(f"{one_line(run.run_id)}: {those} {'is' if len(ids) == 1 else 'are'} {word}")
    if still_open:
        say("still open:")
        for line in question_lines(still_open):
            say(f"  {line}")
    elif run.goes_on:
        say("all is answered, and it goes on")
    elif tell_how:
        say(f"all is answered; go on by {run_command('resume', run.store, [run.run_id])}")
