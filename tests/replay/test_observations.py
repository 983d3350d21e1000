"""What an executor of a user observed is made once, and read ever after."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness_actors.agents import Program
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.events import CustomEvent, Event, RunCompleted
from harness_actors.ports import RunContext
from harness_actors.replay import Recording, replay
from harness_actors.signals import Outcome, Signal
from harness_actors.state import AGENT_TURN, StateKey, observed_by
from harness_actors.testing import Reply, ScriptedModel, an_agent
from tests.replay.recorded_runs import (
    FIRST_COMMAND,
    SECOND_COMMAND,
    TOOLS,
    Session,
    done,
    opened_locally,
    recorded,
)

DRAWN: StateKey[list[int]] = StateKey("tests.drawn", list[int], "draws", "set", [])


@dataclass
class Draws:
    """Asks its file for the next number, twice each time, and acts on what it got.

    Attributes:
        path: Has the number that was drawn last; empty: nothing can be drawn.
        gate: It goes on when this file is there; empty for none.
        question: What it asks the second time.
    """

    path: str
    gate: str = ""
    question: str = "next"
    name: str = "draws"
    reads: tuple[StateKey[Any], ...] = (DRAWN,)
    reads_log: bool = False

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        first = await context.observe("number", "next", self._draw)
        await context.flush()
        context.emit(CustomEvent(name="drew", data={"number": first}))
        await context.flush()
        while self.gate and not Path(self.gate).exists():  # noqa: ASYNC110, ASYNC240 - it may be another loop's
            await asyncio.sleep(0.005)
        second = await context.observe("number", self.question, self._draw)
        context.set(DRAWN, [*context.get(DRAWN), first, second])
        return signal

    async def _draw(self) -> int:
        assert self.path, "it is on record"
        file = Path(self.path)
        number = int(file.read_text()) + 1 if file.exists() else 1  # noqa: ASYNC240 - as above
        file.write_text(str(number))  # noqa: ASYNC240 - as above
        return number


def a_program(draws: Draws) -> Program:
    agent = an_agent(ScriptedModel([Reply.text("more"), done()]), TOOLS)
    return Program.of(HarnessWorkflowBuilder(agent).insert_after(AGENT_TURN, draws).build())


def drawn(recording: Recording) -> list[list[int]]:
    """What was drawn until then, each time when it was set."""
    writes = [write for change in recording.changes for write in change.delta.writes]
    return [write.value for write in writes if write.key == DRAWN.name]


async def test_what_was_observed_is_read_in_a_rerun_and_not_made(tmp_path: Path) -> None:
    session = await recorded(tmp_path / "runs.db", a_program(Draws(str(tmp_path / "number"))))
    recording = session.recording()
    assert drawn(recording) == [[1, 2], [1, 2, 3, 4]]

    again = await replay(recording, [Draws("")])

    assert again.same, again.differences
    assert not any("the executor 'draws'" in fact for fact in again.facts), "it was run again"
    # Whoever does not have its code takes what it did as it is.
    without = await session.replayed()
    assert without.same, without.differences
    assert "all that came from the executor 'draws'" in without.facts


async def test_an_observation_that_the_journal_does_not_have_is_a_difference(
    tmp_path: Path,
) -> None:
    session = await recorded(tmp_path / "runs.db", a_program(Draws(str(tmp_path / "number"))))

    again = await replay(session.recording(), [Draws("", question="another")])

    (difference,) = again.differences[:1]
    assert difference.what == "the way"
    assert difference.rerun == (
        "'draws' observes 'number' of \"another\", and the journal does not have that"
    )


async def test_an_observation_that_was_not_asked_for_again_is_a_difference(tmp_path: Path) -> None:
    session = await recorded(tmp_path / "runs.db", a_program(Draws(str(tmp_path / "number"))))

    @dataclass
    class Once(Draws):
        async def handle(self, signal: Signal, context: RunContext) -> Outcome:
            await context.observe("number", "next", self._draw)
            return signal

    again = await replay(session.recording(), [Once("")])

    assert not again.same
    assert again.differences


async def test_a_run_that_was_cancelled_at_an_executor_comes_out_the_same(tmp_path: Path) -> None:
    """What it would have done next, had nobody cancelled it, is not asked."""
    number, gate = tmp_path / "number", tmp_path / "gate"
    session = Session(tmp_path / "runs.db", a_program(Draws(str(number), str(gate))))
    async with opened_locally(session.store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(_drew, runtime)
        await runtime.stop(["run"], "cancel")
        gate.touch()
        await session.until(lambda event: isinstance(event, RunCompleted), runtime)

    for executors in ([], [Draws("", question="another")]):
        again = await replay(session.recording(), executors)
        assert again.same, again.differences
        assert again.end is not None
        assert again.end.status == "cancelled"


async def test_a_place_outlives_the_process_that_it_began_in(tmp_path: Path) -> None:
    """What is on disk of it is acted on, and only the rest is made."""
    number, gate = tmp_path / "number", tmp_path / "gate"
    session = Session(tmp_path / "runs.db", a_program(Draws(str(number), str(gate))))
    for command in (FIRST_COMMAND, SECOND_COMMAND):
        async with opened_locally(session.store, command) as runtime:
            if command == FIRST_COMMAND:
                await session.submit(runtime)
            else:
                await runtime.resume(["run"], secrets={})
            await session.until(_drew, runtime)
    assert number.read_text() == "1"
    gate.touch()
    await session.taken_up("third")

    recording = session.recording()
    assert drawn(recording) == [[1, 2], [1, 2, 3, 4]]
    told = [e.data for c in recording.changes for e in c.delta.events if isinstance(e, CustomEvent)]
    assert told[-1] == {"number": 3}
    assert len(told) > 2
    assert all(one == {"number": 1} for one in told[:-1])
    assert (await session.replayed()).same
    # What was observed in a place is no part of the next one.
    closed = [
        write.value
        for change in recording.changes
        for write in change.delta.writes
        if write.key == observed_by("draws") and write.change == "set"
    ]
    assert closed == [[], []]


def _drew(event: Event) -> bool:
    return isinstance(event, CustomEvent)
