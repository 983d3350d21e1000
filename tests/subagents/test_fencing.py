"""What stands in a message behind calls that delegate begins as if it stood alone."""

from pathlib import Path
from typing import Any

import pytest

from harness_actors.policies import ApprovalRule, Approvals
from harness_actors.records import StoredChange
from harness_actors.replay import load_recording
from harness_actors.state import OPEN_CALLS, QUESTIONS
from harness_actors.testing import Reply
from tests.replay.families import grown
from tests.replay.recorded_runs import done
from tests.subagents.team import Team, delegating, ran

WRITE, READ = ("write", {"text": "a"}), ("read", {"text": "a"})
REFUSED, BEGUN = ("scout", {"prompt": ""}), ("scout", {"prompt": "read a"})


def after(change: StoredChange, listed: list[str], held: list[str]) -> tuple[list[str], list[str]]:
    """The calls that are open, and those of them that have not begun, when a change is on disk."""
    for write in change.delta.writes:
        if write.key == OPEN_CALLS.name and write.change == "set":
            listed = [call["call_id"] for call in write.value]
        elif write.key == OPEN_CALLS.name:
            listed = listed[write.value :]
        elif write.key == QUESTIONS.name:
            held = [] if write.value is None else list(write.value["held"])
    return listed, held


@pytest.mark.parametrize(
    "calls",
    [
        [REFUSED, WRITE],
        [WRITE, REFUSED, WRITE],
        [READ, REFUSED, READ, WRITE, REFUSED, WRITE],
        [REFUSED, WRITE, BEGUN, WRITE, REFUSED, WRITE],
        [BEGUN, REFUSED, WRITE, REFUSED, BEGUN, REFUSED, WRITE],
    ],
)
async def test_a_call_that_may_be_lost_is_on_disk_as_begun_before_it_begins(
    tmp_path: Path, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    session = await grown(tmp_path / "runs.db", [Reply.calls(calls), done()])

    listed: list[str] = []
    held: list[str] = []
    written = 0
    writes = [f"call_2_{place}" for place, call in enumerate(calls) if call is WRITE]
    for change in session.recording().changes:
        for message in change.delta.messages:
            if message.role == "tool" and message.tool_call_id in writes:
                # By what was on disk before this change.
                assert message.tool_call_id in listed
                assert message.tool_call_id not in held
                written += 1
        listed, held = after(change, listed, held)
    assert written == len(writes)


ASKS_TO_WRITE = Approvals(rules=[ApprovalRule(decide="ask", tools=["write"])])
LOOK, DEAR = ("look", {"what": "x"}), ("write", {"what": "x"})
NOBODY, SCOUT = ("explore", {"prompt": ""}), ("explore", {"prompt": "look"})


@pytest.mark.parametrize(
    "calls",
    [
        [NOBODY, DEAR],
        [LOOK, NOBODY, DEAR, LOOK],
        [SCOUT, DEAR],
        [SCOUT, LOOK, DEAR],
        [SCOUT, LOOK, NOBODY, SCOUT, LOOK, DEAR],
    ],
)
async def test_a_call_that_waits_for_approval_is_at_no_moment_on_disk_as_begun(
    tmp_path: Path, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    result, journal = await ran(
        Team(delegating(*calls), given={"approvals": ASKS_TO_WRITE}), tmp_path
    )

    assert result.status == "awaiting_input"
    listed: list[str] = []
    held: list[str] = []
    waits = f"call_2_{calls.index(DEAR)}"
    for change in load_recording(journal, result.run_id).changes:
        listed, held = after(change, listed, held)
        assert waits in held or waits not in listed
    assert waits in held
