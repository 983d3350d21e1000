"""The sums over outcomes, for the summary of a run directory."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from harness_actors.batch.causes import Causes
from harness_actors.batch.outcomes import TaskOutcome
from harness_actors.batch.spending import UsageSum

SHOWN_IDS = 20


class Totals:
    """The sums over many outcomes.

    Attributes:
        tasks: How many they are.
        run_ids: The runs that they tell of.
        usage: What those used, with all runs that they have begun.
    """

    def __init__(self, outcomes: Iterable[TaskOutcome] = ()) -> None:
        self.tasks = 0
        self._verdicts: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._reasons: Counter[str] = Counter()
        self._checks: Counter[str] = Counter(passed=0, failed=0)
        self._causes = Causes()
        self._setups: Counter[tuple[str | None, str | None, str | None]] = Counter()
        self._ids: list[str] = []
        self.run_ids: set[str] = set()
        self.usage = UsageSum()
        for outcome in outcomes:
            self.add(outcome)

    def add(self, outcome: TaskOutcome) -> None:
        self.tasks += 1
        self._verdicts[outcome.verdict] += 1
        self._statuses[outcome.status] += 1
        self._reasons[f"{outcome.status}({outcome.reason.kind})"] += 1
        self._causes.add(outcome)
        if outcome.run_id is not None:
            self._setups[outcome.setup, outcome.agent, outcome.model] += 1
        if len(self._ids) < SHOWN_IDS:
            self._ids.append(outcome.id)
        if outcome.check is not None:
            self._checks["passed" if outcome.check.passed else "failed"] += 1
        if outcome.run_id is None:
            return
        self.run_ids.add(outcome.run_id)
        self.usage.add(turns=outcome.turns, **asdict(outcome.used))

    def as_mapping(self) -> dict[str, Any]:
        """The sums as plain values, for `summary.json`."""
        return {
            "tasks": self.tasks,
            "verdicts": dict(self._verdicts),
            "statuses": dict(self._statuses),
            "reasons": dict(self._reasons),
            "causes": self._causes.as_list(),
            "checks": dict(self._checks),
            "setups": [
                {"setup": setup, "agent": agent, "model": model, "tasks": tasks}
                for (setup, agent, model), tasks in self._setups.most_common()
            ],
            "usage": self.usage.as_mapping(),
        }

    def as_removed(self) -> dict[str, Any]:
        """What is said of results whose tasks a command does not have."""
        return {
            "tasks": self.tasks,
            "ids": self._ids,
            "statuses": dict(self._statuses),
            "usage": self.usage.as_mapping(),
        }
