"""What the stream actor holds, what a host sends it, and what readers are told."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar, TypeVarTuple

import pytest

from harness_actors.actors.hosted import ActorCall
from harness_actors.actors.text import speaking, streams
from harness_actors.actors.text.speaking import TextSender
from harness_actors.actors.text.streams import Reading, RunOver, Spoken, TextStreams
from harness_actors.errors import ActorLostError
from harness_actors.events import ToolCalled

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
CALLED = ToolCalled(call_id="1", tool_name="look", arguments="{}")


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

    after = await stream.read("run", before.cursor)

    assert said(after) == "9012345678"
    assert after.missed == 4
    assert [spoken.dropped for spoken in after.spoken] == [3, 0]
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


async def test_pieces_are_bounded_in_number_and_what_was_dropped_before_them_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "KEPT_PIECES", 3)
    stream = TextStreams()
    begin = (await stream.read("run", (0, 0, 0))).cursor
    await stream.receive([piece("a"), piece("b", dropped=5), piece("c")])
    assert (await stream.read("run", begin)).missed == 0
    await stream.receive([piece("d"), piece("e")])
    reading = await stream.read("run", begin)
    assert (said(reading), reading.missed) == ("cde", 7)


async def test_a_reader_that_has_heard_all_waits_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "WAITING_READERS", 1)
    stream = TextStreams()
    await stream.receive([piece("0")])
    cursor = (await stream.read("run", None)).cursor
    for number in range(1, 4):
        reading = asyncio.ensure_future(stream.read("run", cursor))
        await asyncio.sleep(0.01)
        assert not reading.done()
        await stream.receive([piece(str(number))])
        assert said(await reading) == str(number)
        cursor = reading.result().cursor


async def test_what_somebody_waits_for_is_kept_and_dropped_once_nobody_does() -> None:
    now = Time()
    stream = TextStreams(unread_s=0.02, monotonic=now)
    reading = asyncio.ensure_future(stream.read("run", None))
    await asyncio.sleep(0)
    now.now = 1.0
    await asyncio.sleep(0.1)
    assert await stream.receive([piece("hello")]) == ()
    assert said(await reading) == "hello"
    now.now += 0.019
    await asyncio.sleep(0.1)
    assert stream.held == {"run": 5}, "it was read just now"
    now.now += 0.01
    await until(lambda: not stream.held)


async def test_a_run_that_is_over_may_speak_again_when_it_is_taken_up() -> None:
    now = Time()
    stream = TextStreams(unread_s=0.02, monotonic=now)
    await stream.receive([piece("hello")])
    now.now = 1.0
    await until(lambda: not stream.held)
    assert await stream.receive([piece("unread")]) == ("run",)
    assert await stream.receive([RunOver("run"), piece("again")]) == ()
    assert stream.held == {"run": 5}


async def test_of_so_many_runs_that_nobody_reads_the_newest_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "REMEMBERED_RUNS", 2)
    now = Time()
    stream = TextStreams(unread_s=0.02, monotonic=now)
    for number in range(3):
        await stream.receive([piece("x", run_id=f"run{number}")])
        now.now += 1.0
        await until(lambda: not stream.held)
    told = await stream.receive([piece("x", run_id=f"run{number}") for number in range(3)])
    assert told == ("run1", "run2")


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

    async def call(self, method: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        answer: T = await getattr(self, method.__name__)(*arguments)
        return answer

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
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(target.batches) == 1, "what is said later would overtake it"
    target.lets.set()
    await target.until_got("999 ")

    assert len(target.batches) == 2
    assert target.text == "first " + "".join(f"{number} " for number in range(1_000))
    assert target.spoken[-1].ended
    assert {one.answer for one in target.spoken} == {(1, 7, 1)}


async def test_who_has_sent_all_sends_again_when_there_is_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(speaking, "GATHER_S", 0.0)
    target = Target()
    sender = TextSender(target.reach, lambda _: None)
    speaker = sender.speaker("run", (1, 1))
    speaker.begin(1, 1)
    for words in ("one ", "two "):
        speaker.say(words)
        await target.until_got(words)
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
    assert [one.text for one in target.spoken] == ["one ", "two "]

    sender.close()
    speaker.say("three")
    sender.over("run")
    assert asyncio.all_tasks() == {asyncio.current_task()}, "nothing is sent any more"


async def test_a_stream_actor_is_looked_for_once_however_many_hops_name_it() -> None:
    target = Target()
    looked_for: list[str] = []

    async def reach(name: str) -> Target:
        looked_for.append(name)
        return target

    sender = TextSender(reach, lambda _: None)
    for words in ("one", "two"):
        sender.follow("first")
        speaker = sender.speaker(words, (1, 1))
        speaker.begin(1, 1)
        speaker.say(words)
        await target.until_got(words)
    sender.close()
    assert looked_for == ["first"]


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


def a_speaker() -> speaking.Speaker:
    return TextSender(Target().reach, lambda _: None).speaker("run", (1, 7))


async def test_what_is_said_belongs_to_the_answer_in_which_it_is() -> None:
    speaker = a_speaker()
    speaker.begin(1, 1)
    speaker.say("one")
    speaker.begin(1, 2)
    speaker.end()
    speaker.begin(1, 3)
    speaker.say("")
    speaker.say("three")
    speaker.end()
    assert [(one.place, one.text, one.ended) for one in speaker.take()] == [
        ((1, 1), "one", False),
        ((1, 3), "three", True),
    ]
    assert speaker.take() == []


async def test_an_event_stands_after_the_text_before_it() -> None:
    speaker = a_speaker()
    speaker.begin(1, 1)
    speaker.say("I look")
    speaker.announce(1, 1, CALLED)
    # Whoever began to read after the next answer has not heard it begin.
    speaker.announce(1, 2, CALLED)
    first, second, third = speaker.take()
    assert (first.text, first.event) == ("I look", None)
    assert (second.place, second.event, second.answer) == ((1, 1), CALLED, first.answer)
    assert (third.place, third.event) == ((1, 2), CALLED)
    assert third.answer > first.answer


async def test_who_is_closed_says_what_waits_and_nothing_more() -> None:
    speaker = a_speaker()
    speaker.begin(1, 1)
    speaker.say("heard")
    speaker.close()
    speaker.say(" not heard")
    speaker.end()
    speaker.announce(1, 1, CALLED)
    assert [(one.text, one.ended, one.event) for one in speaker.take()] == [("heard", False, None)]


async def test_as_much_waits_as_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speaking, "WAITING_CHARS", 10)
    speaker = a_speaker()
    speaker.begin(1, 1)
    for _ in range(2):
        for text in ("12345", "67890", "x"):
            speaker.say(text)
        assert "".join(one.text for one in speaker.take()) == "1234567890"


@pytest.mark.parametrize("hurries", ["the first words", "the end", "an event"])
async def test_what_hurries_leaves_at_once(hurries: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speaking, "GATHER_S", 60.0)
    target = Target()
    sender = TextSender(target.reach, lambda _: None)
    speaker = sender.speaker("run", (1, 1))
    speaker.begin(1, 1)
    speaker.say("one")
    await target.until_got("one")
    if hurries == "the first words":
        speaker.begin(1, 2)
    speaker.say(" two")
    if hurries == "the end":
        speaker.end()
    elif hurries == "an event":
        speaker.announce(1, 1, CALLED)
    await target.until_got("one two")
    sender.close()
