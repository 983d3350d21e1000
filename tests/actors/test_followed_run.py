"""A run as whoever began it follows it: asked again and again, stopped at any time, and left."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial

import pytest

from harness_actors.actors.driver.awaiting import result_of_waiting, still_waiting
from harness_actors.actors.driver.followed_run import FollowedRun
from harness_actors.actors.runtime import StopMode
from harness_actors.config import HarnessConfig
from harness_actors.errors import AnswerError, RunParkedError
from harness_actors.events import (
    InputAwaited,
    RoundCompleted,
    RunEvent,
    RunStarted,
    ToolCalled,
    ToolReturned,
)
from harness_actors.records import RunHeading
from harness_actors.results import HarnessResult, OpenQuestion, Usage
from tests.actors.followers import specs
from tests.actors.test_ends_in_time import endless
from tests.batch.fake_runtime import FakeRuntime, Journal, asking, ended

KEYS = {"KEY": "secret"}


class Served(FakeRuntime):
    """A runtime with one run, that comes to another thing each time that it is served.

    Attributes:
        stops: How it was asked to stop the run.
        keys: What it was given to go on with it.
    """

    def __init__(self, *steps: HarnessResult | None) -> None:
        super().__init__(Journal(), lambda _: left.pop(0))
        left = list(steps)
        self.stops: list[StopMode] = []
        self.keys: list[Mapping[str, str]] = []

    async def resume(self, run_ids: Sequence[str], *, secrets: Mapping[str, str]) -> None:
        self.keys.append(secrets)
        await super().resume(run_ids, secrets=secrets)

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> tuple[str, ...]:
        self.stops.append(mode)
        return await super().stop(run_ids, mode)


(SPEC,) = specs(endless(), 1, HarnessConfig())


async def told_of(run: FollowedRun, runtime: FakeRuntime) -> list[RunEvent | HarnessResult]:
    """All that is told of the run."""
    begin = partial(runtime.submit, [SPEC], code={SPEC.code: b""}, secrets={})
    async with asyncio.timeout(10):
        return [item async for item in run.follow(runtime, begin, KEYS)]


async def parked(run: FollowedRun, runtime: FakeRuntime) -> bool:
    """Whether it is put aside, as its follower is told."""
    try:
        await told_of(run, runtime)
    except RunParkedError as error:
        return error.run_id == SPEC.run_id
    return False


def yes(_: OpenQuestion) -> str:
    return "yes"


async def test_a_run_that_asks_again_is_answered_again_and_told_once() -> None:
    runtime = Served(asking(SPEC, "q1"), asking(SPEC, "q2", "q3"), ended(SPEC))
    put: list[str] = []

    async def answer(asked: OpenQuestion) -> str:
        put.append(asked.id)
        return "yes"

    *told, result = await told_of(FollowedRun(SPEC.run_id, answer), runtime)

    assert put == ["q1", "q2", "q3"]
    assert isinstance(result, HarnessResult)
    assert result.status == "done"
    assert tuple(told) == result.transcript, "each event, and each once"
    assert runtime.keys == [KEYS, KEYS], "it may need them to go on, as at its start"


async def test_a_run_that_is_put_aside_after_it_was_answered_waits_for_nothing() -> None:
    runtime = Served(asking(SPEC, "q1"), None)
    run = FollowedRun(SPEC.run_id, yes)
    following = asyncio.create_task(parked(run, runtime))
    async with asyncio.timeout(10):
        await runtime.until_resumed(1)
    await run.stop()

    assert await following
    assert runtime.stops == ["park"]


async def test_a_run_is_put_aside_that_was_to_stop_before_anybody_served_it() -> None:
    runtime = Served(None)
    run = FollowedRun(SPEC.run_id)
    await run.stop()

    assert await parked(run, runtime)
    assert runtime.stops == ["park"]


async def test_a_run_that_is_stopped_again_is_cut() -> None:
    runtime = Served(None)
    run = FollowedRun(SPEC.run_id)
    following = asyncio.create_task(parked(run, runtime))
    async with asyncio.timeout(10):
        await runtime.until_in_flight(1)
    await run.stop()
    await run.stop(now=True)

    assert await following
    assert runtime.stops == ["park", "park_now"]


class Beside(Served):
    """Somebody else has answered or cancelled the run when an answer to it comes."""

    def __init__(self, answers: Mapping[str, str], *steps: HarnessResult | None) -> None:
        super().__init__(*steps)
        self.others = dict(answers)
        self.cancels = False

    async def answer(self, run_id: str, answers: Mapping[str, str]) -> None:
        others, self.others = self.others, {}
        if others:
            await super().answer(run_id, others)
        if self.cancels:
            await self.stop([run_id], "cancel")
            raise AnswerError(run_id, "it is over: cancelled")
        await super().answer(run_id, answers)

    async def resume(self, run_ids: Sequence[str], *, secrets: Mapping[str, str]) -> None:
        if not self.journal.ends:
            await super().resume(run_ids, secrets=secrets)


async def test_of_several_who_answer_the_first_counts_and_the_run_goes_on() -> None:
    runtime = Beside({"q1": "no", "q2": "no"}, asking(SPEC, "q1", "q2", "q3"), ended(SPEC))
    put: list[str] = []

    def answer(asked: OpenQuestion) -> str:
        put.append(asked.id)
        return "yes"

    *_, result = await told_of(FollowedRun(SPEC.run_id, answer), runtime)

    assert isinstance(result, HarnessResult)
    assert result.status == "done"
    assert put == ["q1", "q3"], "q2 was answered by somebody else"
    assert runtime.journal.answers[SPEC.run_id] == {"q1": "no", "q2": "no", "q3": "yes"}


async def test_a_run_that_is_cancelled_as_its_user_answers_is_over() -> None:
    runtime = Beside({}, asking(SPEC, "q1", "q2"))
    runtime.cancels = True

    *_, result = await told_of(FollowedRun(SPEC.run_id, yes), runtime)

    assert isinstance(result, HarnessResult)
    assert result.status == "cancelled"


async def test_an_answer_that_is_none_is_an_error_of_who_gives_it() -> None:
    class Picky(Served):
        async def answer(self, run_id: str, answers: Mapping[str, str]) -> None:
            raise AnswerError(run_id, "the answer to 'q1' must be one of 'no'")

    with pytest.raises(AnswerError, match="must be one of 'no'"):
        await told_of(FollowedRun(SPEC.run_id, yes), Picky(asking(SPEC, "q1")))


async def test_whoever_answers_is_asked_nothing_more_when_the_run_is_to_stop() -> None:
    runtime = Served(asking(SPEC, "q1", "q2"))
    put: list[str] = []

    async def answer(asked: OpenQuestion) -> str:
        put.append(asked.id)
        await run.stop()
        await asyncio.Event().wait()
        raise AssertionError("it is cancelled")

    run = FollowedRun(SPEC.run_id, answer)
    *_, result = await told_of(run, runtime)

    assert isinstance(result, HarnessResult)
    assert [asked.id for asked in result.questions] == ["q1", "q2"]
    assert put == ["q1"]
    assert runtime.stops == [], "a run that waits is at no process"


async def test_a_run_whose_follower_leaves_as_it_answers_is_left_waiting() -> None:
    runtime = Served(asking(SPEC, "q1"))
    asked = asyncio.Event()
    cancelled: list[str] = []

    async def answer(_: OpenQuestion) -> str:
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("whoever answers")
            raise
        raise AssertionError("it is cancelled")

    following = asyncio.create_task(told_of(FollowedRun(SPEC.run_id, answer), runtime))
    async with asyncio.timeout(10):
        await asked.wait()
    following.cancel()
    await asyncio.wait([following])
    await asyncio.sleep(0)

    assert following.cancelled()
    assert cancelled == ["whoever answers"]
    assert runtime.stops == ["park_now"], "nobody waits for it, so it must not go on spending"


async def test_a_run_that_waits_has_used_what_all_of_its_rounds_have() -> None:
    runtime = FakeRuntime(Journal())
    first, second = (
        RoundCompleted(
            turn=1,
            round=number,
            input_tokens=100 * number,
            output_tokens=10 * number,
            cached_tokens=number,
            cost_usd=0.5 * number,
            tool_calls=number,
        )
        for number in (1, 2)
    )
    asked = InputAwaited(turn=3, questions=({"id": "q1", "text": "?"}, {"id": "q2", "text": "?"}))
    started = RunStarted(task_preview="t", stop_policy="careful", max_turns=9)
    called = ToolCalled(call_id="c0", tool_name="work_complete", arguments="{}")
    returned = [ToolReturned(call_id=f"c{n}", text="", is_error=False) for n in range(3)]
    not_made = ToolReturned(call_id="c4", text="", is_error=True, failure="refused")
    told = (started, first, called, *returned, not_made, second, asked)
    runtime.journal.write("another", first)
    runtime.journal.log += [
        RunEvent(position=position, run_id="run", at=10.0 * position, event=event)
        for position, event in enumerate(told, start=2)
    ]

    waiting = await result_of_waiting(runtime, "run", asked)

    assert waiting.usage == Usage(
        model_calls=2,
        tool_calls=2,
        input_tokens=300,
        output_tokens=30,
        cached_tokens=3,
        cost_usd=1.5,
    )
    assert (waiting.run_id, waiting.turn_count) == ("run", 3)
    assert waiting.reason.message == "2 questions to answer"
    assert (waiting.wall_s, waiting.children) == (80.0, 0)
    assert waiting.transcript == await runtime.events("run")


def test_of_a_run_that_waits_its_heading_says_what_is_open_and_what_it_has_used() -> None:
    used = Usage(model_calls=2, cost_usd=0.5)
    open_, given = ({"id": name, "text": f"{name}?", "options": ["a"]} for name in ("q1", "q2"))
    heading = RunHeading(
        run_id="run",
        conversation_id="run",
        added_at=0.0,
        metadata={},
        end=None,
        turns=3,
        usage=used,
        questions=({**given, "answer": "a"}, {**open_, "answer": None}),
    )

    waiting = still_waiting(heading)

    assert (waiting.run_id, waiting.turn_count, waiting.usage) == ("run", 3, used)
    assert waiting.reason.details == {"questions": [open_]}, "as whoever asked it had them"
    assert waiting.reason.message == "1 question to answer"
