"""What all runs cost together: no more than they may, but for the rounds that were in flight."""

from harness_actors.ports import RunContext
from harness_actors.records import RunChanged
from harness_actors.state import AGENT_TURN, BUDGET, SIDE_USAGE, USAGE
from harness_actors.turn.bounds import is_spent
from tests.simulation.ledger import Ledger

INVARIANT = "nothing starts when the budget is spent"


class Spending:
    """Adds up what is on disk, whoever serves the runs or whether anybody does.

    A round is in flight when the last is spent if nothing of its run, neither a round nor a hop,
    has come to the disk since: whatever did was told that all is spent, before or with the word
    that it is on disk.

    Attributes:
        limit_usd: What all runs may cost together; None for no bound.
        spent_usd: What they have cost.
    """

    def __init__(self, ledger: Ledger, limit_usd: float | None) -> None:
        self.limit_usd = limit_usd
        self.spent_usd = 0.0
        self._ledger = ledger
        self._heard: set[str] = set()
        """Runs of which something came to the disk with or after the last that was spent."""
        self._asked: set[str] = set()
        """Runs that made a model call since."""
        self._unaware: set[str] = set()
        """Runs that began a turn before they knew of a budget: these are a round ahead."""

    @property
    def is_spent(self) -> bool:
        return self.limit_usd is not None and is_spent(self.spent_usd, self.limit_usd)

    def changed(self, change: RunChanged) -> None:
        """A change is on disk."""
        before = self.is_spent
        costs = [w.value.get("cost_usd", 0.0) for w in change.delta.writes if w.key == USAGE.name]
        self.spent_usd += sum(costs)
        if self.is_spent and not before:
            self._ledger.note("!", f"the budget of {self.limit_usd} is spent")
        # What summaries cost is said beside the run, which does not hear of it.
        beside = any(write.key == SIDE_USAGE.name for write in change.delta.writes)
        if self.is_spent and (costs or change.hop is not None) and not beside:
            self._heard.add(change.run_id)

    def served(self, context: RunContext, executor: str) -> None:
        """An executor begins with a run."""
        if self.limit_usd is not None and executor == AGENT_TURN:
            known = context.get(BUDGET) is not None
            (self._unaware.discard if known else self._unaware.add)(context.spec.run_id)

    def asked(self, run_id: str) -> None:
        """A model call begins: the one of a run that was in flight when all was spent."""
        if not self.is_spent:
            return
        again = run_id in self._asked or run_id in self._heard
        self._asked.add(run_id)
        if again and run_id in self._unaware:
            self._unaware.discard(run_id)
        elif again:
            text = f"{run_id} makes a model call after {self.spent_usd:g} of {self.limit_usd:g}"
            self._ledger.broken(INVARIANT, f"{text} USD, which it was told of")
