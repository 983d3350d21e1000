"""`harness ctl run approve` and `deny`: decide about calls that wait for approval."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection
from harness_actors.cli.ctl.answer import ResumeOption, give
from harness_actors.cli.ctl.resume import Taking
from harness_actors.cli.failures import failures_told
from harness_actors.cli.where import check_where
from harness_actors.errors import BadInputError

if TYPE_CHECKING:
    from harness_actors.cli.ctl.answered_run import AnsweredRun
    from harness_actors.policies.decisions import Decision

ARGUMENTS, NOTE, CALL = "--arguments", "--note", "CALL"


class StandingChoice(StrEnum):
    """For which later calls of a run a decision stands too."""

    tool = "tool"
    arguments = "arguments"


CallArgument = Annotated[
    str,
    typer.Argument(
        metavar="[CALL]",
        help="Which call: the id of the question, such as q1, or that of the call. It may be left "
        "out where one waits.",
    ),
]
AlwaysOption = Annotated[
    StandingChoice | None,
    typer.Option(
        "--always",
        help="Decide so about later calls of the run, too: all of this tool, or those of it with "
        "the same arguments.",
    ),
]
AllOption = Annotated[
    bool, typer.Option("--all", help="Decide so about each call of the run that waits.")
]


def approve(
    run_id: selection.RunIdArgument,
    call: CallArgument = "",
    arguments: Annotated[
        str | None,
        typer.Option(
            "--arguments",
            metavar="JSON|@FILE|-",
            help="Make the call with these, all of them, in place of the model's; from a file or "
            "from standard input.",
        ),
    ] = None,
    note: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="Why, for whoever reads the record.")
    ] = "",
    always: AlwaysOption = None,
    every: AllOption = False,
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
    """Approve a call of a tool that a run waits for; the first decision counts.

    It is on disk when this ends, as an answer is, and the call is made when the run is taken up:
    by --resume, by `harness ctl run resume`, or by the command of its batch.

    Examples:

        harness ctl run approve 3f2a

        harness ctl run approve 3f2a q2 --arguments '{"order": 17, "amount": 5}' --resume

        harness ctl run approve 3f2a --always tool

        harness ctl run approve 3f2a --all --run-dir runs/one
    """
    with failures_told(as_json=as_json):
        from harness_actors.cli.ctl.given_answers import given_arguments
        from harness_actors.policies.decisions import Approve

        if arguments is not None and (every or always):
            other = "--all" if every else "--always"
            raise BadInputError(ARGUMENTS, (f"they are for one call alone; leave out {other}",))
        check_where(runtime, address)
        changed = None if arguments is None else given_arguments(arguments)
        with _refused(ARGUMENTS):
            decision = Approve(changed)
        with _refused(NOTE):
            decision = replace(decision, note=note, standing=_standing(always))
        run = _decided(run_id, call, decision, every=every, run_dir=run_dir, store=store)
        taking = Taking(runtime, address, as_json=as_json, verbose=verbose, debug=debug)
        status = give([run], taking, resume=resume)
    raise typer.Exit(status)


def deny(
    run_id: selection.RunIdArgument,
    call: CallArgument = "",
    note: Annotated[
        str, typer.Option("--note", metavar="TEXT", help="Why not, for the model.")
    ] = "",
    always: AlwaysOption = None,
    every: AllOption = False,
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
    """Deny a call of a tool that a run waits for; the first decision counts.

    The call is not made. The model is told so, with the note, when the run is taken up: by
    --resume, by `harness ctl run resume`, or by the command of its batch.

    Examples:

        harness ctl run deny 3f2a --note "ask for the invoice first" --resume

        harness ctl run deny 3f2a q2 --always arguments
    """
    with failures_told(as_json=as_json):
        from harness_actors.policies.decisions import Refuse

        check_where(runtime, address)
        with _refused(NOTE):
            decision = Refuse(note, _standing(always))
        run = _decided(run_id, call, decision, every=every, run_dir=run_dir, store=store)
        taking = Taking(runtime, address, as_json=as_json, verbose=verbose, debug=debug)
        status = give([run], taking, resume=resume)
    raise typer.Exit(status)


def _decided(
    run_id: str,
    call: str,
    decision: "Decision",
    *,
    every: bool,
    run_dir: Path | None,
    store: Path | None,
) -> "AnsweredRun":
    """The run that was named, with what is decided about its calls.

    Raises:
        BadInputError: The run is unknown or ambiguous, or it is not clear what is decided about.
        AnswerError: It does not wait for that.
    """
    from harness_actors.cli.ctl.answering import answered_run
    from harness_actors.stores.places import find_run, journals_in

    if every and call:
        raise BadInputError(CALL, ("name one, or give --all",))
    found = find_run(journals_in(run_dir, store), run_id)
    run = answered_run(found.store, found.heading)
    if every:
        run.decide_all(decision)
    else:
        run.decide(call, decision)
    return run


def _standing(always: StandingChoice | None) -> Literal["", "tool", "arguments"]:
    return "" if always is None else always.value


@contextmanager
def _refused(source: str) -> Iterator[None]:
    """Name what of the command line is at fault, where it makes no decision."""
    try:
        yield
    except ValueError as error:
        raise BadInputError(source, (f"{error}",)) from None
