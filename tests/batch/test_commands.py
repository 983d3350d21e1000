"""Commands on one run directory, one after the other, with whatever settings: what holds always."""

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from harness_actors.batch.batch import Batch
from harness_actors.batch.outcomes import TaskOutcome
from harness_actors.batch.results_file import read_outcomes
from harness_actors.batch.settings import OnChange
from harness_actors.errors import BadInputError, SetupChangedError
from harness_actors.records import RunSpec
from harness_actors.results import HarnessResult
from tests.batch.fake_runtime import FakeRuntime, Journal, a_batch, ended, outcomes_of
from tests.batch.test_changes import NEW, OLD

COUNT = 4
ROUND_USD = 1.0
STUCK_S = 10.0
"""A command that takes longer than this will never end."""

How = Literal["done", "failed", "time", "budget", "never"]


@dataclass(frozen=True)
class Command:
    """A command, and what becomes of the runs that it has."""

    new_agent: bool
    on_change: OnChange
    retry_failed: bool
    retry_on_error: int
    budget_usd: float | None
    endings: tuple[How, ...]
    """By task."""
    then: str
    """What happens to the run directory afterwards."""
    concurrency: int = 2


COMMANDS = st.builds(
    Command,
    new_agent=st.booleans(),
    on_change=st.sampled_from(["refuse", "accept", "accept", "retry", "retry"]),
    retry_failed=st.booleans(),
    retry_on_error=st.sampled_from([0, 0, 1]),
    budget_usd=st.sampled_from([None, None, 3.0, 6.0]),
    endings=st.tuples(*COUNT * [st.sampled_from(["done", "done", "failed", "time", "never"])]),
    then=st.sampled_from(["", "", "lines lost", "folder moved", "lines lost, folder moved"]),
    concurrency=st.sampled_from([1, 2, 4]),
)


class Folder:
    """The run directory, with what is known of it besides."""

    def __init__(self, root: Path) -> None:
        self.path = root / "run-0"
        self.given = root / "given"
        self.given.mkdir()
        self.journal = Journal()
        self._root = root
        self._moves = 0

    def tasks(self) -> list[Mapping[str, Any]]:
        workspace = str(self.given)
        return [{"id": f"t{at}", "task": f"do {at}", "workspace": workspace} for at in range(COUNT)]

    def lines(self) -> dict[str, TaskOutcome]:
        return {line.id: line for line in read_outcomes(self.path / "results.jsonl")}

    def unfinished(self) -> list[str]:
        return [r for r in self.journal.specs if r not in self.journal.ends]

    def task_of(self, run_id: str) -> str:
        return str(self.journal.specs[run_id].metadata["task_id"])

    def cost_usd(self) -> float:
        return sum(end.usage.cost_usd for end in self.journal.ends.values())

    def move(self) -> None:
        self._moves += 1
        there = self._root / f"run-{self._moves}"
        self.path.rename(there)
        self.path = there


async def run(folder: Folder, command: Command) -> None:
    """Run a command to its end, and check what it says and leaves."""

    def script(spec: RunSpec) -> HarnessResult | None:
        how = command.endings[int(str(spec.metadata["task_id"])[1:])]
        match how:
            case "never":
                return None
            case "failed":
                return ended(spec, "failed", "model_error", cost_usd=ROUND_USD)
            case "time" | "budget":
                return ended(spec, "limit", how, cost_usd=ROUND_USD)
        return ended(spec, cost_usd=ROUND_USD)

    before, known, cost_usd = folder.lines(), set(folder.journal.specs), folder.cost_usd()
    newest = {folder.task_of(run_id): run_id for run_id in folder.journal.specs}
    ended_before = set(folder.journal.ends)
    runtime = FakeRuntime(folder.journal, script)
    batch = a_batch(
        folder.tasks(),
        folder.path,
        runtime,
        agent=NEW if command.new_agent else OLD,
        on_change=command.on_change,
        retry_failed=command.retry_failed,
        retry_on_error=command.retry_on_error,
        budget_usd=command.budget_usd,
        concurrency=command.concurrency,
    )
    working = asyncio.create_task(outcomes_of(batch))
    try:
        async with asyncio.timeout(STUCK_S):
            while not working.done():
                await asyncio.wait((working,), timeout=0.01)
                if runtime.in_flight:
                    batch.park()
        outcomes = working.result()
    except (SetupChangedError, BadInputError):
        assert command.on_change == "refuse"
        assert set(folder.journal.specs) == known, "what is refused starts nothing"
        assert folder.lines() == before
        return
    _check_after(batch, runtime, folder)
    begun = set(folder.journal.specs) - known
    if command.budget_usd is not None and cost_usd >= command.budget_usd:
        assert not begun, "nothing starts when the budget is spent"
    lines = folder.lines()
    assert {name: lines[name] for name in outcomes} == outcomes
    for name, line in before.items():
        final = not line.out_of_budget and (line.ok or not command.retry_failed)
        if final and command.on_change != "retry" and newest.get(name) == line.run_id:
            assert lines[name] == line, "what is done stays"
    for name, run_id in newest.items():
        unlisted = run_id in ended_before and run_id != getattr(before.get(name), "run_id", None)
        if unlisted and command.on_change == "accept" and not command.retry_on_error:
            told = outcomes.get(name)
            collected = told is None or told.run_id == run_id
            assert collected, "what has ended is collected, and not done again"
    if batch.tally.left == 0:
        listed = {name: line for name, line in before.items() if newest.get(name) == line.run_id}
        _check_complete(folder, command, begun, listed)


def _check_after(batch: Batch, runtime: FakeRuntime, folder: Folder) -> None:
    """What must be so whatever the command did."""
    tally = batch.tally
    assert (tally.running, tally.checking) == (0, 0)
    assert runtime.closed == runtime.opened
    assert not runtime.in_flight, "it leaves nothing running"
    lines = folder.lines()
    assert tally.done == len(lines) or batch.tally.left != 0
    going_on = [folder.task_of(run_id) for run_id in folder.unfinished()]
    assert len(set(going_on)) == len(going_on), "a task has one run at a time"
    assert batch.summary["unfinished"]["of_removed_tasks"] == 0
    for line in lines.values():
        assert line.run_id in folder.journal.ends
    told = batch.summary["usage"]["cost_usd"]
    assert told == folder.cost_usd(), "what was spent is told, whoever spent it"


def _check_complete(
    folder: Folder,
    command: Command,
    begun: set[str],
    before: Mapping[str, TaskOutcome],
) -> None:
    """Nothing was left to do.

    Args:
        before: The lines of those tasks whose last attempt had one. That of another is collected
            first, and tried again by the command after that.
    """
    lines = folder.lines()
    assert len(lines) == COUNT
    assert not folder.unfinished()
    newest = {folder.task_of(run_id): run_id for run_id in folder.journal.specs}
    for name, line in lines.items():
        assert line.run_id == newest[name], "the line is that of the last attempt"
        was = before.get(name)
        if was is not None and not was.ok and command.retry_failed:
            assert line.run_id in begun, "what failed was tried again"
    if command.on_change == "retry":
        made_with = {line.setup for line in lines.values()}
        assert len(made_with) == 1, "what was changed was done again"


# Not made smaller: of a command that does not end each further one would have to be waited for.
@settings(max_examples=60, phases=(Phase.explicit, Phase.generate), report_multiple_bugs=False)
@given(commands=st.lists(COMMANDS, min_size=2, max_size=4))
def test_whatever_commands_follow_one_another(commands: list[Command]) -> None:
    async def scenario(root: Path) -> None:
        folder = Folder(root)
        for command in commands:
            await run(folder, command)
            if "lost" in command.then:
                (folder.path / "results.jsonl").unlink(missing_ok=True)
            if "moved" in command.then and folder.path.exists():
                folder.move()

    root = Path(tempfile.mkdtemp())
    try:
        asyncio.run(scenario(root))
    finally:
        shutil.rmtree(root, ignore_errors=True)
