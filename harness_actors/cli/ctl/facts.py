"""What `harness ctl` says of runs, read from journals without the runs' code."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from harness_actors.actors.cell_processes import coordinator_of, has_coordinator
from harness_actors.batch.run_note import RunNote
from harness_actors.errors import BadInputError, StoreError
from harness_actors.records import CHILD_MARK, RunHeading
from harness_actors.results import REASONS, Usage
from harness_actors.stores import JournalReader
from harness_actors.stores.places import holder_of

PHASES = ("running", "interrupted", "parked", "waiting", "ended")


_Listed: TypeAlias = tuple[JournalReader, RunHeading, bool]
"""A run of a journal, and whether somebody works on that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """One run in a list.

    Attributes:
        store: Its journal.
        heading: What the journal's list says of it.
        served: Somebody works on its journal now.
        what: Its task of a batch, or the beginning of its task.
    """

    store: Path
    heading: RunHeading
    served: bool
    what: str

    @property
    def usage(self) -> Usage:
        return self.heading.usage

    @property
    def word(self) -> str:
        """`running`, `interrupted`, `parked`, `waiting`, or the status that it ended with."""
        return word_of(self.heading, served=self.served)

    @property
    def status(self) -> str:
        end = self.heading.end
        if self.heading.phase == "waiting" and self.heading.is_answered:
            return "waiting(answered)"
        return self.word if end is None else f"{end.status}({end.reason.kind})"

    def as_json(self) -> dict[str, Any]:
        heading, end = self.heading, self.heading.end
        return {
            "run_id": heading.run_id,
            **({"root": heading.root} if heading.root else {}),
            "status": self.word,
            "reason": None if end is None else end.reason.kind,
            "conversation_id": heading.conversation_id,
            "turns": heading.turns,
            "rounds": heading.rounds,
            "usage": self.usage.as_mapping(),
            "added_at": heading.added_at,
            "changed_at": heading.changed_at,
            "what": self.what,
            "metadata": dict(heading.metadata),
            **({"questions": list(heading.questions)} if heading.questions else {}),
            "store": str(self.store),
        }


def word_of(heading: RunHeading, *, served: bool) -> str:
    """Where a run stands, in one word."""
    if heading.end is not None:
        return heading.end.status
    if heading.phase == "running":
        return "running" if served else "interrupted"
    return heading.phase


def is_served(store: Path) -> bool:
    """Whether a process works on a journal: a command, or a cell that outlived its own."""
    return holder_of(store) is not None or coordinator_of(store) is not None


def facts_of_runs(
    stores: Iterable[Path], *, status: str | None = None, limit: int = 0, tree: bool = False
) -> tuple[list[RunFacts], list[StoreError]]:
    """The runs of journals, the newest last, and why some could not be read.

    Args:
        stores: The journals.
        status: Only those that stand like this; None for all.
        limit: The newest so many; 0 for all.
        tree: Those that they have begun as well, each after its parent. Then it is trees that
            stand like this where one of their runs does, and that are counted.

    Raises:
        BadInputError: `status` is no word for one.
    """
    _check_status(status)
    found: list[_Listed] = []
    broken: list[StoreError] = []
    for store in stores:
        try:
            journal = JournalReader(store)
            headings = journal.headings()
            # Not `is_served`: a journal is checked each time that it is opened.
            served = holder_of(store) is not None or has_coordinator(journal)
        except StoreError as error:
            broken.append(error)
            continue
        found += [(journal, heading, served) for heading in headings]
    below: dict[tuple[JournalReader, str], list[_Listed]] = {}
    for one in found:
        if tree and one[1].root:
            below.setdefault((one[0], one[1].root), []).append(one)
    trees = [
        [one, *sorted(below.get((one[0], one[1].run_id), ()), key=_place)]
        for one in found
        if not one[1].root
    ]
    if status is not None:
        trees = [
            runs for runs in trees if any(_fits(status, one[1], served=one[2]) for one in runs)
        ]
    trees.sort(key=lambda runs: runs[0][1].added_at)
    newest = [one for runs in (trees[-limit:] if limit else trees) for one in runs]
    shown: dict[JournalReader, list[RunHeading]] = {}
    for journal, heading, _ in newest:
        shown.setdefault(journal, []).append(heading)
    words = {journal: _words_for(journal, headings) for journal, headings in shown.items()}
    return [
        _facts(journal.path, words[journal], heading, served) for journal, heading, served in newest
    ], broken


def facts_of(store: Path, heading: RunHeading) -> RunFacts:
    """One run of a journal."""
    words = _words_for(JournalReader(store), [heading])
    return _facts(store, words, heading, is_served(store))


def _facts(store: Path, words: Mapping[str, str], heading: RunHeading, served: bool) -> RunFacts:
    return RunFacts(
        store=store,
        heading=heading,
        served=served,
        what=words.get(heading.run_id, ""),
    )


def _words_for(journal: JournalReader, headings: Iterable[RunHeading]) -> dict[str, str]:
    """What runs are about, by their ids: their task of a batch, or the beginning of their task."""
    named: dict[str, str] = {}
    others: list[str] = []
    for heading in headings:
        note = RunNote.read(heading.metadata)
        # One without an id is known by its hash, which tells nobody anything.
        if note is not None and note.task_id != note.task_hash:
            named[heading.run_id] = note.task_id
        else:
            others.append(heading.run_id)
    previews = journal.load_previews(others) if others else {}
    return named | {run_id: " ".join(words.split()) for run_id, words in previews.items()}


def _place(child: _Listed) -> list[int]:
    """By it, children stand below their parents, in the order in which they were begun."""
    heading = child[1]
    return [int(number) for number in numbers_of(heading)]


def numbers_of(heading: RunHeading) -> list[str]:
    """Of a child, the how many-th it is of its parent, that of its parent, and so on, from the top.

    Empty of a run that nobody has begun: as many as runs stand above it.
    """
    return heading.run_id.removeprefix(heading.root).split(CHILD_MARK)[1:] if heading.root else []


def _fits(status: str, heading: RunHeading, *, served: bool) -> bool:
    if status == "waiting" and heading.open_questions:
        # Others of its tree go on, or could: it can be answered all the same.
        return True
    return status in (word_of(heading, served=served), heading.phase if heading.end else None)


def _check_status(status: str | None) -> None:
    words = (*PHASES, *REASONS)
    if status is not None and status not in words:
        raise BadInputError("--status", (f"must be one of {', '.join(words)}, not {status!r}",))
