"""When the Ray that this process is connected to is given up, on a time of its own."""

from collections.abc import Callable
from typing import Any, cast

import pytest

from harness_actors.actors.joining import current
from harness_actors.actors.joining.connection import OwnRay
from harness_actors.actors.joining.current import HEAD_AWAY_S

Signs = Callable[[float], str]
"""What the head shows at a time, in seconds."""


class Time:
    """Stands still until somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Watched:
    """A connection as its watcher knows it. Its process disconnects at a time, in seconds."""

    raylet = None
    address = "127.0.0.1:6379"

    def __init__(self, time: Time, until_s: float, own: OwnRay | None) -> None:
        self._time = time
        self._until_s = until_s
        self.own = own
        self.problem: str | None = None
        self.lost_at: float | None = None

    @property
    def is_current(self) -> bool:
        return self._time.now < self._until_s

    def lose(self, problem: str) -> None:
        self.problem, self.lost_at = problem, self._time.now


Watch = Callable[..., Watched]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Watches a head that shows these signs, to the end."""

    def do_watch(signs: Signs, *, until_s: float = 300.0, own: OwnRay | None = None) -> Watched:
        time = Time()
        monkeypatch.setattr(current, "time", time)
        monkeypatch.setattr(current, "sign_of_head", lambda _: signs(time.now))
        watched = Watched(time, until_s, own)
        current._watch(cast(Any, watched))
        return watched

    return do_watch


@pytest.mark.parametrize("sign", ["silent", "refuses"])
def test_a_head_that_is_away_for_less_than_its_time_is_kept_however_often(
    watch: Watch, sign: str
) -> None:
    def blinks(now: float) -> str:
        return sign if now % (2 * HEAD_AWAY_S) < HEAD_AWAY_S / 2 else "there"

    assert watch(blinks).problem is None


@pytest.mark.parametrize("sign", ["silent", "refuses"])
def test_a_head_that_stays_away_is_given_up(watch: Watch, sign: str) -> None:
    went_at = 5 * HEAD_AWAY_S
    watched = watch(lambda now: "there" if now < went_at else sign)
    assert watched.problem == "nobody answers there any more"
    assert watched.lost_at is not None
    assert HEAD_AWAY_S <= watched.lost_at - went_at <= HEAD_AWAY_S + 2 * current.LOOK_S


def test_the_head_of_our_own_ray_does_not_come_back(watch: Watch) -> None:
    watched = watch(lambda now: "there" if now < 3 else "refuses", own=OwnRay())
    assert (watched.problem, watched.lost_at) == ("its head has ended", 3)


def test_what_keeps_our_own_ray_is_let_go_when_this_process_has_disconnected(watch: Watch) -> None:
    own = OwnRay()
    watched = watch(lambda _: "there", until_s=5, own=own)
    assert watched.problem is None
    assert own.release.is_set()
