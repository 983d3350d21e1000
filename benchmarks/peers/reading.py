"""How long an agent stood still while its conversation was summarized, from when it asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from benchmarks.peers.watched import Asked

LEAST_SUMMARIES = 3


class NotReadError(RuntimeError):
    """A conversation was another one than it was to be; says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A conversation, in seconds.

    Attributes:
        rounds: Answers, without the last one.
        wall_s: From the first request to the last answer.
        gaps: From each answer to the agent's next request.
        stalls: For each summary the longest gap of those in which it was being made.
        most_tokens: Of the largest request of the agent.
    """

    rounds: int
    wall_s: float
    gaps: tuple[float, ...]
    stalls: tuple[float, ...]
    most_tokens: int

    @property
    def longest_s(self) -> float:
        """The longest gap of all, whatever it was for."""
        return max(self.gaps)

    @property
    def usual_s(self) -> float:
        """The median of the gaps."""
        return median(self.gaps)


def reading_of(asked: Sequence[Asked]) -> Reading:
    """What came of a conversation.

    Args:
        asked: What the server was asked, in the order in which it was.

    Raises:
        NotReadError: It did not end with its last answer, had requests of the agent at once, or
            too few summaries.
    """
    agents = [one for one in asked if not one.for_summary]
    spans = [(one.came, one.answered) for one in agents if one.answered is not None]
    if len(spans) < len(agents) or [one.ends for one in agents].count(True) != 1:
        raise NotReadError(f"asked {len(agents)} times, and took {len(spans)} answers to no end")
    if not agents[-1].ends:
        raise NotReadError("asked again after the end")
    gaps = [(before, after) for (_, before), (after, _) in pairwise(spans)]
    if any(after < before for before, after in gaps):
        raise NotReadError("asked again before it had its answer")
    summaries = [
        (one.came, one.answered) for one in asked if one.for_summary and one.answered is not None
    ]
    if len(summaries) < LEAST_SUMMARIES:
        raise NotReadError(f"had {len(summaries)} summaries; {LEAST_SUMMARIES} are the least")
    return Reading(
        rounds=len(agents) - 1,
        wall_s=spans[-1][1] - spans[0][0],
        gaps=tuple(after - before for before, after in gaps),
        stalls=tuple(_longest(gaps, begun, ended) for begun, ended in summaries),
        most_tokens=max(one.tokens for one in agents),
    )


def _longest(gaps: Sequence[tuple[float, float]], begun: float, ended: float) -> float:
    """Of the gaps that overlap a time; 0 where there are none."""
    return max(
        (after - before for before, after in gaps if before < ended and after > begun), default=0.0
    )
