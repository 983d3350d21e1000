"""Followers: nothing is lost or told twice, endings are told at once, others gather."""

import asyncio

import pytest

from harness_actors.actors.coordinator import news as rooms
from harness_actors.actors.coordinator.news import (
    KEPT_BYTES,
    KEPT_CHANGES,
    Bulletin,
    events_of,
    results_of,
)
from harness_actors.events import CustomEvent, Event, InputAwaited, RunParked
from harness_actors.messages import Message, ToolCall
from harness_actors.records import CodeStored, RunChanged
from harness_actors.results import HarnessResult, Reason
from harness_actors.state import StateDelta


def a_change(
    number: int = 0,
    *events: Event,
    end: bool = False,
    messages: tuple[Message, ...] = (),
    run_id: str = "run",
) -> RunChanged:
    result = HarnessResult(run_id=run_id, status="done", reason=Reason(kind="completed"))
    return RunChanged(
        run_id=run_id,
        version=number,
        delta=StateDelta(messages=messages, events=events),
        hop=None,
        losses=0,
        end=result if end else None,
        at=float(number),
    )


def publish(bulletin: Bulletin, *changes: RunChanged) -> None:
    first = bulletin.position + 1
    bulletin.publish(changes, list(range(first, first + len(changes))))


async def is_waiting(task: "asyncio.Task[None]") -> bool:
    for _ in range(5):
        await asyncio.sleep(0)
    return not task.done()


def follow(bulletin: Bulletin, cursor: int, **how: bool) -> "asyncio.Task[None]":
    return asyncio.ensure_future(bulletin.news(cursor, **how))


CHILD_ENDS = a_change(end=True, run_id="run.1")


async def test_a_follower_that_wants_all_at_once_is_told_of_a_change_as_it_comes() -> None:
    bulletin = Bulletin(0)
    news = follow(bulletin, 0, at_once=True)
    assert await is_waiting(news)
    publish(bulletin, a_change())
    assert not await is_waiting(news)


@pytest.mark.parametrize("next_one", [a_change(1), CHILD_ENDS])
async def test_what_comes_soon_after_that_is_told_together(next_one: RunChanged) -> None:
    bulletin = Bulletin(0)
    publish(bulletin, a_change())
    await follow(bulletin, 0, messages=True)
    news = follow(bulletin, 1, messages=True)
    publish(bulletin, next_one)
    assert await is_waiting(news)
    publish(bulletin, a_change(2))
    async with asyncio.timeout(500 * rooms.APART_S):
        await news
    assert _versions(bulletin, 1) == [next_one.version, 2]


@pytest.mark.parametrize(
    "last", [a_change(end=True), a_change(0, RunParked(turn=1), run_id="run.1")]
)
async def test_that_a_run_leaves_service_waits_for_nothing_there(last: RunChanged) -> None:
    bulletin = Bulletin(0)
    publish(bulletin, a_change())
    await follow(bulletin, 0, messages=True)
    news = follow(bulletin, 1, messages=True)
    publish(bulletin, a_change())
    assert await is_waiting(news)
    publish(bulletin, last)
    assert not await is_waiting(news)


async def test_who_shows_what_models_say_waits_for_nothing_at_all() -> None:
    bulletin = Bulletin(0)
    publish(bulletin, a_change())
    await follow(bulletin, 0, messages=True)
    news = follow(bulletin, 1, messages=True, at_once=True)
    publish(bulletin, a_change())
    assert not await is_waiting(news)


async def test_the_end_of_a_child_is_no_ending_for_who_lets_news_gather() -> None:
    bulletin = Bulletin(0)
    news = follow(bulletin, 0)
    publish(bulletin, CHILD_ENDS)
    assert await is_waiting(news)
    await news


async def test_changes_gather_and_an_ending_is_told_at_once() -> None:
    bulletin = Bulletin(0)
    news = follow(bulletin, 0)
    assert await is_waiting(news)
    publish(bulletin, a_change())
    assert await is_waiting(news), "it waits for company"
    publish(bulletin, a_change(end=True))
    assert not await is_waiting(news)


async def test_changes_after_an_ending_gather_as_before() -> None:
    bulletin = Bulletin(0)
    publish(bulletin, a_change(end=True))
    await follow(bulletin, 0)
    news = follow(bulletin, 1)
    publish(bulletin, a_change())
    _, waiting = await asyncio.wait((news,), timeout=rooms.GATHER_S / 2)
    assert waiting, "longer than for another ending"
    await news


async def test_endings_in_a_row_are_told_together() -> None:
    bulletin = Bulletin(0)
    publish(bulletin, a_change(end=True))
    await follow(bulletin, 0)
    second = follow(bulletin, 1)
    publish(bulletin, a_change(end=True))
    assert await is_waiting(second), "another may come"
    publish(bulletin, a_change(end=True))
    async with asyncio.timeout(500 * rooms.GATHER_ENDS_S):
        await second
    assert _versions(bulletin, 1) == [0, 0]


@pytest.mark.parametrize("event", [RunParked(turn=1), InputAwaited(turn=1, questions=())])
async def test_that_a_run_leaves_service_is_told_at_once(event: Event) -> None:
    bulletin = Bulletin(0)
    news = follow(bulletin, 0)
    assert await is_waiting(news)
    publish(bulletin, a_change(0, event))
    assert not await is_waiting(news)


async def test_changes_without_an_ending_are_told_after_a_while() -> None:
    bulletin = Bulletin(0)
    news = follow(bulletin, 0)
    publish(bulletin, a_change())
    async with asyncio.timeout(50 * rooms.GATHER_S):
        await news


async def test_what_came_between_two_calls_is_not_missed() -> None:
    bulletin = Bulletin(0)
    publish(bulletin, a_change(end=True))
    assert not await is_waiting(follow(bulletin, 0))
    assert not await is_waiting(follow(bulletin, 0, at_once=True))


async def test_an_ending_between_two_calls_is_told_at_once_after_other_changes() -> None:
    bulletin = Bulletin(0)
    publish(bulletin, a_change(), a_change(end=True), a_change())
    assert not await is_waiting(follow(bulletin, 0))


async def test_all_followers_are_told() -> None:
    bulletin = Bulletin(0)
    followers = [follow(bulletin, 0, at_once=number % 2 == 0) for number in range(10)]
    assert await is_waiting(followers[0])
    publish(bulletin, a_change(end=True))
    async with asyncio.timeout(1):
        await asyncio.gather(*followers)


async def test_a_slow_follower_loses_nothing_to_a_fast_one() -> None:
    bulletin = Bulletin(0)

    async def read(pauses: int) -> list[int]:
        cursor, seen = 0, []
        while cursor < 30:
            await bulletin.news(cursor, at_once=True)
            notices = bulletin.after(cursor)
            assert notices is not None
            seen += [notice.change.version for notice in notices]
            cursor = bulletin.position
            for _ in range(pauses):
                await asyncio.sleep(0)
        return seen

    readers = [asyncio.ensure_future(read(pauses)) for pauses in (0, 3, 7)]
    for number in range(30):
        publish(bulletin, a_change(number))
        await asyncio.sleep(0)
    async with asyncio.timeout(1):
        assert await asyncio.gather(*readers) == [list(range(30))] * 3


async def test_waking_lets_everybody_look_again() -> None:
    bulletin = Bulletin(0)
    followers = [follow(bulletin, 0, at_once=at_once) for at_once in (True, False)]
    assert await is_waiting(followers[0])
    bulletin.wake()
    async with asyncio.timeout(1):
        await asyncio.gather(*followers)


async def test_a_follower_that_went_away_does_not_disturb_the_others() -> None:
    bulletin = Bulletin(0)
    gone, stays = follow(bulletin, 0, at_once=True), follow(bulletin, 0, at_once=True)
    assert await is_waiting(stays)
    gone.cancel()
    publish(bulletin, a_change())
    assert not await is_waiting(stays)


async def test_only_what_is_after_the_cursor_is_given() -> None:
    bulletin = Bulletin(10)
    publish(bulletin, *(a_change(number) for number in range(5)))
    assert bulletin.position == 15
    assert _versions(bulletin, 10) == [0, 1, 2, 3, 4]
    assert _versions(bulletin, 13) == [3, 4]
    assert _versions(bulletin, 15) == []


def _versions(bulletin: Bulletin, cursor: int) -> list[int] | None:
    notices = bulletin.after(cursor)
    return None if notices is None else [notice.change.version for notice in notices]


async def test_what_happened_before_it_began_must_be_read_from_the_journal() -> None:
    bulletin = Bulletin(10)
    assert bulletin.after(9) is None
    assert bulletin.after(10) == []


async def test_memory_is_bounded_and_what_fell_out_is_known_to_be_missing() -> None:
    bulletin = Bulletin(0)
    publish(bulletin, *(a_change(number) for number in range(KEPT_CHANGES + 7)))
    assert bulletin.after(6) is None
    kept = _versions(bulletin, 7)
    assert kept is not None
    assert (len(kept), kept[0]) == (KEPT_CHANGES, 7)


async def test_entries_that_are_no_changes_move_the_position_only() -> None:
    bulletin = Bulletin(0)
    bulletin.publish([CodeStored(code="c", blob=b"")], [3])
    assert bulletin.position == 3
    assert bulletin.after(0) == []


def test_events_come_in_order_with_those_of_their_messages_where_asked() -> None:
    bulletin = Bulletin(0)
    call = Message.assistant("hm", [ToolCall("c", "f", "{}")])
    one, two = CustomEvent(name="one"), CustomEvent(name="two")
    publish(bulletin, a_change(1, one, messages=(call,)), a_change(2, two))
    notices = bulletin.after(0)
    assert notices is not None
    plain = events_of(notices, messages=False)
    assert [event.event for event in plain] == [one, two]
    assert [(event.position, event.at, event.run_id) for event in plain] == [
        (1, 1.0, "run"),
        (2, 2.0, "run"),
    ]
    with_messages = events_of(notices, messages=True)
    assert [event.event.type for event in with_messages] == [
        "agent_response",
        "tool_called",
        "custom_event",
        "custom_event",
    ]


def test_results_are_those_of_the_changes_that_end_a_run() -> None:
    bulletin = Bulletin(0)
    publish(bulletin, a_change(1), a_change(2, end=True))
    notices = bulletin.after(0)
    assert notices is not None
    assert list(results_of(notices)) == ["run"]
    assert not results_of(notices[:1])


def test_large_messages_are_held_up_to_a_number_of_bytes() -> None:
    bulletin = Bulletin(0)
    large = Message.tool_result("call", "x" * (KEPT_BYTES // 4))
    for number in range(10):
        publish(bulletin, a_change(number, messages=(large,)))
    held = bulletin.after(7)
    assert held is not None
    assert [notice.position for notice in held] == [8, 9, 10]
    assert bulletin.after(5) is None, "those are in the journal only"
