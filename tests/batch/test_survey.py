"""What a command finds out before it starts anything: what is done, and what is left."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_actors.batch.agent_file import LoadedAgent
from harness_actors.batch.agents import Agents
from harness_actors.batch.batch import Batch
from harness_actors.batch.task_file import TaskFile
from harness_actors.errors import BadInputError, ModelSetupError, StoreInUseError
from harness_actors.records import RunSpec
from harness_actors.results import HarnessResult
from harness_actors.testing import an_agent
from tests.batch.fake_runtime import (
    FakeRuntime,
    Journal,
    a_batch,
    always_done,
    asking,
    ended,
    never_ends,
    outcomes_of,
    tasks,
)

CHECKED = {"id": "t1", "task": "x", "check": {"command": "true"}}


@pytest.fixture
def journal() -> Journal:
    return Journal()


async def done_before(
    given: Iterable[Mapping[str, object]], folder: Path, journal: Journal
) -> None:
    await outcomes_of(a_batch(list(given), folder, FakeRuntime(journal)))


async def interrupted(batch: Batch, runtime: FakeRuntime, runs: int) -> None:
    command = asyncio.create_task(outcomes_of(batch))
    await runtime.until_in_flight(runs)
    batch.park()
    await command


async def test_where_everything_is_done_no_runtime_is_opened(
    tmp_path: Path, journal: Journal
) -> None:
    await done_before(tasks(3), tmp_path, journal)
    runtime = FakeRuntime(journal)
    again = a_batch(tasks(3), tmp_path, runtime)

    assert await outcomes_of(again) == {}
    assert not runtime.opened
    assert (again.ending, again.ok, again.tally.done) == ("complete", True, 3)
    assert again.summary["command"]["done_before"] == 3


async def test_a_tasks_file_of_which_everything_is_done_opens_no_runtime(
    tmp_path: Path, journal: Journal
) -> None:
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"id": "a", "task": "x"}\n{"task": "y"}\n{"task": "y"}\n')
    await outcomes_of(a_batch(TaskFile(path), tmp_path, FakeRuntime(journal), epochs=2))
    runtime = FakeRuntime(journal)
    again = a_batch(TaskFile(path), tmp_path, runtime, epochs=2)

    assert await outcomes_of(again) == {}
    assert not runtime.opened
    assert (again.ok, again.tally.done) == (True, 6)


async def test_failures_are_done_unless_they_are_to_be_retried(
    tmp_path: Path, journal: Journal
) -> None:
    def fails(spec: RunSpec) -> HarnessResult:
        return ended(spec, "failed", "model_error")

    await outcomes_of(a_batch(tasks(2), tmp_path, FakeRuntime(journal, fails)))
    plain, retrying = FakeRuntime(journal), FakeRuntime(journal)

    again = a_batch(tasks(2), tmp_path, plain)
    assert await outcomes_of(again) == {}
    assert (plain.opened, again.ending, again.ok) == (False, "complete", False)
    assert len(await outcomes_of(a_batch(tasks(2), tmp_path, retrying, retry_failed=True))) == 2
    assert retrying.opened


async def test_a_retry_that_is_unfinished_is_left_although_its_task_has_a_line(
    tmp_path: Path, journal: Journal
) -> None:
    def fails(spec: RunSpec) -> HarnessResult:
        return ended(spec, "failed", "model_error")

    await outcomes_of(a_batch(tasks(1), tmp_path, FakeRuntime(journal, fails)))
    stopped = FakeRuntime(journal, never_ends)
    await interrupted(a_batch(tasks(1), tmp_path, stopped, retry_failed=True), stopped, 1)
    runtime = FakeRuntime(journal)

    assert (await outcomes_of(a_batch(tasks(1), tmp_path, runtime)))["t1"].ok
    assert len(runtime.resumed) == 1


async def test_a_check_that_is_still_to_be_made_is_left(tmp_path: Path, journal: Journal) -> None:
    await done_before([CHECKED, *tasks(3)[1:]], tmp_path, journal)
    results = tmp_path / "results.jsonl"
    lines = results.read_text().splitlines(keepends=True)
    results.write_text("".join(line for line in lines if '"t1"' not in line))

    outcomes = await outcomes_of(
        a_batch([CHECKED, *tasks(3)[1:]], tmp_path, FakeRuntime(journal, never_ends))
    )

    assert outcomes.keys() == {"t1"}
    assert outcomes["t1"].check is not None


async def test_progress_begins_at_what_is_done_wherever_that_stands(
    tmp_path: Path, journal: Journal
) -> None:
    await done_before(tasks(5)[2:], tmp_path, journal)
    runtime = FakeRuntime(journal, never_ends)
    batch = a_batch(tasks(5), tmp_path, runtime, concurrency=1)
    command = asyncio.create_task(outcomes_of(batch))
    await batch.looked.wait()

    # The engine has come by none of them: the first task has its only place.
    assert (batch.tally.done, batch.tally.left) == (3, 2)
    await runtime.until_in_flight(1)
    assert batch.tally.done == 3
    batch.park()
    await command
    assert batch.summary["command"]["not_ended"] == 2


async def test_a_source_that_can_be_read_only_once_is_left_to_the_work(
    tmp_path: Path, journal: Journal
) -> None:
    def once(count: int) -> Iterator[Mapping[str, str]]:
        yield {"id": "bad"}
        yield from tasks(count)

    await outcomes_of(a_batch(once(2), tmp_path, FakeRuntime(journal)))
    batch = a_batch(once(4), tmp_path, FakeRuntime(journal, always_done))

    assert (await outcomes_of(batch)).keys() == {"t3", "t4"}
    assert (batch.tally.done, batch.tally.skipped, batch.tally.ended) == (5, 3, 2)
    assert (batch.tally.verdicts, batch.ok) == ({"ok": 4, "failed": 1}, False)


async def test_runs_of_a_moved_directory_are_refused_when_their_tasks_are_come_by(
    tmp_path: Path, journal: Journal
) -> None:
    given = tmp_path / "given"
    given.mkdir()

    def once() -> Iterator[Mapping[str, str]]:
        yield {"id": "t1", "task": "x", "workspace": str(given)}

    runtime = FakeRuntime(journal, never_ends)
    await interrupted(a_batch(once(), tmp_path / "run", runtime), runtime, 1)
    (tmp_path / "run").rename(tmp_path / "moved")
    again = FakeRuntime(journal)

    with pytest.raises(BadInputError, match=r"1 unfinished run in .* copied or moved"):
        await outcomes_of(a_batch(once(), tmp_path / "moved", again))

    assert again.resumed == []


async def test_a_batch_of_nothing_needs_no_runtime(tmp_path: Path, journal: Journal) -> None:
    runtime = FakeRuntime(journal)
    batch = a_batch([], tmp_path, runtime)

    assert await outcomes_of(batch) == {}
    assert (runtime.opened, batch.ok) == (False, True)


class Mute:
    """Agents whose model cannot be asked now.

    Attributes:
        refused: Names of those that were to be asked.
    """

    def __init__(self) -> None:
        self.refused: list[str] = []

    def agents(self) -> Agents:
        loaded = LoadedAgent(agent=an_agent())
        return Agents(lambda _: loaded, check=self._refuse)

    def _refuse(self, loaded: LoadedAgent) -> None:
        name = loaded.innermost.model.name
        self.refused.append(name)
        raise ModelSetupError(name, "no key")


async def can_begin(
    given: Iterable[Mapping[str, object]], folder: Path, journal: Journal, **settings: Any
) -> bool:
    """Whether a command may begin though no model can be asked."""
    runtime = FakeRuntime(journal)
    batch = a_batch(list(given), folder, runtime, agents=Mute().agents(), **settings)
    try:
        await batch.check()
    except ModelSetupError:
        return False
    finally:
        assert not runtime.opened
    return True


async def test_nothing_is_made_for_tasks_whose_model_cannot_be_asked(
    tmp_path: Path, journal: Journal
) -> None:
    assert not await can_begin(tasks(1), tmp_path / "run", journal)
    assert not (tmp_path / "run").exists()


async def test_who_has_nothing_left_to_do_needs_no_model(tmp_path: Path, journal: Journal) -> None:
    def one_fails(spec: RunSpec) -> HarnessResult:
        fails = spec.metadata["task_id"] == "t1"
        return ended(spec, "failed", "model_error") if fails else ended(spec)

    await outcomes_of(a_batch(tasks(2), tmp_path, FakeRuntime(journal, one_fails)))

    assert await can_begin(tasks(2), tmp_path, journal)
    assert not await can_begin(tasks(3), tmp_path, journal)
    assert not await can_begin(tasks(2), tmp_path, journal, retry_failed=True)
    assert await can_begin(tasks(2)[1:], tmp_path, journal, retry_failed=True)


async def test_a_run_that_is_unfinished_needs_its_model(tmp_path: Path, journal: Journal) -> None:
    runtime = FakeRuntime(journal, never_ends)
    await interrupted(a_batch(tasks(1), tmp_path, runtime), runtime, 1)

    assert not await can_begin(tasks(1), tmp_path, journal)


async def test_a_run_that_waits_needs_its_model_only_when_it_is_answered(
    tmp_path: Path, journal: Journal
) -> None:
    def asks(spec: RunSpec) -> HarnessResult:
        return asking(spec, "q1", "q2")

    runtime = FakeRuntime(journal, asks)
    await outcomes_of(a_batch(tasks(1), tmp_path, runtime))
    (run_id,) = journal.specs

    assert await can_begin(tasks(1), tmp_path, journal)
    await runtime.answer(run_id, {"q1": "blue"})
    assert await can_begin(tasks(1), tmp_path, journal)
    assert not await can_begin(tasks(2), tmp_path, journal)
    await runtime.answer(run_id, {"q2": "large"})
    assert not await can_begin(tasks(1), tmp_path, journal)


@pytest.mark.parametrize("gone", [["results.jsonl"], ["results.jsonl", "setups.json"]])
@pytest.mark.parametrize(("kind", "again"), [("model_error", True), ("store_error", False)])
async def test_a_line_that_is_to_be_written_needs_no_model_and_a_retry_does(
    tmp_path: Path, journal: Journal, gone: list[str], kind: str, again: bool
) -> None:
    def fails(spec: RunSpec) -> HarnessResult:
        return ended(spec, "failed", kind)

    await outcomes_of(a_batch(tasks(1), tmp_path, FakeRuntime(journal, fails), retry_on_error=1))
    (tmp_path / "runs.db").touch()
    for name in gone:
        (tmp_path / name).unlink()

    assert await can_begin(tasks(1), tmp_path, journal)
    assert await can_begin(tasks(1), tmp_path, journal, retry_on_error=1)
    assert await can_begin(tasks(1), tmp_path, journal, retry_on_error=2) is not again


async def test_it_is_the_agent_of_the_task_that_is_to_be_asked(
    tmp_path: Path, journal: Journal
) -> None:
    (tmp_path / "own.yaml").write_text("model: own-model")
    mute = Mute()
    given = [{"id": "t1", "task": "x", "agent": str(tmp_path / "own.yaml")}]

    with pytest.raises(ModelSetupError, match="own-model"):
        await a_batch(given, tmp_path, FakeRuntime(journal), agents=mute.agents()).check()

    assert mute.refused == ["own-model"]


async def test_a_look_at_a_directory_is_refused_while_somebody_works_on_it_and_gives_it_back(
    tmp_path: Path, journal: Journal
) -> None:
    await done_before(tasks(1), tmp_path, journal)
    runtime = FakeRuntime(journal, never_ends)
    batch = a_batch(tasks(2), tmp_path, runtime)
    command = asyncio.create_task(outcomes_of(batch))
    await runtime.until_in_flight(1)

    with pytest.raises(StoreInUseError):
        await can_begin(tasks(1), tmp_path, journal)

    batch.park()
    await command
    assert await can_begin(tasks(1), tmp_path, journal)
    assert await can_begin(tasks(1), tmp_path, journal)
