"""A run directory in which thousands of tasks are done: one is run, the others are its copies."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from uuid import uuid4

from harness_actors import run_batch
from harness_actors.batch.outcomes import TaskOutcome, encode_outcome
from harness_actors.batch.run_note import RunNote
from harness_actors.batch.task_file import TaskFile
from harness_actors.batch.tasks import Task
from harness_actors.messages import encode_json
from harness_actors.ports import Agent
from harness_actors.records import CodeStored, Entry, RunAdded, RunChanged
from harness_actors.stores import JournalReader, SqliteJournal

RUNS_PER_COMMIT = 200


def write_tasks(path: Path, count: int) -> None:
    """A tasks file with so many tasks."""
    lines = (encode_json({"id": f"t{number}", "task": f"Task {number}"}) for number in range(count))
    path.write_bytes(b"".join(line + b"\n" for line in lines))


def finish(tasks: Path, run_dir: Path, agent: Agent, count: int) -> None:
    """Make a run directory in which the first tasks of a file are done.

    Args:
        tasks: The file; it must have more than `count` tasks.
        run_dir: Made here.
        agent: Who did them.
        count: How many.
    """
    one = run_dir.with_name(run_dir.name + ".one")
    outcome = asyncio.run(_run_one(tasks, one, agent))
    entries = _entries_of(one / "runs.db")
    done = [task for task in TaskFile(tasks, limit=count) if isinstance(task, Task)]
    run_ids = [uuid4().hex[:12] for _ in done]
    run_dir.mkdir()
    _write_results(run_dir / "results.jsonl", outcome, done, run_ids)
    journal = SqliteJournal(run_dir / "runs.db")
    try:
        term = journal.begin_term()
        for start in range(0, len(done), RUNS_PER_COMMIT):
            stop = start + RUNS_PER_COMMIT
            pairs = zip(done[start:stop], run_ids[start:stop], strict=True)
            copies = [entry for task, name in pairs for entry in _copies(entries, task, name)]
            journal.commit(term, copies)
    finally:
        journal.close()


async def _run_one(tasks: Path, run_dir: Path, agent: Agent) -> TaskOutcome:
    source = TaskFile(tasks, limit=1)
    (outcome,) = [o async for o in run_batch(source, agent, run_dir=run_dir, runtime="local")]
    return outcome


def _entries_of(store: Path) -> list[Entry]:
    """What the journal of one run was given."""
    journal = JournalReader(store)
    (heading,) = journal.headings()
    run = journal.load_run(heading.run_id)
    assert run is not None
    blob = journal.load_code(run.spec.code)
    assert blob is not None
    changes = journal.load_changes(heading.run_id)
    return [
        CodeStored(code=run.spec.code, blob=blob),
        RunAdded(spec=run.spec, command=run.command, at=run.added_at),
        *(
            RunChanged(
                run_id=heading.run_id,
                version=change.version,
                delta=change.delta,
                hop=change.hop,
                losses=change.losses,
                end=run.end if change is changes[-1] else None,
                at=change.at,
            )
            for change in changes
        ),
    ]


def _copies(entries: Sequence[Entry], task: Task, run_id: str) -> Iterator[Entry]:
    note = RunNote(task_id=task.id, task_hash=task.task_hash, attempt=1)
    for entry in entries:
        match entry:
            case RunAdded():
                spec = replace(
                    entry.spec, run_id=run_id, conversation_id=run_id, metadata=asdict(note)
                )
                yield replace(entry, spec=spec)
            case RunChanged():
                end = None if entry.end is None else replace(entry.end, run_id=run_id)
                yield replace(entry, run_id=run_id, end=end)
            case _:
                yield entry


def _write_results(
    path: Path, outcome: TaskOutcome, tasks: Sequence[Task], run_ids: Sequence[str]
) -> None:
    with path.open("wb") as file:
        for task, run_id in zip(tasks, run_ids, strict=True):
            line = replace(outcome, id=task.id, task_hash=task.task_hash, run_id=run_id)
            file.write(encode_json(encode_outcome(line)) + b"\n")
