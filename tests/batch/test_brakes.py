"""When a batch starts nothing new, and what its end is called then."""

import pytest

from harness_actors.batch.brakes import Brakes
from harness_actors.batch.settings import BatchSettings


def brakes(total: int | None = None, spent_usd: float = 0.0, **settings: float) -> Brakes:
    return Brakes(BatchSettings(**settings), total=total, spent_usd=spent_usd)  # type: ignore[arg-type]


def test_without_a_bound_nothing_stops_a_batch() -> None:
    free = brakes(total=2)
    free.spend(1e9)
    free.count_failed(2, 2)

    assert (free.are_on(), free.ending, free.spent_usd) == (False, "complete", 1e9)


def test_a_budget_is_spent_when_it_is_reached_by_whichever_command() -> None:
    bounded = brakes(budget_usd=3.0, spent_usd=1.0)
    bounded.spend(1.5)
    assert not bounded.are_on()
    bounded.spend(0.5)

    assert (bounded.ending, bounded.spent_usd) == ("budget", 3.0)
    assert brakes(budget_usd=3.0, spent_usd=3.0).are_on()


@pytest.mark.parametrize(
    ("bound", "total", "failed", "ended", "on"),
    [
        (2, 10, 1, 9, False),
        (2, 10, 2, 2, True),
        (0.5, 10, 4, 4, False),
        (0.5, 10, 5, 5, True),
        # Of a source that does not say how many there are, a share is of what has ended.
        (0.5, None, 1, 3, False),
        (0.5, None, 2, 4, True),
        (1, None, 1, 100, True),
    ],
)
def test_so_many_failures_or_such_a_share_of_all_tasks_are_too_many(
    bound: float, total: int | None, failed: int, ended: int, on: bool
) -> None:
    failing = brakes(total, fail_on_error=bound)
    failing.count_failed(failed, ended)

    assert failing.are_on() is on
    assert failing.ending == ("failures" if on else "complete")


def test_the_end_is_called_by_what_came_first_unless_the_user_asked_for_it() -> None:
    first = brakes(fail_on_error=1, budget_usd=1.0)
    first.count_failed(1, 1)
    first.spend(5.0)
    endings = [first.ending]

    first.stop()
    endings.append(first.ending)
    first.count_failed(9, 9)
    first.spend(5.0)
    endings.append(first.ending)

    assert endings == ["failures", "interrupted", "interrupted"]
    assert first.spent_usd == 10.0
