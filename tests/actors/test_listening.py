"""Where text stands among events, and what is told where it does not come."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, TypeVar, TypeVarTuple, cast

import pytest

from harness_actors.actors.hosted import ActorCall
from harness_actors.actors.runtime import Runtime, TextCursor, Texts
from harness_actors.actors.text import hearing
from harness_actors.actors.text.hearing import HeardItem, Item, with_texts
from harness_actors.actors.text.listening import Listener
from harness_actors.actors.text.streams import Spoken, TextStreams
from harness_actors.errors import ActorLostError
from harness_actors.events import (
    AgentResponse,
    Event,
    RoundCompleted,
    RunEvent,
    RunResumed,
    RunStarted,
    TextDelta,
    TextGap,
    ToolCalled,
    ToolReturned,
    TurnStarted,
)
from harness_actors.results import HarnessResult, Reason

STARTED = RunStarted(task_preview="go", stop_policy="interactive", max_turns=1)
TURN = TurnStarted(turn=1, max_turns=1)
ANSWERED = AgentResponse(text="one two", tool_names=())
CALLS = AgentResponse(text="", tool_names=("look", "look"))
FIRST = ToolCalled(call_id="1", tool_name="look", arguments="{}")
SECOND = ToolCalled(call_id="2", tool_name="look", arguments="{}")
RETURNED = ToolReturned(call_id="1", text="seen", is_error=False)


def completed(round_: int) -> RoundCompleted:
    return RoundCompleted(
        turn=1,
        round=round_,
        input_tokens=1,
        output_tokens=1,
        cached_tokens=0,
        cost_usd=0.0,
        tool_calls=0,
    )


def spoken(text: str, *, round_: int = 1, answer: int = 1, ended: bool = False) -> Texts:
    piece = Spoken("run", (1, 1, answer), 1, round_, text, 0, ended)
    return Texts(cursor=None, spoken=(piece,))


def announced(*events: Event, round_: int = 1, answer: int = 1) -> Texts:
    pieces = [Spoken("run", (1, 1, answer), 1, round_, "", event=event) for event in events]
    return Texts(cursor=None, spoken=tuple(pieces))


class Told:
    """The part of a runtime that tells texts: these, and then nothing more."""

    def __init__(self, *texts: Texts) -> None:
        self._texts = list(texts)
        self.begin = asyncio.Event()
        self.told = asyncio.Event()

    async def texts(self, run_id: str, cursor: TextCursor | None = None) -> Texts:
        await self.begin.wait()
        if self._texts:
            return self._texts.pop(0)
        self.told.set()
        return await asyncio.Event().wait()  # type: ignore[return-value]


async def heard(told: Told, *events: Event, result: HarnessResult | None = None) -> list[HeardItem]:
    """What is told of a run whose text comes after its first event, and before all others."""

    async def items() -> AsyncGenerator[Item]:
        for event in events:
            yield RunEvent(position=1, run_id="run", at=0.0, event=event)
            told.begin.set()
            await told.told.wait()
        if result is not None:
            yield result

    # Of the port, only this is called here.
    runtime = cast(Runtime, told)
    return [item async for item in with_texts(runtime, "run", items())]


def shown(items: Sequence[HeardItem]) -> list[Any]:
    """Texts, gaps as what they say is missing, and events as their classes."""
    found: list[Any] = []
    for item in items:
        if isinstance(item, TextDelta):
            found.append((item.attempt, item.text))
        elif isinstance(item, TextGap):
            found.append(item.missed)
        elif isinstance(item, RunEvent):
            found.append(type(item.event))
    return found


async def test_text_that_is_ahead_of_the_disk_waits_for_the_events_before_it() -> None:
    told = Told(spoken("one two", ended=True), spoken("three", round_=2, answer=2, ended=True))

    items = await heard(told, STARTED, TURN, ANSWERED, completed(1), ANSWERED, completed(2))

    assert shown(items) == [
        RunStarted,
        TurnStarted,
        (1, "one two"),
        AgentResponse,
        RoundCompleted,
        (1, "three"),
        AgentResponse,
        RoundCompleted,
    ]


async def test_text_that_no_event_will_tell_of_any_more_comes_before_the_result() -> None:
    told = Told(spoken("one two", ended=True), spoken("three", round_=2, answer=2))
    over = HarnessResult(run_id="run", status="cancelled", reason=Reason(kind="user"), turn_count=1)

    items = await heard(told, STARTED, TURN, result=over)

    assert shown(items) == [RunStarted, TurnStarted, (1, "one two"), (1, "three")]
    assert items[-1] is over


async def test_what_is_said_before_the_first_event_waits_for_its_turn_to_begin() -> None:
    told = Told(spoken("one two", ended=True))
    told.begin.set()

    items = await heard(told, STARTED, TURN, ANSWERED)

    assert shown(items) == [RunStarted, TurnStarted, (1, "one two"), AgentResponse]


async def test_a_call_is_told_when_it_begins_and_not_again_with_its_round() -> None:
    told = Told(announced(CALLS, FIRST), announced(SECOND))

    items = await heard(told, STARTED, TURN, CALLS, FIRST, SECOND, RETURNED, completed(1))

    events = [(item.position, item.event) for item in items if isinstance(item, RunEvent)]
    assert events == [
        *((1, event) for event in (STARTED, TURN)),
        *((0, event) for event in (CALLS, FIRST, SECOND)),
        *((1, event) for event in (RETURNED, completed(1))),
    ]


async def test_a_call_of_the_next_round_waits_for_the_end_of_the_one_before() -> None:
    told = Told(announced(CALLS, FIRST), announced(CALLS, FIRST, round_=2, answer=2))

    one = (CALLS, FIRST, RETURNED)
    items = await heard(told, STARTED, TURN, *one, completed(1), *one, completed(2))

    events = [item.event for item in items if isinstance(item, RunEvent)]
    assert events == [STARTED, TURN, *one, completed(1), *one, completed(2)]


async def test_a_call_of_a_round_that_was_lost_is_told_again_when_it_is_made_again() -> None:
    told = Told(announced(CALLS, FIRST, SECOND))
    again = replace(FIRST, arguments='{"topic": 1}')

    items = await heard(
        told, STARTED, TURN, RunResumed(turn=1), CALLS, again, SECOND, RETURNED, completed(1)
    )

    events = [item.event for item in items if isinstance(item, RunEvent)]
    assert events[:5] == [STARTED, TURN, CALLS, FIRST, SECOND]
    assert events[5:] == [RunResumed(turn=1), CALLS, again, SECOND, RETURNED, completed(1)]


async def test_a_round_that_was_cut_after_its_record_ends_with_its_repair() -> None:
    told = Told(
        spoken("one two", ended=True),
        spoken("three", round_=2, answer=2, ended=True),
        announced(FIRST, round_=2, answer=2),
    )
    again = RunResumed(turn=1)

    items = await heard(
        told,
        *(STARTED, TURN, ANSWERED, FIRST, SECOND),
        # The outcome of the one is not known; the other may be made again, and is.
        *(RETURNED, again, replace(RETURNED, call_id="2")),
        *(ANSWERED, FIRST, RETURNED, completed(2)),
    )

    assert shown(items) == [
        *(RunStarted, TurnStarted, (1, "one two"), AgentResponse, ToolCalled, ToolCalled),
        *(ToolReturned, RunResumed, ToolReturned, (1, "three"), ToolCalled),
        *(AgentResponse, ToolReturned, RoundCompleted),
    ]


async def test_what_was_told_of_a_call_that_is_another_by_its_record_does_not_stand() -> None:
    told = Told(announced(CALLS, FIRST))
    other = replace(FIRST, arguments='{"topic": 1}')

    items = await heard(told, STARTED, TURN, CALLS, other, RETURNED, completed(1))

    events = [item.event for item in items if isinstance(item, RunEvent)]
    assert events == [STARTED, TURN, CALLS, FIRST, other, RETURNED, completed(1)]


@pytest.mark.virtual_time
async def test_an_answer_whose_text_does_not_come_is_a_gap_and_keeps_nobody_waiting() -> None:
    told = Told(spoken("one "))

    began = asyncio.get_running_loop().time()
    items = await heard(told, STARTED, TURN, ANSWERED, completed(1), ANSWERED, completed(2))

    assert shown(items) == [
        RunStarted,
        TurnStarted,
        (1, "one "),
        None,
        AgentResponse,
        RoundCompleted,
        None,
        AgentResponse,
        RoundCompleted,
    ]
    waited_s = asyncio.get_running_loop().time() - began
    assert waited_s == pytest.approx(hearing.TEXT_WAIT_S), "in vain once, and not once an answer"


async def test_how_much_is_missing_is_told_where_it_is() -> None:
    lost = replace(spoken("three ").spoken[0], dropped=3)
    told = Told(
        spoken("one "),
        replace(spoken("two "), missed=7),
        replace(spoken("", ended=True), spoken=(lost,)),
        replace(spoken("four", ended=True), missed=None),
        # Between two answers nobody knows that anything is.
        replace(spoken("five", round_=2, answer=2, ended=True), missed=None),
    )

    items = await heard(told, STARTED, TURN, ANSWERED, completed(1), ANSWERED)

    answer = (1, "one "), 7, (1, "two "), 3, (1, "three "), None, (1, "four")
    assert shown(items) == [
        *(RunStarted, TurnStarted, *answer, AgentResponse, RoundCompleted),
        *((1, "five"), AgentResponse),
    ]


async def test_whoever_begins_to_listen_in_a_round_hears_the_answer_that_is_not_on_disk() -> None:
    told = Told(spoken("one", ended=True))
    told.begin.set()
    before = [
        RunEvent(position=position, run_id="run", at=0.0, event=event)
        for position, event in enumerate((STARTED, TURN), start=1)
    ]

    async def items() -> AsyncGenerator[Item]:
        yield RunEvent(position=3, run_id="run", at=0.0, event=ANSWERED)

    found = [item async for item in with_texts(cast(Runtime, told), "run", items(), before)]
    assert shown(found) == [(1, "one"), AgentResponse]


async def test_each_answer_whose_text_is_late_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hearing, "TEXT_WAIT_S", 0.5)

    class Late(Told):
        """Each text comes a while after the event that tells of it."""

        async def texts(self, run_id: str, cursor: TextCursor | None = None) -> Texts:
            await asyncio.sleep(0.3)
            if self._texts:
                return self._texts.pop(0)
            return await asyncio.Event().wait()  # type: ignore[return-value]

    answers = [
        spoken(word, round_=number, answer=number, ended=True)
        for number, word in enumerate(("one", "two", "three"), start=1)
    ]
    told = Late(*answers)
    told.told.set()
    rounds = [event for number in (1, 2, 3) for event in (ANSWERED, completed(number))]

    items = await heard(told, STARTED, TURN, *rounds)

    texts = [item for item in shown(items) if not isinstance(item, type)]
    assert texts == [(1, "one"), (1, "two"), (1, "three")]


@pytest.mark.virtual_time
async def test_where_text_comes_again_after_a_gap_what_is_late_is_waited_for_again() -> None:
    class Slow(Told):
        """Each text comes twice as long after the one before it as an answer waits."""

        async def texts(self, run_id: str, cursor: TextCursor | None = None) -> Texts:
            await asyncio.sleep(2 * hearing.TEXT_WAIT_S)
            return await super().texts(run_id, cursor)

    told = Slow(
        spoken("two", round_=2, answer=2, ended=True),
        spoken("three", round_=3, answer=3, ended=True),
    )
    told.begin.set()

    async def items() -> AsyncGenerator[Item]:
        for event in (TURN, ANSWERED, completed(1)):
            yield RunEvent(position=1, run_id="run", at=0.0, event=event)
        # Then the second text is there, and the third one is late by half of what is waited.
        await asyncio.sleep(2.5 * hearing.TEXT_WAIT_S)
        for event in (ANSWERED, completed(2), ANSWERED):
            yield RunEvent(position=1, run_id="run", at=0.0, event=event)

    found = [item async for item in with_texts(cast(Runtime, told), "run", items())]

    assert shown(found) == [
        *(TurnStarted, None, AgentResponse, RoundCompleted),
        *((1, "two"), AgentResponse, RoundCompleted),
        *((1, "three"), AgentResponse),
    ]


@pytest.mark.virtual_time
async def test_text_that_comes_behind_its_answer_is_not_told_any_more() -> None:
    class Late(Told):
        """The rest of the first text comes behind the event that tells of the whole answer."""

        def __init__(self, *texts: Texts) -> None:
            super().__init__(*texts)
            self.answered = asyncio.Event()

        async def texts(self, run_id: str, cursor: TextCursor | None = None) -> Texts:
            if len(self._texts) == 1:
                await self.answered.wait()
            return await super().texts(run_id, cursor)

    rest = spoken("two", ended=True)
    next_one = spoken("three", round_=2, answer=2, ended=True)
    told = Late(spoken("one "), replace(rest, spoken=(*rest.spoken, *next_one.spoken)))

    async def items() -> AsyncGenerator[Item]:
        told.begin.set()
        for event in (STARTED, TURN, ANSWERED, completed(1)):
            yield RunEvent(position=1, run_id="run", at=0.0, event=event)
        told.answered.set()
        await told.told.wait()
        yield RunEvent(position=1, run_id="run", at=0.0, event=ANSWERED)

    items_told = [item async for item in with_texts(cast(Runtime, told), "run", items())]

    told_with_the_answer = (1, "one "), None, AgentResponse, RoundCompleted
    assert shown(items_told) == [
        *(RunStarted, TurnStarted, *told_with_the_answer),
        *((1, "three"), AgentResponse),
    ]


@pytest.mark.virtual_time
async def test_where_the_cell_is_gone_answers_are_told_without_their_text_and_at_once() -> None:
    class Gone(Told):
        """A cell that is lost behind its first text."""

        async def texts(self, run_id: str, cursor: TextCursor | None = None) -> Texts:
            if self._texts:
                return await super().texts(run_id, cursor)
            self.told.set()
            raise ActorLostError("the coordinator", "killed")

    began = asyncio.get_running_loop().time()
    items = await heard(Gone(spoken("one ")), STARTED, TURN, ANSWERED, completed(1))

    expected = [RunStarted, TurnStarted, (1, "one "), None, AgentResponse, RoundCompleted]
    assert shown(items) == expected
    assert asyncio.get_running_loop().time() == began, "nobody is waited for who cannot come"


@pytest.mark.virtual_time
async def test_only_an_answer_that_has_text_is_waited_for() -> None:
    told = Told()
    told.begin.set()
    result = HarnessResult(run_id="run", status="done", reason=Reason(kind="completed", message=""))

    async def items() -> AsyncGenerator[Item]:
        for event in (STARTED, TURN, CALLS, FIRST, RETURNED, completed(1)):
            yield RunEvent(position=1, run_id="run", at=0.0, event=event)
        yield result

    began = asyncio.get_running_loop().time()
    heard_items = [item async for item in with_texts(cast(Runtime, told), "run", items())]

    assert heard_items[-1] == result
    assert asyncio.get_running_loop().time() == began


async def test_an_answer_that_begins_again_is_another_attempt_of_its_round() -> None:
    told = Told(spoken("one "), spoken("one ", answer=2), spoken("two", answer=2, ended=True))

    items = await heard(told, STARTED, TURN, ANSWERED)

    assert shown(items) == [
        RunStarted,
        TurnStarted,
        (1, "one "),
        (2, "one "),
        (2, "two"),
        AgentResponse,
    ]


@pytest.mark.parametrize("leaves_at", [RunEvent, TextDelta])
async def test_a_reader_that_leaves_early_leaves_nothing_behind(leaves_at: type) -> None:
    told = Told(spoken("one"))
    ended = asyncio.Event()

    async def items() -> AsyncGenerator[Item]:
        try:
            for event in (STARTED, TURN):
                yield RunEvent(position=1, run_id="run", at=0.0, event=event)
            told.begin.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with asyncio.timeout(20):
        async with aclosing(with_texts(cast(Runtime, told), "run", items())) as heard_items:
            async for item in heard_items:
                if isinstance(item, leaves_at):
                    break
        assert ended.is_set(), "who follows the run parks it now"
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Streams:
    """Where the stream actor is: the newest, if there is one."""

    def __init__(self) -> None:
        self.name = ""
        self._newest = TextStreams()

    def place(self, name: str) -> TextStreams:
        self.name, self._newest = name, TextStreams()
        return self._newest

    async def reach(self, name: str) -> "Streams":
        return self

    async def call(self, method: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        if not self.name:
            raise ActorLostError("streams", "it was killed")
        answer: T = await getattr(self._newest, method.__name__)(*arguments)
        return answer


async def test_whoever_reads_subscribes_and_finds_the_next_stream_actor() -> None:
    streams = Streams()
    asked: list[Sequence[str]] = []

    async def subscribe(run_ids: Sequence[str]) -> str:
        asked.append(run_ids)
        return streams.name

    listener = Listener(subscribe, streams.reach)
    await streams.place("first").receive(spoken("one ").spoken)
    first = await listener.texts("run", None)
    streams.name = ""
    lost = await listener.texts("run", first.cursor)
    await streams.place("second").receive(spoken("three").spoken)
    again = await listener.texts("run", lost.cursor)

    assert [piece.text for piece in (*first.spoken, *again.spoken)] == ["one ", "three"]
    assert (first.missed, lost.spoken, again.missed) == (0, (), None)
    assert asked == [["run"], ["run"]]
