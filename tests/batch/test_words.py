import pytest

from harness_actors.batch.words import short_count, short_time


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0"), (999, "999"), (1000, "1.0k"), (12_340, "12.3k"), (1_000_000, "1.0M")],
)
def test_a_count_has_the_unit_that_it_reaches(count: int, shown: str) -> None:
    assert short_count(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "0.0 s"),
        (59.9, "59.9 s"),
        (60.0, "1 min 0 s"),
        (3599.0, "59 min 59 s"),
        (3599.7, "1 h 0 min"),
        (90_061.0, "25 h 1 min"),
    ],
)
def test_a_duration_has_the_units_that_it_reaches(seconds: float, shown: str) -> None:
    assert short_time(seconds) == shown
