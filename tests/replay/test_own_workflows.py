"""Runs of workflows with executors of a user come out the same, whoever ended them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness_actors.agents import Program
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.events import Event, RunParked, StopDecided
from harness_actors.ports import RunContext
from harness_actors.replay import Replay, replay
from harness_actors.results import HarnessResult, Reason
from harness_actors.signals import (
    Outcome,
    Parked,
    RepairTrigger,
    RunEnd,
    Signal,
    TurnComplete,
)
from harness_actors.state import AGENT_TURN, STOP_DECISION, StateKey
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel, an_agent
from tests.replay.recorded_runs import (
    FIRST_COMMAND,
    TOOLS,
    CountingModel,
    Session,
    opened_locally,
    recorded,
)

SAID: StateKey[int] = StateKey("tests.said", int, AGENT_TURN, "increment", 0)


@dataclass
class Own:
    """An executor of a user that answers the same each time."""

    name: str
    outcome: Outcome
    reads: tuple[StateKey[Any], ...] = ()
    reads_log: bool = False

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        return self.outcome


@dataclass
class OwnTurn(Own):
    """One in the place of the agent turn, which writes to the state."""

    reads: tuple[StateKey[Any], ...] = (SAID,)

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        context.increment(SAID, 1)
        return self.outcome


class ParksOnce(OwnTurn):
    """Parks with a change and an event of its own, and goes on when it is taken up again."""

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        context.increment(SAID, 1)
        context.emit(StopDecided(turn=0, decision="continue", reason=f"said {context.get(SAID)}"))
        return Parked() if context.get(SAID) == 1 else self.outcome


@dataclass
class Waits(OwnTurn):
    """Answers when a file is there."""

    gate: str = ""

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        context.emit(StopDecided(turn=0, decision="continue", reason="it waits"))
        await context.flush()
        while not Path(self.gate).exists():  # noqa: ASYNC110, ASYNC240 - it may be another loop's
            await asyncio.sleep(0.005)
        return await super().handle(signal, context)


def again() -> Own:
    return Own(STOP_DECISION, RepairTrigger())


def answered() -> Own:
    reason = Reason(kind="answered", message="it is said")
    return Own(STOP_DECISION, RunEnd(status="done", reason=reason, output_text="said"))


def a_workflow(*executors: Own, model: Any = None) -> Program:
    model = model or ScriptedModel(_more)
    builder = HarnessWorkflowBuilder(an_agent(model, TOOLS))
    for executor in executors:
        builder.replace(executor.name, executor)
    return Program.of(builder.build())


def _more(_messages: Sequence[Any]) -> Reply:
    return Reply.text("more")


def check(replayed: Replay) -> HarnessResult:
    assert not replayed.differences, replayed.differences
    assert replayed.same
    assert replayed.end is not None
    return replayed.end


@pytest.mark.parametrize(
    ("kind", "settings", "turns"),
    [
        ("max_turns", {"max_turns": 1}, 1),
        ("max_turns", {"max_turns": 3}, 3),
        ("model_calls", {"limits": {"model_calls": 2}}, 2),
        ("tokens", {"limits": {"tokens": 150}}, 2),
        ("cost", {"limits": {"cost_usd": 0.015}}, 2),
        ("time", {"limits": {"time_s": 0.3}}, None),
        ("working_time", {"limits": {"working_s": 0.01}}, None),
    ],
)
async def test_a_run_that_the_coordinator_ended_comes_out_the_same(
    tmp_path: Path, kind: str, settings: dict[str, Any], turns: int | None
) -> None:
    workflow = a_workflow(again(), model=CountingModel(_more))
    if turns is None:
        settings = {**settings, "max_turns": 100_000}

    session = await recorded(tmp_path / "runs.db", workflow, completion="answer", **settings)

    end = check(await session.replayed())
    assert (end.status, end.reason.kind) == ("limit", kind)
    assert turns is None or end.turn_count == turns


@pytest.mark.parametrize("turns", [1, 5, 70])
async def test_turns_that_an_own_agent_turn_made_are_counted_once(
    tmp_path: Path, turns: int
) -> None:
    workflow = a_workflow(OwnTurn(AGENT_TURN, TurnComplete(ending="rounds")), again())

    session = await recorded(tmp_path / "runs.db", workflow, max_turns=turns)

    end = check(await session.replayed())
    assert (end.status, end.reason.kind, end.turn_count) == ("limit", "max_turns", turns)
    assert end.reason.details == {"turn": turns}
    (heading,) = JournalReader(session.store).headings()
    assert heading.turns == turns


async def test_an_own_agent_turn_whose_run_is_done_comes_out_the_same(tmp_path: Path) -> None:
    workflow = a_workflow(OwnTurn(AGENT_TURN, TurnComplete(ending="completed")), answered())

    session = await recorded(tmp_path / "runs.db", workflow)

    end = check(await session.replayed())
    assert (end.status, end.reason.kind, end.turn_count) == ("done", "answered", 1)


@dataclass
class Talks(Own):
    """Says more than the one whose place it takes."""

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        for turn in (1, 2):
            context.emit(StopDecided(turn=turn, decision="continue", reason="one word more"))
            await context.flush()
        return self.outcome


async def test_a_rerun_that_goes_on_where_the_journal_has_ended_is_told(tmp_path: Path) -> None:
    turn = OwnTurn(AGENT_TURN, TurnComplete(ending="completed"))
    session = await recorded(tmp_path / "runs.db", a_workflow(turn, answered()))

    replayed = await replay(session.recording(), [Talks(STOP_DECISION, answered().outcome)])

    assert not replayed.same
    (way,) = (told.rerun for told in replayed.differences if told.what == "the way")
    assert way == "the rerun went on after the end of the journal's run"


async def test_what_an_executor_told_when_it_parked_comes_out_the_same(tmp_path: Path) -> None:
    workflow = a_workflow(ParksOnce(AGENT_TURN, TurnComplete(ending="completed")), answered())
    session = Session(tmp_path / "runs.db", workflow)
    async with opened_locally(session.store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(_parked, runtime)
    (heading,) = JournalReader(session.store).headings()
    assert heading.end is None
    await session.taken_up()

    end = check(await session.replayed())
    assert (end.status, end.turn_count) == ("done", 1)


async def test_a_run_that_parked_after_an_own_agent_turn_comes_out_the_same(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    turn = Waits(AGENT_TURN, TurnComplete(ending="completed"), gate=str(gate))
    session = Session(tmp_path / "runs.db", a_workflow(turn, answered()))
    async with opened_locally(session.store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(lambda event: isinstance(event, StopDecided), runtime)
        await runtime.stop(["run"], "park")
        gate.touch()
        await session.until(_parked, runtime)
    (heading,) = JournalReader(session.store).headings()
    assert (heading.end, heading.turns) == (None, 1)
    await session.taken_up()

    end = check(await session.replayed())
    assert (end.status, end.turn_count) == ("done", 1)


def _parked(event: Event) -> bool:
    return isinstance(event, RunParked)
