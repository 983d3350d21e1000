"""How long the runs that a disturbance touched were without their model."""

import statistics
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.chaos.model import Asked, WatchedModel
from tests.chaos.strikes import Strike

SETTLED_STEPS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """Seconds until runs asked their model again: one figure for each run of each strike."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float | None:
        return statistics.median(self.seconds) if self.seconds else None

    @property
    def p95(self) -> float | None:
        """The 95th percentile: the smallest figure that at most 5 % lie above."""
        if not self.seconds:
            return None
        ordered = sorted(self.seconds)
        return ordered[-(-len(ordered) * 95 // 100) - 1]

    @property
    def most(self) -> float | None:
        return max(self.seconds, default=None)


def recoveries(strike: Strike, asked: Sequence[Asked]) -> dict[str, float]:
    """Seconds from a strike until each run that it touched asked its model again, by task.

    A request counts only when the last process that was brought down is gone: so it comes
    from one that took its place. Of a repair, compaction or stop decision only the first run
    counts whose turn ended, and which so needed it, after the strike.
    """
    found: dict[str, float] = {}
    # By time, as they came.
    for one in asked[bisect_right(asked, strike.gone_at, key=lambda one: one.at) :]:
        if strike.kind.whole_turns:
            if one.run in strike.affected:
                found.setdefault(one.run, one.at - strike.since)
        elif one.begins_turn and (one.answered_at or 0.0) > strike.at:
            return {one.run: one.at - strike.since}
    return found


def still_away(strike: Strike, model: WatchedModel) -> frozenset[str]:
    """The tasks that have yet to be heard of after a strike."""
    back = recoveries(strike, model.asked)
    if not strike.kind.whole_turns and back:
        return frozenset()
    return strike.affected - model.over - model.asking - set(back)


def are_settled(strike: Strike, model: WatchedModel) -> bool:
    """Whether the runs of an agent turn that was struck have each committed a round since."""
    if strike.kind.scope != "seat" or not strike.kind.whole_turns:
        return True
    since = bisect_right(model.asked, strike.gone_at, key=lambda one: one.at)
    # A request tells that the round before the last one is on disk.
    steps = Counter(one.run for one in model.asked[since:])
    served = strike.affected - model.over - model.asking
    return all(steps[run] >= SETTLED_STEPS for run in served)
