"""What is done about lost Rays, and how often; connecting is made up here."""

import asyncio
from collections.abc import Callable

import pytest

from harness_actors.actors.joining import losses
from harness_actors.actors.joining.connection import Connection, OwnRay
from harness_actors.actors.joining.losses import Losses
from harness_actors.actors.joining.starter import on_starter_thread
from harness_actors.errors import ActorLostError, CellError

NO_RAY = CellError("a Ray of our own", "no memory is left")
OWN = OwnRay()


def a_lost_ray(
    *, own: OwnRay | None = OWN, is_ours: bool = True, is_left: bool = True
) -> Connection:
    """It is dead, and was left, or is about to be."""
    lost = Connection("lost", "10.0.0.1:6379", None, is_ours=is_ours, own=own)
    lost.problem = "its head has ended"
    if is_left:
        lost.left.set_result(None)
    return lost


def connecting(
    *outcomes: Connection | CellError,
) -> tuple[Callable[[str | None], Connection], list[str | None]]:
    """Connects as it is told, the last for ever; and the addresses that were asked for."""
    coming, asked = list(outcomes), list[str | None]()

    def connect(address: str | None, *, is_named: bool = True) -> Connection:
        asked.append(address)
        outcome = coming.pop(0) if len(coming) > 1 else coming[0]
        if isinstance(outcome, CellError):
            raise outcome
        return outcome

    return connect, asked


async def test_a_ray_of_our_own_is_started_again_three_times_and_no_more() -> None:
    told: list[str] = []
    connect, asked = connecting(fresh := a_lost_ray())
    rays = Losses(told.append, connect)

    for _ in range(3):
        assert await rays.replace(a_lost_ray()) is fresh
    with pytest.raises(ActorLostError, match=r"nothing was done since it was lost 3 times before"):
        await rays.replace(a_lost_ray())

    assert asked == ["local"] * 3
    assert told == [
        "Ray was lost: its head has ended; another one is started, and what was in progress goes "
        f"on (attempt {attempt} of 3)"
        for attempt in (1, 2, 3)
    ]


@pytest.mark.parametrize("own", [OWN, None], ids=["our own", "one that was there before"])
async def test_what_is_left_of_a_ray_is_ended_before_there_is_another(own: OwnRay | None) -> None:
    told: list[str] = []
    connect, asked = connecting(fresh := a_lost_ray())
    lost = a_lost_ray(own=own, is_left=False)

    replacing = asyncio.create_task(Losses(told.append, connect).replace(lost))
    for _ in range(10):
        await asyncio.sleep(0)
    # Whatever the thread had to do that connects is done.
    await on_starter_thread(lambda: None)
    assert (len(told), asked) == (1, [])
    lost.left.set_result(None)

    async with asyncio.timeout(10):
        assert await replacing is fresh


async def test_work_between_losses_makes_them_good() -> None:
    connect, asked = connecting(a_lost_ray())
    rays = Losses(lambda _: None, connect)

    for _ in range(9):
        await rays.replace(a_lost_ray())
        rays.made_good()

    assert len(asked) == 9


async def test_one_that_does_not_come_up_is_an_attempt_like_one_that_is_lost_at_once() -> None:
    told: list[str] = []
    connect, asked = connecting(NO_RAY)

    async with asyncio.timeout(10):
        with pytest.raises(CellError, match="no memory is left"):
            await Losses(told.append, connect).replace(a_lost_ray())

    assert len(asked) == 3
    assert [line.rpartition(" (")[2] for line in told] == [f"attempt {n} of 3)" for n in (1, 2, 3)]


async def test_a_ray_that_was_there_before_is_waited_for_at_its_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(losses, "AGAIN_S", 0.0)
    told: list[str] = []
    connect, asked = connecting(NO_RAY, NO_RAY, back := a_lost_ray())

    assert await Losses(told.append, connect).replace(a_lost_ray(own=None)) is back

    assert asked == ["10.0.0.1:6379"] * 3
    assert told == [
        "Ray at 10.0.0.1:6379 was lost: its head has ended; waiting until it is back, for 60 s",
        "Ray is back, and what was in progress goes on",
    ]


@pytest.mark.parametrize("is_named", [True, False])
async def test_only_a_ray_that_the_user_has_named_may_come_back_as_anybodys(is_named: bool) -> None:
    asked: list[bool] = []
    lost = a_lost_ray(own=None)
    lost.is_named = is_named

    def connect(_address: str | None, *, is_named: bool = True) -> Connection:
        asked.append(is_named)
        return a_lost_ray()

    await Losses(lambda _: None, connect).replace(lost)

    assert asked == [is_named]


async def test_a_ray_that_does_not_come_back_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "RETURNS_WITHIN_S", 0.0)
    connect, _ = connecting(NO_RAY)

    with pytest.raises(ActorLostError, match=r"not back after 0 s; start it again if it is yours"):
        await Losses(lambda _: None, connect).replace(a_lost_ray(own=None))


async def test_the_connection_of_a_program_is_its_own() -> None:
    connect, asked = connecting(a_lost_ray())

    with pytest.raises(ActorLostError, match=r"call ray.shutdown\(\), start it again"):
        await Losses(lambda _: None, connect).replace(a_lost_ray(is_ours=False))

    assert asked == []


async def test_the_cell_of_another_process_is_not_ours_to_move() -> None:
    connect, asked = connecting(a_lost_ray())

    with pytest.raises(ActorLostError, match="its head has ended; start it again"):
        await Losses(None, connect).replace(a_lost_ray())

    assert asked == []
