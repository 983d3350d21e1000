"""A log in pieces that stay together: a message, and of one with calls their results, too."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness_actors.messages import Message
from harness_actors.plan import Action, CompactionPlan, Reference, Span, is_pinned

STEPS: tuple[Action | None, ...] = (None, "clear", "externalize", "drop")
"""What may become of a group, the mildest first."""


@dataclass(slots=True, kw_only=True)
class Group:
    """Messages that stay together, and how they are shown.

    Attributes:
        start: Position of the first.
        end: Position behind the last.
        pinned: They are never dropped: system prompts, and the user's own words.
        tokens: What they take as they are shown.
        step: What becomes of them, a place in `STEPS`.
        shown_chars: Of those that are shown in part.
        references: Of those that are dropped.
    """

    start: int
    end: int
    pinned: bool
    tokens: int
    step: int = 0
    shown_chars: int = 0
    references: tuple[Reference, ...] = ()


def groups_of(log: Sequence[Message], plan: CompactionPlan | None) -> list[Group]:
    """The groups of a log as a plan shows them, oldest first; a dropped range is one of them.

    Their tokens are those of the log, whatever is shown of it.
    """
    spans = () if plan is None else plan.spans
    found: list[Group] = []
    at = 0
    for span in (*spans, Span(start=len(log), end=len(log), action="drop")):
        found += _between(log, at, span.start)
        if span.action == "drop":
            whole = Group(start=span.start, end=span.end, pinned=False, tokens=0)
            groups = [whole] if span.start < span.end else []
        else:
            groups = list(_between(log, span.start, span.end))
        for group in groups:
            group.step = STEPS.index(span.action)
            group.shown_chars, group.references = span.shown_chars, span.references
        found += groups
        at = span.end
    return found


def _between(log: Sequence[Message], start: int, end: int) -> Iterator[Group]:
    group: Group | None = None
    for at in range(start, end):
        message = log[at]
        if group is not None and message.role == "tool":
            group.end, group.tokens = at + 1, group.tokens + message.tokens
            continue
        if group is not None:
            yield group
        group = Group(start=at, end=at + 1, pinned=is_pinned(message), tokens=message.tokens)
    if group is not None:
        yield group


def spans_of(groups: Sequence[Group]) -> tuple[Span, ...]:
    """The spans by which groups are shown as they are to be."""
    spans: list[Span] = []
    for group in groups:
        action = STEPS[group.step]
        if action is None:
            continue
        last = spans[-1] if spans else None
        if (
            last is not None
            and last.end == group.start
            and (last.action, last.shown_chars) == (action, group.shown_chars)
        ):
            start, references = last.start, (*last.references, *group.references)
            spans.pop()
        else:
            start, references = group.start, group.references
        spans.append(
            Span(
                start=start,
                end=group.end,
                action=action,
                shown_chars=group.shown_chars,
                references=references,
            )
        )
    return tuple(spans)
