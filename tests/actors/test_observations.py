"""On real Ray: what was observed outlives the process that observed it."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness_actors.agents import Program
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.ports import RunContext
from harness_actors.replay import load_recording, replay
from harness_actors.results import Reason
from harness_actors.signals import Outcome, RunEnd, Signal
from harness_actors.state import AGENT_TURN, StateKey
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel, an_agent
from tests.actors.followers import opened, results, specs, submit

pytestmark = [pytest.mark.ray, pytest.mark.timeout(200)]


@dataclass
class DiesOnce:
    """Observes its process, and ends it once that is on disk; the next one acts on it."""

    name: str = "dies"
    reads: tuple[StateKey[Any], ...] = ()
    reads_log: bool = False

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        seen = await context.observe("process", "mine", self._mine)
        await context.flush()
        if seen == os.getpid():
            os._exit(1)
        said = f"{seen} was seen by {os.getpid()}"
        return RunEnd(status="done", reason=Reason(kind="answered", message=said))

    async def _mine(self) -> int:
        return os.getpid()


async def test_the_next_process_acts_on_what_the_one_that_died_has_observed(
    tmp_path: Path,
) -> None:
    agent = an_agent(ScriptedModel([Reply.text("so")]))
    builder = HarnessWorkflowBuilder(agent).insert_after(AGENT_TURN, DiesOnce())
    program = Program.of(builder.build())
    (spec,) = specs(program, 1)

    async with opened("ray", tmp_path / "runs.db") as runtime:
        await submit(runtime, program, [spec])
        ended = (await results(runtime, [spec.run_id]))[spec.run_id]

    assert ended.status == "done", ended.reason
    seen, by = ended.reason.message.split(" was seen by ")
    assert seen != by
    replayed = await replay(load_recording(JournalReader(tmp_path / "runs.db"), spec.run_id))
    assert replayed.same, replayed.differences
