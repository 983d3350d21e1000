"""`harness ctl run export`: conversations as other programs read them."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness_actors.cli import options
from harness_actors.cli.ctl import selection
from harness_actors.cli.failures import ALL_DONE, failures_told
from harness_actors.printing.plain import json_line, say

if TYPE_CHECKING:
    from harness_actors.records import RunHeading
    from harness_actors.stores.conversations import StoredConversation


class Format(StrEnum):
    """Whose files are written."""

    openai = "openai"
    harness = "harness"


def export(
    run_ids: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN_ID", help="The runs, or the beginnings of their ids; none is all."
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
        typer.Option(
            "--format",
            help="`openai`: a line `{messages, tools}` per conversation; `harness`: with "
            "`run_id` and `conversation_id` before them.",
        ),
    ] = Format.openai,
    ok: Annotated[
        bool,
        typer.Option("--ok", help="Without ids: only those that ended done, their check passed."),
    ] = False,
    all_attempts: Annotated[
        bool,
        typer.Option(
            "--all-attempts",
            help="Without ids: of a batch's task also the attempts that another one followed.",
        ),
    ] = False,
    as_json: options.JsonOption = False,
) -> None:
    """Whole conversations on stdout, one a line, as OpenAI's files for training have them.

    Of each task of a batch it is the attempt that counts, the newest. Runs of
    one conversation are one line; those that another run has begun are written only where they are
    named. The system prompt and the tools come with it; of journals from before these were put on
    record it begins with the task.

    Examples:

        harness ctl run export 3f2a > conversation.jsonl

        harness ctl run export --run-dir runs/one --ok > training.jsonl

        harness ctl run export --run-dir runs/one --format harness | jq -c .run_id

        harness ctl run export --run-dir runs/one | jq -c '.messages[-1]'
    """
    with failures_told(as_json=as_json):
        from harness_actors.stores.places import journals_in

        bare = 0
        choice = _Choice(status=status, ok=ok, all_attempts=all_attempts)
        for run_id, conversation in _conversations(journals_in(run_dir, store), run_ids, choice):
            line = conversation.as_openai()
            if format_ is Format.harness:
                ids = {"run_id": run_id, "conversation_id": conversation.conversation_id}
                line = {**ids, **line}
            say(json_line(line, ensure_ascii=False))
            bare += conversation.tools is None
        if bare:
            say(
                f"{bare} without system prompt and tools: their journal has them not on record",
                sys.stderr,
            )
    raise typer.Exit(ALL_DONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """Which runs are written where none is named."""

    status: str | None
    ok: bool
    all_attempts: bool

    @property
    def flag(self) -> str | None:
        """The flag that chooses; None where none was given."""
        given = {
            "--status": self.status is not None,
            "--ok": self.ok,
            "--all-attempts": self.all_attempts,
        }
        return next((name for name, is_given in given.items() if is_given), None)


def _conversations(
    stores: Sequence[Path], run_ids: Sequence[str] | None, choice: _Choice
) -> "Iterator[tuple[str, StoredConversation]]":
    """Each conversation once, in the order in which the runs were named or submitted."""
    from harness_actors.stores import JournalReader
    from harness_actors.stores.conversations import conversation_of
    from harness_actors.tools.artifacts import read_artifact

    reader = read_artifact.spec.as_wire()
    told: set[tuple[Path, str]] = set()
    for path, heading in _named(stores, run_ids, choice):
        if (path, heading.conversation_id) in told:
            continue
        told.add((path, heading.conversation_id))
        journal = JournalReader(path)
        run = journal.load_run(heading.run_id)
        # It may have been removed since it was listed; and one that has said nothing is no line.
        if run is not None and run.state.log:
            yield heading.run_id, conversation_of(journal, run, reader=reader)


def _named(
    stores: Sequence[Path], run_ids: Sequence[str] | None, choice: _Choice
) -> "list[tuple[Path, RunHeading]]":
    from harness_actors.cli.ctl.facts import facts_of_runs
    from harness_actors.errors import BadInputError
    from harness_actors.stores.places import find_run

    if run_ids:
        if choice.flag is not None:
            raise BadInputError(choice.flag, (f"name runs or choose by {choice.flag}, not both",))
        found = [find_run(stores, given) for given in run_ids]
        return [(one.store, one.heading) for one in found]
    facts, broken = facts_of_runs(stores, status=choice.status)
    if broken:
        raise broken[0]
    chosen = [(one.store, one.heading) for one in facts]
    if not choice.all_attempts:
        counting = {run_id for path in stores for run_id in _counting(path)}
        chosen = [one for one in chosen if one[1].run_id in counting]
    if choice.ok:
        passed = {path: _passed(path) for path in stores}
        chosen = [one for one in chosen if _is_ok(one[1], passed[one[0]])]
    return chosen


def _counting(path: Path) -> Iterator[str]:
    """The runs of a journal without those that another attempt of their task followed."""
    from harness_actors.batch.run_note import RunNote
    from harness_actors.stores import JournalReader

    newest: dict[str, str] = {}
    for heading in JournalReader(path).headings():
        note = RunNote.read(heading.metadata)
        if note is None:
            yield heading.run_id
        else:
            newest[note.task_id] = heading.run_id
    yield from newest.values()


def _passed(path: Path) -> set[str]:
    from harness_actors.batch.results_file import ok_runs

    return ok_runs(path.with_name("results.jsonl"))


def _is_ok(heading: "RunHeading", passed: set[str]) -> bool:
    from harness_actors.batch.run_note import RunNote

    if RunNote.read(heading.metadata) is not None:
        return heading.run_id in passed
    return heading.end is not None and heading.end.ok
