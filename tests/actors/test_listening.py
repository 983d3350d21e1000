"""Where text stands among events, and what is told where it does not come."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any, cast

import pytest

from harness_actors.actors.runtime import Runtime, TextCursor, Texts
from harness_actors.actors.text import hearing
from harness_actors.actors.text.hearing import HeardItem, Item, with_texts
from harness_actors.actors.text.listening import Listener
from harness_actors.actors.text.local import LocalStreams
from harness_actors.actors.text.streams import Spoken
from harness_actors.events import (
    AgentResponse,
    Event,
    RoundCompleted,
    RunEvent,
    RunStarted,
    TextDelta,
    TextGap,
)

STARTED = RunStarted(task_preview="go", stop_policy="interactive", max_turns=1)
ANSWERED = AgentResponse(text="one two", tool_names=())


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


async def heard(told: Told, *events: Event) -> list[HeardItem]:
    """What is told of a run whose text comes behind its first event, and before all others."""

    async def items() -> AsyncGenerator[Item]:
        for event in events:
            yield RunEvent(position=1, run_id="run", at=0.0, event=event)
            told.begin.set()
            await told.told.wait()

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

    items = await heard(told, STARTED, ANSWERED, completed(1), ANSWERED, completed(2))

    assert shown(items) == [
        RunStarted,
        (1, "one two"),
        AgentResponse,
        RoundCompleted,
        (1, "three"),
        AgentResponse,
        RoundCompleted,
    ]


async def test_an_answer_whose_text_does_not_come_is_a_gap_and_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hearing, "PATIENCE_S", 0.05)
    told = Told(spoken("one "))

    items = await heard(told, STARTED, ANSWERED, completed(1), ANSWERED, completed(2))

    assert shown(items) == [
        RunStarted,
        (1, "one "),
        None,
        AgentResponse,
        RoundCompleted,
        None,
        AgentResponse,
        RoundCompleted,
    ]


async def test_an_answer_that_begins_again_is_another_attempt_of_its_round() -> None:
    told = Told(spoken("one "), spoken("one ", answer=2), spoken("two", answer=2, ended=True))

    items = await heard(told, STARTED, ANSWERED)

    assert shown(items) == [RunStarted, (1, "one "), (2, "one "), (2, "two"), AgentResponse]


async def test_whoever_reads_subscribes_and_finds_the_next_stream_actor() -> None:
    streams = LocalStreams()
    asked: list[Sequence[str]] = []

    async def subscribe(run_ids: Sequence[str]) -> str:
        asked.append(run_ids)
        return next(iter(streams.peers))

    listener = Listener(subscribe, streams.reach)
    dying = await streams.place("first")
    await dying.receive(spoken("one ").spoken)
    first = await listener.texts("run", None)
    dying.kill()
    lost = await listener.texts("run", first.cursor)
    await (await streams.place("second")).receive(spoken("three").spoken)
    again = await listener.texts("run", lost.cursor)

    assert [piece.text for piece in (*first.spoken, *again.spoken)] == ["one ", "three"]
    assert (first.missed, lost.spoken, again.missed) == (0, (), None)
    assert asked == [["run"], ["run"]]
