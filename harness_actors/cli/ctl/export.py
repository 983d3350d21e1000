"""`harness ctl run export`: conversations as other programs read them."""

import json
import sys
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection
from harness_actors.cli.failures import ALL_DONE, failures_told

if TYPE_CHECKING:
    from harness_actors.stores.conversations import StoredConversation


class Format(StrEnum):
    """Whose files are written."""

    openai = "openai"


def export(
    run_ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN_ID]...", help="The runs, or the beginnings of their ids; none is all."
        ),
    ] = None,
    run_dir: selection.RunDirOption = None,
    store: selection.StoreOption = None,
    status: Annotated[
        str | None,
        typer.Option(
            "--status", metavar="WORD", help="Without ids: only those that stand like this."
        ),
    ] = None,
    format_: Annotated[
        Format,
        typer.Option("--format", help="`openai`: a line `{messages, tools}` per conversation."),
    ] = Format.openai,
    as_json: options.JsonOption = False,
) -> None:
    """Whole conversations on stdout, one a line, as OpenAI's files for training have them.

    Runs of one conversation are one line. The system prompt and the tools come with it; of
    journals from before these were put on record it begins with the task.

    Examples:

        harness ctl run export 3f2a > conversation.jsonl

        harness ctl run export --run-dir runs/one --status done > training.jsonl

        harness ctl run export --run-dir runs/one | jq -c '.messages[-1]'
    """
    with failures_told(as_json=as_json):
        from harness_actors.stores.places import journals_in

        bare = 0
        for conversation in _conversations(journals_in(run_dir, store), run_ids, status):
            assert format_ is Format.openai, "there is no other"
            print(json.dumps(conversation.as_openai(), ensure_ascii=False), flush=True)
            bare += conversation.tools is None
        if bare:
            print(
                f"{bare} without system prompt and tools: their journal has them not on record",
                file=sys.stderr,
            )
    raise typer.Exit(ALL_DONE)


def _conversations(
    stores: Sequence[Path], run_ids: Sequence[str] | None, status: str | None
) -> "Iterator[StoredConversation]":
    """Each conversation once, in the order in which the runs were named or submitted."""
    from harness_actors.stores import JournalReader
    from harness_actors.stores.conversations import conversation_of

    told: set[tuple[Path, str]] = set()
    for path, run_id, conversation_id in _named(stores, run_ids, status):
        if (path, conversation_id) in told:
            continue
        told.add((path, conversation_id))
        journal = JournalReader(path)
        run = journal.load_run(run_id)
        # It may have been removed since it was listed; and one that has said nothing is no line.
        if run is not None and run.state.log:
            yield conversation_of(journal, run)


def _named(
    stores: Sequence[Path], run_ids: Sequence[str] | None, status: str | None
) -> list[tuple[Path, str, str]]:
    from harness_actors.cli.ctl.facts import facts_of_runs
    from harness_actors.errors import BadInputError
    from harness_actors.stores.places import find_run

    if run_ids:
        if status is not None:
            raise BadInputError("--status", ("name runs or choose them by --status, not both",))
        found = [find_run(stores, given) for given in run_ids]
        return [(one.store, one.heading.run_id, one.heading.conversation_id) for one in found]
    facts, broken = facts_of_runs(stores, status=status)
    if broken:
        raise broken[0]
    return [(one.store, one.heading.run_id, one.heading.conversation_id) for one in facts]
