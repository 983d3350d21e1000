"""What the runs of a command may cost together."""

from harness_actors.state import USAGE, StateDelta
from harness_actors.turn.bounds import is_spent


class Budget:
    """Adds up what runs cost, and says when it is too much.

    Attributes:
        limit_usd: What all runs may cost together, in US dollars; None for no bound.
        spent_usd: What they have cost so far, counting what is committed.
        ended_usd: What those of this term have cost that are over.
    """

    def __init__(self) -> None:
        self.limit_usd: float | None = None
        self.spent_usd = 0.0
        self.ended_usd = 0.0
        # Of runs that are not over. One that is put aside stays: it may be taken up again,
        # and must not be counted twice then.
        self._unfinished_usd: dict[str, float] = {}

    @property
    def is_spent(self) -> bool:
        """No further model call may be made."""
        return self.limit_usd is not None and is_spent(self.spent_usd, self.limit_usd)

    def allow(self, limit_usd: float | None, *, spent_usd: float) -> None:
        """Set the bound.

        Args:
            limit_usd: What all runs may cost together; None for no bound.
            spent_usd: What those cost of it that were over when this term began.
        """
        self.limit_usd = limit_usd
        self.spent_usd = spent_usd + self.ended_usd + sum(self._unfinished_usd.values())

    def take_up(self, run_id: str, cost_usd: float) -> None:
        """A run is served that has cost this much before."""
        if run_id not in self._unfinished_usd:
            self._unfinished_usd[run_id] = cost_usd
            self.spent_usd += cost_usd

    def charge(self, run_id: str, delta: StateDelta) -> None:
        """A run made a change."""
        for write in delta.writes:
            if write.key == USAGE.name and run_id in self._unfinished_usd:
                cost_usd = write.value.get("cost_usd", 0.0)
                self._unfinished_usd[run_id] += cost_usd
                self.spent_usd += cost_usd

    def end(self, run_id: str) -> None:
        """A run is over; what it cost stays spent."""
        self.ended_usd += self._unfinished_usd.pop(run_id, 0.0)
