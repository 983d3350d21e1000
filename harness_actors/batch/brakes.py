"""When a batch starts nothing new: its budget is spent, too much failed, its user stopped it."""

from typing import Literal

from harness_actors.batch.settings import BatchSettings

Ending = Literal["complete", "budget", "failures", "interrupted", "parked", "waiting", "error"]
"""Why a batch ended: all tasks did; why nothing new was started; `parked`: runs were put
aside by the runtime, for lack of a key; `waiting`: all others ended, and runs wait for answers;
`error`: the runtime or a file failed."""


class Brakes:
    """Says whether a batch may start another run.

    Args:
        settings: The bounds.
        total: Number of tasks, which a share of failures is of; None takes those that
            have ended.
        spent_usd: What earlier commands spent.

    Attributes:
        ending: Why nothing new starts; ``"complete"`` while it may.
        spent_usd: Cost of all runs, those in flight included.
    """

    def __init__(
        self, settings: BatchSettings, *, total: int | None = None, spent_usd: float = 0.0
    ) -> None:
        self._settings = settings
        self._total = total
        self.ending: Ending = "complete"
        self.spent_usd = 0.0
        self.spend(spent_usd)

    def are_on(self) -> bool:
        """Nothing new may start."""
        return self.ending != "complete"

    def spend(self, cost_usd: float) -> None:
        """Cost was made."""
        self.spent_usd += cost_usd
        budget = self._settings.budget_usd
        if budget is not None and self.spent_usd >= budget:
            self._pull("budget")

    def count_failed(self, failed: int, ended: int) -> None:
        """So many tasks failed, of so many that ended."""
        most = self._settings.fail_on_error
        if most is None:
            return
        if most < 1:
            most *= self._total or ended
        if failed >= most:
            self._pull("failures")

    def stop(self) -> None:
        """The user wants no more."""
        self.ending = "interrupted"

    def _pull(self, ending: Ending) -> None:
        # What the user asked for is what the end is called, whatever else comes to pass.
        if not self.are_on():
            self.ending = ending
