"""A run behind gates comes out the same from its journal, without the code of any of them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from harness_actors.agents import ChatAgent, Program
from harness_actors.policies import (
    AfterRound,
    AfterTool,
    AgentStop,
    BeforeModel,
    BeforeTool,
    Change,
    Circling,
    Deny,
    EndRun,
    Hook,
    Hooks,
    InputText,
    Novel,
    OutputText,
    Redact,
    Replace,
    ShellSafety,
    ToolUsage,
)
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.turn import hook_calls
from harness_actors.turn.call_gates import WITHHELD
from tests.replay.recorded_runs import TOOLS, done, recorded
from tests.replay.test_replay import check

CALLS = [
    Reply.calls([("write", {"text": "a"}), ("read", {"text": "b"})], said="both"),
    Reply.calls([("read", {"text": "c"}), ("nothing", {}), ("fail", {"how": "raised"})]),
    Reply.text("hm"),
    done(),
    Reply.call("write", {"text": "d"}),
    done(),
]


async def judge(event: BeforeTool) -> Deny | Change | None:
    match event.arguments:
        case {"text": "a"}:
            return Deny("no")
        case {"text": "b"}:
            return Change({"text": "B" * 9})
    return None


async def look(event: AfterTool) -> Replace | None:
    return Replace(event.text.upper()) if event.disposition in ("denied", "refused") else None


async def stop(event: AgentStop) -> Deny | None:
    return None if event.tool_usage.get("write") else Deny("write something")


async def fails(event: Any) -> None:
    raise ValueError("broken")


async def guard(event: InputText) -> Deny:
    return Deny("unkind")


async def refuse(event: OutputText) -> EndRun:
    return EndRun("secret")


async def refuse_task(event: InputText) -> EndRun:
    return EndRun("no")


async def all_is_novel(event: AfterRound) -> Novel:
    return Novel()


async def no_reading(event: AfterRound) -> Circling | None:
    answer = next(one for one in reversed(event.messages) if one.role == "assistant")
    reads = any(call.name == "read" for call in answer.tool_calls)
    return Circling("you read and read") if reads else None


async def around(call: Any, next: Any) -> Any:
    return Deny("closed") if "c" in call.arguments else "<" + await next(call) + ">"


GATES: dict[str, dict[str, Any]] = {
    "calls are denied and changed": {"hooks": Hooks(pre_tool=judge)},
    "results are replaced": {"hooks": Hooks(pre_tool=judge, post_tool=look)},
    "the end is denied": {"hooks": Hooks(agent_stop=stop)},
    "the end is refused": {"hooks": Hooks(output_guard=refuse)},
    "the task is denied": {"hooks": Hooks(input_guard=guard)},
    "the task is refused": {"hooks": Hooks(input_guard=refuse_task)},
    "all hooks fail": {
        "hooks": dict.fromkeys(
            ("session_start", "pre_model", "post_model", "pre_tool", "post_tool"), fails
        )
    },
    "middleware": {"middleware": [ToolUsage(), ShellSafety(), Redact(), around]},
    "all together": {
        "hooks": Hooks(
            session_start=fails,
            input_guard=guard,
            pre_model=fails,
            pre_tool=[fails, judge],
            post_tool=look,
            agent_stop=stop,
        ),
        "middleware": [ToolUsage(), Redact(), around],
    },
}


def a_program(gates: dict[str, Any]) -> Program:
    return Program.of(ChatAgent(model=ScriptedModel(CALLS), tools=TOOLS, **gates))


@pytest.mark.parametrize("name", GATES)
async def test_a_run_behind_gates_comes_out_the_same(tmp_path: Path, name: str) -> None:
    session = await recorded(tmp_path / "runs.db", a_program(GATES[name]))

    check(await session.replayed())


async def test_a_question_whose_answer_a_hook_replaced_comes_out_the_same(tmp_path: Path) -> None:
    from harness_actors.tools.asking import ask_user

    async def louder(event: AfterTool) -> Replace:
        return Replace(event.text + "!")

    script = [Reply.call("ask_user", {"question": "Which?"}), done()]
    agent = ChatAgent(model=ScriptedModel(script), tools=[ask_user], hooks={"post_tool": louder})
    session = await recorded(tmp_path / "runs.db", Program.of(agent), on_question="deny")

    results = [m.text for m in session.recording().messages if m.role == "tool"]
    assert results[0].endswith("!")
    check(await session.replayed())


@pytest.mark.parametrize("limit", ["time_s", "working_s"])
async def test_time_that_was_over_in_a_hook_comes_out_the_same(tmp_path: Path, limit: str) -> None:
    async def slow(event: BeforeModel) -> None:
        await asyncio.sleep(2 * (event.round == 2))

    session = await recorded(
        tmp_path / "runs.db",
        a_program({"hooks": Hooks(pre_model=slow)}),
        limits={limit: 1.5},
    )

    recording = session.recording()
    assert recording.end is not None
    assert recording.end.status == "limit"
    assert recording.end.usage.model_calls == 1
    check(await session.replayed())


async def late(event: AfterTool) -> Replace:
    # Longer than a run may go on that has no such hooks.
    await asyncio.sleep(2)
    return Replace("looked at")


@pytest.mark.parametrize("late_s", [5.0, 0.1])
async def test_a_result_that_hooks_saw_late_or_not_at_all_comes_out_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late_s: float
) -> None:
    monkeypatch.setattr(hook_calls, "LATE_S", late_s)
    script = [Reply.calls([("read", {"text": "a"}), ("look_long", {})]), done()]
    agent = ChatAgent(model=ScriptedModel(script), tools=TOOLS, hooks={"post_tool": late})
    session = await recorded(tmp_path / "runs.db", Program.of(agent), limits={"time_s": 1.5})

    recording = session.recording()
    assert recording.end is not None
    assert (recording.end.status, recording.end.reason.kind) == ("limit", "time")
    said = "looked at" if late_s > 1 else WITHHELD["cut"]
    assert [m.text for m in recording.messages if m.role == "tool"] == [said, said]
    check(await session.replayed())


async def test_results_that_are_withheld_come_out_the_same(tmp_path: Path) -> None:
    hooks = Hooks(pre_tool=judge, post_tool=[Hook(fails, on_error="deny"), look])
    session = await recorded(tmp_path / "runs.db", a_program({"hooks": hooks}))

    results = [m.text for m in session.recording().messages if m.role == "tool"]
    assert set(results[:-1]) == {WITHHELD["failed"]}
    check(await session.replayed())


READS = Reply.call("read", {"text": "a"})


@pytest.mark.parametrize(
    ("hook", "script", "status"),
    [
        (all_is_novel, [*[READS] * 8, done()], "done"),
        (no_reading, [READS, done()], "done"),
        (no_reading, [READS] * 4, "stalled"),
        (fails, [READS] * 8, "stalled"),
    ],
)
async def test_what_hooks_said_of_circles_comes_out_the_same(
    tmp_path: Path, hook: Any, script: list[Reply], status: str
) -> None:
    agent = ChatAgent(model=ScriptedModel(script), tools=TOOLS, hooks=Hooks(stall=hook))
    session = await recorded(tmp_path / "runs.db", Program.of(agent))

    recording = session.recording()
    assert recording.end is not None
    assert recording.end.status == status
    check(await session.replayed())
