"""What a batch has come to so far: the figures of its progress."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

from harness_actors.batch.outcomes import TaskOutcome, Verdict
from harness_actors.events import RoundCompleted


class Tally:
    """The figures of one command, kept up to date while it works.

    Attributes:
        total: How many tasks there are; None where their source does not say.
        skipped: Tasks that were done before this command.
        ended: Tasks that ended in this command.
        failed: Those of them that ended `failed`.
        verdicts: How the tasks ended, those included that were done before.
        out_of_budget: Those that a spent budget stopped.
        running: Runs in flight.
        checking: Tasks whose run is over, and whose check holds its place.
        has_checks: Some task had a check to run.
        waiting: Runs that wait for their user, and hold no place.
        parked: Runs that were put aside.
        retried: Further attempts that were started.
        rounds: Rounds that were finished.
        fallbacks: Rounds in which a model of several did not answer.
        tokens: Tokens of these rounds.
        cost_usd: Cost of these rounds.
    """

    def __init__(self, total: int | None) -> None:
        self.total = total
        self.skipped = self.ended = self.failed = 0
        self.verdicts: Counter[Verdict] = Counter()
        self.out_of_budget = 0
        self._skipped_known = False
        self.running = self.checking = self.waiting = self.parked = self.retried = 0
        self.has_checks = False
        self.rounds = self.fallbacks = self.tokens = 0
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
    def all_ok(self) -> bool:
        """Every task of which nothing is left to do ended well."""
        return self.verdicts["ok"] == self.done

    @property
    def left(self) -> int | None:
        """Tasks that were not ended; None where the total is not known."""
        return None if self.total is None else self.total - self.done

    @property
    def eta_s(self) -> float | None:
        """Seconds until the end at the pace so far; None while there is no telling."""
        if not self.ended or self.left is None:
            return None
        # How long people take there is no telling.
        return max(0, self.left - self.waiting) * self.wall_s / self.ended

    def know_skipped(self, verdicts: Mapping[Verdict, int], *, out_of_budget: int = 0) -> None:
        """All tasks that were done before were counted, so none is when it is come by."""
        for verdict, count in verdicts.items():
            self.add_skipped(verdict, count=count)
        self.out_of_budget += out_of_budget
        self._skipped_known = True

    def add_skipped(self, verdict: Verdict, *, count: int = 1) -> None:
        """Tasks that were done before were come by."""
        if not self._skipped_known:
            self.skipped += count
            self.verdicts[verdict] += count

    def add_round(self, event: RoundCompleted) -> None:
        self.rounds += 1
        self.tokens += event.input_tokens + event.output_tokens
        self.cost_usd += event.cost_usd

    def add(self, outcome: TaskOutcome) -> None:
        self.ended += 1
        self.failed += outcome.status == "failed"
        self.verdicts[outcome.verdict] += 1
        self.out_of_budget += outcome.out_of_budget

    def begin_check(self) -> None:
        self.checking += 1
        self.has_checks = True

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
            "waiting": self.waiting,
            "retries": self.retried,
            "rounds": self.rounds,
            # Of agents with one model there is nothing to tell.
            **({"fallbacks": self.fallbacks} if self.fallbacks else {}),
        }
