"""What becomes of runs when the budget of their command is spent."""

from collections.abc import Mapping

from harness_actors.coordination.active import ActiveRun, Step
from harness_actors.coordination.books import RunBooks, entry
from harness_actors.coordination.budget import Budget
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.endings import out_of_budget
from harness_actors.state import StateDelta
from harness_actors.turn.bounds import BUDGET


class Closing:
    """Ends each run behind the round that it is in, once the budget is spent.

    Args:
        runs: The runs in service, by id; the coordinator's own mapping.
        budget: What they may cost together, and have cost.
        books: Changes them.
        dispatch: Tells their hosts.
    """

    def __init__(
        self, runs: Mapping[str, ActiveRun], budget: Budget, books: RunBooks, dispatch: Dispatch
    ) -> None:
        self._runs = runs
        self._budget = budget
        self._books = books
        self._dispatch = dispatch
        # Those that begin later are closed as they begin.
        self._all_closing = False

    def note(self, run: ActiveRun, step: Step, *, restored: bool = False) -> None:
        """Keep the budget with a run, or take it from one of an earlier incarnation."""
        noted = run.state.values.get(BUDGET.name)
        if restored and self._budget.limit_usd is None:
            self._budget.limit_usd = noted
        if noted != self._budget.limit_usd:
            self._books.change(run, entry(BUDGET, self._budget.limit_usd), step)
        if self._budget.is_spent and run.closing is None:
            self._close(run, step)

    def note_all(self, step: Step) -> None:
        """The budget is another one."""
        self._all_closing = False
        for run in list(self._runs.values()):
            self.note(run, step)

    def close_if_spent(self, step: Step) -> None:
        """Something was spent: no run makes a further model call where nothing is left."""
        if self._budget.is_spent and not self._all_closing:
            self._all_closing = True
            for run in [run for run in self._runs.values() if run.closing is None]:
                self._close(run, step)

    def _close(self, run: ActiveRun, step: Step) -> None:
        run.closing = out_of_budget(run, self._budget.limit_usd or 0.0)
        if run.slot is None and run.step:
            # It waits for the quarantine host, and would ask the model there.
            self._books.end(run, StateDelta(), run.closing, step)
        else:
            self._dispatch.stop_at_round(run, step)
