"""What hooks say comes about in a turn: before a call, after it, and when the agent is done."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from harness_actors.events import ContinuationPrompt, HookFailed, StopDecided, ToolsCounted
from harness_actors.policies import (
    AfterTool,
    AgentStop,
    Allow,
    Ask,
    BeforeModel,
    BeforeTool,
    Change,
    Deny,
    EndRun,
    Hook,
    Hooks,
    OutputText,
    Replace,
    SessionStart,
    ToolUsage,
)
from harness_actors.signals import RunEnd, Waiting
from harness_actors.state import SAID_DONE, USAGE, unanswered
from harness_actors.testing.scripted import Reply
from harness_actors.tools import tool
from tests.executors.driver import (
    CrashPlan,
    Driver,
    RecordingModel,
    SimpleAgent,
    SimpleTool,
    a_tool,
    calls,
    finishes,
)
from tests.virtual_time import VirtualTimeLoop


@dataclass(frozen=True)
class GatedAgent(SimpleAgent):
    hooks: Any = None
    middleware: Any = ()


def a_driver(
    hooks: Any = None,
    *,
    script: Any = None,
    tools: Any = None,
    middleware: Any = (),
    **settings: Any,
) -> Driver:
    script = script or [calls(("c1", "write", '{"n": 1}')), finishes()]
    agent = GatedAgent(
        RecordingModel(script), tools or [a_tool()], hooks=hooks, middleware=middleware
    )
    return Driver(agent, **settings)


def tool_of(driver: Driver) -> SimpleTool:
    tool = driver.agent.tools[0]
    assert isinstance(tool, SimpleTool)
    return tool


def texts(driver: Driver) -> list[str]:
    return [message.text for message in driver.results()]


def says(answer: Any) -> Callable[[Any], Any]:
    async def hook(event: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return hook


async def ended(driver: Driver) -> RunEnd:
    end = await driver.run()
    assert isinstance(end, RunEnd)
    driver.check_log()
    return end


async def test_a_call_that_a_hook_denies_is_not_made_and_the_model_told_why() -> None:
    driver = a_driver(Hooks(pre_tool=says(Deny("not in production"))))

    await ended(driver)

    assert tool_of(driver).calls == []
    assert texts(driver)[0] == "The call was not made: not in production"
    assert driver.results()[0].disposition == "denied"
    assert driver.value(USAGE).tool_calls == 0


async def test_changes_add_up_and_each_hook_sees_those_before_it() -> None:
    async def more(event: BeforeTool) -> Change:
        return Change({"n": event.arguments["n"] + 1})

    driver = a_driver(Hooks(pre_tool=[more, more, says(None)]))

    await ended(driver)

    assert tool_of(driver).calls == ['{"n":3}']
    assert driver.state.log[1].tool_calls[0].arguments == '{"n": 1}'


async def test_the_first_denial_wins_and_nobody_is_asked_after_it() -> None:
    asked: list[str] = []

    async def last(event: BeforeTool) -> Allow:
        asked.append(event.call_id)
        return Allow()

    driver = a_driver(Hooks(pre_tool=[says(Ask()), says(Deny("first")), says(Deny("b")), last]))

    await ended(driver)

    assert texts(driver)[0].endswith("first")
    assert asked == []


async def test_whoever_would_have_a_person_asked_wins_over_who_allows() -> None:
    driver = a_driver(Hooks(pre_tool=[says(Ask("it is dear")), says(Allow())]))

    assert isinstance(await driver.run(), Waiting)

    (asked,) = unanswered(driver.state.values)
    assert (asked["why"], asked["call"]["tool"]) == ("it is dear", "write")
    assert tool_of(driver).calls == []


@pytest.mark.parametrize(
    "answer",
    [ValueError("broken"), True, Change([7]), Change({"n": object()}), Replace("x")],  # type: ignore[arg-type]
)
async def test_a_hook_that_fails_denies_unless_it_was_told_to_allow(answer: Any) -> None:
    denying = a_driver(Hooks(pre_tool=says(answer)))
    allowing = a_driver(Hooks(pre_tool=Hook(says(answer), on_error="allow")))

    await ended(denying)
    await ended(allowing)

    assert tool_of(denying).calls == []
    assert denying.results()[0].disposition == "denied"
    assert tool_of(allowing).calls == ['{"n": 1}']
    for driver in (denying, allowing):
        (failed,) = driver.happened(HookFailed)
        assert (failed.kind, failed.call_id) == ("pre_tool", "c1")


def test_a_hook_that_hangs_denies_when_its_time_is_up() -> None:
    async def hangs(event: BeforeTool) -> None:
        await asyncio.Event().wait()

    driver = a_driver(Hooks(pre_tool=Hook(hangs, timeout_s=3)))

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(ended(driver))

    assert tool_of(driver).calls == []
    assert "it took longer than 3 s" in texts(driver)[0]


@pytest.mark.virtual_time
async def test_a_hook_has_no_more_time_than_what_is_left_of_its_run() -> None:
    async def takes_its_time(_: SessionStart) -> None:
        driver.clock.advance(2)

    async def hangs(_: BeforeTool) -> None:
        await asyncio.Event().wait()

    hooks = Hooks(session_start=takes_its_time, pre_tool=Hook(hangs, timeout_s=100))
    driver = a_driver(hooks, limits={"time_s": 5})
    began = asyncio.get_running_loop().time()

    await ended(driver)

    assert "it took longer than 3 s" in texts(driver)[0]
    assert asyncio.get_running_loop().time() - began < 4


async def test_a_hook_may_not_change_what_it_is_told() -> None:
    async def spoils(event: BeforeTool) -> None:
        event.arguments.clear()

    driver = a_driver(Hooks(pre_tool=[spoils, spoils]))

    await ended(driver)

    assert tool_of(driver).calls == ['{"n": 1}']


async def test_arguments_that_a_hook_broke_are_told_to_the_model_as_any_others() -> None:
    @tool
    async def add(n: int) -> str:
        """Add."""
        return str(n)

    driver = a_driver(
        Hooks(pre_tool=says(Change({"n": "one"}))),
        tools=[add],
        script=[calls(("c1", "add", '{"n": 1}')), finishes()],
    )

    await ended(driver)

    assert "break its schema" in texts(driver)[0]


async def test_after_hooks_hear_of_every_outcome_and_may_replace_what_is_told() -> None:
    seen: list[tuple[str, str, Any]] = []

    async def after(event: AfterTool) -> Replace:
        seen.append((event.call_id, event.disposition, event.arguments))
        return Replace(f"({event.text})")

    async def before(event: BeforeTool) -> Deny | None:
        return Deny("no") if event.call_id == "c2" else None

    driver = a_driver(
        Hooks(pre_tool=before, post_tool=[after, after]),
        tools=[a_tool("write"), a_tool("fail", ValueError("broken"))],
        script=[
            calls(("c1", "write"), ("c2", "write"), ("c3", "fail"), ("c4", "none", "{")),
            finishes(),
        ],
    )

    await ended(driver)

    told = [(call, disposition) for call, disposition, _ in seen]
    each = [("c1", "done"), ("c2", "denied"), ("c3", "failed"), ("c4", "refused")]
    assert told == [one for one in each for _ in range(2)]
    assert [given for *_, given in seen[::2]] == [{}, {}, {}, None]
    assert texts(driver)[0] == "((done))"
    assert [message.disposition for message in driver.results()[:4]] == [
        "done",
        "denied",
        "failed",
        "refused",
    ]


async def test_after_hooks_hear_of_what_was_not_made_where_an_answer_ends_the_run() -> None:
    seen: list[tuple[str, str]] = []

    async def after(event: AfterTool) -> None:
        seen.append((event.call_id, event.disposition))

    driver = a_driver(
        Hooks(pre_tool=says(Deny("no")), post_tool=after),
        script=[calls(("c1", "write"), ("c2", "none")), Reply.text("It is done.")],
        completion="answer",
    )

    await ended(driver)

    assert seen == [("c1", "denied"), ("c2", "refused")]


async def test_other_hooks_that_fail_are_told_of_and_change_nothing() -> None:
    broken = says(ValueError("broken"))
    kinds = ("session_start", "pre_model", "post_model", "post_tool", "agent_stop", "output_guard")
    driver = a_driver(Hooks(**dict.fromkeys(kinds, broken), input_guard=broken))

    end = await ended(driver)

    assert end.status == "done"
    assert {event.kind for event in driver.happened(HookFailed)} == {*kinds, "input_guard"}


@pytest.mark.parametrize("limit", ["time_s", "working_s"])
async def test_a_request_that_never_began_is_no_model_call(limit: str) -> None:
    async def slow(event: BeforeModel) -> None:
        if event.round == 2:
            driver.clock.advance(60)

    driver = a_driver(Hooks(pre_model=slow), limits={limit: 60})

    end = await ended(driver)

    assert (end.status, end.reason.kind) == (
        "limit",
        {"time_s": "time", "working_s": "working_time"}[limit],
    )
    assert len(driver.model.requests) == 1
    assert driver.value(USAGE).model_calls == 1


async def test_a_blocking_hook_runs_in_a_thread_of_the_pool() -> None:
    ran: list[int] = []

    def look(event: BeforeTool) -> None:
        ran.append(threading.get_ident())

    driver = a_driver(Hooks(pre_tool=look))
    services = driver.executors["agent_turn"]._services  # type: ignore[attr-defined]

    async def in_thread(function: Any, *args: Any) -> Any:
        return await asyncio.to_thread(function, *args)

    driver.executors["agent_turn"]._services = replace(services, in_thread=in_thread)  # type: ignore[attr-defined]
    await ended(driver)

    assert ran
    assert ran != [threading.get_ident()]


async def test_who_says_that_it_is_done_is_sent_back_until_its_hooks_agree() -> None:
    asked: list[AgentStop] = []

    async def stop(event: AgentStop) -> Deny | None:
        asked.append(event)
        return Deny("the tests were not run") if len(asked) < 3 else None

    script = [calls(("c1", "write")), finishes("one"), finishes("two"), finishes("three")]
    driver = a_driver(Hooks(agent_stop=stop), script=script)

    end = await ended(driver)

    assert (end.status, end.reason.kind, end.output_text) == ("done", "completed", "three")
    assert [event.text for event in asked] == ["one", "two", "three"]
    assert asked[0].tool_usage == {"write": 1}
    told = [m.text for m in driver.state.log if m.role == "user"][1:]
    assert len(told) == 2
    assert all("the tests were not run" in text for text in told)
    assert texts(driver)[1] == "Noted; it is being checked."
    decisions = [event.reason for event in driver.happened(StopDecided)]
    assert decisions == ["not_accepted", "not_accepted", "completed"]


@pytest.mark.parametrize(
    ("policy", "status", "reason"),
    [
        ("interactive", "done", "unverified"),
        ("strict_automation", "stalled", "blocked"),
    ],
)
async def test_a_hook_that_never_agrees_cannot_hold_a_run_for_ever(
    policy: str, status: str, reason: str
) -> None:
    driver = a_driver(
        Hooks(agent_stop=says(Deny("never"))),
        script=lambda _: finishes(),
        stop_policy=policy,
    )

    end = await ended(driver)

    assert (end.status, end.reason.kind) == (status, reason)
    assert not end.completion_verified
    assert "never" in end.reason.message
    assert end.reason.details == {"causes": ["never"]}
    assert [event.count for event in driver.happened(ContinuationPrompt)] == [1, 2, 3, 4, 5]


async def test_who_works_on_between_refusals_is_ended_by_its_turns() -> None:
    driver = a_driver(
        Hooks(agent_stop=says(Deny("never"))),
        script=lambda _: Reply.calls([("write", {}), ("work_complete", {"summary": "done"})]),
        max_turns=9,
    )

    end = await ended(driver)

    assert (end.status, end.reason.kind) == ("limit", "max_turns")
    assert [event.count for event in driver.happened(ContinuationPrompt)] == [1] * 8


async def test_a_guard_of_the_output_is_asked_first_and_may_end_the_run() -> None:
    async def guard(event: OutputText) -> EndRun:
        return EndRun("it names a customer")

    driver = a_driver(Hooks(output_guard=guard, agent_stop=says(Deny("unheard"))))

    end = await ended(driver)

    assert (end.status, end.reason.kind) == ("failed", "agent_error")
    assert "it names a customer" in end.reason.message


async def test_an_answer_is_guarded_where_an_answer_ends_the_run() -> None:
    async def guard(event: OutputText) -> Deny | None:
        return Deny("be polite") if event.text == "No." else None

    driver = a_driver(
        Hooks(output_guard=guard),
        script=[Reply.text("No."), Reply.text("No, thank you.")],
        completion="answer",
    )

    end = await ended(driver)

    assert (end.status, end.output_text) == ("done", "No, thank you.")


async def test_a_task_that_its_guard_refuses_reaches_no_model() -> None:
    driver = a_driver(Hooks(input_guard=says(EndRun("no medical advice"))))

    end = await ended(driver)

    assert (end.status, end.reason.kind) == ("failed", "agent_error")
    assert "no medical advice" in end.reason.message
    assert driver.model.requests == []


async def test_a_task_that_its_guard_denies_is_told_to_the_model_so() -> None:
    driver = a_driver(Hooks(input_guard=says(Deny("no medical advice"))))

    await ended(driver)

    assert "no medical advice" in driver.model.requests[0].messages[-1].text


async def test_tools_are_counted_over_turns_and_told_at_the_end_of_each() -> None:
    script = [calls(("c1", "write"), ("c2", "none")), Reply.text("hm"), calls(("c3", "write"))]
    driver = a_driver(script=[*script, finishes()], middleware=(ToolUsage(),))

    await ended(driver)

    counted = [(event.turn, dict(event.calls)) for event in driver.happened(ToolsCounted)]
    assert counted == [(1, {"write": 1}), (2, {"write": 2})]


async def test_middleware_stands_around_tools_and_its_denial_is_one() -> None:
    async def deny(call: Any, next: Any) -> Deny:
        return Deny("closed today")

    async def shout(call: Any, next: Any) -> str:
        result: str = await next(call.with_arguments({"n": 2}))
        return result.upper()

    denied = a_driver(middleware=(deny,))
    shouted = a_driver(middleware=(shout,))

    await ended(denied)
    await ended(shouted)

    assert (texts(denied)[0], denied.results()[0].disposition) == ("closed today", "denied")
    assert tool_of(denied).calls == []
    assert (texts(shouted)[0], tool_of(shouted).calls) == ("DONE", ['{"n":2}'])


async def test_a_run_without_gates_observes_nothing_and_counts_nothing() -> None:
    driver = a_driver()

    await ended(driver)

    keys = {write.key for delta in driver.deltas for write in delta.writes}
    assert not {key for key in keys if "observed" in key or "tool_usage" in key}


@pytest.mark.parametrize("steps", range(14))
async def test_nobody_is_asked_again_about_a_call_whose_record_is_on_disk(steps: int) -> None:
    """Wherever the process dies: one verdict for each call, and what it says is done."""
    asked: list[str] = []

    async def before(event: BeforeTool) -> Deny | Change:
        asked.append(event.call_id)
        return Deny("no") if event.call_id == "c1" else Change({"n": len(asked)})

    driver = a_driver(
        Hooks(pre_tool=before),
        tools=[a_tool("write"), a_tool("read", idempotent=True)],
        script=[calls(("c1", "write"), ("c2", "read"), ("c3", "write")), finishes()],
    )
    read = driver.agent.tools[1]
    assert isinstance(read, SimpleTool)
    act = read.act

    async def dying(arguments: str, context: Any) -> Any:
        await driver.step()
        return await act(arguments, context)

    read.act = dying
    await driver.run_through_crashes(steps)

    driver.check_log()
    written = [f'{{"n":{number}}}' for number in (asked.index("c3") + 1, len(asked))]
    assert all(call in written for call in tool_of(driver).calls)
    assert len(tool_of(driver).calls) <= 1
    # All runs of one call get what one verdict has changed.
    assert len(set(read.calls)) <= max(1, asked.count("c2"))
    became = {message.tool_call_id: message.disposition for message in driver.results()}
    assert became["c1"] == "denied"


async def test_a_verdict_of_a_fenced_call_outlives_its_process() -> None:
    """The process dies in a call that reads, after the record; it is made again as it was."""
    asked: list[str] = []

    async def before(event: BeforeTool) -> Change:
        asked.append(event.call_id)
        return Change({"n": len(asked)})

    read = a_tool("read", idempotent=True)
    driver = a_driver(
        Hooks(pre_tool=before),
        tools=[a_tool("write"), read],
        script=[calls(("c1", "read"), ("c2", "write")), finishes()],
    )
    died = False

    async def dies_once(arguments: str, context: Any) -> str:
        nonlocal died
        if not died:
            died = True
            driver._die()
            await asyncio.Event().wait()
        return "read"

    read.act = dies_once
    await driver.run_through_crashes(10**6)

    assert asked == ["c1", "c2"]
    assert read.calls == ['{"n":1}', '{"n":1}']
    # It may write, and nobody knows whether it had begun.
    assert tool_of(driver).calls == []


async def test_a_verdict_is_of_one_message_though_ids_come_again() -> None:
    """Repair closes a round that a death has cut; the next message is in the same one."""
    asked: list[Any] = []

    async def before(event: BeforeTool) -> Deny | None:
        asked.append(event.arguments)
        return Deny("not 1") if event.arguments == {"n": 1} else None

    died = False

    async def dies_once(arguments: str, context: Any) -> str:
        nonlocal died
        if not died:
            died = True
            driver._die()
            await asyncio.Event().wait()
        return "written"

    driver = a_driver(
        Hooks(pre_tool=before),
        tools=[SimpleTool("write", dies_once)],
        script=[
            calls(("c1", "write", '{"n": 1}'), ("c2", "write", '{"n": 2}')),
            calls(("c1", "write", '{"n": 3}')),
            finishes(),
        ],
    )

    await driver.run_through_crashes(10**6)

    assert asked == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert tool_of(driver).calls == ['{"n": 2}', '{"n": 3}']


async def test_a_call_behind_a_gate_is_made_each_time() -> None:
    """Hooks may want it otherwise than before, so no earlier result stands for it."""
    read = a_tool("read", idempotent=True)
    driver = a_driver(
        Hooks(pre_tool=says(None)),
        tools=[read],
        script=[calls(("c1", "read")), calls(("c2", "read")), finishes()],
    )

    await ended(driver)

    assert len(read.calls) == 2


async def test_nobody_is_asked_about_a_call_that_is_refused_after_a_crash() -> None:
    """What a crash took from the books lets none of the calls be made for which none were left."""
    asked: list[str] = []

    async def before(event: BeforeTool) -> Deny | None:
        asked.append(event.call_id)
        return Deny("not that") if event.call_id == "c2" else None

    driver = a_driver(
        Hooks(pre_tool=before),
        tools=[a_tool("write")],
        script=[calls(("c1", "write"), ("c2", "write"), ("c3", "write")), finishes()],
        limits={"tool_calls": 2},
    )

    async def dies(arguments: str, context: Any) -> Any:
        driver.crash = CrashPlan(0)
        await driver.step()

    tool_of(driver).act = dies
    await driver.run_through_crashes(100)

    driver.check_log()
    assert asked == ["c1", "c2"]
    dispositions = [message.disposition for message in driver.results()]
    assert dispositions == ["unknown", "denied", "refused", "done"]
    assert "not that" in texts(driver)[1]


ENDS = {"a tool": finishes("it is done"), "a text": Reply.text("it is done")}


@pytest.mark.parametrize("kind", ["output_guard", "agent_stop"])
@pytest.mark.parametrize("how", ENDS)
async def test_who_dies_while_its_end_is_judged_asks_no_model_again(kind: str, how: str) -> None:
    heard: list[str] = []

    async def judge(event: Any) -> Deny | None:
        heard.append(event.text)
        if len(heard) == 1:
            driver.crash = CrashPlan(0)
        await driver.step()
        return Deny("the tests were not run") if len(heard) == 2 else None

    script = [calls(("c1", "write")), ENDS[how], ENDS[how]]
    completion = "explicit" if how == "a tool" else "answer"
    driver = a_driver(Hooks(**{kind: judge}), script=script, completion=completion)

    end = await driver.run_through_crashes(100)

    assert isinstance(end, RunEnd)
    assert (end.status, end.output_text) == ("done", "it is done")
    assert heard == ["it is done"] * 3
    assert len(driver.model.requests) == 3
    assert SAID_DONE.name not in {k for k, v in driver.state.values.items() if v is not None}


async def test_an_end_that_nobody_judges_is_written_once() -> None:
    driver = a_driver(Hooks(post_model=says(None)), script=[finishes()])

    await ended(driver)

    written = [write.key for delta in driver.deltas for write in delta.writes]
    assert SAID_DONE.name not in written
