"""The ladder: how room is made in a window without asking a model."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from harness_actors.compaction.groups import STEPS, Group, groups_of, spans_of
from harness_actors.compaction.pressure import next_version, ratio_of
from harness_actors.compaction.strategies import Choosing, OldestFirst, named, step_of
from harness_actors.config import CompactionConfig
from harness_actors.conversation import Conversation
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan, Reference, Shown, Span
from harness_actors.plan.plan import policies_from
from harness_actors.plan.shown import LISTED, dropped
from harness_actors.plan.view import summarized, with_calls
from harness_actors.ports import Strategy
from harness_actors.state import Pressure

CLEAR, EXTERNALIZE, DROP, SUMMARIZE = range(1, len(STEPS))
SHOWN_CHARS = 1500
"""What is shown of a message that is kept in part."""
EMERGENCY_CHARS = (3000, 900, 240)
"""The same of the newest messages and of the user's words, where all else is not enough."""
NEWEST_SHARE = 0.2
"""Of the window: what the newest messages, which stay as they are, may take."""
REFERENCES_SHARE = 0.05
"""Of the window: what the references to dropped results may take."""
REFERENCE_TOKENS = 48
NOTICE_TOKENS = 80
"""What is dropped takes at least so many: the message in its place takes them, too."""
FLOOR_TOKENS = 24
"""A message that is left out or shown in part takes at least so many."""
PIECE = 200
"""Groups that are looked at in one go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What came of the ladder.

    Attributes:
        plan: By which the conversation is to be shown; None where nothing could be gained.
        request_tokens: How large the next request is by it.
        cleared: Messages in ranges whose results are left out.
        externalized: Messages in ranges that are shown in part.
        dropped: Messages in ranges that are named alone.
        summarized: Messages of which a summary is shown.
        fits: Whether the request fits its window.
        largest: Position of the largest message that is left, and its tokens.
        problems: Names of strategies that failed, each with how.
    """

    plan: CompactionPlan | None
    request_tokens: int
    cleared: int = 0
    externalized: int = 0
    dropped: int = 0
    summarized: int = 0
    fits: bool = True
    largest: tuple[int, int] = (0, 0)
    problems: tuple[tuple[str, str], ...] = ()

    def answered(self, pressure: Pressure) -> Pressure:
        """The pressure after it."""
        return replace(
            pressure,
            waits=False,
            request_tokens=self.request_tokens,
            largest=self.largest[0],
            largest_tokens=self.largest[1],
        )


class Ladder:
    """Makes room in a window, the mildest way first, and of each the oldest messages first.

    Results that can be had again are left out; then what is long is shown in part; then whole
    groups are dropped, and named. That goes on until the window is filled to the low-water mark.
    The newest groups, the user's own words and system prompts stay as they are, unless the request
    would be too large even then: in that emergency they are shown in part, too, and at last the
    user's words are dropped, but for the first and the newest ones and the task of the run.

    Other strategies may be named in place of these three, or before them. An emergency is one for
    all: it takes the three steps, whatever is named.

    What was dropped or summarized before stays so, so that the work follows what is shown, and not
    the log.

    Args:
        log: The conversation.
        plan: How it is shown now; None for as it is.
        pressure: Why.
        settings: How much room is made.
        task: The messages that the run began with.
        own: Strategies of the agent's own.
    """

    def __init__(
        self,
        log: Conversation,
        plan: CompactionPlan | None,
        pressure: Pressure,
        settings: CompactionConfig,
        task: Sequence[Message] = (),
        own: Sequence[Strategy] = (),
    ) -> None:
        self._log, self._plan, self._pressure = log, plan, pressure
        self._task = {message.encoded for message in task}
        self._shown = Shown(policies_from(pressure.policies))
        self._settings = settings
        self._strategies = named(settings.strategies, own)
        self._choosing = Choosing(log, self._shown)
        self._groups: list[Group] = []
        self._tokens = self._began = self._low = self._most = self._whole = 0
        self._ratio = 1.0
        # Those that a plan lists already are no more than there was room for.
        self._references = LISTED
        self._changed = False

    def climb(self) -> Iterator[None]:
        """Do it in pieces, each of which takes a few milliseconds at most."""
        for place, group in enumerate(groups_of(self._log, self._plan)):
            if group.step:
                group.tokens = self._cost(group, group.step, group.shown_chars)
            self._groups.append(group)
            if place % PIECE == 0:
                yield
        self._recount()
        self._began = self._tokens
        newest = self._aim()
        older = [group for group in self._older(newest) if not group.pinned]
        yield
        if self._drops_oldest_first:
            yield from self._drop_what_will_be(older)
            self._recount()
        for strategy in self._strategies:
            if self._tokens > self._low:
                yield from self._follow(strategy, older)
        if self._tokens <= self._most:
            return
        # Not to the brim: the next round would be an emergency, too.
        enough = (self._low + self._most) // 2
        older = [group for group in self._older(0) if not group.pinned]
        for step in (CLEAR, EXTERNALIZE, DROP):
            yield from self._descend(step, older, enough)
        spared = [group for group in self._groups if group.step < DROP]
        for chars in EMERGENCY_CHARS:
            for pinned, most in ((False, enough), (True, self._most)):
                some = [group for group in spared if group.pinned == pinned]
                yield from self._take(some, EXTERNALIZE, chars, most)
        said = [group for group in spared if group.pinned and self._role(group) == "user"]
        others = [group for group in said[1:-1] if not self._is_task(group)]
        yield from self._take(others, DROP, 0, self._most)
        self._recount()

    def _aim(self) -> int:
        """Set how far to go, in tokens of ours; what the newest messages may take of that."""
        pressure, settings = self._pressure, self._settings
        self._ratio = ratio_of(pressure, self._tokens)
        window = pressure.window_tokens / self._ratio
        self._low, self._most, self._whole = (
            int(share * window) - pressure.overhead_tokens
            for share in (settings.low_water, settings.blocking, 1.0)
        )
        self._references = min(LISTED, int(REFERENCES_SHARE * window / REFERENCE_TOKENS))
        # Where prompt and tools fill the window, the newest messages must not fill the rest.
        return min(int(NEWEST_SHARE * window), self._low // 2)

    @property
    def _drops_oldest_first(self) -> bool:
        """Whether the oldest are dropped, whatever else is done before."""
        dropping = [one for one in self._strategies if one.action == "drop"]
        return bool(dropping) and isinstance(dropping[0], OldestFirst)

    def _follow(self, strategy: Strategy, groups: Sequence[Group]) -> Iterator[None]:
        """Show what a strategy names of these groups so, until there is room."""
        step = step_of(strategy)
        chosen = yield from self._choosing.ask(strategy, groups)
        yield from self._descend(step, chosen, self._low)
        if isinstance(strategy, OldestFirst):
            return
        # Many notices, in the place of what is dropped here and there, take much of what it gains,
        # and are counted behind it. Its next ones make up for that, not those that it spares.
        left = [group for group in chosen if group.step < step]
        while self._tokens > self._low and len(left) < len(chosen):
            chosen = left
            yield from self._descend(step, chosen, self._low)
            left = [group for group in chosen if group.step < step]

    def _descend(self, step: int, groups: Sequence[Group], most: int) -> Iterator[None]:
        """Take a step with one of these groups after the other, until there is room."""
        some = groups if step != DROP else _worth_dropping(groups)
        yield from self._take(some, step, SHOWN_CHARS if step == EXTERNALIZE else 0, most)
        self._recount()

    def result(self) -> Compacted:
        """What came of it, once it is done. Where notices take more than they gain, nothing did."""
        shrunk = self._changed and self._tokens < self._began
        request = int((self._pressure.overhead_tokens + self._tokens) * self._ratio) + 1
        of_step = [
            sum(group.end - group.start for group in self._groups if group.step == step)
            for step in (CLEAR, EXTERNALIZE, DROP, SUMMARIZE)
        ]
        largest = max(self._groups, key=lambda group: group.tokens, default=None)
        return Compacted(
            plan=self._new_plan() if shrunk else None,
            request_tokens=request if shrunk else self._pressure.request_tokens,
            cleared=of_step[0],
            externalized=of_step[1],
            dropped=of_step[2],
            summarized=of_step[3],
            fits=min(self._tokens, self._began) <= self._whole,
            largest=(0, 0) if largest is None else (largest.start, largest.tokens),
            problems=tuple(self._choosing.problems),
        )

    def _new_plan(self) -> CompactionPlan:
        version, base = next_version(self._plan)
        spans = spans_of(self._groups)
        return CompactionPlan(
            version=version,
            base=base,
            upto=spans[-1].end if spans else 0,
            spans=tuple(self._listed(span) for span in spans),
            policies=self._shown.policies,
            summary=None if self._plan is None else self._plan.summary,
            summary_chars=0 if self._plan is None else self._plan.summary_chars,
        )

    def _role(self, group: Group) -> str:
        return self._log[group.start].role

    def _is_task(self, group: Group) -> bool:
        return self._log[group.start].encoded in self._task

    def _older(self, newest_tokens: int) -> Sequence[Group]:
        """All but the newest ones, of so many tokens; the last is always one of these."""
        room, kept = newest_tokens, 0
        for group in reversed(self._groups):
            room -= group.tokens
            if kept and room < 0:
                break
            kept += 1
        return self._groups[: len(self._groups) - kept]

    def _take(self, groups: Sequence[Group], step: int, chars: int, most: int) -> Iterator[None]:
        """Take a step with one group after the other, until there is room."""
        for place, group in enumerate(groups):
            if self._tokens <= most:
                return
            if place % PIECE == 0:
                yield
            if group.step > step or (group.step == step and group.shown_chars <= chars):
                continue
            tokens = self._cost(group, step, chars)
            if tokens >= group.tokens and step != DROP:
                # It would look otherwise for nothing.
                continue
            self._step(group, step, chars, tokens)

    def _step(self, group: Group, step: int, chars: int, tokens: int) -> None:
        """Show a group so, in so many tokens."""
        self._tokens += tokens - group.tokens
        group.tokens, group.step, group.shown_chars = tokens, step, chars
        if step == DROP:
            group.references = None
        self._changed = True

    def _drop_what_will_be(self, older: Sequence[Group]) -> Iterator[None]:
        """Drop at once what no milder step will spare: in a log that is many times its window, all
        else would be looked at for nothing."""
        floors = [self._floor(group) for group in older]
        yield
        left = sum(floors) + self._tokens - sum(group.tokens for group in older)
        if left <= self._low:
            return
        for place, (group, floor) in enumerate(zip(older, floors, strict=True)):
            if left <= self._low:
                return
            if place % PIECE == 0:
                yield
            if group.step < DROP:
                left -= floor
                self._step(group, DROP, 0, 0)

    def _floor(self, group: Group) -> int:
        """The least that a group takes, however little is shown of it."""
        if group.step >= DROP or group.end - group.start == 1:
            return min(group.tokens, FLOOR_TOKENS)
        return sum(
            min(message.tokens, FLOOR_TOKENS) for message in self._log[group.start : group.end]
        )

    def _cost(self, group: Group, step: int, chars: int) -> int:
        """What a group takes where it is shown so."""
        if step >= DROP:
            return 0
        pieces = with_calls(self._log, group.start, group.end)
        if step == CLEAR:
            shown = (self._shown.cleared(message, at, call) for at, message, call in pieces)
        else:
            shown = (self._shown.in_part(message, at, call, chars) for at, message, call in pieces)
        return sum(message.tokens for message in shown)

    def _named(self, group: Group) -> Iterator[Reference]:
        for at, message, call in with_calls(self._log, group.start, group.end):
            if (reference := self._shown.reference(message, at, call)) is not None:
                yield reference

    def _listed(self, span: Span) -> Span:
        """A span with as many references as there is room for, the newest ones."""
        count = self._references
        if len(span.references) <= count:
            return span
        return replace(span, references=span.references[len(span.references) - count :])

    def _recount(self) -> None:
        """Count what notices in the place of dropped ranges really take."""
        policies = self._shown.policies.values()
        once = any(policy.durability == "non_replayable" for policy in policies)
        room = self._references if once else 0
        for group in reversed(self._groups):
            if group.step == DROP:
                if group.references is None:
                    # Only as many as are shown; of those before, nobody is told.
                    group.references = tuple(self._named(group)) if room > 0 else ()
                room -= len(group.references)
        total = sum(group.tokens for group in self._groups if group.step < DROP)
        if self._plan is not None and self._plan.summary is not None:
            total += summarized(self._plan).tokens
        for span in map(self._listed, spans_of(self._groups)):
            if span.action == "drop":
                total += dropped(span.start, span.end, span.references).tokens
        self._tokens = total


def _worth_dropping(groups: Sequence[Group]) -> list[Group]:
    """Those that stand beside others, or are long enough for a notice of their own."""
    stretches: list[list[Group]] = []
    for group in sorted(groups, key=lambda one: one.start):
        if stretches and stretches[-1][-1].end == group.start:
            stretches[-1].append(group)
        else:
            stretches.append([group])
    worth = {
        group.start
        for stretch in stretches
        if stretch[0].step >= DROP or sum(one.tokens for one in stretch) > NOTICE_TOKENS
        for group in stretch
    }
    return [group for group in groups if group.start in worth]
