"""What the stream actor holds, what a host sends it, and what readers are told."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from harness_actors.actors.text import speaking, streams
from harness_actors.actors.text.speaking import TextSender
from harness_actors.actors.text.streams import Reading, RunOver, Spoken, TextStreams
from harness_actors.errors import ActorLostError


def piece(text: str, *, run_id: str = "run", dropped: int = 0, ended: bool = False) -> Spoken:
    return Spoken(run_id, (1, 1, 1), 1, 1, text, dropped, ended)


def said(reading: Reading) -> str:
    return "".join(spoken.text for spoken in reading.spoken)


async def until(so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not so():  # noqa: ASYNC110 - a timer makes it so
            await asyncio.sleep(0.01)


class Time:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


# ---- the stream actor ----------------------------------------------------------------


async def test_each_reader_goes_on_where_its_cursor_is() -> None:
    stream = TextStreams()
    await stream.receive([piece("one "), piece("two ")])
    first = await stream.read("run", None)
    await stream.receive([piece("three")])

    assert said(first) == "one two "
    assert said(await stream.read("run", first.cursor)) == "three"
    assert said(await stream.read("run", None)) == "one two three"


async def test_a_reader_waits_until_there_is_something() -> None:
    stream = TextStreams()
    reading = asyncio.ensure_future(stream.read("run", None))
    await asyncio.sleep(0)
    await stream.receive([piece("other", run_id="another")])
    await asyncio.sleep(0)
    assert not reading.done()

    await stream.receive([piece("hello")])

    assert said(await reading) == "hello"


async def test_a_slow_reader_is_told_how_much_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEPT_CHARS", 10)
    stream = TextStreams()
    await stream.receive([piece("1234")])
    before = await stream.read("run", None)
    await stream.receive([piece("5678"), piece("9012", dropped=3), piece("345678")])

    behind = await stream.read("run", before.cursor)

    assert said(behind) == "9012345678"
    assert behind.missed == 4
    assert [spoken.dropped for spoken in behind.spoken] == [3, 0]
    assert stream.held == {"run": 10}


async def test_all_runs_together_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "KEPT_CHARS_OF_ALL", 100)
    stream = TextStreams()
    for number in range(30):
        await stream.receive([piece("x" * 10, run_id=f"run {number % 3}")])

    assert 90 <= sum(stream.held.values()) <= 100


async def test_text_that_nobody_comes_for_is_dropped_and_not_wanted_any_more() -> None:
    now = Time()
    stream = TextStreams(unread_s=0.02, monotonic=now)
    await stream.receive([piece("hello")])
    cursor = (await stream.read("run", None)).cursor
    now.now = 1.0
    await until(lambda: not stream.held)

    assert await stream.receive([piece("more"), piece("and more")]) == ("run",)
    assert stream.held == {}

    back = await stream.read("run", cursor)
    assert await stream.receive([piece("again")]) == ()
    again = await stream.read("run", back.cursor)
    assert (back.missed, said(again), again.missed) == (None, "again", 0)


async def test_text_that_was_dropped_takes_no_room_from_what_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "KEPT_CHARS_OF_ALL", 100)
    now = Time()
    stream = TextStreams(unread_s=0.02, monotonic=now)
    for number in range(3):
        await stream.receive([piece("x" * 90, run_id=f"run {number}")])
        assert stream.held[f"run {number}"] == 90
        now.now += 1.0
        await until(lambda: not stream.held)


async def test_a_run_that_is_over_and_read_by_nobody_leaves_nothing() -> None:
    now = Time()
    stream = TextStreams(unread_s=0.02, monotonic=now)
    await stream.receive([piece("hello", ended=True), RunOver("run")])
    now.now = 1.0
    await until(lambda: not stream.held)


async def test_more_readers_than_can_wait_are_answered_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "WAITING_READERS", 2)
    stream = TextStreams()
    waiting = [asyncio.ensure_future(stream.read("run", None)) for _ in range(2)]
    await asyncio.sleep(0)

    assert (await stream.read("run", None)).spoken == ()

    await stream.receive([piece("hello")])
    assert [said(await reading) for reading in waiting] == ["hello", "hello"]


# ---- the host's end ------------------------------------------------------------------


class Target:
    """A stream actor that takes what it gets when it is let."""

    def __init__(self) -> None:
        self.batches: list[Sequence[Spoken | RunOver]] = []
        self.unwanted: tuple[str, ...] = ()
        self.failure: Exception | None = None
        self.lets = asyncio.Event()
        self.lets.set()
        self.got = asyncio.Event()

    async def reach(self, name: str) -> "Target":
        return self

    async def receive(self, batch: Sequence[Spoken | RunOver]) -> tuple[str, ...]:
        self.batches.append(batch)
        self.got.set()
        await self.lets.wait()
        if self.failure is not None:
            raise self.failure
        return self.unwanted

    async def until_got(self, text: str) -> None:
        async with asyncio.timeout(10):
            while text not in self.text:
                self.got.clear()
                await self.got.wait()

    @property
    def spoken(self) -> list[Spoken]:
        return [one for batch in self.batches for one in batch if isinstance(one, Spoken)]

    @property
    def text(self) -> str:
        return "".join(one.text for one in self.spoken)


async def test_what_is_said_while_a_call_is_in_flight_goes_as_one_with_the_next() -> None:
    target = Target()
    speaker = TextSender(target.reach, lambda _: None).speaker("run", (1, 7))
    target.lets.clear()
    speaker.begin(1, 1)
    speaker.say("first ")
    await target.until_got("first ")
    for number in range(1_000):
        speaker.say(f"{number} ")
    speaker.end()
    target.lets.set()
    await target.until_got("999 ")

    assert len(target.batches) == 2
    assert target.text == "first " + "".join(f"{number} " for number in range(1_000))
    assert target.spoken[-1].ended
    assert {one.answer for one in target.spoken} == {(1, 7, 1)}


async def test_what_does_not_fit_is_dropped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speaking, "WAITING_CHARS", 10)
    target = Target()
    speaker = TextSender(target.reach, lambda _: None).speaker("run", (1, 1))
    target.lets.clear()
    speaker.begin(1, 1)
    speaker.say("a")
    await target.until_got("a")
    for _ in range(5):
        speaker.say("1234")
    target.lets.set()
    await target.until_got("a12341234")
    speaker.say("z")
    await target.until_got("z")
    speaker.say("y")
    await target.until_got("y")

    assert [one.dropped for one in target.spoken] == [0, 0, 12, 0], "told once"


async def test_what_a_dead_stream_actor_did_not_get_is_counted_for_the_next_one() -> None:
    dead, alive = Target(), Target()
    dead.failure = ActorLostError("streams", "it died")

    async def reach(name: str) -> Target:
        return {"first": dead, "second": alive}[name]

    sender = TextSender(reach, lambda _: None)
    sender.follow("first")
    speaker = sender.speaker("run", (1, 1))
    speaker.begin(1, 1)
    speaker.say("lost")
    await dead.until_got("lost")
    speaker.say("again")
    await dead.until_got("again")
    sender.follow("second")
    speaker.say("heard")
    await alive.until_got("heard")

    assert [(one.text, one.dropped) for one in alive.spoken] == [("heard", 9)]


async def test_a_run_that_nobody_reads_is_told_of_and_its_end_is_sent() -> None:
    target = Target()
    target.unwanted = ("run",)
    told: list[str] = []
    sender = TextSender(target.reach, told.append)
    speaker = sender.speaker("run", (1, 1))
    speaker.begin(1, 1)
    speaker.say("hello")
    sender.over("run")
    sender.over("one that said nothing")
    await target.until_got("hello")
    await until(lambda: bool(told))

    assert told == ["run"]
    assert target.batches[-1][-1] == RunOver("run")
