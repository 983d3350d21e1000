"""Log and plan, rendered to what a model is sent."""

from collections.abc import Iterable, Iterator, Sequence

from harness_actors.conversation import Conversation
from harness_actors.messages import Message, ToolCall
from harness_actors.plan.plan import Action, CompactionPlan, Span
from harness_actors.plan.shown import Shown, dropped, estimated
from harness_actors.plan.summary import Summary
from harness_actors.plan.summary_text import rendered


class View:
    """A conversation as its model is shown it, by one plan.

    What is before the end of the plan is rendered once. What comes later is shown as it is.

    Args:
        log: The conversation, which goes on growing.
        plan: The plan.

    Attributes:
        plan: The plan.
    """

    def __init__(self, log: Conversation, plan: CompactionPlan) -> None:
        self.plan = plan
        self._log = log
        self._shown = tuple(render(log, plan))
        known = log[: plan.upto]
        self._tokens, self._bytes = (
            shown - whole for shown, whole in zip(_sizes(self._shown), _sizes(known), strict=True)
        )

    @property
    def tokens(self) -> int:
        """The sum of the tokens of what is shown."""
        return self._log.tokens + self._tokens

    @property
    def size_bytes(self) -> int:
        """The sum of their bytes."""
        return self._log.size_bytes + self._bytes

    def is_of(self, log: Conversation, plan: CompactionPlan) -> bool:
        """Whether it shows this log by this plan."""
        return self._log is log and self.plan.version == plan.version

    def messages(self) -> list[Message]:
        """What is shown, oldest first."""
        return [*self._shown, *self._log[self.plan.upto :]]


def _sizes(messages: Iterable[Message]) -> tuple[int, int]:
    """Tokens and bytes of messages."""
    sizes = [(message.tokens, len(message.encoded)) for message in messages]
    return sum(tokens for tokens, _ in sizes), sum(count for _, count in sizes)


class Viewer:
    """Has the newest view of one conversation ready, from one turn to the next."""

    __slots__ = ("_view",)

    def __init__(self) -> None:
        self._view: View | None = None

    def see(self, log: Conversation, plan: CompactionPlan | None) -> View | None:
        """The view of a log by a plan; None where it is shown as it is."""
        if plan is None:
            return None
        if self._view is None or not self._view.is_of(log, plan):
            self._view = View(log, plan)
        return self._view


def render(log: Sequence[Message], plan: CompactionPlan) -> Iterator[Message]:
    """The messages that a plan knows of, as they are shown: always the same for the same log."""
    shown, at, told = Shown(plan.policies), 0, False
    for span in plan.spans:
        yield from log[at : span.start]
        if span.action != "summarize":
            yield from _of_span(log, span, shown)
        elif not told:
            told = True
            yield summarized(plan)
        at = span.end
    yield from log[at : plan.upto]


def summarized(plan: CompactionPlan) -> Message:
    """The message in the place of all ranges that a plan summarizes; it has some."""
    spans = plan.summarized
    summary = plan.summary or Summary()
    text = rendered(summary, spans[0].start, spans[-1].end - 1, plan.summary_chars)
    return estimated(Message.told(text))


def without_dropped(log: Sequence[Message], plan: CompactionPlan | None) -> tuple[Message, ...]:
    """A log for whoever makes the next plan: each message in its place, and those empty that are
    dropped or summarized already, at which nobody looks again."""
    return _without(log, plan, ("drop", "summarize"))


def without_summarized(log: Sequence[Message], plan: CompactionPlan | None) -> tuple[Message, ...]:
    """The same for whoever summarizes: what is dropped and nowhere summarized is there."""
    return _without(log, plan, ("summarize",))


def _without(
    log: Sequence[Message], plan: CompactionPlan | None, actions: tuple[Action, ...]
) -> tuple[Message, ...]:
    left = list(log)
    for span in () if plan is None else plan.spans:
        if span.action in actions:
            left[span.start : span.end] = [_EMPTY] * (span.end - span.start)
    return tuple(left)


_EMPTY = Message("user", b"{}", 0, by_harness=True)


def _of_span(log: Sequence[Message], span: Span, shown: Shown) -> Iterator[Message]:
    if span.action == "drop":
        yield dropped(span.start, span.end, span.references)
        return
    for at, message, call in with_calls(log, span.start, span.end):
        if span.action == "clear":
            yield shown.cleared(message, at, call)
        else:
            yield shown.in_part(message, at, call, span.shown_chars)


def with_calls(
    log: Sequence[Message], start: int, end: int
) -> Iterator[tuple[int, Message, ToolCall | None]]:
    """The messages of a range with their positions and, of a result, the call that it answers."""
    calls: dict[str | None, ToolCall] = {}
    for at in range(start, end):
        message = log[at]
        if message.role == "assistant":
            calls = {call.id: call for call in message.tool_calls}
        yield at, message, calls.get(message.tool_call_id) if message.role == "tool" else None
