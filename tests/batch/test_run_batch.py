"""What `test_batch` promises, with the actors of this process and real tools."""

import asyncio
import json
import os
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from harness_actors.agents import ChatAgent
from harness_actors.batch import Task, TaskOutcome, run_batch
from harness_actors.batch.tasks import Check
from harness_actors.config import HarnessConfig, Limits
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.errors import AgentCodeError, BadInputError, ConfigError, ModelSetupError
from harness_actors.events import RunCompleted, RunEvent
from harness_actors.messages import Message
from harness_actors.models import OpenAIModel
from harness_actors.testing import Reply, ScriptedModel, an_agent
from harness_actors.tools import coding_tools
from tests.stores.test_expiry import held_by_another_process


def writes_and_ends(messages: Sequence[Message]) -> Reply:
    if messages[-1].role == "tool":
        return Reply.call("work_complete", {"summary": "written"})
    return Reply.call("write_file", {"path": "new.txt", "content": "hello"})


async def test_a_batch_runs_from_python(tmp_path: Path) -> None:
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "old.txt").write_text("old")
    events: list[RunEvent] = []
    tasks = [
        Task(
            id=f"t{number}",
            task="write it",
            workspace=str(tmp_path / "start"),
            check=Check(command="grep hello new.txt && cat old.txt"),
        )
        for number in range(5)
    ]

    outcomes = [
        outcome
        async for outcome in run_batch(
            tasks,
            ChatAgent(model=ScriptedModel(writes_and_ends), tools=coding_tools()),
            runtime="local",
            concurrency=2,
            run_dir=tmp_path / "run",
            on_event=events.append,
        )
    ]

    assert all(outcome.ok for outcome in outcomes)
    assert {outcome.id for outcome in outcomes} == {f"t{number}" for number in range(5)}
    assert outcomes[0].output_text == "written"
    assert (outcomes[0].model_calls, outcomes[0].turns) == (2, 1)
    assert sum(isinstance(event.event, RunCompleted) for event in events) == 5
    # The folder that the runs began with is as it was.
    assert [path.name for path in (tmp_path / "start").iterdir()] == ["old.txt"]


async def test_the_loop_of_a_batch_goes_on_while_another_command_answers_a_run_of_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "run").mkdir()
    agent = ChatAgent(model=ScriptedModel(lambda _: Reply.text("said")))
    batch = run_batch(
        ["say it"],
        agent,
        runtime="local",
        config=HarnessConfig(completion="answer"),
        run_dir=tmp_path / "run",
    )
    with held_by_another_process(tmp_path / "run" / "runs.db"):
        first = asyncio.ensure_future(anext(batch))
        await asyncio.sleep(0)
        assert not first.done()
    assert (await first).ok
    await batch.aclose()


async def test_the_type_of_the_error_that_a_run_failed_with_is_in_its_line(tmp_path: Path) -> None:
    def script(_: Sequence[Message]) -> Reply:
        return Reply.error(ModelSetupError("scripted", "the key is wrong", 401))

    agent = ChatAgent(model=ScriptedModel(script))
    batch = run_batch(["x"], agent, runtime="local", run_dir=tmp_path)
    (outcome,) = [one async for one in batch]

    assert outcome.error is not None
    assert outcome.error["type"] == "ModelSetupError"
    line = json.loads((tmp_path / "results.jsonl").read_text())
    assert line["error"] == outcome.error


def unpriced(**facts: Any) -> ChatAgent:
    return ChatAgent(model=OpenAIModel("unheard-of", base_url="http://127.0.0.1:9/v1"), **facts)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"budget_usd": 5}, "budget_usd"),
        ({"config": HarnessConfig(limits=Limits(cost_usd=1))}, r"limits\.cost_usd"),
    ],
)
async def test_a_bound_on_cost_that_would_bound_nothing_is_refused(
    given: dict[str, Any], field: str, tmp_path: Path
) -> None:
    batch = run_batch(["x"], unpriced(), run_dir=tmp_path / "run", runtime="local", **given)

    with pytest.raises(ConfigError, match=f"{field}: no price is known for 'unheard-of'"):
        await anext(batch)

    assert os.listdir(tmp_path) == []


async def test_a_task_whose_cost_cannot_be_bounded_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("model: {id: unheard-of, base_url: 'http://127.0.0.1:9'}")
    own = {"id": "own agent", "task": "x", "agent": str(tmp_path / "own.yaml")}
    by_budget = run_batch([own], an_agent(), runtime="local", budget_usd=5)
    limited = {"id": "own limit", "task": "x", "limits": {"cost_usd": 1}}
    by_limit = run_batch([limited], unpriced(), runtime="local")

    outcomes = [one for batch in (by_budget, by_limit) async for one in batch]

    assert [one.reason.kind for one in outcomes] == ["bad_input", "bad_input"]
    for one, name in zip(outcomes, ("budget_usd", "limits.cost_usd"), strict=True):
        assert f"{name}: no price is known for 'unheard-of'" in one.reason.message


async def test_a_batch_has_the_settings_of_its_workflow(tmp_path: Path) -> None:
    talker = ChatAgent(model=ScriptedModel(lambda _: Reply.text("not yet")))
    workflow = HarnessWorkflowBuilder(talker, HarnessConfig(max_turns=2)).build()

    (outcome,) = [one async for one in run_batch(["go on"], workflow, runtime="local")]

    assert (outcome.status, outcome.reason.kind, outcome.turns) == ("limit", "max_turns", 2)
    with pytest.raises(ConfigError, match="another config"):
        await anext(run_batch(["x"], workflow, config=HarnessConfig(), runtime="local"))


async def test_each_setting_of_a_call_is_one_of_its_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "start").mkdir()
    monkeypatch.chdir(tmp_path)
    settings: dict[str, Any] = {
        "concurrency": 3,
        "retry_on_error": 2,
        "retry_failed": True,
        "fail_on_error": 0.5,
        "budget_usd": 7.0,
        "epochs": 2,
        "workspace": "start",
        "on_change": "accept",
    }

    stream = run_batch(["x"], an_agent(), runtime="local", run_dir="run", **settings)
    outcomes = [outcome async for outcome in stream]

    assert len(outcomes) == 2
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    told = {**settings, "workspace": str(tmp_path / "start")}
    assert summary["command"]["settings"] == told


async def test_without_a_run_directory_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    outcomes: list[TaskOutcome] = []
    async for outcome in run_batch(["one", "two"], an_agent(), runtime="local"):
        assert len(os.listdir(tmp_path)) == 1
        outcomes.append(outcome)

    assert [outcome.status for outcome in outcomes] == ["done", "done"]
    assert os.listdir(tmp_path) == []


async def test_a_reader_that_goes_away_ends_the_batch_and_the_same_call_goes_on(
    tmp_path: Path,
) -> None:
    tasks = [f"task {number}" for number in range(6)]
    stream = run_batch(tasks, an_agent(), runtime="local", concurrency=2, run_dir=tmp_path)
    async with aclosing(stream):
        first = await anext(stream)

    rest = [
        outcome async for outcome in run_batch(tasks, an_agent(), runtime="local", run_dir=tmp_path)
    ]

    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert len(lines) == 6
    assert first.id not in {outcome.id for outcome in rest}


class HeldModel(ScriptedModel):
    """A model that holds something no process can hand to another."""

    def __reduce__(self) -> str:
        raise TypeError("cannot pickle an open connection")


async def test_an_agent_that_cannot_be_sent_is_told_before_anything_runs(tmp_path: Path) -> None:
    agent = an_agent(HeldModel(writes_and_ends))

    with pytest.raises(AgentCodeError, match="open connection"):
        await anext(run_batch(["x"], agent, runtime="local", run_dir=tmp_path / "run"))

    assert not (tmp_path / "run").exists()


async def test_a_bad_time_of_idleness_is_told_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CELL_IDLE_S", "10s")

    with pytest.raises(BadInputError, match="HARNESS_CELL_IDLE_S"):
        await anext(run_batch(["x"], an_agent(), run_dir=tmp_path / "run"))

    assert not (tmp_path / "run").exists()


async def test_settings_are_checked_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="concurrency"):
        await anext(run_batch(["x"], an_agent(), concurrency=0, run_dir=tmp_path / "run"))

    assert not (tmp_path / "run").exists()
