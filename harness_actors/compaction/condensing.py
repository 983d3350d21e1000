"""Which part of a conversation is to be summarized, and the plan by which it is."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness_actors.compaction.groups import STEPS, Group, between, groups_of, spans_of
from harness_actors.compaction.pressure import next_version, ratio_of
from harness_actors.config import CompactionConfig
from harness_actors.messages import Message, ToolCall
from harness_actors.plan import CompactionPlan, Shown, Summary, render
from harness_actors.plan.merging import comparable, merged
from harness_actors.plan.shown import BYTES_PER_TOKEN
from harness_actors.plan.view import with_calls
from harness_actors.state import Pressure

DROP, SUMMARIZE = STEPS.index("drop"), STEPS.index("summarize")
NEWEST_SHARE = 0.2
"""Of the window, or of what is shown where the user asks for a summary: what the newest messages,
which stay as they are, may take."""
SUMMARY_SHARE = 0.15
"""Of the window: what the summary may take."""
FACTS_SHARE = 0.4
"""Of the summary: what facts may take that nobody said it must have."""
BLOCK_TOKENS = 16_000
"""Of a block, at most; so several are summarized side by side, and what is done is kept."""
LEAST_GAIN = 0.1
"""Of the request: with less, nobody takes a plan that changes its beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a conversation that is summarized in one go.

    Attributes:
        key: Hash of what is in it, of where it begins, and of how it is summarized.
        messages: Its messages with their positions and, of results, the calls they answer.
    """

    key: str
    messages: tuple[tuple[int, Message, ToolCall | None], ...]


class Condensation:
    """What is to be summarized of a conversation, so that its window is filled to the low-water
    mark.

    That are the oldest messages which are not summarized yet, those included that a plan has
    dropped; but for system prompts, the user's own words and the newest messages. The log may be
    without what is summarized already.

    Args:
        log: The conversation.
        plan: How it is shown; None for as it is.
        pressure: How large the next request is, and what the results of tools are worth.
        settings: How much room is made.
        shown: What the results of tools are worth.
        asked: As much as can be, because the user has asked for it.
    """

    def __init__(
        self,
        log: Sequence[Message],
        plan: CompactionPlan | None,
        pressure: Pressure,
        settings: CompactionConfig,
        shown: Shown,
        *,
        asked: bool = False,
    ) -> None:
        self._log, self._plan, self._shown = log, plan, shown
        self._settings, self._request = settings, pressure.request_tokens
        self._before = sum(message.tokens for message in self._rendered(plan))
        self._ratio = ratio_of(pressure, self._before)
        self._window = pressure.window_tokens / self._ratio
        self._groups = list(_each(log, plan))
        self._asked = asked
        low = 0 if asked else self._window * settings.low_water - pressure.overhead_tokens
        self._taken = self._take(max(0, int(low)))

    @property
    def summary_chars(self) -> int:
        """How long the summary may be, in characters."""
        return max(2_000, int(SUMMARY_SHARE * self._window * BYTES_PER_TOKEN))

    def blocks(self, summarizer: str, most_tokens: int, keep: str = "") -> tuple[Block, ...]:
        """The parts that are to be summarized, in their order.

        Args:
            summarizer: Its name.
            most_tokens: How many it takes in one go.
            keep: What whoever asked for it wants to be kept.
        """
        salt = json.dumps([summarizer, keep, self._settings.facts])
        most = max(1, min(BLOCK_TOKENS, most_tokens))
        return tuple(self._block(groups, salt) for groups in self._divided(most))

    def proposal(self, summaries: Mapping[str, Summary]) -> tuple[CompactionPlan, int] | None:
        """The plan that follows from summaries of all blocks.

        Args:
            summaries: In the order of the blocks, by their keys.

        Returns:
            The plan, and by how many tokens the next request is smaller; None where that is too
            little to be worth it.
        """
        if not self._taken:
            return None
        summary = Summary(facts=self._settings.facts)
        if self._plan is not None and self._plan.summary is not None:
            summary = merged(summary, self._plan.summary)
        for one in summaries.values():
            summary = merged(summary, one)
        plan = self._new_plan(self._bounded(summary), tuple(summaries))
        after = sum(message.tokens for message in self._rendered(plan))
        freed = int((self._before - after) * self._ratio)
        least = 1 if self._asked else LEAST_GAIN * self._request
        return (plan, freed) if freed >= least else None

    def _bounded(self, summary: Summary) -> Summary:
        """A summary with all facts that it must have, and as many newest others as leave room for
        decisions: what is found in long conversations is never at an end."""
        room = int(FACTS_SHARE * self.summary_chars)
        wanted = set(map(comparable, self._settings.facts))
        kept = []
        for fact in reversed([one for one in summary.facts if comparable(one) not in wanted]):
            room -= len(fact)
            if room < 0:
                break
            kept.append(fact)
        return replace(summary, facts=(*self._settings.facts, *reversed(kept)))

    def _rendered(self, plan: CompactionPlan | None) -> Iterator[Message]:
        if plan is None:
            yield from self._log
            return
        yield from render(self._log, plan)
        yield from self._log[plan.upto :]

    def _take(self, low: int) -> list[Group]:
        """The groups that are summarized, until so many tokens are left."""
        left = self._before + int(SUMMARY_SHARE * self._window / 2)
        newest = int(NEWEST_SHARE * (self._before if self._asked else self._window))
        taken = []
        for group in self._older(newest if self._asked else min(newest, low // 2)):
            if group.pinned or group.step == SUMMARIZE:
                continue
            if group.step != DROP and left <= low:
                break
            taken.append(group)
            left -= group.tokens
        # What was dropped and stands alone is no reason to change the beginning of requests.
        return taken if any(group.step != DROP for group in taken) else []

    def _older(self, newest_tokens: int) -> Sequence[Group]:
        """All but the newest ones, of so many tokens; the last is always one of these."""
        room, kept = newest_tokens, 0
        for group in reversed(self._groups):
            room -= group.tokens
            if kept and room < 0:
                break
            kept += 1
        return self._groups[: len(self._groups) - kept]

    def _divided(self, most_tokens: int) -> Iterator[list[Group]]:
        """What is summarized, in blocks of so many tokens; what is larger is one of its own."""
        block: list[Group] = []
        room = most_tokens
        for group in self._taken:
            size = sum(message.tokens for message in self._log[group.start : group.end])
            if block and size > room:
                yield block
                block, room = [], most_tokens
            block.append(group)
            room -= size
        if block:
            yield block

    def _block(self, groups: Sequence[Group], salt: str) -> Block:
        log = self._log
        messages = tuple(
            piece for group in groups for piece in with_calls(log, group.start, group.end)
        )
        # With its place: a summary names messages by their numbers, so that of a part which is the
        # same, word for word, is no summary of this one.
        found = hashlib.sha256(f"{messages[0][0]} {salt}".encode())
        for _, message, _ in messages:
            found.update(len(message.encoded).to_bytes(8))
            found.update(message.encoded)
        return Block(key=found.hexdigest(), messages=messages)

    def _new_plan(self, summary: Summary, keys: tuple[str, ...]) -> CompactionPlan:
        taken = {group.start for group in self._taken}
        for group in self._groups:
            if group.start in taken:
                group.step, group.shown_chars, group.references = SUMMARIZE, 0, ()
        version, base = next_version(self._plan)
        spans = spans_of(self._groups)
        return CompactionPlan(
            version=version,
            base=base,
            upto=spans[-1].end,
            spans=spans,
            policies=self._shown.policies,
            summary=summary,
            summary_chars=self.summary_chars,
            made_of=keys,
        )


def _each(log: Sequence[Message], plan: CompactionPlan | None) -> Iterator[Group]:
    """The groups of a log, those of dropped ranges each by itself, with what is shown of them."""
    shown = None if plan is None else Shown(plan.policies)
    for group in groups_of(log, plan):
        if group.step == DROP:
            yield from _dropped(log, group)
            continue
        if shown is not None and 0 < group.step < DROP:
            group.tokens = _tokens(log, group, shown)
        yield group


def _dropped(log: Sequence[Message], whole: Group) -> Iterator[Group]:
    """The groups of a dropped range; the first has its references, if they stay together."""
    for group in between(log, whole.start, whole.end):
        group.step, group.tokens = DROP, 0
        group.references = tuple(
            one for one in whole.references or () if group.start <= one.at < group.end
        )
        yield group


def _tokens(log: Sequence[Message], group: Group, shown: Shown) -> int:
    pieces = with_calls(log, group.start, group.end)
    if STEPS[group.step] == "clear":
        return sum(shown.cleared(message, at, call).tokens for at, message, call in pieces)
    return sum(
        shown.in_part(message, at, call, group.shown_chars).tokens for at, message, call in pieces
    )
