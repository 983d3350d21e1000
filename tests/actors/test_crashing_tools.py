"""On real Ray: one poisonous run does not take its neighbours with it."""

import os
import signal
from pathlib import Path

import pytest

from harness_actors.actors.processes import is_alive
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig, Limits
from harness_actors.events import ExecutorLost, RoundCompleted
from harness_actors.models import LocalModel
from harness_actors.stores import SqliteJournal
from harness_actors.testing import Reply, ScriptedModel
from tests.actors.followers import opened, results, specs, submit, until
from tests.actors.tasks import crash, lines, look, note_then_complete

pytestmark = [pytest.mark.ray, pytest.mark.timeout(200)]


async def test_a_tool_that_crashes_its_process_ends_its_run_alone(tmp_path: Path) -> None:
    healthy = note_then_complete(tmp_path / "log", rounds=10, seconds=0.3)
    # Whatever it is told, it calls the tool again.
    poison = Program.of(
        ChatAgent(model=ScriptedModel(lambda _: Reply.call("crash")), tools=[crash])
    )
    neighbours = specs(healthy, 5)
    (sick,) = specs(poison, 1)
    lost: list[ExecutorLost] = []

    async with opened("ray", tmp_path / "runs.db") as runtime:
        await submit(runtime, healthy, neighbours)
        await submit(runtime, poison, [sick])
        ended = await results(runtime, [sick.run_id, *(spec.run_id for spec in neighbours)])
        for event in await runtime.events(sick.run_id):
            if isinstance(event.event, ExecutorLost):
                lost.append(event.event)

    assert (ended[sick.run_id].status, ended[sick.run_id].reason.kind) == (
        "failed",
        "executor_lost",
    )
    assert "while the tool 'crash' of this run was running" in ended[sick.run_id].reason.message
    assert [(event.losses, event.tools) for event in lost] == [(n, ("crash",)) for n in (1, 2, 3)]
    assert lost[-1].executor == "agent_turn[quarantine]"
    assert {ended[spec.run_id].status for spec in neighbours} == {"done"}
    logged = lines(tmp_path / "log")
    assert len(logged) == len(set(logged))


async def test_the_embedded_model_comes_back_when_its_process_is_killed(tmp_path: Path) -> None:
    program = Program.of(ChatAgent(model=LocalModel(max_tokens=24), tools=[look]))
    limits = Limits(model_calls=6)
    (spec,) = specs(program, 1, HarnessConfig(limits=limits, completion="answer"))
    store = tmp_path / "runs.db"

    async with opened("ray", store) as runtime:
        await submit(runtime, program, [spec])
        await until(runtime, spec.run_id, lambda event: isinstance(event, RoundCompleted))
        journal = SqliteJournal(store)
        (mark,) = (m for m in journal.load_processes() if m.role == "embedded_model")
        journal.close()
        os.kill(mark.pid, signal.SIGKILL)
        ended = (await results(runtime, [spec.run_id]))[spec.run_id]

    assert not is_alive(mark)
    assert ended.status in {"done", "limit"}, ended.reason
