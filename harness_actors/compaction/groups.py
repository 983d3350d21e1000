"""A log in pieces that stay together: a message, and of one with calls their results, too."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness_actors.messages import Message
from harness_actors.plan import Action, CompactionPlan, Reference, Span, is_pinned

STEPS: tuple[Action | None, ...] = (None, "clear", "externalize", "drop", "summarize")
"""What may become of a group, the mildest first. What is summarized stays so."""
WHOLE: tuple[Action, ...] = ("drop", "summarize")
"""What becomes of whole ranges, at which nobody looks again."""


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
        references: Of those that are dropped; None where nobody has looked for them yet.
    """

    start: int
    end: int
    pinned: bool
    tokens: int
    step: int = 0
    shown_chars: int = 0
    references: tuple[Reference, ...] | None = ()


def groups_of(log: Sequence[Message], plan: CompactionPlan | None) -> Iterator[Group]:
    """The groups of a log as a plan shows them, oldest first; a range that is dropped or summarized
    is one of them.

    Their tokens are those of the log, whatever is shown of it.
    """
    spans = () if plan is None else plan.spans
    at = 0
    for span in (*spans, Span(start=len(log), end=len(log), action="drop")):
        yield from between(log, at, span.start)
        if span.action in WHOLE:
            whole = Group(start=span.start, end=span.end, pinned=False, tokens=0)
            groups = iter([whole] if span.start < span.end else [])
        else:
            groups = between(log, span.start, span.end)
        for group in groups:
            group.step = STEPS.index(span.action)
            group.shown_chars, group.references = span.shown_chars, span.references
            yield group
        at = span.end


def between(log: Sequence[Message], start: int, end: int) -> Iterator[Group]:
    """The groups of a range that divides none, as they are in the log."""
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
    return tuple(_span(run) for run in _runs(groups))


def _runs(groups: Sequence[Group]) -> Iterator[list[Group]]:
    """Groups side by side of which the same becomes."""
    run: list[Group] = []
    for group in groups:
        if run and not (
            run[-1].end == group.start
            and run[-1].step == group.step
            and run[-1].shown_chars == group.shown_chars
        ):
            yield run
            run = []
        if group.step:
            run.append(group)
    if run:
        yield run


def _span(run: Sequence[Group]) -> Span:
    action = STEPS[run[0].step]
    assert action is not None
    return Span(
        start=run[0].start,
        end=run[-1].end,
        action=action,
        shown_chars=run[0].shown_chars,
        references=tuple(one for group in run for one in group.references or ()),
    )
