"""Two summaries as one: no model is asked, so nothing drifts, however often it is done."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from harness_actors.plan.reference import Reference
from harness_actors.plan.summary import Decision, OpenItem, Summary, ToolOutcome

MOST_OUTCOMES = 60
"""Outcomes that a summary keeps: the newest ones, and failures rather than others."""
NEWEST_OUTCOMES = MOST_OUTCOMES // 2
"""How many of these are the newest ones, failed or not: old failures must not hide what is new."""


def merged(older: Summary, newer: Summary) -> Summary:
    """One summary of two parts of a conversation, one after the other.

    Facts and decisions are never lost. Several parts are merged from the oldest on: an item that
    is done closes one that is open before it, and says nothing of later ones.

    Args:
        older: Of the earlier part.
        newer: Of the later part.

    Returns:
        What both say, once. `merged(one, Summary())` is the normal form of a summary.

    >>> one = merged(Summary(facts=("Port 80",)), Summary(facts=("port  80", "IPv6")))
    >>> one.facts
    ('Port 80', 'IPv6')
    """
    return Summary(
        facts=_facts(older.facts + newer.facts),
        decisions=_decisions(older.decisions + newer.decisions),
        open_items=_open(older.open_items + newer.open_items),
        outcomes=bounded_outcomes(_outcomes(older.outcomes + newer.outcomes)),
        references=_references(older.references + newer.references),
        current_task=newer.current_task.strip() or older.current_task.strip(),
        current_plan=newer.current_plan or older.current_plan,
    )


def comparable(text: str) -> str:
    """A text as it is compared: its words, whatever case and spaces they have."""
    return " ".join(text.split()).casefold()


def _facts(facts: Iterable[str]) -> tuple[str, ...]:
    first: dict[str, str] = {}
    for fact in facts:
        if words := comparable(fact):
            first.setdefault(words, fact)
    return tuple(first.values())


def _decisions(decisions: Iterable[Decision]) -> tuple[Decision, ...]:
    return tuple(dict.fromkeys(decisions))


def _open(items: Iterable[OpenItem]) -> tuple[OpenItem, ...]:
    """What is open after all of it, each where it came up first."""
    left: dict[str, OpenItem] = {}
    for item in items:
        words = comparable(item.what)
        if item.done:
            left.pop(words, None)
        elif words:
            before = left.get(words, item)
            left[words] = replace(item, context=item.context or before.context)
    return tuple(left.values())


def _outcomes(outcomes: Iterable[ToolOutcome]) -> list[ToolOutcome]:
    """Each once, in the order of the conversation."""
    each = {
        (one.at, one.tool, one.came, one.error, tuple(sorted(one.fields.items()))): one
        for one in outcomes
    }
    return sorted(each.values(), key=lambda one: one.at)


def bounded_outcomes(outcomes: Sequence[ToolOutcome]) -> tuple[ToolOutcome, ...]:
    """The outcomes that a summary keeps, oldest first, of those in the same order."""
    if len(outcomes) <= MOST_OUTCOMES:
        return tuple(outcomes)
    before = len(outcomes) - NEWEST_OUTCOMES
    # Which of two stays depends on them alone, so it does not matter what is merged first.
    preferred = sorted(range(before), key=lambda at: (outcomes[at].came == "failure", at))
    kept = sorted(preferred[NEWEST_OUTCOMES - MOST_OUTCOMES :])
    return (*(outcomes[at] for at in kept), *outcomes[before:])


def _references(references: Iterable[Reference]) -> tuple[Reference, ...]:
    first: dict[int, Reference] = {}
    for one in references:
        first.setdefault(one.at, one)
    return tuple(first[at] for at in sorted(first))
