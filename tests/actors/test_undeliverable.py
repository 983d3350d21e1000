"""What one run writes and no message can carry is that run's fault, and no neighbour's."""

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import pytest

from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.events import CustomEvent
from harness_actors.messages import MOST_LEVELS, is_too_deep
from harness_actors.ports import RunContext
from harness_actors.signals import Signal
from harness_actors.testing import Reply, ScriptedModel
from tests.actors.followers import opened, results, specs, submit


class Untold(str):
    """A text for JSON, and nothing that pickle can take."""

    def __reduce__(self) -> Any:
        raise TypeError("this is not for telling")


def nested(levels: int) -> list[Any]:
    found: list[Any] = ["leaf"]
    for _ in range(levels - 1):
        found = [found]
    return found


def finding(kind: str) -> Any:
    # Made when it is asked for: the program, which is pickled, too, must not hold one.
    return Untold("a word") if kind == "untold" else nested(600 if kind == "deep" else 5000)


class Finder:
    """A user's own executor: in runs that are for it it tells what it found."""

    name = "finder"
    reads: ClassVar[tuple[Any, ...]] = ()
    reads_log = True

    async def handle(self, signal: Signal, context: RunContext) -> Signal:
        if kind := context.spec.metadata.get("finding"):
            context.emit(CustomEvent(name="finding", data={"found": finding(kind)}))
        return signal


@pytest.mark.parametrize("kind", ["deep", "bottomless", "untold"])
async def test_the_run_fails_with_a_reason_and_its_neighbours_go_on(
    kind: str, tmp_path: Path
) -> None:
    agent = ChatAgent(
        model=ScriptedModel(lambda _: Reply.call("work_complete", {"summary": "done"}))
    )
    program = Program.of(HarnessWorkflowBuilder(agent).insert_after("compaction", Finder()).build())
    finder = program.spec("look", HarnessConfig(), metadata={"finding": kind})
    neighbours = specs(program, 3)
    runs = (neighbours[0], finder, *neighbours[1:])
    async with opened("local", tmp_path / "runs.db") as runtime, asyncio.timeout(30):
        await submit(runtime, program, runs)
        ended = await results(runtime, [run.run_id for run in runs])
    assert ended.pop(finder.run_id).reason.kind == "agent_error"
    assert {result.status for result in ended.values()} == {"done"}


def test_levels_are_counted_in_lists_and_mappings_and_endless_ones_have_an_end() -> None:
    endless: list[Any] = []
    endless.append({"again": endless})
    assert is_too_deep(endless)
    assert is_too_deep(nested(MOST_LEVELS + 1))
    assert not is_too_deep({"a": nested(MOST_LEVELS - 1), "b": "text"})
