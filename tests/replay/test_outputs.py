"""A run that came to a value comes out the same from its journal: its type is not needed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors.agents import ChatAgent, Program
from harness_actors.errors import ModelSetupError
from harness_actors.replay import load_recording, replay
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel
from tests.outputs.forms import Faulty, Report, Slow
from tests.replay.recorded_runs import TOOLS, recorded
from tests.replay.test_replay import READ, WRITE, check


def done(output: Any) -> Reply:
    return Reply.call("work_complete", {"summary": "done", "output": output})


BOTH = Reply.calls(
    [
        ("write", {"text": "a"}),
        ("work_complete", {"summary": "done", "output": {"total": 3}}),
    ]
)

EXPLICIT: dict[str, tuple[Any, list[Reply], str]] = {
    "fits at once": (Report, [READ, done({"total": 4})], "completed"),
    "fits later": (Report, [done({"total": 3}), WRITE, BOTH, done({"total": 4})], "completed"),
    "never fits": (Report, [done({"total": 3})] * 9, "repetition"),
    "words alone": (Report, [Reply.text("done")] * 9, "unverified"),
    "a bug": (Faulty, [done({"total": "x"}), READ, done({"total": 13})], "agent_error"),
    "the model fails": (
        Report,
        [done({"total": 3}), Reply.error(ModelSetupError("scripted", "gone"))],
        "model_error",
    ),
    "no time": (Slow, [READ, done({"seconds": 9})], "time"),
}
ANSWER: dict[str, tuple[Any, list[Reply], str]] = {
    "fits at once": (Report, [READ, Reply.text('{"total": 4}')], "answered"),
    "fits later": (
        Report,
        [Reply.text("4"), Reply.text('{"total": 3}'), Reply.text('```\n{"total": 4}\n```')],
        "answered",
    ),
    "never fits": (Report, [Reply.text('{"total": 3}')] * 9, "unverified"),
    "a bug": (Faulty, [Reply.text('{"total": 13}')], "agent_error"),
    "no time": (Slow, [READ, Reply.text('{"seconds": 9}')], "time"),
}


async def same(
    folder: Path, given: tuple[Any, list[Reply], str], completion: Any, **more: Any
) -> None:
    output_type, script, ending = given
    agent = ChatAgent(model=ScriptedModel(script), tools=TOOLS, output_type=output_type)
    if ending == "time":
        more["limits"] = {"time_s": 0.5}
    session = await recorded(
        folder / "runs.db", Program.of(agent), completion=completion, max_turns=20, **more
    )
    end = session.recording().end
    assert end is not None
    assert end.reason.kind == ending
    assert end.output == ({"total": 4} if ending in ("completed", "answered") else None)
    check(await session.replayed())


@pytest.mark.parametrize("name", EXPLICIT)
async def test_a_value_that_a_tool_takes(tmp_path: Path, name: str) -> None:
    await same(tmp_path, EXPLICIT[name], "explicit")


@pytest.mark.parametrize("name", ANSWER)
async def test_a_value_that_is_an_answer(tmp_path: Path, name: str) -> None:
    await same(tmp_path, ANSWER[name], "answer")


async def test_another_value_is_a_difference(tmp_path: Path) -> None:
    agent = ChatAgent(model=ScriptedModel([done({"total": 4})]), output_type=Report)
    session = await recorded(tmp_path / "runs.db", Program.of(agent))
    recording = session.recording()
    assert recording.end is not None
    other = replace(recording, end=replace(recording.end, output={"total": 6}))
    assert not (await replay(other)).same
    read = load_recording(JournalReader(tmp_path / "runs.db"), recording.spec.run_id)
    assert read.takes_output
