"""What becomes of runs when the budget of their command is spent."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.budget import Budget
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.endings import out_of_budget
from harness_actors.coordination.run_changes import RunChanges, entry
from harness_actors.state import BUDGET, StateDelta


@dataclass(eq=False)
class Closing:
    """Ends each run after the round that it is in, once the budget is spent.

    Args:
        runs: The runs in service, by id; the coordinator's own mapping.
        budget: What they may cost together, and have cost.
        books: Changes them.
        dispatch: Tells their hosts.
    """

    _runs: Mapping[str, ActiveRun]
    _budget: Budget
    _changes: RunChanges
    _dispatch: Dispatch
    # Those that begin later are closed as they begin.
    _all_closing: bool = field(default=False, init=False)

    def note(self, run: ActiveRun, effects: Effects, *, restored: bool = False) -> None:
        """Keep the budget with a run, or take it from one of an earlier incarnation."""
        noted = run.state.values.get(BUDGET.name)
        if restored and self._budget.limit_usd is None:
            self._budget.limit_usd = noted
        if noted != self._budget.limit_usd:
            self._changes.change(run, entry(BUDGET, self._budget.limit_usd), effects)
        if self._budget.is_spent and run.closing is None:
            self._close(run, effects)

    def note_all(self, effects: Effects) -> None:
        """The budget is another one."""
        self._all_closing = False
        for run in list(self._runs.values()):
            self.note(run, effects)

    def close_if_spent(self, effects: Effects) -> None:
        """Something was spent: no run makes a further model call where nothing is left."""
        if self._budget.is_spent and not self._all_closing:
            self._all_closing = True
            for run in [run for run in self._runs.values() if run.closing is None]:
                self._close(run, effects)

    def _close(self, run: ActiveRun, effects: Effects) -> None:
        run.closing = out_of_budget(run, self._budget.limit_usd or 0.0)
        if run.waits_for_children:
            return  # it ends when these have
        if run.slot is None and run.hop_number:
            # It waits for the quarantine host, and would ask the model there.
            self._changes.end(run, StateDelta(), run.closing, effects)
        else:
            self._dispatch.stop_at_round(run, effects)
