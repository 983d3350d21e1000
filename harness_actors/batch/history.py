"""What earlier commands left of a batch, and so what is next for each of its tasks."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness_actors.actors.driver.awaiting import reason_to_wait
from harness_actors.batch.outcomes import OUT_OF_BUDGET, Verdict
from harness_actors.batch.results_file import ResultLine
from harness_actors.batch.run_note import RunNote
from harness_actors.batch.settings import BatchSettings
from harness_actors.batch.tasks import Task
from harness_actors.records import RunHeading
from harness_actors.results import HarnessResult
from harness_actors.setups import Setup
from harness_actors.stores.taking_up import is_lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One run of a task.

    Attributes:
        number: Which run of the task it is, counted from 1.
        retries: How many of these were failures that this one makes good for; an
            attempt by `retry_failed` begins at 0 again.
        run_id: The run.
        setup: Hash of what it was made with; None where that is not known.
        end: How it ended; None while it is unfinished.
        waits: What it comes to for now, while it waits for answers that it does not have;
            None of any other.
        counted_usd: What `History.cost_usd` has of its cost; None where that has nothing of
            it, since it may be in progress.
        elsewhere: The folder that it works in, where that is not its own of this run
            directory, which was copied or moved; None else.
        is_lost: It worked in a folder that is gone, and so cannot go on.
    """

    number: int
    retries: int
    run_id: str
    setup: str | None = None
    end: HarnessResult | None = None
    waits: HarnessResult | None = None
    counted_usd: float | None = None
    elsewhere: str | None = None
    is_lost: bool = False

    @property
    def is_out_of_budget(self) -> bool:
        """It was stopped because the budget of the whole batch was spent."""
        end = self.end
        return end is not None and (end.status, end.reason.kind) == OUT_OF_BUDGET


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do: the line of an earlier command stands.

    Attributes:
        verdict: How the task ended.
        out_of_budget: It was stopped by a budget that is still spent.
        setup: Hash of what it was made with; None where that is not known.
    """

    verdict: Verdict
    out_of_budget: bool = False
    setup: str | None = None


@dataclass(frozen=True, slots=True)
class Continue:
    """A run is to be taken up again, or is over and its line is missing."""

    attempt: Attempt


@dataclass(frozen=True, slots=True)
class Wait:
    """A run waits for its user, who has not answered all of its questions."""

    attempt: Attempt
    waits: HarnessResult


@dataclass(frozen=True, slots=True)
class Begin:
    """A new run is to be started.

    Attributes:
        number: Counts the attempts of this task.
        in_place_of: An unfinished run that is to be cancelled for it; None for none.
    """

    number: int
    in_place_of: str | None = None


NextStep = Done | Continue | Wait | Begin


class History:
    """The results and the runs of a run directory.

    Args:
        lines: The results, by task.
        headings: The runs.
        home: Where a run of this run directory works; None where nobody asks.

    Attributes:
        cost_usd: What the runs of earlier commands cost that are over, or wait for their user; with
            all that they have begun.
    """

    def __init__(
        self,
        lines: Mapping[str, ResultLine],
        headings: Iterable[RunHeading] = (),
        home: Callable[[str], Path] | None = None,
    ) -> None:
        self._lines = lines
        self._home = home
        self._attempts: dict[tuple[str, str], Attempt] = {}
        self._keys: dict[str, tuple[str, str]] = {}
        self.cost_usd = 0.0
        below: defaultdict[str, float] = defaultdict(float)
        tops: list[RunHeading] = []
        for heading in headings:
            if heading.root:
                below[heading.root] += heading.usage.cost_usd
            else:
                tops.append(heading)
        for heading in tops:
            self._remember(heading, heading.usage.cost_usd + below[heading.run_id])

    def next_step(self, task: Task, settings: BatchSettings, now: Setup | None = None) -> NextStep:
        """What is to be done for a task. A run newer than the task's line comes first.

        Args:
            task: The task.
            settings: What is to be done again.
            now: What it would be run with; None where that is not known.

        What a spent budget has stopped is begun again once the budget is larger than what
        was spent; any other ending is final, unless failures are to be retried.
        """
        line = self._lines.get(task.id)
        if line is not None and line.task_hash != task.task_hash:
            line = None
        newest = self._attempts.get((task.id, task.task_hash))
        retries_changed = settings.on_change == "retry"
        if newest is not None:
            if newest.is_out_of_budget and not self._is_spent(settings.budget_usd):
                return Begin(newest.number + 1)
            if retries_changed and differ(newest.setup, now):
                return Begin(newest.number + 1, None if newest.end else newest.run_id)
            if newest.elsewhere and newest.end is None and settings.on_change != "refuse":
                # Going on would write into the folder that this one was copied from.
                return Begin(newest.number + 1, newest.run_id)
            if newest.is_lost:
                return Begin(newest.number + 1, newest.run_id)
            return Continue(newest) if newest.waits is None else Wait(newest, newest.waits)
        if line is None:
            return Begin(1)
        stopped = line.out_of_budget and self._is_spent(settings.budget_usd)
        again = settings.retry_failed and line.verdict != "ok"
        again |= retries_changed and differ(line.setup, now)
        if not stopped and (again or line.out_of_budget):
            return Begin(line.attempt + 1)
        return Done(line.verdict, stopped, line.setup)

    def is_done(self, task_id: str, task_hash: str) -> bool:
        """Whether there is a line for just this content of the task."""
        line = self._lines.get(task_id)
        return line is not None and line.task_hash == task_hash

    def newest_of(self, attempt: Attempt) -> Attempt:
        """An attempt as it stands now: it may have ended since."""
        return self._attempts[self._keys[attempt.run_id]]

    def ended(self, run_id: str, end: HarnessResult) -> float:
        """A run of an earlier command ended before this one took it up.

        Returns:
            What it cost beyond what is counted, in US dollars; 0 where that is no news.
        """
        key = self._keys.get(run_id)
        known = None if key is None else self._attempts[key]
        if key is None or known is None or known.run_id != run_id:
            return 0.0
        cost_usd = end.usage_tree.cost_usd
        self._attempts[key] = replace(known, end=end, waits=None, counted_usd=cost_usd)
        return cost_usd - (known.counted_usd or 0.0)

    def answered(self, run_id: str, question_id: str) -> None:
        """A question of a run was answered that was not come by yet."""
        key = self._keys.get(run_id)
        known = None if key is None else self._attempts[key]
        if key is not None and known is not None and known.run_id == run_id and known.waits:
            asked = known.waits.reason.details["questions"]
            left = [question for question in asked if question["id"] != question_id]
            waits = replace(known.waits, reason=reason_to_wait(left)) if left else None
            self._attempts[key] = replace(known, waits=waits)

    def _is_spent(self, budget_usd: float | None) -> bool:
        return budget_usd is not None and self.cost_usd >= budget_usd

    def _elsewhere(self, heading: RunHeading) -> str | None:
        place = heading.workspace
        if place is None or self._home is None:
            return None
        return None if Path(place).resolve() == self._home(heading.run_id) else place

    def _remember(self, heading: RunHeading, cost_usd: float) -> None:
        # Those in progress are counted round by round, by whoever follows them.
        is_counted = heading.phase in ("ended", "waiting")
        if is_counted:
            self.cost_usd += cost_usd
        noted = RunNote.read(heading.metadata)
        if noted is None:
            return
        key = (noted.task_id, noted.task_hash)
        line = self._lines.get(noted.task_id)
        if line and line.task_hash == noted.task_hash and line.attempt >= noted.attempt:
            return  # its line is there, so the run says nothing new
        elsewhere = self._elsewhere(heading)
        attempt = Attempt(
            number=noted.attempt,
            retries=noted.retries,
            run_id=heading.run_id,
            setup=noted.setup,
            end=heading.end,
            waits=_waits(heading),
            counted_usd=cost_usd if is_counted else None,
            elsewhere=elsewhere,
            is_lost=elsewhere is None and _has_lost_its_place(heading),
        )
        self._keys[heading.run_id] = key
        known = self._attempts.get(key)
        if known is None or known.number <= attempt.number:
            self._attempts[key] = attempt


def _has_lost_its_place(heading: RunHeading) -> bool:
    """Whether the folder is gone that an unfinished run has begun to work in."""
    place = heading.workspace
    # One whose first turn has not begun makes its folder then.
    has_begun = heading.end is None and heading.turns > 0
    return has_begun and place is not None and is_lost(place)


def _waits(heading: RunHeading) -> HarnessResult | None:
    """What a run comes to for now that waits for answers; None of any other."""
    left = heading.open_questions
    if heading.phase != "waiting" or not left:
        return None
    return HarnessResult(
        run_id=heading.run_id,
        status="awaiting_input",
        reason=reason_to_wait(left),
        turn_count=heading.turns,
        usage=heading.usage,
        wall_s=heading.changed_at - heading.added_at,
    )


def differ(before: str | None, now: Setup | None) -> bool:
    """Whether what something was made with is known, and another set-up than that of now."""
    return before is not None and now is not None and before != now.hash
