"""Runs that were told that they repeat themselves come out the same from their journals."""

from pathlib import Path
from typing import Any

import pytest

from harness_actors.events import StallFound
from harness_actors.replay import load_recording, replay
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool
from tests.replay.recorded_runs import TOOLS, done, program, recorded
from tests.replay.test_replay import check

READ = Reply.call("read", {"text": "a"})
WRITE = Reply.call("write", {"text": "a"})
OTHER = Reply.call("read", {"text": "b"})

ALL = Reply.calls([("read", {"text": "a"}), ("write", {"text": "b"}), ("fail", {"how": "told"})])


@tool(effect="read_only", volatile=True)
async def status() -> str:
    """How a job is."""
    return "running"


RUNS: dict[str, tuple[list[Reply], tuple[str, str], int]] = {
    "told and ended": ([READ] * 9, ("stalled", "repetition"), 3),
    "told and ended, fenced": ([WRITE] * 9, ("stalled", "repetition"), 3),
    "told, and did something else": ([*[READ] * 3, OTHER, done()], ("done", "completed"), 1),
    "told twice": (
        [*[WRITE] * 4, OTHER, *[WRITE] * 3, Reply.call("read", {"text": "c"}), done()],
        ("done", "completed"),
        3,
    ),
    "in a circle": ([READ, OTHER] * 9, ("stalled", "repetition"), 3),
    "several calls of both kinds": (
        [
            Reply.calls(
                [("read", {"text": "a"}), ("write", {"text": "b"}), ("fail", {"how": "told"})]
            )
        ]
        * 9,
        ("stalled", "repetition"),
        3,
    ),
    "the same words": ([Reply.text("I am done.")] * 9, ("done", "unverified"), 4),
    "a job is asked about": (
        [*[Reply.call("status", {})] * 12, done()],
        ("done", "completed"),
        0,
    ),
}


@pytest.mark.parametrize("settings", [{}, {"max_rounds_per_turn": 1}, {"max_rounds_per_turn": 4}])
@pytest.mark.parametrize("name", RUNS)
async def test_a_run_that_was_told_comes_out_the_same(
    tmp_path: Path, name: str, settings: dict[str, Any]
) -> None:
    replies, ending, found = RUNS[name]
    agent = program(ScriptedModel(replies), [*TOOLS, status])
    await recorded(tmp_path / "runs.db", agent, **settings)
    recording = load_recording(JournalReader(tmp_path / "runs.db"), "run")

    assert recording.end is not None
    assert (recording.end.status, recording.end.reason.kind) == ending
    events = [event for change in recording.changes for event in change.delta.events]
    assert sum(isinstance(event, StallFound) for event in events) == found
    check(await replay(recording))
