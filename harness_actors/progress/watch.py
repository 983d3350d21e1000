"""Follows the rounds of a run, one after the other."""

from collections import deque

from harness_actors.config import StallConfig
from harness_actors.progress.rounds import Round
from harness_actors.progress.stalls import Stall, find_stall, looked_at

REMEMBERED_ROUNDS = 50
"""What came of a call is known for so many rounds, and is news again after that."""
REMEMBERED_CALLS = 1_024
"""Calls with their results that are known at a time, at most; the newest ones."""


class ProgressWatch:
    """Knows whether the rounds of a run come to something.

    What it costs follows the calls of the round that is added, and not those before. What it says
    depends on `reach` rounds and no more, so it may begin anywhere before them.

    Args:
        rules: After how many rounds a stall is told.
    """

    def __init__(self, rules: StallConfig | None = None) -> None:
        self._rules = rules or StallConfig()
        self._newest: deque[Round] = deque(maxlen=looked_at(self._rules))
        self._seen: dict[bytes, int] = {}
        """When each call had its result for the last time, the oldest first."""
        self._count = 0
        self._stale = 0

    @property
    def reach(self) -> int:
        """Rounds before the next one that what is said of it may depend on."""
        return looked_at(self._rules) + REMEMBERED_ROUNDS

    def add(self, added: Round) -> Stall | None:
        """Take the next round.

        Returns:
            The way in which the run comes to nothing, up to this round; None where it comes on.
            It is told again with each round that goes on in the same way.
        """
        self._count += 1
        self._forget()
        is_news = added.polls
        for one in added.did:
            if self._seen.pop(one, None) is None:
                is_news = True
            self._seen[one] = self._count
        self._stale = 0 if is_news else self._stale + 1
        self._newest.append(added)
        return find_stall(tuple(self._newest), self._stale, self._rules)

    def _forget(self) -> None:
        oldest = self._count - REMEMBERED_ROUNDS
        while self._seen:
            first = next(iter(self._seen))
            if self._seen[first] >= oldest and len(self._seen) <= REMEMBERED_CALLS:
                break
            del self._seen[first]
