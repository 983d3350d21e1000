"""`harness contract check`: whether a contract is met in a folder, and what is missing."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness_actors.cli import options
from harness_actors.cli.failures import ALL_DONE, NOT_ALL_DONE, failures_told
from harness_actors.printing.plain import json_line, one_line, say

if TYPE_CHECKING:
    from harness_actors.contracts import LoadedContract, Verification

MOST_ANSWER_BYTES = 20_000_000

contract = typer.Typer(
    help="Contracts: what a task must have come to.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@contract.callback()
def _contract() -> None:
    """Contracts: what a task must have come to."""


@contract.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The contract, YAML or JSON.")],
    workspace: Annotated[
        Path, typer.Option("--workspace", metavar="DIR", help="The folder that it is of.")
    ],
    answer: Annotated[
        Path | None,
        typer.Option("--answer", metavar="FILE", help="What the agent has answered last."),
    ] = None,
    assume: Annotated[
        bool,
        typer.Option("--assume", help="Take as met what cannot be told without a run."),
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Is this contract met here, and what is missing?

    Nothing is run but the commands of the contract, in the folder itself, and its functions.
    Results of tools, what a judge finds and, without --answer, the last answer cannot be told
    without a run: they are not met, unless --assume is given.

    Exits with 0 where it is met, with 1 where it is not, with 2 where the contract is at fault.

    Examples:

        harness contract check contract.yaml --workspace out

        harness contract check contract.yaml --workspace . --answer answer.txt --json
    """
    with failures_told(as_json=as_json):
        import asyncio

        from harness_actors.contracts import load_contract

        loaded = load_contract(file)
        folder, said = _folder(workspace), _answer(answer)
        verification = asyncio.run(_verified(loaded, folder, said))
        if assume:
            verification = verification.assuming()
        if as_json:
            say(json_line(_plain(loaded, folder, verification)))
        else:
            _print(verification)
    raise typer.Exit(ALL_DONE if verification.satisfied else NOT_ALL_DONE)


async def _verified(loaded: "LoadedContract", folder: Path, answer: str | None) -> "Verification":
    from harness_actors.contracts import (
        ContractVerifier,
        Grounds,
        WorkspaceCommands,
        WorkspaceFiles,
    )
    from harness_actors.contracts.naming import find_customs
    from harness_actors.records import FolderId
    from harness_actors.tools.supervision.client import SupervisedProcesses

    known = FolderId.of(os.stat(folder))
    customs, faults = find_customs(loaded.contract, beside=loaded.path.resolve().parent)
    loaded.refuse(faults)
    processes = SupervisedProcesses()
    try:
        grounds = Grounds(
            workspace=folder,
            files=WorkspaceFiles(folder=folder, id=known),
            commands=WorkspaceCommands(folder=folder, id=known, processes=processes),
            answer=answer,
            customs=customs,
        )
        return await ContractVerifier(loaded.contract).verify(grounds)
    finally:
        processes.close()


def _folder(workspace: Path) -> Path:
    from harness_actors.errors import BadInputError

    if not workspace.is_dir():
        raise BadInputError("--workspace", (f"there is no folder {str(workspace)!r}",))
    return workspace.resolve()


def _answer(file: Path | None) -> str | None:
    from harness_actors.errors import BadInputError

    if file is None:
        return None
    try:
        with file.open("rb") as opened:
            data = opened.read(MOST_ANSWER_BYTES + 1)
    except OSError as error:
        raise BadInputError("--answer", (f"it cannot be read: {error.strerror}",)) from None
    if len(data) > MOST_ANSWER_BYTES:
        problem = f"it has more than {MOST_ANSWER_BYTES:,} bytes, which no answer has"
        raise BadInputError("--answer", (problem,))
    return data.decode("utf-8", "replace")


def _plain(loaded: "LoadedContract", folder: Path, verification: "Verification") -> dict[str, Any]:
    return {
        "file": str(loaded.path),
        "workspace": str(folder),
        "goal": loaded.contract.goal,
        **verification.as_plain(),
    }


_COLOURS = {"met": "green", "assumed": "yellow", "partly met": "yellow"}


def _print(verification: "Verification") -> None:
    from rich.table import Table
    from rich.text import Text

    from harness_actors.printing.console import PlainConsole

    table = Table(box=None, pad_edge=False)
    for name in ("id", "", "what is required", "what was found"):
        table.add_column(name, overflow="fold", no_wrap=not name)
    for output in verification.contract.outputs:
        word = _word(verification, output.id)
        table.add_row(
            Text(one_line(output.id)),
            f"[{_COLOURS.get(word, 'red')}]{word}[/]",
            Text(one_line(output.description) + (" (optional)" if output.optional else "")),
            Text(_found(verification, output.id)),
        )
    console = PlainConsole()
    if not console.is_terminal:
        # Into a file or a pipe nothing is folded to the width of a terminal.
        console = PlainConsole(width=300)
    console.print(table)
    if verification.gaps.needs_answers:
        for question in verification.gaps.unanswered_questions:
            say(f"not answered: {one_line(question.id)}: {one_line(question.question)}")
    required = [output.id for output in verification.contract.required]
    criteria = verification.contract.acceptability
    count = verification.ledger.counts(required, allow_partial=criteria.allow_partial)
    verdict = "the contract is met" if verification.satisfied else "the contract is not met"
    say(f"{verdict}: {count} of {len(required)} required")


def _word(verification: "Verification", name: str) -> str:
    status = verification.ledger.entries[name].status
    match status:
        case "skipped":
            return "assumed"
        case "partially_met":
            return "partly met"
        case "unmet" if verification.findings[name].verdict == "unknown":
            return "unknown"
        case _:
            return status


def _found(verification: "Verification", name: str) -> str:
    entry = verification.ledger.entries[name]
    if entry.notes:
        return one_line(entry.notes)
    seen = [": ".join(filter(None, (one.ref, one.value))) for one in entry.evidence]
    return one_line("; ".join(seen))
