"""What all runs cost together: no more than they may, but for the rounds that were in flight."""

from harness_actors.ports import RunContext
from harness_actors.records import RunChanged
from harness_actors.state import AGENT_TURN, USAGE
from harness_actors.turn.bounds import BUDGET
from tests.simulation.ledger import Ledger


class Spending:
    """Adds up what is on disk, whoever serves the runs or whether anybody does.

    Attributes:
        limit_usd: What all runs may cost together; None for no bound.
        spent_usd: What they have cost.
    """

    def __init__(self, ledger: Ledger, limit_usd: float | None) -> None:
        self.limit_usd = limit_usd
        self.spent_usd = 0.0
        self._ledger = ledger
        self._term = 0
        """The one in which it was spent."""
        self._asked: dict[str, int] = {}
        """By run: model calls that began behind that."""
        self._unaware: set[str] = set()
        """Runs that began a turn before they knew of a budget."""

    @property
    def is_spent(self) -> bool:
        return self.limit_usd is not None and self.spent_usd >= self.limit_usd

    def changed(self, change: RunChanged) -> None:
        """A change is on disk."""
        before = self.is_spent
        for write in change.delta.writes:
            if write.key == USAGE.name:
                self.spent_usd += write.value.get("cost_usd", 0.0)
        if self.is_spent and not before:
            self._term = self._ledger.term
            self._ledger.note("!", f"the budget of {self.limit_usd} is spent")

    def served(self, context: RunContext, executor: str) -> None:
        """An executor begins with a run."""
        if self.limit_usd is not None and executor == AGENT_TURN:
            known = context.get(BUDGET) is not None
            (self._unaware.discard if known else self._unaware.add)(context.spec.run_id)

    def asked(self, run_id: str) -> None:
        """A model call begins: one more of a run, when all is spent, and one in each term."""
        if not self.is_spent:
            return
        self._asked[run_id] = asked = self._asked.get(run_id, 0) + 1
        most = 1 + (run_id in self._unaware) + self._ledger.term - self._term
        if asked > most:
            text = f"{run_id} makes {asked} model calls behind {self.spent_usd:g} USD"
            self._ledger.broken(
                "nothing starts when the budget is spent", f"{text} of {self.limit_usd:g}"
            )
