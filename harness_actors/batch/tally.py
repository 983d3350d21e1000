"""What a batch has come to so far: the figures of its progress and of its summary."""

import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from harness_actors.batch.outcomes import TaskOutcome
from harness_actors.batch.spending import UsageSum
from harness_actors.events import RoundCompleted


class Tally:
    """The figures of one command, kept up to date while it works.

    Attributes:
        total: How many tasks there are; None where their source does not say.
        skipped: Tasks that were done before this command.
        skipped_ok: Those of them that ended well.
        ended: Tasks that ended in this command.
        succeeded: Those of them that ended well.
        failed: Those of them that ended `failed`.
        running: Runs in flight.
        parked: Runs that were put aside.
        retried: Further attempts that were started.
        rounds: Rounds that were finished.
        tokens: Tokens of these rounds.
        cost_usd: Cost of these rounds.
    """

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.skipped = self.skipped_ok = 0
        self._skipped_known = False
        self.ended = self.succeeded = self.failed = 0
        self.running = self.parked = self.retried = 0
        self.rounds = self.tokens = 0
        self.cost_usd = 0.0
        self.started_at = time.time()
        self._started = time.monotonic()

    @property
    def wall_s(self) -> float:
        return time.monotonic() - self._started

    @property
    def done(self) -> int:
        """Tasks of which nothing is left to do."""
        return self.skipped + self.ended

    @property
    def left(self) -> int | None:
        """Tasks that were not ended; None where the total is not known."""
        return None if self.total is None else self.total - self.done

    @property
    def eta_s(self) -> float | None:
        """Seconds until the end at the pace so far; None while there is no telling."""
        if not self.ended or self.left is None:
            return None
        return self.left * self.wall_s / self.ended

    def know_skipped(self, skipped: int, *, ok: int) -> None:
        """All tasks that were done before were counted, so none is when it is come by."""
        self.skipped, self.skipped_ok = skipped, ok
        self._skipped_known = True

    def add_skipped(self, *, ok: bool) -> None:
        """A task that was done before was come by."""
        if not self._skipped_known:
            self.skipped += 1
            self.skipped_ok += ok

    def add_round(self, event: RoundCompleted) -> None:
        self.rounds += 1
        self.tokens += event.input_tokens + event.output_tokens
        self.cost_usd += event.cost_usd

    def add(self, outcome: TaskOutcome) -> None:
        self.ended += 1
        self.succeeded += outcome.ok
        self.failed += outcome.status == "failed"

    def command(self) -> dict[str, Any]:
        """The figures of this command, for `summary.json`."""
        return {
            "started_at": round(self.started_at, 3),
            "ended_at": round(time.time(), 3),
            "wall_s": round(self.wall_s, 3),
            "tasks": self.total,
            "done_before": self.skipped,
            "ended": self.ended,
            "not_ended": self.left,
            "parked": self.parked,
            "retries": self.retried,
            "rounds": self.rounds,
        }


class Totals:
    """The sums over many outcomes.

    Attributes:
        run_ids: The runs that they tell of.
        usage: What those used.
    """

    def __init__(self, outcomes: Iterable[TaskOutcome] = ()) -> None:
        self.tasks = 0
        self.statuses: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.checks: Counter[str] = Counter(passed=0, failed=0)
        self.run_ids: set[str] = set()
        self.usage = UsageSum()
        for outcome in outcomes:
            self.add(outcome)

    def add(self, outcome: TaskOutcome) -> None:
        self.tasks += 1
        self.statuses[outcome.status] += 1
        self.reasons[f"{outcome.status}({outcome.reason.kind})"] += 1
        if outcome.check is not None:
            self.checks["passed" if outcome.check.passed else "failed"] += 1
        if outcome.run_id is None:
            return
        self.run_ids.add(outcome.run_id)
        usage = outcome.usage
        self.usage.add(
            model_calls=outcome.model_calls,
            tool_calls=outcome.tool_calls,
            turns=outcome.turns,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            cost_usd=usage.cost_usd,
        )

    def as_mapping(self) -> dict[str, Any]:
        """The sums as plain values, for `summary.json`."""
        return {
            "tasks": self.tasks,
            "statuses": dict(self.statuses),
            "reasons": dict(self.reasons),
            "checks": dict(self.checks),
            "usage": self.usage.as_mapping(),
        }
