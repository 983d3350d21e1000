"""Recorded runs that ask their user: answered, cancelled, asked for too early, and cut."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from harness_actors.agents import Program
from harness_actors.events import InputAwaited
from harness_actors.results import HarnessResult
from harness_actors.testing import Reply, ScriptedModel, an_agent
from harness_actors.tools import ask_user
from tests.data.corpus.agents import CORPUS_TOOLS
from tests.data.corpus.interrupted import Take
from tests.data.corpus.scripts import READ, WRITE
from tests.replay.recorded_runs import done

COLOUR = ("ask_user", {"question": "Which colour?", "options": ["red", "blue"], "why": "to paint"})
SIZE = ("ask_user", {"question": "Which size? – ß 漢字"})
NOTHING = ("ask_user", {"question": " "})
TWICE = ("ask_user", {"question": "Which?", "options": ["a", "a"]})


def asking(*replies: Reply) -> Program:
    """An agent that may ask."""
    return Program.of(an_agent(ScriptedModel([*replies, done()]), (*CORPUS_TOOLS, ask_user)))


async def _asks(take: Take, command: str = "first") -> None:
    async with take.opened(command) as runtime:
        await take.submit(runtime)
        await take.until(runtime, lambda event: isinstance(event, InputAwaited))


async def _answered(take: Take, answers: Mapping[str, str], command: str = "second") -> None:
    """Answered at once, by another command, which leaves it there."""
    async with take.opened(command) as runtime:
        await runtime.answer(take.name, answers)


async def _asked_for(take: Take, command: str) -> None:
    """Taken up without an answer: it says again what it waits for."""
    async with take.opened(command) as runtime:
        cursor = await runtime.position()
        await runtime.resume([take.name], secrets={})
        while not (news := await runtime.wait_for_news(cursor)).events:
            cursor = news.cursor


async def answered(store: Path) -> None:
    one = Take(store, "asked-and-answered", asking(WRITE, Reply.calls([COLOUR])))
    await _asks(one)
    await _answered(one, {"q1": "blue"})
    await one.taken_up()

    mixed = Reply.calls([("read", {"text": "a"}), SIZE, ("write", {"text": "b"}), COLOUR, NOTHING])
    piecewise = Take(store, "answered-in-pieces", asking(mixed, Reply.calls([SIZE]), READ))
    await _asks(piecewise)
    await _asked_for(piecewise, "second")
    await _answered(piecewise, {"q2": "red"}, "third")
    await _asked_for(piecewise, "fourth")
    await _answered(piecewise, {"q1": " of ten\nlines \u2028"}, "fifth")
    async with piecewise.opened("sixth") as runtime:
        await runtime.resume([piecewise.name], secrets={})
        await piecewise.until(runtime, _asks_once_more)
    await _answered(piecewise, {"q3": "large"}, "seventh")
    await piecewise.taken_up("eighth")


def _asks_once_more(event: Any) -> bool:
    return isinstance(event, InputAwaited) and event.questions[0]["id"] == "q3"


async def not_answered(store: Path) -> None:
    await _asks(Take(store, "still-asks", asking(READ, Reply.calls([COLOUR, SIZE]))))
    half = Take(store, "answered-by-half", asking(Reply.calls([COLOUR, SIZE])))
    await _asks(half)
    await _answered(half, {"q1": "red"})
    for name, answers in (
        ("cancelled-while-it-asks", {}),
        ("cancelled-when-answered", {"q1": "red"}),
    ):
        take = Take(store, name, asking(WRITE, Reply.calls([COLOUR, ("write", {"text": "b"})])))
        await _asks(take)
        if answers:
            await _answered(take, answers)
        async with take.opened("third") as runtime:
            await runtime.stop([name], "cancel")
            await take.end(runtime)


async def not_asked(store: Path) -> None:
    async def ended(name: str, agent: Program, settings: Mapping[str, Any]) -> HarnessResult:
        return await Take(store, name, agent, dict(settings)).to_its_end()

    questions = Reply.calls([("read", {"text": "a"}), COLOUR, ("write", {"text": "b"}), SIZE])
    await ended("nobody-there", asking(questions), {"on_question": "deny"})
    await ended("must-not-ask", asking(questions), {"on_question": "fail"})
    await ended("asks-nothing", asking(Reply.calls([NOTHING, TWICE])), {})
    await ended("no-calls-left", asking(READ, questions), {"limits": {"tool_calls": 1}})


async def hangs(store: Path) -> None:
    """Cut when it goes on, in the call after the question, which may have had its effect."""
    held = Reply.calls([("write", {"text": "a"}), COLOUR, ("hang", {}), ("read", {"text": "b"})])
    take = Take(store, "cut-when-answered", asking(held))
    await _asks(take)
    await _answered(take, {"q1": "blue"})
    async with take.opened("third") as runtime:
        await runtime.resume([take.name], secrets={})
        await take.until(runtime, lambda event: event.type == "run_resumed")
        await _until_it_hangs(runtime, take.name)
    # The same command goes on by itself: what was begun has no known outcome.
    async with take.opened("third") as runtime:
        await take.end(runtime)


async def _until_it_hangs(runtime: Any, run_id: str) -> None:
    """What was held is let go on disk before it begins."""
    cursor = 0
    while True:
        run = runtime._coordinator._coordinator.runs[run_id]
        questions = run.state.values.get("harness.questions")
        if questions is not None and not questions["held"]:
            return
        cursor = (await runtime.wait_for_news(cursor, messages=True)).cursor


WAITING: tuple[Callable[[Path], Awaitable[None]], ...] = (answered, not_answered, not_asked, hangs)
