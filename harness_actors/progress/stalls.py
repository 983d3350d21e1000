"""The ways in which a run goes on and comes to nothing, and how each is found."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness_actors.config import StallConfig
from harness_actors.progress.rounds import Round

StallKind = Literal["repetition", "alternation", "no_news", "failures", "monologue"]
"""`repetition`: the same calls with the same results; `alternation`: two or three rounds by turns;
`no_news`: calls that were all made before, with results that are all known; `failures`: calls of
one tool that all fail; `monologue`: the same words, and no call."""

_LONGEST_CIRCLE = 3
"""Rounds of the longest circle that is known by its turns; longer ones bring no news."""
MOST_NAMED = 3
"""Calls that are named where a stall is told."""
_WORDS: dict[StallKind, str] = {
    "repetition": "you made {what} {rounds} times in a row, with the same result each time",
    "alternation": "you go in circles: {what}, again and again, with the same results",
    "no_news": "nothing new came of your last {rounds} answers: {what} were made before, and "
    "their results are the same",
    "failures": "all calls of your last {rounds} answers failed, and all were of {what}",
    "monologue": "you said the same thing {rounds} times, and called nothing",
}


@dataclass(frozen=True, slots=True)
class Stall:
    """A run that goes on and comes to nothing.

    Attributes:
        kind: In which way.
        rounds: How many rounds show it.
        what: The calls that it repeats, for a reader; empty where there are none.
    """

    kind: StallKind
    rounds: int
    what: str = ""

    @property
    def text(self) -> str:
        """What it is, as it is told to the model: one sentence."""
        return _WORDS[self.kind].format(rounds=self.rounds, what=self.what)


def looked_at(rules: StallConfig) -> int:
    """How many of the newest rounds `find_stall` needs at most."""
    return max(_LONGEST_CIRCLE * rules.threshold, rules.no_news, rules.failures)


def find_stall(rounds: Sequence[Round], stale: int, rules: StallConfig) -> Stall | None:
    """The way in which the newest rounds come to nothing; None where they come on.

    Args:
        rounds: The newest of a run, `looked_at(rules)` of them if there are so many.
        stale: In how many of them, up to the last, nothing was new.
        rules: After how many it is told.
    """
    if not rounds[-1].calls:
        return _monologue(rounds, rules)
    if _are_equal(rounds, rules.threshold, 1):
        return Stall("repetition", rules.threshold, _names(rounds[-1:]))
    for period in range(2, _LONGEST_CIRCLE + 1):
        if _are_equal(rounds, period * rules.threshold, period):
            return Stall("alternation", period * rules.threshold, _names(rounds[-period:]))
    if stale >= rules.no_news:
        return Stall("no_news", rules.no_news, _names(rounds[-rules.no_news :]))
    return _failures(rounds, rules)


def _are_equal(rounds: Sequence[Round], count: int, period: int) -> bool:
    """Whether each of so many rounds is equal to the one that stands a period before it."""
    if len(rounds) < count:
        return False
    newest = [round_.did if not round_.polls else () for round_ in rounds[-count:]]
    return all(newest) and all(
        newest[at] == newest[at - period] for at in range(period, len(newest))
    )


def _failures(rounds: Sequence[Round], rules: StallConfig) -> Stall | None:
    newest = rounds[-rules.failures :]
    calls = [call for round_ in newest for call in round_.calls]
    if len(newest) < rules.failures or any(round_.polls or not round_.calls for round_ in newest):
        return None
    if all(call.failed for call in calls) and len({call.tool for call in calls}) == 1:
        return Stall("failures", rules.failures, calls[0].tool)
    return None


def _monologue(rounds: Sequence[Round], rules: StallConfig) -> Stall | None:
    newest = rounds[-rules.threshold :]
    if len(newest) < rules.threshold or any(one.calls or one.polls for one in newest):
        return None
    same = len({one.words for one in newest}) == 1
    return Stall("monologue", rules.threshold) if same else None


def _names(rounds: Sequence[Round]) -> str:
    names = list(dict.fromkeys(call.shown for round_ in rounds for call in round_.calls))
    more = len(names) - MOST_NAMED
    shown = names[:MOST_NAMED]
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
