"""Taking hold of runs, whoever works on them: the cell that is up, or one of our own."""

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from harness_actors.actors.driver.attach import attach
from harness_actors.actors.driver.open_cells import close_cell, open_cell
from harness_actors.actors.embedded import EMBEDDED_MODEL_URL
from harness_actors.actors.runtime import Runtime
from harness_actors.errors import BadInputError, StoreInUseError
from harness_actors.records import RunHeading
from harness_actors.results import HarnessResult
from harness_actors.stores import JournalReader
from harness_actors.stores.lock import ORDERED_WITHIN_S
from harness_actors.stores.places import FoundRun, find_run, holder_of

ENDED_WITHIN_S = 20.0
STARTED_WITHIN_S = 30.0
LOOK_S = 0.05


def find_runs(stores: Sequence[Path], given: Iterable[str]) -> dict[Path, list[str]]:
    """Runs by their journals, each once, in the order in which they were named.

    Raises:
        BadInputError: One is unknown or ambiguous.
    """
    found: dict[Path, list[str]] = defaultdict(list)
    for name in given:
        one: FoundRun = find_run(stores, name)
        if one.heading.run_id not in found[one.store]:
            found[one.store].append(one.heading.run_id)
    return dict(found)


def trees_of(store: Path, run_ids: Iterable[str]) -> dict[str, str]:
    """The run at the top of its tree, by each child among these that is not over."""
    found = _headings(store, frozenset(run_ids)).values()
    return {one.run_id: one.root for one in found if one.root and one.end is None}


def check_keys(store: Path, run_ids: Iterable[str]) -> None:
    """Refuse to take up runs that would have no key for their model.

    Raises:
        BadInputError: A key that a run names is not in the environment.
    """
    journal = JournalReader(store)
    for run_id in run_ids:
        stored = journal.load_run(run_id)
        if stored is None or stored.end is not None:
            continue
        missing = [k for k in stored.spec.keys if k != EMBEDDED_MODEL_URL and not os.environ.get(k)]
        if missing:
            problem = f"run {run_id!r} needs {', '.join(missing)}; set it in the environment"
            raise BadInputError("RUN_ID", (problem,))


def keys_of(store: Path, run_ids: Iterable[str]) -> dict[str, str]:
    """The keys that runs name, as far as they are in the environment."""
    journal = JournalReader(store)
    runs = filter(None, map(journal.load_run, run_ids))
    names = {name for run in runs for name in run.spec.keys}
    return {name: os.environ[name] for name in names if os.environ.get(name)}


def ended_among(store: Path, run_ids: Iterable[str]) -> dict[str, HarnessResult]:
    """The results of those runs that are over."""
    journal = JournalReader(store)
    results = {run_id: journal.load_result(run_id) for run_id in run_ids}
    return {run_id: result for run_id, result in results.items() if result is not None}


async def cancel_runs(
    store: Path, run_ids: Sequence[str], address: str | None
) -> Mapping[str, HarnessResult]:
    """End runs of a journal, in the cell that serves it, or else in one of our own.

    Args:
        store: The journal, an absolute path.
        run_ids: The runs.
        address: Which Ray its cell is on; None finds it.

    Returns:
        How they ended, those that were over before included; without those that are not
        over after `ENDED_WITHIN_S`.

    Raises:
        StoreInUseError: A process works on the journal that cannot be reached.
    """
    before = ended_among(store, run_ids)
    waiting = [run_id for run_id in run_ids if run_id not in before]
    if not waiting:
        return before
    async with cell_for(store, address) as cell:
        await cell.stop(waiting, "cancel")
        return await _until_ended(store, run_ids)


@asynccontextmanager
async def cell_for(store: Path, address: str | None) -> AsyncIterator[Runtime]:
    """A cell that does what needs no model: the one that serves a journal, or one of our own.

    Args:
        store: The journal, an absolute path.
        address: Which Ray its cell is on; None finds it.

    Raises:
        StoreInUseError: A process works on the journal that cannot be reached.
    """
    deadline = asyncio.get_running_loop().time() + STARTED_WITHIN_S
    cell, is_ours = await _cell_of(store, address), False
    while cell is None:
        try:
            # No model and no tool is needed, so Ray is not either.
            cell, is_ours = await open_cell(store, "local", None, wait_s=0.0), True
        except StoreInUseError:
            # Somebody was faster, and may give orders only, as we do.
            if asyncio.get_running_loop().time() > deadline:
                raise
            await asyncio.sleep(LOOK_S)
            cell = await _cell_of(store, address)
    try:
        yield cell
    finally:
        if is_ours:
            await close_cell(store, "local")


async def _cell_of(store: Path, address: str | None) -> Runtime | None:
    """The cell that serves a journal; None where no process works on it.

    Raises:
        StoreInUseError: A process works on it, but not as a cell that can be reached.
    """
    now = asyncio.get_running_loop().time
    began = since = now()
    before: int | None = None
    while True:
        cell = await attach(store, address)
        holder = holder_of(store)
        if cell is not None or holder is None:
            return cell
        if holder != before:
            before, since = holder, now()
        # Where the actors live in the process that holds the journal, they are marked so. One
        # that gives orders, as this one, is gone in a moment.
        marks = await asyncio.to_thread(JournalReader(store).load_processes)
        if any(mark.pid == holder for mark in marks) and now() - since > ORDERED_WITHIN_S:
            raise StoreInUseError(str(store), _out_of_reach(holder))
        if now() - began > STARTED_WITHIN_S:
            problem = f"process {holder} works on it, and its cell does not come up; try again"
            raise StoreInUseError(str(store), problem)
        # Ray is being started, or the coordinator is between two incarnations.
        await asyncio.sleep(4 * LOOK_S)


async def pause_runs(
    store: Path, run_ids: Sequence[str], address: str | None, *, now: bool
) -> tuple[Mapping[str, RunHeading], frozenset[str]]:
    """Put runs of a journal aside that are in progress, in the cell that serves it.

    Args:
        store: The journal, an absolute path.
        run_ids: The runs.
        address: Which Ray its cell is on; None finds it.
        now: Cut the round in progress.

    Returns:
        How they stand then, and which of them the cell served: one of these whose phase is
        `running` is still at its round after `ENDED_WITHIN_S`. Others were interrupted before.
        With a child its whole tree is put aside, of which the top is told of, too.

    Raises:
        StoreInUseError: A process works on the journal that cannot be reached.
    """
    tops = trees_of(store, run_ids)
    run_ids = list(dict.fromkeys((*run_ids, *tops.values())))
    begun = [run_id for run_id, run in _headings(store, run_ids).items() if run.phase == "running"]
    served: frozenset[str] = frozenset()
    if begun and (cell := await _cell_of(store, address)) is not None:
        asked = list(dict.fromkeys(tops.get(run_id, run_id) for run_id in begun))
        unserved = await cell.stop(asked, "park_now" if now else "park")
        served = frozenset(one for one in begun if tops.get(one, one) not in unserved)
        await _until(lambda: not _running_among(store, served))
    return _headings(store, run_ids), served


async def compact_run(store: Path, run_id: str, address: str | None, keep: str) -> bool:
    """Have the conversation of a run summarized, in the cell that serves it.

    Args:
        store: The journal, an absolute path.
        run_id: The run.
        address: Which Ray its cell is on; None finds it.
        keep: What is to be kept, in a person's words; empty for nothing of its own.

    Returns:
        Whether a summary will be made.

    Raises:
        StoreInUseError: A process works on the journal that cannot be reached.
    """
    cell = await _cell_of(store, address)
    return cell is not None and await cell.compact(run_id, keep)


def _running_among(store: Path, run_ids: Collection[str]) -> bool:
    return any(run.phase == "running" for run in _headings(store, run_ids).values())


def _headings(store: Path, run_ids: Collection[str]) -> dict[str, RunHeading]:
    named = set(run_ids)
    return {run.run_id: run for run in JournalReader(store).headings() if run.run_id in named}


async def _until_ended(store: Path, run_ids: Sequence[str]) -> Mapping[str, HarnessResult]:
    await _until(lambda: len(ended_among(store, run_ids)) == len(run_ids))
    return await asyncio.to_thread(ended_among, store, run_ids)


async def _until(happened: Callable[[], bool]) -> None:
    """Wait for something that is to be seen in a journal, for `ENDED_WITHIN_S` at most."""
    deadline = asyncio.get_running_loop().time() + ENDED_WITHIN_S
    while not await asyncio.to_thread(happened):
        if asyncio.get_running_loop().time() > deadline:
            return
        await asyncio.sleep(LOOK_S)


def _out_of_reach(holder: int) -> str:
    return (
        f"process {holder} works on it without Ray, so its runs cannot be reached from here; "
        f"put them aside with Ctrl-C there, or `kill -INT {holder}`, and try again then"
    )
