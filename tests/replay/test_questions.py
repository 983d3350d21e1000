"""A run that asked its user comes out the same, and it is said what that user did."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from harness_actors.events import InputAwaited, RunCompleted
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
