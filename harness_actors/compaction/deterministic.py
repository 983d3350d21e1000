"""Puts a part of a conversation into few words by rules alone: no model is asked."""

import asyncio
from collections.abc import Iterable, Iterator
from itertools import islice, pairwise

from harness_actors.compaction.deciding import decision_in
from harness_actors.compaction.marks import ENTRY_CHARS, facts_in, open_items_in, plan_in
from harness_actors.compaction.sentences import LOOKED_AT_CHARS, ends_of, prose_of
from harness_actors.compaction.wanted import Wanted
from harness_actors.messages import Message, ToolCall
from harness_actors.plan import (
    Decision,
    OpenItem,
    Reference,
    Shown,
    Summary,
    ToolOutcome,
    ToolPolicy,
)
from harness_actors.plan.merging import bounded_outcomes, comparable
from harness_actors.plan.shown import kept_fields
from harness_actors.plan.summary_text import one_line, shortened
from harness_actors.ports import MadeSummary, SummaryRequest

MOST_FACTS = 30
"""That are found in one part, beside those that it is given."""
MOST_OPEN = 40
MOST_STEPS = 20
ERROR_CHARS = 200
TASK_CHARS = 400
MESSAGES_AT_ONCE = 200
"""After so many messages others come to their turn; a long one counts as some."""

_STATUS = ToolPolicy(keep=("exit_code", "success"))


class DeterministicSummarizer:
    """Summarizes by rules: what is decided, marked as a fact, open, and came of calls.

    The rules know English. The same part gives the same summary, and nothing is sent anywhere;
    secrets are in it as they are in the messages.
    """

    name = "deterministic-1"
    most_tokens = 200_000

    async def summarize(self, request: SummaryRequest) -> MadeSummary:
        """Put a part of a conversation into few words; it never fails."""
        found = _Found(request.shown, request.keep)
        done = 0
        for at, message, call in request.messages:
            found.add(at, message, call)
            done += 1 + min(len(message.encoded) // 1024, 2 * LOOKED_AT_CHARS // 1024)
            if done >= MESSAGES_AT_ONCE:
                done = 0
                await asyncio.sleep(0)
        return MadeSummary(summary=found.summary(request.facts))


class _Found:
    """What was found in the messages so far."""

    def __init__(self, shown: Shown, keep: str) -> None:
        self._shown = shown
        self._wanted = Wanted(keep)
        self._facts: dict[str, str] = {}
        self._decisions: dict[str, Decision] = {}
        self._open: list[OpenItem] = []
        self._outcomes: list[ToolOutcome] = []
        self._references: list[Reference] = []
        self._task = ""
        self._plan: tuple[str, ...] = ()

    def add(self, at: int, message: Message, call: ToolCall | None) -> None:
        if message.role == "tool":
            self._outcomes.append(outcome_of(message, at, call, self._shown))
            if reference := self._shown.reference(message, at, call):
                self._references.append(reference)
        elif message.role == "assistant":
            self._add_answer(at, ends_of(_text(message)))
        elif message.role == "user" and not message.by_harness:
            self._add_words(ends_of(_text(message)))

    def summary(self, facts: tuple[str, ...]) -> Summary:
        wanted = {comparable(one): shortened(one, ENTRY_CHARS) for one in self._wanted.sentences}
        given = {comparable(fact) for fact in facts}
        wanted = {words: fact for words, fact in wanted.items() if words not in given}
        given |= wanted.keys()
        found = [fact for words, fact in self._facts.items() if words not in given]
        return Summary(
            facts=(*facts, *wanted.values(), *found[:MOST_FACTS]),
            decisions=tuple(self._decisions.values()),
            open_items=tuple(self._open[-MOST_OPEN:]),
            outcomes=bounded_outcomes(self._outcomes),
            references=tuple(self._references),
            current_task=self._task,
            current_plan=self._plan,
        )

    def _add_answer(self, at: int, text: str) -> None:
        if not text.strip():
            return
        for what, why in decisions_in(text):
            decision = Decision(what=what, why=why, at=at)
            self._decisions.setdefault(comparable(what), decision)
        self._add_wanted(text)
        self._add_facts(facts_in(text, by_user=False))
        self._open += open_items_in(text)
        self._plan = plan_in(text)[:MOST_STEPS] or self._plan

    def _add_words(self, text: str) -> None:
        self._add_wanted(text)
        self._add_facts(facts_in(text, by_user=True))
        self._open += open_items_in(text)
        task = shortened(" ".join(islice(prose_of(text), 3)), TASK_CHARS)
        self._task = task or self._task

    def _add_wanted(self, text: str) -> None:
        if self._wanted:
            self._wanted.look_at(prose_of(text))

    def _add_facts(self, facts: Iterable[str]) -> None:
        for fact in facts:
            self._facts.setdefault(comparable(fact), fact)


def decisions_in(text: str) -> Iterator[tuple[str, str]]:
    """What an answer decides, each with its reason, which may be empty."""
    sentences = [*prose_of(text), ""]
    for sentence, following in pairwise(sentences):
        if decided := decision_in(sentence, following):
            what, why = decided
            yield shortened(what, ENTRY_CHARS), shortened(why, ENTRY_CHARS)


def outcome_of(message: Message, at: int, call: ToolCall | None, shown: Shown) -> ToolOutcome:
    """What came of a call, from its result.

    Args:
        message: The result.
        at: Its position.
        call: The call; None where it is not known.
        shown: What results are worth, and which fields of them stay.
    """
    text = _text(message)
    status = _kept(text, None, _STATUS)
    failed = message.is_error or status.get("success") == "false"
    failed = failed or status.get("exit_code", "0") not in ("0", "null")
    return ToolOutcome(
        tool="tool" if call is None else one_line(call.name)[:80],
        came="failure" if failed else "success",
        fields=_kept(text, call, shown.policy(call)),
        error=_error(text) if failed else "",
        at=at,
    )


_ERROR = ToolPolicy(keep=("error", "stderr", "message"))


def _error(text: str) -> str:
    told = _kept(text, None, _ERROR)
    words = next((one for one in told.values() if one not in ('""', "null")), "")
    first = (
        words.strip('"').partition("\\n")[0] or text[: 4 * ERROR_CHARS].strip().partition("\n")[0]
    )
    return shortened(one_line(first), ERROR_CHARS)


def _kept(text: str, call: ToolCall | None, policy: ToolPolicy) -> dict[str, str]:
    """The fields that stay; none of what is nested too deep to be written again."""
    try:
        return kept_fields(text, call, policy)
    except RecursionError:
        return {}


def _text(message: Message) -> str:
    """The text of a message; empty for content of a shape that is not known."""
    try:
        text: object = message.text
    except (AttributeError, TypeError):
        return ""
    return text if isinstance(text, str) else ""
