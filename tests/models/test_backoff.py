"""Waits before a provider is asked again."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.models.backoff import Backoff, asked_delay_s


@given(st.integers(0, 1000))
def test_waits_double_up_to_their_bound(retries: int) -> None:
    delay_s = Backoff().delay_s(retries, None)

    assert 0 <= delay_s <= min(8.0, 0.5 * 2 ** min(retries, 10))


@pytest.mark.parametrize(("retries", "bound_s"), [(0, 0.5), (1, 1.0), (3, 4.0), (4, 8.0), (9, 8.0)])
def test_waits_are_spread_over_all_of_their_bound(retries: int, bound_s: float) -> None:
    """So calls that were refused together do not come back together."""
    waits = [Backoff().delay_s(retries, None) for _ in range(500)]

    assert max(waits) > 0.8 * bound_s
    assert min(waits) < 0.2 * bound_s


def test_calls_that_were_asked_to_wait_alike_come_back_apart() -> None:
    waits = [Backoff().delay_s(0, 10.0) for _ in range(500)]

    assert max(waits) > 10.4
    assert min(waits) < 10.1


@given(st.floats(-10, 1000))
def test_what_a_provider_asks_for_is_waited_up_to_the_cap(asked_s: float) -> None:
    delay_s = Backoff().delay_s(0, asked_s)

    assert min(max(asked_s, 0.0), 60.0) <= delay_s <= 60.5


def test_a_date_is_understood() -> None:
    then = datetime.now(UTC) + timedelta(seconds=100)

    asked_s = asked_delay_s({"retry-after": format_datetime(then, usegmt=True)})

    assert asked_s == pytest.approx(100, abs=2)


@pytest.fixture
def far_from_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose clock shows another time of day."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_from_utc")
def test_a_date_without_a_zone_is_one_of_utc() -> None:
    then = datetime.now(UTC) + timedelta(seconds=100)

    asked_s = asked_delay_s({"retry-after": format_datetime(then.replace(tzinfo=None))})

    assert asked_s == pytest.approx(100, abs=2)


def test_of_two_headers_one_that_says_nothing_is_passed_over() -> None:
    assert asked_delay_s({"retry-after-ms": "soon", "retry-after": "3"}) == 3.0
    assert asked_delay_s({"retry-after-ms": "nan", "retry-after": "3"}) == 3.0


def test_a_date_in_the_past_asks_for_no_wait() -> None:
    assert asked_delay_s({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0


@pytest.mark.parametrize("value", ["", "soon", "nan", "inf"])
def test_what_is_no_wait_is_none_or_bounded(value: str) -> None:
    asked_s = asked_delay_s({"retry-after": value})

    assert asked_s is None or Backoff().delay_s(0, asked_s) <= 60.5


def test_no_header_asks_for_nothing() -> None:
    assert asked_delay_s({}) is None
