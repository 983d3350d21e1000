"""One run as its journal tells it: what was asked for, and every committed change."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness_actors.errors import RunNotFoundError
from harness_actors.events import ChildrenStarted, TurnStarted
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan
from harness_actors.records import RunSpec, StoredChange
from harness_actors.results import HarnessResult
from harness_actors.state import CHANGED_FILES, Write
from harness_actors.stores import JournalReader
from harness_actors.stores.conversations import head_of_run
from harness_actors.stores.faults import damage
from harness_actors.subagents.spec import OF_COPIES

CHANGES_PER_PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedChild:
    """What a run sees of one that it has begun.

    Attributes:
        most_words: How long its answer might be; None for any length.
        typed: It was to come to a value.
        contract: What it was held to, as plain values; None for nothing.
        end: How it has ended; None while it is unfinished.
        copied: It worked in a copy of the run's workspace.
        changed: What it had changed there, as plain values; None where it did not say.
    """

    most_words: int | None = None
    typed: bool = False
    contract: Mapping[str, Any] | None = None
    end: HarnessResult | None = None
    copied: bool = False
    changed: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A run of a journal, complete.

    Attributes:
        spec: What was asked for.
        added_at: When, in seconds since the epoch.
        changes: Its committed changes, oldest first.
        end: How it ended; None while it is unfinished.
        others: What other runs added to its conversation, with journal positions.
        other_plans: The plans that they adopted for it, with journal positions.
        tools: Names of its agent's tools; None where they are not on record.
        takes_output: It comes to a value with the tool that it ends by.
        delegates: Names of those of its tools by which it has begun runs, or could have.
        children: The runs that it has begun, by their ids.
    """

    spec: RunSpec
    added_at: float
    changes: tuple[StoredChange, ...]
    end: HarnessResult | None
    others: tuple[tuple[int, Message], ...] = ()
    other_plans: tuple[tuple[int, CompactionPlan], ...] = ()
    tools: frozenset[str] | None = None
    takes_output: bool = False
    delegates: frozenset[str] = frozenset()
    children: Mapping[str, RecordedChild] = field(default_factory=dict)

    @property
    def messages(self) -> list[Message]:
        """What this run added to the log, oldest first."""
        return [message for change in self.changes for message in change.delta.messages]

    @property
    def turns(self) -> int:
        """Turns that were started."""
        return sum(isinstance(e, TurnStarted) for c in self.changes for e in c.delta.events)

    def writes_of(self, entry: str) -> Iterator[Write]:
        """What was written to an entry of its state, oldest first."""
        return (w for change in self.changes for w in change.delta.writes if w.key == entry)

    def log_before(self, position: int) -> list[Message]:
        """The conversation as it was before the change at a journal position."""
        own = [(c.position, m) for c in self.changes for m in c.delta.messages]
        # Stable: of one change, messages stay in their order.
        merged = sorted((*own, *self.others), key=lambda placed: placed[0])
        return [message for at, message in merged if at < position]

    def plan_before(self, position: int) -> CompactionPlan | None:
        """How the conversation was shown before the change at a journal position."""
        own = [(c.position, c.delta.plan) for c in self.changes if c.delta.plan is not None]
        placed = [plan for plan in (*own, *self.other_plans) if plan[0] < position]
        return max(placed, key=lambda one: one[0])[1] if placed else None


def load_recording(journal: JournalReader, run_id: str) -> Recording:
    """Read a run from its journal. Its code is left alone.

    Raises:
        RunNotFoundError: The journal does not know it.
        StoreError: The journal cannot be read.
    """
    # Before the changes: an unfinished run may go on while it is read, and a change too
    # few is a run that stood there, while an end without its changes never was.
    stored = journal.load_run(run_id)
    if stored is None:
        raise RunNotFoundError(run_id, str(journal.path))
    changes = tuple(_changes(journal, run_id))
    beside = [
        change
        for heading in journal.headings()
        if heading.conversation_id == stored.spec.conversation_id and heading.run_id != run_id
        for change in _changes(journal, heading.run_id)
    ]
    others = [(change.position, message) for change in beside for message in change.delta.messages]
    plans = [(one.position, one.delta.plan) for one in beside if one.delta.plan is not None]
    with damage(journal.path):
        head = head_of_run(journal, stored.spec)
    return Recording(
        spec=stored.spec,
        added_at=stored.added_at,
        changes=changes if stored.end else changes[: stored.state.version],
        end=stored.end,
        others=tuple(sorted(others, key=lambda placed: placed[0])),
        other_plans=tuple(sorted(plans, key=lambda placed: placed[0])),
        tools=None if head is None else _names_of(head.tools, journal),
        takes_output=head is not None and head.takes_output,
        # What it does with copies is done by calls like any other.
        delegates=frozenset() if head is None else frozenset(head.delegates).difference(OF_COPIES),
        children=dict(_children(journal, changes)),
    )


def _children(
    journal: JournalReader, changes: Iterable[StoredChange]
) -> Iterator[tuple[str, RecordedChild]]:
    for change in changes:
        for event in change.delta.events:
            for told in event.children if isinstance(event, ChildrenStarted) else ():
                if (child := journal.load_run(told["run_id"])) is not None:
                    link = child.spec.parent
                    yield (
                        told["run_id"],
                        RecordedChild(
                            most_words=None if link is None else link.most_words,
                            typed=link is not None and link.typed,
                            contract=child.spec.config.contract,
                            end=child.end,
                            copied=link is not None and link.copied,
                            changed=child.state.values.get(CHANGED_FILES.name),
                        ),
                    )


def _names_of(tools: Iterable[Mapping[str, Any]], journal: JournalReader) -> frozenset[str]:
    with damage(journal.path):
        return frozenset(tool["function"]["name"] for tool in tools)


def _changes(journal: JournalReader, run_id: str) -> Iterator[StoredChange]:
    after = 0
    while page := journal.load_changes(run_id, after, CHANGES_PER_PAGE):
        yield from page
        after = page[-1].position
