import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from harness_actors.ports import DeadlineToken, ToolContext
from harness_actors.ports.deadlines import TIME_IS_UP
from harness_actors.signals import CompactionComplete
from harness_actors.testing.clock import ManualClock
from harness_actors.testing.scripted import Reply
from harness_actors.turn.meter import TurnMeter
from harness_actors.turn.one_call import CUT
from harness_actors.turn.outcomes import ToolExecutionResult, ToolTimeout
from harness_actors.turn.repeats import RepeatGuard
from harness_actors.turn.state import CALL_IS_OVER, TURN_IS_OVER, TurnState
from tests.executors.driver import Driver, RecordingModel, SimpleAgent, SimpleTool, calls

DONE, LATE = ToolExecutionResult(text="done"), ToolTimeout(text="too late")


def a_state() -> TurnState:
    driver = Driver(SimpleAgent(RecordingModel([])))
    context = driver.open_context("agent_turn")
    repeats = RepeatGuard(context.log, {}, ())
    return TurnState(TurnMeter(context, driver.clock), None, repeats, driver.clock.monotonic)


def test_the_first_outcome_of_a_call_counts_and_no_other() -> None:
    state = a_state()
    trace = state.begin_trace(None)
    assert state.complete_trace(trace, LATE)
    assert not state.complete_trace(trace, DONE)
    assert trace.outcome is LATE
    assert trace.deadline.why == CALL_IS_OVER


def test_when_the_turn_is_over_nothing_counts_and_whoever_works_is_told() -> None:
    state = a_state()
    open_one, over = state.begin_trace(None), state.begin_trace(None)
    state.complete_trace(over, DONE)
    state.close_writes()
    assert not state.complete_trace(open_one, DONE)
    assert open_one.outcome is None
    assert open_one.deadline.why == TURN_IS_OVER
    assert over.deadline.why == CALL_IS_OVER
    assert not state.complete_trace(state.begin_trace(None), DONE), "nor does what begins then"


def test_of_many_threads_one_says_what_came_of_a_call() -> None:
    state = a_state()
    for _ in range(50):
        trace = state.begin_trace(None)
        with ThreadPoolExecutor(8) as pool:
            said = list(pool.map(lambda _, t=trace: state.complete_trace(t, DONE), range(8)))
        assert said.count(True) == 1


def test_a_token_tells_what_is_left_and_that_time_is_up() -> None:
    clock = ManualClock()
    token = DeadlineToken(2.0, clock.monotonic)
    assert (token.seconds_left(), token.cancelled, token.why) == (2.0, False, "")
    clock.advance(1.5)
    assert (token.seconds_left(), token.cancelled) == (0.5, False)
    clock.advance(1.0)
    assert (token.seconds_left(), token.cancelled, token.why) == (0.0, True, TIME_IS_UP)
    token.cancel("something else")
    assert token.why == TIME_IS_UP


def test_a_token_without_a_bound_is_cancelled_only_by_being_told() -> None:
    token = DeadlineToken()
    assert (token.seconds_left(), token.cancelled) == (None, False)
    token.cancel("one")
    token.cancel("two")
    assert (token.cancelled, token.why) == (True, "one")


async def seen_by(
    act: Callable[[str, ToolContext], object], timeout_s: float | None = None
) -> Driver:
    tool = SimpleTool("look", act, idempotent=True, timeout_s=timeout_s)  # type: ignore[arg-type]
    model = RecordingModel([calls(("a", "look")), Reply.text("hm")])
    driver = Driver(SimpleAgent(model, [tool]), limits={"working_s": 100.0})
    async with asyncio.timeout(10):
        await driver.serve("agent_turn", CompactionComplete())
    return driver


async def test_a_tool_is_told_how_long_it_may_take_by_the_bound_that_is_first() -> None:
    left: list[float | None] = []

    async def look(_arguments: str, context: ToolContext) -> str:
        left.append(context.deadline.seconds_left())
        return "done"

    await seen_by(look, timeout_s=7.0)
    await seen_by(look)
    assert left == [7.0, 100.0]


async def test_a_tool_that_does_not_end_learns_that_nobody_waits_for_it() -> None:
    told: list[str] = []
    over = asyncio.Event()

    async def deaf(_arguments: str, context: ToolContext) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            told.append(context.deadline.why)
        await over.wait()
        told.append(context.deadline.why)
        return "far too late"

    driver = await seen_by(deaf, timeout_s=0.01)
    over.set()
    await asyncio.sleep(0)
    assert told == [TIME_IS_UP, TIME_IS_UP]
    (result,) = driver.results()
    assert result.failure == "timed_out", "what came late has changed nothing"


async def test_a_tool_whose_turn_is_cut_is_told_so_before_it_is_cancelled() -> None:
    begun, told = asyncio.Event(), list[str]()

    async def look(_arguments: str, context: ToolContext) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.append(context.deadline.why)
        return "never"

    tool = SimpleTool("look", look, idempotent=True)
    driver = Driver(SimpleAgent(RecordingModel([calls(("a", "look"))]), [tool]))
    context = driver.open_context("agent_turn")
    work = driver.executors["agent_turn"].handle(CompactionComplete(), context)
    turn = asyncio.ensure_future(work)
    await begun.wait()
    turn.cancel()
    await asyncio.wait((turn,))
    assert turn.cancelled()
    assert told == [CUT]


async def test_what_a_tool_leaves_behind_learns_that_its_call_is_over() -> None:
    kept: list[DeadlineToken] = []

    async def look(_arguments: str, context: ToolContext) -> str:
        kept.append(context.deadline)
        return "done"

    await seen_by(look)
    assert [token.why for token in kept] == [CALL_IS_OVER]
