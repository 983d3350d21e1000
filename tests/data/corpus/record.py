"""Records all runs, or only those of one kind, in a new journal:
``python -m tests.data.corpus.record NAME [waiting | observing | delegating]``.

Twice in a row it records the same. It is run by hand alone, and leaves what was recorded before
as it is, so that this shows what later code makes of it.
"""

import asyncio
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from cloudpickle import cloudpickle

from harness_actors.replay import load_recording, replay
from harness_actors.stores import JournalReader
from harness_actors.stores.expiry import compact
from tests.data.corpus import journals, plain, write
from tests.data.corpus.delegating import DELEGATING
from tests.data.corpus.interrupted import INTERRUPTED, Take
from tests.data.corpus.observing import OBSERVING
from tests.data.corpus.scripts import ENDINGS, LIMITS, own_programs, real_runs
from tests.data.corpus.waiting import WAITING

KINDS = {"waiting": WAITING, "observing": OBSERVING, "delegating": DELEGATING}


async def record(store: Path, which: str) -> None:
    """Make runs in one journal, one after the other: of one kind, or all where none is named."""
    for kind in (which,) if which else KINDS:
        for make in KINDS[kind]:
            await make(store)
    if which:
        return
    for name, (agent, settings) in {**ENDINGS, **LIMITS, **own_programs()}.items():
        await Take(store, name, agent, settings).to_its_end()
    for make in INTERRUPTED:
        await make(store)
    settings = {"max_turns": 200, "continuation": {"max_prompts": 100}}
    for name, task, agent in real_runs():
        await Take(store, name, agent, settings, task).to_its_end()


def slim(store: Path) -> None:
    """Leave out what no replay reads: pickled code, which processes there were, and the mark."""
    connection = sqlite3.connect(store)
    with connection:
        connection.execute("UPDATE code SET blob = x'' WHERE length(code) = 64")
        connection.execute("DELETE FROM processes")
    connection.close()
    compact(store)
    connection = sqlite3.connect(store)
    with connection:
        connection.execute("UPDATE marks SET mark = zeroblob(16)")
    connection.close()


@contextmanager
def counted_classes() -> Iterator[None]:
    """Classes that travel by value are told apart by random ids; here these are numbers."""
    numbers, drawn = count(1), cloudpickle.uuid
    cloudpickle.uuid = SimpleNamespace(uuid4=lambda: UUID(int=next(numbers)))
    try:
        yield
    finally:
        cloudpickle.uuid = drawn


async def described(store: Path) -> dict[str, Any]:
    """What is in the journal, by run.

    Raises:
        AssertionError: A replay differs already now.
    """
    journal, found = JournalReader(store), {}
    for heading in journal.headings():
        recording = load_recording(journal, heading.run_id)
        replayed = await replay(recording)
        assert replayed.same, (heading.run_id, replayed.differences)
        found[heading.run_id] = {**plain(recording), "facts": replayed.facts}
    journal.close()
    return found


def main(journal: str, which: str = "") -> None:
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The hash of an agent's code depends on the order of sets.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.data.corpus.record", *sys.argv[1:]])
    if journal in journals():
        raise SystemExit(f"{journal!r} is recorded, and stays as it is; name another one")
    with TemporaryDirectory() as folder:
        store = Path(folder) / "runs.db"
        with counted_classes():
            asyncio.run(record(store, which))
        slim(store)
        found = asyncio.run(described(store))
        write(journal, store, found)
    print(f"{len(found)} runs")


if __name__ == "__main__":
    main(*sys.argv[1:])
