import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness_actors.conversation import UNKNOWN_OUTCOME
from harness_actors.errors import (
    ConfigError,
)
from harness_actors.events import RoundCompleted, TurnCompleted, TurnStarted
from harness_actors.messages import Message, ToolCall
from harness_actors.ports import ToolContext
from harness_actors.records import WorkspaceSpec
from harness_actors.signals import CompactionComplete, Parked, RunEnd, TurnComplete
from harness_actors.state import REPAIRS, TURN, TURN_COUNT, USAGE
from harness_actors.testing.scripted import Reply, Script
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


async def test_a_run_goes_from_its_task_to_its_completion() -> None:
    write = a_tool()
    driver = a_driver([calls(("a", "write")), finishes("wrote it")], write)

    end = await driver.run()

    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind, end.output_text) == ("done", "completed", "wrote it")
    assert write.calls == ["{}"]
    assert driver.value(TURN_COUNT) == 1
    driver.check_log()


async def test_a_request_is_the_instructions_the_log_and_the_tools() -> None:
    driver = a_driver([calls(("a", "write")), finishes()], a_tool())
    await driver.run()

    first, second = driver.model.requests
    assert [message.role for message in first.messages] == ["system", "user"]
    assert [message.text for message in first.messages] == ["Be brief.", "the task"]
    assert [spec.name for spec in first.tools.specs] == ["write", "work_complete"]
    assert [message.role for message in second.messages][2:] == ["assistant", "tool"]
    assert second.tools is first.tools
    assert second.messages[0] is first.messages[0]


async def test_without_instructions_there_is_no_system_prompt() -> None:
    model = RecordingModel([finishes()])
    await Driver(SimpleAgent(model, instructions="")).run()
    assert [message.role for message in model.requests[0].messages] == ["user"]


async def test_where_an_answer_ends_the_run_there_is_no_completion_tool() -> None:
    driver = a_driver([Reply.text("42")], completion="answer")
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.reason.kind, end.output_text) == ("answered", "42")
    assert driver.model.requests[0].tools.specs == ()


async def test_the_callers_agent_stays_as_it_was() -> None:
    tools = [a_tool()]
    agent = SimpleAgent(RecordingModel([calls(("a", "write")), Reply.text("x"), finishes()]), tools)
    await Driver(agent).run()
    assert [tool.name for tool in tools] == ["write"]


async def test_a_tool_that_is_named_as_the_completion_tool_is_refused() -> None:
    driver = a_driver([finishes()], a_tool("work_complete"))
    with pytest.raises(ConfigError, match="'work_complete'; the harness adds this one itself"):
        await driver.run()


async def test_turns_and_rounds_are_announced_and_counted() -> None:
    script = [calls(("a", "write"), ("b", "write")), Reply.text("hm"), finishes()]
    driver = a_driver(script, a_tool(), max_turns=9)
    await driver.run()

    assert driver.happened(TurnStarted) == [
        TurnStarted(turn=1, max_turns=9),
        TurnStarted(turn=2, max_turns=9),
    ]
    assert [(e.turn, e.round, e.tool_calls) for e in driver.happened(RoundCompleted)] == [
        (1, 1, 2),
        (1, 2, 0),
        (2, 1, 1),
    ]
    ends = [(e.turn, e.rounds, e.ending) for e in driver.happened(TurnCompleted)]
    assert ends == [(1, 2, "text"), (2, 1, "completed")]
    assert driver.value(TURN) is None


async def test_a_nudge_is_in_the_next_request_as_one_user_message() -> None:
    driver = a_driver([Reply.text("I am done."), finishes()])
    await driver.run()
    added = driver.model.requests[1].messages[len(driver.model.requests[0].messages) :]
    assert [message.role for message in added] == ["assistant", "user"]
    assert "work_complete" in added[1].text


async def test_an_empty_answer_counts_as_one_without_calls() -> None:
    driver = a_driver([Reply(), finishes()])
    assert (await one_turn(driver)).ending == "text"
    assert driver.state.log[-1].encoded == b'{"role":"assistant","content":""}'


async def test_a_model_that_only_talks_ends_unverified_after_the_nudges() -> None:
    driver = a_driver([Reply.text("Certainly!")] * 9)
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind, end.completion_verified) == ("done", "unverified", False)
    assert driver.value(TURN_COUNT) == 6
    assert len(driver.model.requests) == 6


async def test_a_turn_that_worked_and_then_stopped_is_nudged_as_one_that_progressed() -> None:
    driver = a_driver([calls(("a", "write")), Reply.text("next I would")], a_tool())
    assert await one_turn(driver) == TurnComplete(
        ending="text", text="next I would", progressed=True
    )


@pytest.mark.parametrize("name", ["write", "unknown"])
async def test_calls_that_fail_are_no_progress(name: str) -> None:
    driver = a_driver([calls(("a", name)), Reply.text("hm")], a_tool(answer=ValueError("no")))
    assert (await one_turn(driver)).progressed is False


async def test_a_turn_ends_after_its_rounds_and_the_next_goes_on_silently() -> None:
    script = [calls((f"c{i}", "write")) for i in range(4)] + [finishes()]
    driver = a_driver(script, a_tool(), max_rounds_per_turn=2)
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.reason.kind == "completed"
    assert driver.value(TURN_COUNT) == 3
    assert sum(message.role == "user" for message in driver.state.log) == 1


async def test_a_run_that_never_finishes_ends_at_its_turns() -> None:
    def script(messages: object) -> Reply:
        return calls(("again", "write"))

    driver = a_driver(script, a_tool(), max_turns=3, max_rounds_per_turn=2)
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert (end.status, end.reason.kind) == ("limit", "max_turns")
    assert driver.value(TURN_COUNT) == 3


# ---- completion -------------------------------------------------------------------------


async def test_a_completion_after_successful_calls_counts() -> None:
    script = [calls(("a", "write"), ("b", "work_complete", '{"summary": " ok "}'))]
    assert await one_turn(a_driver(script, a_tool())) == TurnComplete(
        ending="completed", text="ok", progressed=True
    )


@pytest.mark.parametrize("between", [(), ("write",)], ids=["alone", "before-a-success"])
async def test_a_completion_beside_a_failed_call_is_refused_and_the_model_told(
    between: tuple[str, ...],
) -> None:
    ended = ("b", "work_complete", '{"summary": "ok"}')
    said = calls(("a", "fail"), *((name, name) for name in between), ended)
    fails = a_tool("fail", answer=ValueError("disk full"))
    driver = a_driver([said, finishes()], fails, a_tool())
    await driver.run()
    failed, *_, refused = driver.model.requests[1].messages[-2 - len(between) :]
    assert failed.text == "ValueError: disk full"
    assert refused.tool_call_id == "b"
    assert "another call of this message failed" in refused.text
    assert [result.is_error for result in driver.results()] == [
        True, *(False for _ in between), True, False
    ]  # fmt: skip


async def test_a_completion_that_is_followed_by_calls_is_refused_and_they_run() -> None:
    write = a_tool()
    script = [calls(("b", "work_complete", '{"summary": "ok"}'), ("a", "write")), finishes()]
    driver = a_driver(script, write)
    await driver.run()
    refused, done = driver.model.requests[1].messages[-2:]
    assert "must be the last call" in refused.text
    assert done.text == "done"
    assert len(write.calls) == 1


@pytest.mark.parametrize("arguments", ["{}", '{"summary": " "}', "not json"])
async def test_a_completion_whose_call_fails_is_none(arguments: str) -> None:
    driver = a_driver([calls(("a", "work_complete", arguments)), finishes()])
    end = await driver.run()
    assert isinstance(end, RunEnd)
    assert end.output_text == "all done"
    assert [result.is_error for result in driver.results()] == [True, False]


async def test_a_completion_alone_is_no_progress() -> None:
    assert (await one_turn(a_driver([finishes()]))).progressed is False


# ---- the task ---------------------------------------------------------------------------


async def test_the_task_is_appended_once_with_its_exact_tokens() -> None:
    driver = a_driver([Reply.text("a"), Reply.text("b"), finishes()])
    await driver.run()
    users = [message for message in driver.state.log if message.role == "user"]
    assert users[0].text == "the task"
    assert users[0].tokens == 2 + 4
    assert len(users) == 3


async def test_a_task_of_messages_is_brought_into_the_order_that_providers_want() -> None:
    task = (
        Message.user("before"),
        Message.assistant(None, [ToolCall("x", "f", "{}")]),
        Message.user("now this"),
    )
    model = RecordingModel([finishes()])
    driver = Driver(SimpleAgent(model), task)
    await driver.run()
    assert [message.role for message in model.requests[0].messages[1:]] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert driver.value(REPAIRS) == 1
    driver.check_log()


async def test_a_conversation_that_ended_in_open_calls_can_be_continued() -> None:
    log = [Message.user("earlier"), Message.assistant(None, [ToolCall("x", "f", "{}")])]
    driver = Driver(SimpleAgent(RecordingModel([finishes()])), log=log)
    await driver.run()
    assert [message.role for message in driver.state.log[:4]] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert driver.state.log[2].text == UNKNOWN_OUTCOME
    driver.check_log()


async def test_the_workspace_is_made_before_the_first_turn_and_told_to_tools() -> None:
    seen: list[ToolContext] = []

    async def act(_arguments: str, context: ToolContext) -> str:
        seen.append(context)
        return "ok"

    spec = WorkspaceSpec(path="/somewhere/run")
    script = [calls(("a", "look")), Reply.text("hm"), calls(("b", "look")), finishes()]
    driver = a_driver(script, SimpleTool("look", act), workspace=spec)
    await driver.run()

    assert driver.prepared_workspaces == [spec]
    assert [context.workspace for context in seen] == [Path("/somewhere/run")] * 2
    assert [context.call_id for context in seen] == ["a", "b"]
    assert seen[0].environment == {"HARNESS_RUN_ID": "run"}


# ---- parking ----------------------------------------------------------------------------


async def test_a_run_parks_between_rounds_and_its_turn_goes_on() -> None:
    async def park(_arguments: str, _context: ToolContext) -> str:
        assert driver.context is not None
        driver.context.parking = True
        return "ok"

    driver = a_driver([calls(("a", "park")), finishes()], SimpleTool("park", park))

    assert await driver.run() == Parked()
    assert len(driver.model.requests) == 1
    driver.check_log()

    end = await driver.run(resumed=True)
    assert isinstance(end, RunEnd)
    assert end.reason.kind == "completed"
    assert len(driver.happened(TurnStarted)) == 1
    assert driver.happened(TurnCompleted)[0].rounds == 2
    assert driver.value(TURN_COUNT) == 1


async def test_a_run_that_is_parked_before_its_first_round_has_its_task_in_the_log() -> None:
    driver = a_driver([finishes()])
    driver.parking = True
    assert await driver.run() == Parked()
    assert driver.model.requests == []
    driver.parking = False
    await driver.run(resumed=True)
    assert [message.text for message in driver.state.log].count("the task") == 1


async def test_rounds_before_a_pause_count_against_the_rounds_of_the_turn() -> None:
    async def park(_arguments: str, _context: ToolContext) -> str:
        assert driver.context is not None
        driver.context.parking = len(driver.model.requests) == 2
        return "ok"

    script = [calls((f"c{i}", "park")) for i in range(5)]
    driver = a_driver(script, SimpleTool("park", park), max_rounds_per_turn=3, max_turns=1)
    assert await driver.run() == Parked()
    end = await driver.run(resumed=True)
    assert isinstance(end, RunEnd)
    assert end.reason.kind == "max_turns"
    assert len(driver.model.requests) == 3


async def test_one_executor_serves_runs_at_once_and_nothing_leaks_between_them() -> None:
    def echo(messages: Sequence[Message]) -> Reply:
        spoken = sum(message.role == "assistant" for message in messages)
        task = next(message.text for message in messages if message.role == "user")
        return finishes(task) if spoken == 3 else calls((f"c{spoken}", "write", f'"{task}"'))

    async def give_way() -> None:
        await asyncio.sleep(0)

    write = a_tool()
    agent = SimpleAgent(RecordingModel(echo, before=give_way), [write])
    drivers = [Driver(agent, f"task {i}") for i in range(5)]
    for driver in drivers:
        driver.executors = drivers[0].executors

    ends = await asyncio.gather(*(driver.run() for driver in drivers))

    for i, (driver, end) in enumerate(zip(drivers, ends, strict=True)):
        assert isinstance(end, RunEnd)
        assert end.output_text == f"task {i}"
        assert driver.value(USAGE).model_calls == 4
        users = [message.text for message in driver.state.log if message.role == "user"]
        assert users == [f"task {i}"]
        driver.check_log()
    assert len(write.calls) == 15


async def test_runs_of_one_agent_end_each_as_its_own_config_says() -> None:
    model = RecordingModel([Reply.text("the answer"), finishes()])
    agent = SimpleAgent(model, [a_tool()])
    answering, completing = Driver(agent, completion="answer"), Driver(agent)
    for driver in (answering, completing, answering):
        driver.executors = answering.executors
        model.requests.clear()
        await driver.executors["agent_turn"].handle(
            CompactionComplete(), driver.open_context("agent_turn")
        )
        names = [spec.name for spec in model.requests[0].tools.specs]
        assert names == (["write"] if driver is answering else ["write", "work_complete"])
