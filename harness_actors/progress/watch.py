"""Follows the rounds of a run, one after the other."""

from collections import deque

from harness_actors.progress.rounds import Round
from harness_actors.progress.stalls import Stall, StallRules, find_stall

REMEMBERED = 4_096
"""Calls with their results that are known to be no news, at most; the newest ones."""


class ProgressWatch:
    """Knows whether the rounds of a run come to something.

    What it costs follows the calls of the round that is added, and not those before.

    Args:
        rules: After how many rounds a stall is told.
    """

    def __init__(self, rules: StallRules | None = None) -> None:
        self._rules = rules or StallRules()
        self._newest: deque[Round] = deque(maxlen=self._rules.looked_at)
        self._known: dict[tuple[bytes, bytes], None] = {}
        self._stale = 0

    @property
    def is_new(self) -> bool:
        """Whether something came of the last round that had not come before."""
        return self._stale == 0

    def heard(self) -> None:
        """Somebody has spoken to the run: what it did before that is no part of a circle."""
        self._newest.clear()
        self._stale = 0

    def add(self, added: Round) -> Stall | None:
        """Take the next round.

        Returns:
            The way in which the run comes to nothing, up to this round; None where it comes on.
            It is told again with each round that goes on in the same way.
        """
        is_news = added.polls or any(one not in self._known for one in added.did)
        for one in added.did:
            self._known.pop(one, None)
            self._known[one] = None
        while len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        self._stale = 0 if is_news else self._stale + 1
        self._newest.append(added)
        return find_stall(tuple(self._newest), self._stale, self._rules)
