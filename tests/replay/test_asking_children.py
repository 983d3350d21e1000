"""Trees whose user was asked by runs below the top come out the same from their journals."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_actors.agents import Program
from harness_actors.events import InputAwaited, RunCompleted, RunParked
from harness_actors.policies import ApprovalRule, Approvals
from harness_actors.policies.decisions import Approve, Refuse, decision_text
from harness_actors.testing import Reply
from tests.actors.followers import until
from tests.replay.families import SilentChildren, check_tree, ends, family, scouts
from tests.replay.recorded_runs import (
    FIRST_COMMAND,
    SECOND_COMMAND,
    Session,
    done,
    opened_locally,
)

ASKS = Approvals(rules=[ApprovalRule(decide="ask", tools=["write"])])
YES, NO = decision_text(Approve()), decision_text(Refuse("no"))
DEEP: dict[str, Any] = {"sub_agents": {"max_depth": 2}}

TREES: dict[str, tuple[list[Reply], Mapping[str, str], dict[str, Any]]] = {
    "one": ([scouts("write a"), done()], {"1.q1": YES}, {}),
    "denied": ([scouts("write a"), done()], {"1.q1": NO}, {}),
    "beside others": (
        [scouts("read a", "write b", "read c", "write d"), done()],
        {"2.q1": YES, "4.q1": NO},
        {},
    ),
    "again": ([scouts("write a"), scouts("write b"), done()], {"1.q1": YES, "2.q1": YES}, {}),
    "below another one": (
        [scouts("ask write a and read b"), done()],
        {"1.1.q1": YES},
        DEEP,
    ),
    "below two": (
        [scouts("ask write a and write b", "ask read c and write d"), done()],
        {"1.1.q1": YES, "1.2.q1": YES, "2.2.q1": NO},
        DEEP,
    ),
    "and itself": (
        [
            Reply.calls([("scout", {"prompt": "write a"}), ("write", {"text": "b"})]),
            done(),
        ],
        {"q1": YES, "1.q1": YES},
        {},
    ),
}


def asking(replies: list[Reply]) -> Program:
    return family(SilentChildren(replies), approvals=ASKS)


@pytest.mark.parametrize("name", TREES)
async def test_what_was_answered_comes_out_the_same(name: str, tmp_path: Path) -> None:
    replies, answers, settings = TREES[name]
    session = Session(tmp_path / "runs.db", asking(replies), settings)
    asked: list[str] = []
    async with opened_locally(session.store, FIRST_COMMAND) as runtime:
        for _ in range(4):
            cursor = await runtime.position()
            if asked:
                await runtime.resume([session.run_id], secrets={})
            else:
                await session.submit(runtime)
            event = await until_left(runtime, cursor)
            if isinstance(event, RunCompleted):
                break
            open_ones = [one["id"] for one in event.questions]
            asked += open_ones
            await check_tree(session.store)
            for number in open_ones:
                await runtime.answer(session.run_id, {number: answers[number]})
    assert sorted(asked) == sorted(answers)
    assert {end.status for end in ends(session.store).values() if end} == {"done"}
    await check_tree(session.store)


async def until_left(runtime: Any, cursor: int) -> Any:
    """The event by which the run at the top leaves service."""
    while True:
        news = await runtime.wait_for_news(cursor, messages=False)
        cursor = news.cursor
        for told in news.events:
            if "." not in told.run_id and isinstance(
                told.event, InputAwaited | RunCompleted | RunParked
            ):
                return told.event


async def test_one_that_was_cancelled_while_it_asked(tmp_path: Path) -> None:
    session = Session(tmp_path / "runs.db", asking([scouts("write a", "read b"), done()]))
    async with opened_locally(session.store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await until_left(runtime, 0)
        await runtime.stop([session.run_id], "cancel")
    assert [end.status for end in ends(session.store).values() if end] == [
        "cancelled",
        "cancelled",
        "done",
    ]
    await check_tree(session.store)


async def test_one_of_those_that_ask_was_cancelled(tmp_path: Path) -> None:
    session = Session(tmp_path / "runs.db", asking([scouts("write a", "write b"), done()]))
    async with opened_locally(session.store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await until_left(runtime, 0)
        await runtime.stop([f"{session.run_id}.1"], "cancel")
        await check_tree(session.store)
        await runtime.answer(session.run_id, {"2.q1": YES})
        cursor = await runtime.position()
        await runtime.resume([session.run_id], secrets={})
        assert isinstance(await until_left(runtime, cursor), RunCompleted)
    await check_tree(session.store)


async def test_it_was_asked_for_again_before_all_was_answered(tmp_path: Path) -> None:
    session = Session(tmp_path / "runs.db", asking([scouts("write a", "write b"), done()]))
    async with opened_locally(session.store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await until_left(runtime, 0)
        await runtime.answer(session.run_id, {"2.q1": NO})
    async with opened_locally(session.store, SECOND_COMMAND) as runtime:
        cursor = await runtime.position()
        await runtime.resume([session.run_id], secrets={})
        event = await until_left(runtime, cursor)
        assert [one["id"] for one in event.questions] == ["1.q1"]
        await check_tree(session.store)
        await runtime.answer(f"{session.run_id}.1", {"q1": YES})
        cursor = await runtime.position()
        await runtime.resume([session.run_id], secrets={})
        assert isinstance(await until_left(runtime, cursor), RunCompleted)
    await check_tree(session.store)


async def test_one_that_was_answered_while_others_went_on(tmp_path: Path) -> None:
    session = Session(tmp_path / "runs.db", asking([scouts("write a", "be silent"), done()]))
    async with opened_locally(session.store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await until(runtime, f"{session.run_id}.1", lambda event: isinstance(event, InputAwaited))
        await runtime.answer(session.run_id, {"1.q1": YES})
        await until(runtime, f"{session.run_id}.1", lambda event: isinstance(event, RunCompleted))
        await runtime.stop([f"{session.run_id}.2"], "cancel")
        assert isinstance(await until_left(runtime, 0), RunCompleted)
    first, *_ = (end for end in ends(session.store).values() if end)
    assert first.status == "done"
    await check_tree(session.store)
