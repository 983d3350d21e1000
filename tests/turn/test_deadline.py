"""Work that is told to end, and what becomes of work that does not."""

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from harness_actors.errors import ModelError
from harness_actors.models.waits import NotAskedAgainError, metered, waiting
from harness_actors.ports import ModelRequest, ModelResponse, ToolContext
from harness_actors.results import Usage
from harness_actors.signals import CompactionComplete, Parked, RunEnd, TurnComplete
from harness_actors.state import USAGE
from harness_actors.testing.scripted import Reply
from harness_actors.turn import deadline
from harness_actors.turn.bounds import Due
from harness_actors.turn.deadline import GRACE_S, Allowance, Raised, Returned, TimedOut, run_within
from tests.executors.driver import Driver, RecordingModel, SimpleAgent, SimpleTool, calls, finishes

pytestmark = pytest.mark.virtual_time


@pytest.fixture(autouse=True)
def nothing_left() -> None:
    """What tests before this one left behind ended with their event loops."""
    deadline._LEFT.clear()


UNBOUNDED = Allowance(Due(None))
SHORT = Allowance(Due(0.02))


class Stubborn:
    """Swallows every cancellation until it is released."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.cancelled = 0
        self.ended = asyncio.Event()

    async def __call__(self) -> str:
        while not self.released.is_set():
            try:
                await self.released.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
        self.ended.set()
        return "at last"


async def seconds(work: Awaitable[Any]) -> tuple[float, Any]:
    loop = asyncio.get_running_loop()
    began = loop.time()
    outcome = await work
    return loop.time() - began, outcome


def answers(value: Any) -> Callable[[], Awaitable[Any]]:
    async def work() -> Any:
        if isinstance(value, BaseException):
            raise value
        return value

    return work


async def test_work_that_ends_in_time_is_handed_back_as_it_is() -> None:
    assert await run_within(UNBOUNDED, "work", answers(7)) == Returned(7)


@pytest.mark.parametrize(
    "error", [ValueError("x"), asyncio.CancelledError(), SystemExit(3), KeyboardInterrupt()]
)
async def test_whatever_work_raises_is_handed_back(error: BaseException) -> None:
    assert await run_within(UNBOUNDED, "work", answers(error)) == Raised(error)


async def test_work_past_its_time_is_stopped() -> None:
    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError as cancelled:
            cancelled.add_note("I was cleaning up.")
            raise

    outcome = await run_within(SHORT, "work", hang)
    assert isinstance(outcome, TimedOut)
    assert not outcome.left
    assert getattr(outcome.last, "__notes__", None) == ["I was cleaning up."]


async def test_work_whose_time_is_over_is_not_begun() -> None:
    begun: list[str] = []

    async def begin() -> None:
        begun.append("begun")

    outcome = await run_within(Allowance(Due(-1.0, "time")), "work", begin)
    assert isinstance(outcome, TimedOut)
    assert outcome.due.kind == "time"
    assert not begun


async def test_work_that_was_done_when_it_was_told_to_end_counts() -> None:
    async def finishes_anyway() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done"
        return "never"

    assert await run_within(SHORT, "work", finishes_anyway) == Returned("done")


async def test_work_that_ends_while_its_caller_is_cancelled_twice_is_not_complained_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    begun, ending = asyncio.Event(), asyncio.Event()

    async def ends_in_a_moment() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ending.set()
            await asyncio.sleep(0.05)

    with caplog.at_level(logging.WARNING):
        caller = asyncio.create_task(run_within(UNBOUNDED, "a call", ends_in_a_moment))
        await begun.wait()
        caller.cancel()
        await ending.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
    assert not caplog.records


async def test_work_that_does_not_end_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    stubborn = Stubborn()
    with caplog.at_level(logging.WARNING):
        took, outcome = await seconds(run_within(SHORT, "a call of tool 'x'", stubborn))
    assert isinstance(outcome, TimedOut)
    assert outcome.left
    assert took == pytest.approx(0.02 + GRACE_S)
    assert stubborn.cancelled == 1
    assert "a call of tool 'x' does not end, and is left alone" in caplog.text
    gc.collect()
    assert len(deadline._LEFT) == 1, "nobody else holds on to it"
    stubborn.released.set()
    await stubborn.ended.wait()
    await asyncio.sleep(0)
    assert not deadline._LEFT


async def test_what_was_left_alone_may_fail_later_and_nobody_hears_of_it() -> None:
    release, complaints = asyncio.Event(), list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))

    async def fails_late() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        raise RuntimeError("too late")

    assert isinstance(await run_within(SHORT, "work", fails_late), TimedOut)
    release.set()
    async with asyncio.timeout(10):
        while deadline._LEFT:  # noqa: ASYNC110 - its callback is nobody's event
            await asyncio.sleep(0)
    gc.collect()
    await asyncio.sleep(0)
    assert not complaints


@pytest.mark.parametrize("again", [False, True])
async def test_a_caller_that_is_cancelled_does_not_wait_for_stubborn_work(again: bool) -> None:
    stubborn = Stubborn()
    caller = asyncio.ensure_future(run_within(UNBOUNDED, "work", stubborn))
    await asyncio.sleep(0.01)
    caller.cancel()
    if again:
        await asyncio.sleep(0.01)
        caller.cancel()
    took, _ = await seconds(asyncio.wait((caller,)))
    assert caller.cancelled()
    assert took < GRACE_S + 0.3
    stubborn.released.set()
    await stubborn.ended.wait()


async def test_a_caller_that_is_cancelled_waits_until_work_has_cleaned_up() -> None:
    cleaned = asyncio.Event()

    async def cleans_up() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.02)
            cleaned.set()

    caller = asyncio.ensure_future(run_within(UNBOUNDED, "work", cleans_up))
    await asyncio.sleep(0.01)
    caller.cancel()
    await asyncio.wait((caller,))
    assert cleaned.is_set()


# ---- working time stands still while a model waits --------------------------------------------


async def test_waits_on_rate_limits_are_no_working_time() -> None:
    async def waits_then_answers() -> str:
        with waiting():
            await asyncio.sleep(0.2)
        return "answer"

    with metered() as meter:
        outcome = await run_within(Allowance(Due(None), 0.1, meter), "work", waits_then_answers)
    assert outcome == Returned("answer")
    assert meter.waited_s == pytest.approx(0.2, abs=0.15)
    assert not meter.is_waiting


async def test_work_after_a_wait_ends_by_working_time() -> None:
    async def waits_then_hangs() -> None:
        with waiting():
            await asyncio.sleep(0.15)
        await asyncio.Event().wait()

    with metered() as meter:
        work = run_within(Allowance(Due(5.0), 0.1, meter), "work", waits_then_hangs)
        took, outcome = await seconds(work)
    assert isinstance(outcome, TimedOut)
    assert outcome.due.kind == "working_time"
    assert took == pytest.approx(0.15 + 0.1)


async def test_a_wait_ends_when_the_wall_time_is_up() -> None:
    async def waits_for_ever() -> None:
        with waiting():
            await asyncio.Event().wait()

    with metered() as meter:
        work = run_within(Allowance(Due(0.1), 0.05, meter), "work", waits_for_ever)
        took, outcome = await seconds(work)
    assert isinstance(outcome, TimedOut)
    assert outcome.due.kind == "time"
    assert took == pytest.approx(0.1)
    assert not meter.is_waiting


async def test_waits_of_one_call_at_once_count_once() -> None:
    async def wait() -> None:
        with waiting():
            await asyncio.sleep(0.05)

    with metered() as meter:
        await asyncio.gather(wait(), wait(), wait())
    assert meter.waited_s == pytest.approx(0.05)


async def test_waits_of_one_call_that_overlap_count_from_the_first_to_the_last() -> None:
    async def wait(from_s: float, for_s: float) -> None:
        await asyncio.sleep(from_s)
        with waiting():
            await asyncio.sleep(for_s)

    with metered() as meter:
        await asyncio.gather(wait(0.0, 0.2), wait(0.1, 0.2), wait(0.4, 0.1))
    assert meter.waited_s == pytest.approx(0.4)


async def test_a_wait_outside_of_a_run_is_not_measured() -> None:
    with waiting():
        await asyncio.sleep(0)


# ---- in a turn ----------------------------------------------------------------------------------


class Waiting(RecordingModel):
    """A model that is refused for a while, then hangs or answers."""

    async def complete(self, request: ModelRequest) -> ModelResponse:
        with waiting():
            await asyncio.sleep(0.15)
        return await super().complete(request)


async def test_a_model_that_hangs_ends_the_run_by_working_time() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    driver = Driver(
        SimpleAgent(RecordingModel([finishes()], before=hang)), limits={"working_s": 0.05}
    )
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("limit", "working_time")
    assert "0.05 s of working time" in end.reason.message
    assert driver.value(USAGE).model_calls == 1


class RefusedAtLast(RecordingModel):
    """A model that waits until it may ask again, and then fails."""

    async def complete(self, request: ModelRequest) -> ModelResponse:
        with waiting():
            assert self.before is not None
            await self.before()
        raise ModelError(self.name, "no more")


async def test_what_a_model_waited_before_it_failed_is_no_work() -> None:
    async def pass_time() -> None:
        driver.clock.advance(0.1)
        await asyncio.sleep(0.15)

    driver = Driver(SimpleAgent(RefusedAtLast([finishes()], before=pass_time)))
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.reason.kind == "model_error"
    assert driver.value(USAGE).working_s == 0


class Telling(RecordingModel):
    """A model that measures its wait and tells it with its answer, as ours do."""

    async def complete(self, request: ModelRequest) -> ModelResponse:
        with waiting():
            await asyncio.sleep(0.2)
        return await super().complete(request)


@pytest.mark.parametrize("told_s", [0.0, 0.1, 0.2, 0.3])
async def test_a_wait_that_is_measured_and_told_is_left_out_once(told_s: float) -> None:
    async def pass_time() -> None:
        driver.clock.advance(1.0)

    driver = Driver(SimpleAgent(Telling([finishes()], before=pass_time, waited_s=told_s)))
    await driver.run()
    assert driver.value(USAGE).working_s == pytest.approx(1.0 - max(0.2, told_s))


async def test_a_model_that_waits_longer_than_the_working_time_may_still_answer() -> None:
    driver = Driver(SimpleAgent(Waiting([finishes()])), limits={"working_s": 0.1})
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.reason.kind == "completed"


@pytest.mark.parametrize("limits", [{"time_s": 0.05}, {"working_s": 0.05}])
async def test_a_model_that_swallows_its_cancellation_holds_nobody_up(
    limits: dict[str, float],
) -> None:
    stubborn = Stubborn()

    async def before() -> None:
        await stubborn()

    driver = Driver(SimpleAgent(RecordingModel([finishes()], before=before)), limits=limits)
    took, outcome = await seconds(driver.serve("agent_turn", CompactionComplete()))
    assert isinstance(outcome, TurnComplete)
    assert outcome.ending == "limit"
    assert took == pytest.approx(0.05 + GRACE_S)
    log = list(driver.state.log)
    stubborn.released.set()
    await stubborn.ended.wait()
    await asyncio.sleep(0.01)
    assert list(driver.state.log) == log, "its answer reaches nobody"


async def test_a_tool_that_swallows_its_cancellation_is_left_alone_and_the_model_told() -> None:
    stubborn = Stubborn()

    async def act(_arguments: str, _context: ToolContext) -> str:
        return await stubborn()

    tool = SimpleTool("stubborn", act, timeout_s=0.02)
    driver = Driver(SimpleAgent(RecordingModel([calls(("a", "stubborn")), finishes()]), [tool]))
    took, end = await seconds(driver.run())
    assert end.reason.kind == "completed"
    assert took == pytest.approx(0.02 + GRACE_S)
    assert driver.results()[0].text == (
        "'stubborn' was stopped: it ran past its limit of 0.02 s. "
        "It does not end and was left alone: what it began may still happen."
    )
    driver.check_log()
    stubborn.released.set()
    await stubborn.ended.wait()


# ---- done wins ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [{"tokens": 10}, {"cost_usd": 0.1}, {"model_calls": 1}, {"time_s": 5}, {"working_s": 5}],
)
async def test_a_run_that_is_done_in_the_round_that_spends_the_last_is_done(
    limits: dict[str, float],
) -> None:
    async def pass_time() -> None:
        driver.clock.advance(10)

    usage = Usage(model_calls=1, input_tokens=90, output_tokens=10, cost_usd=0.5)
    model = RecordingModel([finishes()], before=pass_time, usage=usage)
    driver = Driver(SimpleAgent(model), limits=limits)
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.reason.kind == "completed"


async def test_calls_of_the_completion_are_no_tool_calls() -> None:
    bad = Reply.call("work_complete", {"summary": " "})
    driver = Driver(SimpleAgent(RecordingModel([bad, finishes()])))
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.reason.kind == "completed"
    assert driver.value(USAGE).tool_calls == 0


async def test_a_run_that_is_to_park_does_not_wait_for_its_provider() -> None:
    async def overloaded() -> None:
        assert driver.context is not None
        driver.context.parking = True
        with waiting():
            await asyncio.sleep(3600)

    driver = Driver(SimpleAgent(RecordingModel([finishes()], before=overloaded)))
    assert await driver.run() == Parked()
    assert [message.role for message in driver.state.log] == ["user"]
    assert driver.value(USAGE).model_calls == 0


async def test_a_wait_that_is_given_up_ends_and_none_begins_after_it() -> None:
    with metered() as meter:

        async def waits() -> None:
            with waiting():
                await asyncio.sleep(3600)

        wait = asyncio.create_task(waits())
        await asyncio.sleep(0)
        meter.give_up()
        with pytest.raises(NotAskedAgainError):
            await wait
        with pytest.raises(NotAskedAgainError):
            await waits()
        assert not meter.is_waiting


async def test_a_wait_that_is_given_up_and_cancelled_is_cancelled() -> None:
    with metered() as meter:

        async def waits() -> None:
            with waiting():
                await asyncio.sleep(3600)

        wait = asyncio.create_task(waits())
        await asyncio.sleep(0)
        meter.give_up()
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait


async def test_a_rest_of_time_that_no_clock_can_show_is_none() -> None:
    loop = asyncio.get_running_loop()
    # Where time is 8, what is added below is lost, and a wait for it never ends.
    await asyncio.sleep(8.0)
    assert loop.time() + 1e-16 == loop.time()
    due = Due(1e-16)
    # Told at once: whoever waited for it would still do so when the test is given up.
    assert due.over
    outcome = await run_within(Allowance(due), "it", Stubborn())
    assert isinstance(outcome, TimedOut)
