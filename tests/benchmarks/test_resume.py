"""The benchmark of a resume prepares what it says: a batch of which only the new tasks are left."""

import asyncio
from pathlib import Path

from benchmarks.bench_resume import NEW, SAID, prepare, step
from harness_actors import ChatAgent, run_batch
from harness_actors.batch.task_file import TaskFile
from harness_actors.stores import JournalReader
from harness_actors.testing import ScriptedModel


def test_finished_tasks_are_in_results_and_journal(tmp_path: Path) -> None:
    prepare(tmp_path, 30)

    journal = JournalReader(tmp_path / "run" / "runs.db")
    headings = journal.headings()
    assert len(headings) == 30
    assert {heading.end.status for heading in headings if heading.end} == {"done"}
    logs = {len(journal.load_conversation(heading.conversation_id)) for heading in headings}
    # The task, and each thing that was said with a result.
    assert logs == {1 + 2 * len(SAID)}


async def test_the_next_command_runs_the_new_tasks_only(tmp_path: Path) -> None:
    await asyncio.to_thread(prepare, tmp_path, 30)
    agent = ChatAgent(model=ScriptedModel(SAID), tools=[step])
    tasks = TaskFile(tmp_path / "tasks.jsonl")

    batch = run_batch(tasks, agent, run_dir=tmp_path / "run", runtime="local")
    ended = [outcome.id async for outcome in batch]

    assert sorted(ended) == sorted(f"t{number}" for number in range(30, 30 + NEW))
