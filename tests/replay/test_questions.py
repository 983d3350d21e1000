"""A run that asked its user comes out the same, and it is said what that user did."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors.events import InputAwaited, RunCompleted
from harness_actors.replay import Recording, replay
from harness_actors.state import ANSWERS, StateDelta, Write
from harness_actors.testing import Reply
from harness_actors.tools import ask_user
from tests.replay.recorded_runs import FIRST_COMMAND, TOOLS, Session, done, opened_locally, program

ANSWERED, CANCELLED = "what its user answered", "its user cancelled it while it waited"
ASKS = Reply.calls([("ask_user", {"question": "Which?"}), ("ask_user", {"question": "How?"})])


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ({}, [CANCELLED]),
        ({"q1": "this"}, [ANSWERED, CANCELLED]),
        ({"q1": "this", "q2": "so"}, [ANSWERED, CANCELLED]),
    ],
    ids=["unanswered", "answered in part", "answered"],
)
async def test_a_run_that_was_cancelled_while_it_waited(
    tmp_path: Path, answers: Mapping[str, str], told: list[str]
) -> None:
    session = Session(tmp_path / "runs.db", program([ASKS, done()], (*TOOLS, ask_user)))
    async with opened_locally(session.store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(lambda event: isinstance(event, InputAwaited), runtime)
        if answers:
            await runtime.answer("run", answers)
        await runtime.stop(["run"], "cancel")
        await session.until(lambda event: isinstance(event, RunCompleted), runtime)

    replayed = await session.replayed()

    assert replayed.same, replayed.differences
    assert replayed.end is not None
    assert replayed.end.status == "cancelled"
    assert [fact for fact in replayed.facts if fact in (ANSWERED, CANCELLED)] == told


async def test_a_run_that_was_answered_and_taken_up_was_not_cancelled(tmp_path: Path) -> None:
    session = Session(tmp_path / "runs.db", program([ASKS, done()], (*TOOLS, ask_user)))
    async with opened_locally(session.store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(lambda event: isinstance(event, InputAwaited), runtime)
        await runtime.answer("run", {"q1": "this", "q2": "so"})
        await runtime.resume(["run"], secrets={})
        await session.until(lambda event: isinstance(event, RunCompleted), runtime)

    replayed = await session.replayed()

    assert replayed.same, replayed.differences
    assert ANSWERED in replayed.facts
    assert CANCELLED not in replayed.facts


def as_it_was_written(recording: Recording) -> Recording:
    """As an earlier version has it: all answers of the run, with each of them."""
    changes, given = [], dict[str, str]()
    for change in recording.changes:
        delta = change.delta
        if any(write.key == ANSWERS.name for write in delta.writes):
            given = given | dict(write.value for write in delta.writes)
            writes = (Write(ANSWERS.name, "set", given),)
            delta = StateDelta(writes, delta.messages, delta.events)
        changes.append(replace(change, delta=delta))
    return replace(recording, changes=tuple(changes))


@pytest.mark.parametrize("earlier", [False, True])
async def test_answers_that_were_given_one_by_one(tmp_path: Path, earlier: bool) -> None:
    session = Session(tmp_path / "runs.db", program([ASKS, done()], (*TOOLS, ask_user)))
    async with opened_locally(session.store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(lambda event: isinstance(event, InputAwaited), runtime)
        await runtime.answer("run", {"q2": "so"})
        await runtime.answer("run", {"q1": "this"})
        await runtime.resume(["run"], secrets={})
        await session.until(lambda event: isinstance(event, RunCompleted), runtime)

    recording = session.recording()
    replayed = await replay(as_it_was_written(recording) if earlier else recording)

    assert replayed.same, replayed.differences
    assert ANSWERED in replayed.facts
    changes = (write for change in recording.changes for write in change.delta.writes)
    assert [write.change for write in changes if write.key == ANSWERS.name] == ["put", "put"]


async def test_an_answer_that_was_another_one_is_a_difference(tmp_path: Path) -> None:
    session = Session(tmp_path / "runs.db", program([ASKS, done()], (*TOOLS, ask_user)))
    async with opened_locally(session.store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(lambda event: isinstance(event, InputAwaited), runtime)
        await runtime.answer("run", {"q1": "this", "q2": "so"})
        await runtime.resume(["run"], secrets={})
        await session.until(lambda event: isinstance(event, RunCompleted), runtime)

    recording = session.recording()
    other = (Write(ANSWERS.name, "put", ["q1", "that"]), Write(ANSWERS.name, "put", ["q2", "so"]))
    changes = [
        replace(change, delta=replace(change.delta, writes=other))
        if any(write.key == ANSWERS.name for write in change.delta.writes)
        else change
        for change in recording.changes
    ]
    assert not (await replay(replace(recording, changes=tuple(changes)))).same


@pytest.mark.parametrize(
    "calls",
    [
        [("ask_user", {"question": "Which?"})],
        [("read", {"text": "a"}), ("ask_user", {"question": "Which?"}), ("write", {"text": "b"})],
        [("write", {"text": "b"}), ("ask_user", {"question": "Which?"}), ("ask_user", {})],
        [("ask_user", {"question": " "}), ("ask_user", {"question": "How?", "why": "so"})],
    ],
    ids=["alone", "between others", "behind one that writes", "behind one that asks nothing"],
)
@pytest.mark.parametrize("on_question", ["fail", "deny"])
async def test_a_run_that_must_not_ask(tmp_path: Path, calls: Any, on_question: str) -> None:
    agent = program([Reply.calls(calls), done()], (*TOOLS, ask_user))
    session = Session(tmp_path / "runs.db", agent, {"on_question": on_question})
    result = await session.to_its_end()
    assert result.status == ("failed" if on_question == "fail" else "done")

    replayed = await session.replayed()

    assert replayed.same, replayed.differences
