"""What a turn uses, what bounds it, and which faults of a model end it."""

import asyncio

import pytest

from harness_actors.config import Limits
from harness_actors.errors import (
    ContextOverflowError,
    ModelBusyError,
    ModelError,
    ModelRefusedError,
    ModelSetupError,
)
from harness_actors.events import TurnCompleted
from harness_actors.ports import ModelRequest, ModelResponse, ToolContext
from harness_actors.results import Usage
from harness_actors.signals import CompactionComplete, RunEnd, TurnComplete
from harness_actors.state import REQUEST_TOKENS, USAGE
from harness_actors.testing import ManualClock
from harness_actors.testing.scripted import Reply, Script
from harness_actors.turn.bounds import Bounds, Due
from harness_actors.turn.deadline import Allowance
from harness_actors.turn.one_call import NO_CALLS_LEFT
from tests.executors.driver import (
    Driver,
    RecordingModel,
    SimpleAgent,
    SimpleTool,
    a_tool,
    calls,
    finishes,
)


def a_driver(script: Script | list[Reply], *tools: SimpleTool, **settings: object) -> Driver:
    return Driver(SimpleAgent(RecordingModel(script), tools), **settings)  # type: ignore[arg-type]


async def one_turn(driver: Driver) -> TurnComplete:
    outcome = await driver.serve("agent_turn", CompactionComplete())
    assert isinstance(outcome, TurnComplete)
    return outcome


@pytest.mark.parametrize("idempotent", [False, True], ids=["fenced", "written at the end"])
async def test_usage_is_summed_with_each_round(idempotent: bool) -> None:
    model = RecordingModel(
        [calls(("a", "write"), ("b", "write")), finishes()],
        usage=Usage(model_calls=1, input_tokens=100, output_tokens=10, cost_usd=0.25),
    )
    driver = Driver(SimpleAgent(model, [a_tool(idempotent=idempotent)]))
    await driver.run()
    assert driver.value(USAGE) == Usage(
        model_calls=2, tool_calls=2, input_tokens=200, output_tokens=20, cost_usd=0.5
    )


async def test_a_model_cannot_hide_its_calls() -> None:
    model = RecordingModel([Reply.text("hm")] * 9, usage=Usage(model_calls=0))
    driver = Driver(SimpleAgent(model), limits={"model_calls": 2})
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.reason.kind == "model_calls"
    assert driver.value(USAGE).model_calls == 2


async def test_the_next_request_is_counted_from_what_the_provider_says() -> None:
    model = RecordingModel(
        [calls(("a", "write")), Reply.text("hm")],
        usage=Usage(model_calls=1, input_tokens=1000, output_tokens=50),
    )
    driver = Driver(SimpleAgent(model, [a_tool(answer="one two three")]))
    await one_turn(driver)
    assert driver.value(REQUEST_TOKENS) == 1050


async def test_without_the_providers_word_the_next_request_is_what_was_added_up() -> None:
    driver = a_driver([calls(("a", "write")), Reply.text("hm"), finishes()], a_tool())
    await driver.run()
    request = driver.model.requests[-1]
    overhead = request.messages[0].tokens + len(request.tools.encoded.decode().split())
    assert driver.value(REQUEST_TOKENS) == overhead + driver.state.log.tokens
    assert driver.happened(TurnCompleted)[-1].token_estimate == driver.value(REQUEST_TOKENS)


async def test_work_is_timed_without_the_waits_on_rate_limits() -> None:
    async def pass_time() -> None:
        driver.clock.advance(30)

    model = RecordingModel([Reply.text("hm")], before=pass_time, waited_s=20.0)
    driver = Driver(SimpleAgent(model))
    await one_turn(driver)
    assert driver.value(USAGE).working_s == pytest.approx(10)


async def test_a_wait_is_left_out_of_the_round_that_it_is_in_and_of_no_other() -> None:
    async def pass_time() -> None:
        driver.clock.advance(30)

    script = [calls((f"c{i}", "write")) for i in range(9)]
    model = RecordingModel(script, before=pass_time, waited_s=20.0)
    driver = Driver(SimpleAgent(model, [a_tool()]), limits={"working_s": 35})
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.reason.kind == "working_time"
    assert len(model.requests) == 4
    assert driver.value(USAGE).working_s == pytest.approx(40)


@pytest.mark.parametrize(
    ("limits", "kind", "rounds"),
    [
        ({"model_calls": 2}, "model_calls", 2),
        ({"tokens": 150}, "tokens", 2),
        ({"tokens": 200}, "tokens", 2),
        ({"cost_usd": 0.5}, "cost", 1),
        ({"time_s": 25}, "time", 3),
        ({"working_s": 15}, "working_time", 2),
    ],
)
async def test_no_model_call_begins_after_a_bound(
    limits: dict[str, float], kind: str, rounds: int
) -> None:
    async def pass_time() -> None:
        driver.clock.advance(10)

    model = RecordingModel(
        [calls((f"c{i}", "write")) for i in range(9)],
        before=pass_time,
        usage=Usage(model_calls=1, input_tokens=90, output_tokens=10, cost_usd=0.5),
    )
    driver = Driver(SimpleAgent(model, [a_tool()]), limits=limits)
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("limit", kind)
    assert len(model.requests) == rounds
    driver.check_log()


async def test_a_run_without_any_bound_ends_when_it_is_done() -> None:
    write = a_tool(timeout_s=60)
    script = [calls(("a", "write"), ("b", "write")), calls(("c", "write")), finishes()]
    driver = a_driver(script, write, limits=Limits())
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("done", "completed")
    assert len(write.calls) == 3


@pytest.mark.parametrize("run_s", [1e6, None])
async def test_a_tools_own_time_is_its_bound_where_it_is_the_shorter(run_s: float | None) -> None:
    async def hang(_arguments: str, _context: ToolContext) -> str:
        await asyncio.Event().wait()
        return "never"

    slow = SimpleTool("slow", hang, timeout_s=0.01)
    driver = a_driver([calls(("a", "slow")), finishes()], slow, limits=Limits(time_s=run_s))
    async with asyncio.timeout(10):
        end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.reason.kind == "completed"
    assert driver.results()[0].text == "'slow' was stopped: it ran past its limit of 0.01 s."


async def test_calls_beyond_the_bound_are_not_made_and_end_the_run() -> None:
    write = a_tool()
    script = [calls(("a", "write", "1"), ("b", "write", "2"), ("c", "write", "3"))]
    driver = a_driver(script, write, limits={"tool_calls": 2})
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("limit", "tool_calls")
    assert write.calls == ["1", "2"]
    assert [result.is_error for result in driver.results()] == [False, False, True]
    assert driver.results()[2].text == NO_CALLS_LEFT
    assert driver.value(USAGE).tool_calls == 2
    driver.check_log()


async def test_a_call_beyond_the_bound_ends_the_run_whatever_else_is_refused_after_it() -> None:
    script = [calls(("a", "write"), ("b", "write"), ("c", "unknown")), finishes()]
    driver = a_driver(script, a_tool(), limits={"tool_calls": 1})
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("limit", "tool_calls")
    assert driver.value(USAGE).model_calls == 1


async def test_a_completion_that_comes_too_early_takes_no_call_from_those_after_it() -> None:
    write = a_tool()
    early = ("a", "work_complete", '{"summary": "ok"}')
    driver = a_driver([calls(early, ("b", "write")), finishes()], write, limits={"tool_calls": 1})
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.reason.kind == "completed"
    assert len(write.calls) == 1


async def test_a_run_that_used_all_its_tool_calls_may_still_finish() -> None:
    script = [calls(("a", "write")), Reply.text("hm"), finishes()]
    driver = a_driver(script, a_tool(), limits={"tool_calls": 1})
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.reason.kind == "completed"


@pytest.mark.parametrize(
    ("time_s", "working_s", "due"),
    [
        (5.0, 9.0, Due(5.0, "time")),
        (9.0, 5.0, Due(5.0, "working_time")),
        (5.0, 5.0, Due(5.0, "time")),
        (5.0, None, Due(5.0, "time")),
        (None, 5.0, Due(5.0, "working_time")),
        (None, None, Due(None)),
    ],
)
def test_work_is_due_by_the_bound_that_is_first(
    time_s: float | None, working_s: float | None, due: Due
) -> None:
    clock = ManualClock()
    bounds = Bounds(Limits(time_s=time_s, working_s=working_s), clock.now(), clock)
    assert bounds.work_due(0.0) == due
    allowance = Allowance(bounds.wall_due(), bounds.working_left(0.0))
    assert allowance.left(0.0) == due


async def test_what_was_said_last_is_kept_though_a_round_says_nothing_after_it() -> None:
    script = [Reply.calls([("write", "{}")], said="I will write."), calls(("b", "write"))]
    driver = a_driver(script, a_tool(), limits={"model_calls": 2})
    outcome = await one_turn(driver)
    assert (outcome.limit, outcome.text) == ("model_calls", "I will write.")


async def test_time_ends_a_model_call_in_its_middle() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    model = RecordingModel([finishes()], before=hang)
    driver = Driver(SimpleAgent(model), limits={"time_s": 0.02})
    outcome = await one_turn(driver)
    assert (outcome.ending, outcome.limit) == ("limit", "time")
    assert driver.value(USAGE).model_calls == 1


@pytest.mark.parametrize(("name", "kind"), [("time_s", "time"), ("working_s", "working_time")])
async def test_time_ends_a_tool_in_its_middle_and_every_call_gets_a_result(
    name: str, kind: str
) -> None:
    async def hang(_arguments: str, _context: ToolContext) -> str:
        driver.clock.advance(1)
        await asyncio.Event().wait()
        return "never"

    script = [Reply.calls([("hang", "{}"), ("hang", "{}")], said="I will wait.")]
    driver = a_driver(script, SimpleTool("hang", hang), limits={name: 0.02})

    outcome = await one_turn(driver)

    assert (outcome.ending, outcome.limit, outcome.text) == ("limit", kind, "I will wait.")
    finished, began = driver.results()
    assert finished.text == "The run's time was up before this call finished."
    assert began.text == "The run's time was up before this call began."
    assert driver.value(USAGE).tool_calls == 1
    driver.check_log()


async def test_a_conversation_larger_than_the_window_ends_by_the_bound_context() -> None:
    driver = a_driver([Reply.error(ContextOverflowError("m", "too long", 400))])
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("limit", "context")


async def test_a_conversation_that_no_provider_takes_ends_by_the_bound_context(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("harness_actors.turn.loop.MOST_LOG_BYTES", 10_000)
    long = f'{{"path":"{"x" * 3000}"}}'
    driver = a_driver(lambda _: calls(("a", "write", long)), a_tool())

    end = await driver.run()

    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("limit", "context")
    assert len(driver.model.requests) == 4
    driver.check_log()


@pytest.mark.parametrize(
    "error",
    [
        ModelSetupError("m", "wrong key", 401),
        ModelRefusedError("m", "policy"),
        ModelBusyError("m", "overloaded", 503),
    ],
)
async def test_an_error_of_the_provider_fails_the_run(error: ModelError) -> None:
    driver = a_driver([calls(("a", "write")), Reply.error(error)], a_tool())
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("failed", "model_error")
    assert type(error).__name__ in end.reason.message
    driver.check_log()


@pytest.mark.parametrize("text", ["I must n", ""])
async def test_an_answer_that_a_content_filter_has_stopped_is_no_answer(text: str) -> None:
    """As a model of the user's own may give it."""
    driver = a_driver([Reply.text(text, finish_reason="content_filter")], completion="answer")
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind, end.output_text) == ("failed", "model_error", "")
    assert "ModelRefusedError" in end.reason.message
    driver.check_log()


class Panic(BaseException):
    """What a library in Rust raises: no `Exception`."""


@pytest.mark.parametrize(
    "error", [KeyError("x"), TimeoutError("mine"), asyncio.CancelledError(), Panic("!")]
)
async def test_a_fault_of_the_models_own_code_fails_the_run(error: BaseException) -> None:
    def script(messages: object) -> Reply:
        raise error

    end = await a_driver(script).run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("failed", "agent_error")
    assert type(error).__name__ in end.reason.message


async def test_a_model_that_answers_with_something_else_fails_the_run() -> None:
    class Odd(RecordingModel):
        async def complete(self, request: ModelRequest) -> ModelResponse:
            return {"text": "hello"}  # type: ignore[return-value]

    end = await Driver(SimpleAgent(Odd([]))).run()
    assert isinstance(end, RunEnd)
    assert end.reason.kind == "agent_error"
    assert "answered dict" in end.reason.message
