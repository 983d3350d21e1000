"""The ways in which a run goes on and comes to nothing, and how each is found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness_actors.config import StallConfig
from harness_actors.progress.rounds import Round

StallKind = Literal["repetition", "alternation", "no_news", "failures", "monologue", "hook"]
"""`repetition`: the same calls with the same results; `alternation`: two or three rounds by turns;
`no_news`: calls that were all made before, with results that are all known; `failures`: calls of
one tool that all fail; `monologue`: the same words, and no call; `hook`: a hook says so."""

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
    "hook": "{what}",
}


@dataclass(frozen=True, slots=True)
class Stall:
    """A run that goes on and comes to nothing.

    Attributes:
        kind: In which way.
        rounds: How many rounds show it.
        what: The calls that it repeats, for a reader; empty where there are none.
        begun: The repetition that the newest rounds of one without news begin; None where they
            begin none.
    """

    kind: StallKind
    rounds: int
    what: str = ""
    begun: "Stall | None" = None

    @property
    def text(self) -> str:
        """What it is, as it is told to the model: one sentence."""
        return _WORDS[self.kind].format(rounds=self.rounds, what=self.what)


def looked_at(rules: StallConfig) -> int:
    """How many of the newest rounds `find_stall` needs at most."""
    told_and_gone_on = rules.threshold + rules.grace
    return max(_LONGEST_CIRCLE * rules.threshold, rules.no_news, rules.failures, told_and_gone_on)


def find_stall(rounds: Sequence[Round], stale: int, rules: StallConfig) -> Stall | None:
    """The way in which the newest rounds come to nothing; None where they come on.

    Args:
        rounds: The newest of a run, `looked_at(rules)` of them if there are so many.
        stale: In how many of them, up to the last, nothing was new.
        rules: After how many it is told.
    """
    if not rounds[-1].calls:
        return _monologue(rounds, rules)
    for period in range(1, min(_LONGEST_CIRCLE, len(rounds) - 1) + 1):
        if rounds[-1].did != rounds[-1 - period].did:
            # As most often: one comparison tells.
            continue
        if _are_equal(rounds, period * rules.threshold, period):
            kind: StallKind = "repetition" if period == 1 else "alternation"
            return Stall(kind, _equal(rounds, period), _names(rounds[-period:]))
    if stale >= rules.no_news:
        # No more than whoever takes the run over reads again.
        count, equal = min(stale, len(rounds)), _equal(rounds, 1)
        begun = Stall("repetition", equal, _names(rounds[-1:])) if equal > 1 else None
        return Stall("no_news", count, _names(rounds[-count:]), begun)
    return _failures(rounds, rules)


def _are_equal(rounds: Sequence[Round], count: int, period: int) -> bool:
    """Whether each of so many rounds, more than a period, is equal to the one that stands a period
    before it."""
    if len(rounds) < count:
        return False
    newest = [round_.did if not round_.polls else () for round_ in rounds[-count:]]
    return all(newest) and all(
        newest[at] == newest[at - period] for at in range(period, len(newest))
    )


def _equal(rounds: Sequence[Round], period: int) -> int:
    """How many of the newest rounds, all that are known, go on in turns of a period."""
    count = period
    while _are_equal(rounds, count + 1, period):
        count += 1
    return count


def _failures(rounds: Sequence[Round], rules: StallConfig) -> Stall | None:
    for call in rounds[-1].calls:
        if not call.failed:
            # As most often: the last round tells.
            return None
    newest = rounds[-rules.failures :]
    calls = [call for round_ in newest for call in round_.calls]
    if len(newest) < rules.failures or any(round_.polls or not round_.calls for round_ in newest):
        return None
    if all(call.failed for call in calls) and len({call.tool for call in calls}) == 1:
        tool = calls[0].tool
        return Stall("failures", _ending(rounds, lambda one: _fails(one, tool)), tool)
    return None


def _monologue(rounds: Sequence[Round], rules: StallConfig) -> Stall | None:
    newest = rounds[-rules.threshold :]
    if len(newest) < rules.threshold or any(one.calls or one.polls for one in newest):
        return None
    words = newest[-1].words
    if any(one.words != words for one in newest):
        return None
    says = _ending(rounds, lambda one: not (one.calls or one.polls) and one.words == words)
    return Stall("monologue", says)


def _fails(one: Round, tool: str) -> bool:
    calls_it = bool(one.calls) and not one.polls
    return calls_it and all(call.failed and call.tool == tool for call in one.calls)


def _ending(rounds: Sequence[Round], holds: Callable[[Round], bool]) -> int:
    """Of how many of the newest rounds, one after the other, something holds."""
    return next(
        (count for count, one in enumerate(reversed(rounds)) if not holds(one)), len(rounds)
    )


def _names(rounds: Sequence[Round]) -> str:
    names = list(dict.fromkeys(call.shown for round_ in rounds for call in round_.calls))
    more = len(names) - MOST_NAMED
    shown = names[:MOST_NAMED]
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
