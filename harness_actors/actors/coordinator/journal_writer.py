"""The journal's one writer: a thread, with one transaction in flight for many runs."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field

from harness_actors.errors import StoreError
from harness_actors.ports import Journal
from harness_actors.records import Entry

Then = Callable[[Sequence[int]], None]


@dataclass(eq=False)
class JournalWriter:
    """Commits groups of entries in the order in which they are written.

    Steps that come while a transaction is in flight share the next one.

    Args:
        journal: Where to.
        term: The term that the commits belong to.
        thread: Where the journal's calls block; one thread.
        failed: Called once when a commit fails. Memory is ahead of the disk then, so
            nothing more is committed and no further `then` is called.
    """

    _journal: Journal
    _term: int
    _thread: Executor
    _failed: Callable[[StoreError], None]
    _queue: list[tuple[Sequence[Entry], Then]] = field(default_factory=list, init=False)
    _writing: asyncio.Task[None] | None = field(default=None, init=False)
    _broken: bool = field(default=False, init=False)
    commits: int = field(default=0, init=False)
    """Transactions so far."""

    def write(self, entries: Sequence[Entry], then: Then) -> None:
        """Commit entries, then call `then` with their journal positions.

        Steps without entries keep their place in the order.
        """
        if self._broken:
            return
        if not entries and self._writing is None:
            then(())
            return
        self._queue.append((entries, then))
        if self._writing is None:
            self._writing = asyncio.get_running_loop().create_task(self._drain())

    async def settle(self) -> None:
        """Return when everything written so far is on disk, or the writer has failed.

        What is written later is not waited for: under load that would never end.
        """
        if self._writing is None:
            return
        reached = asyncio.Event()
        self._queue.append(((), lambda _: reached.set()))
        waiting = asyncio.ensure_future(reached.wait())
        try:
            await asyncio.wait((waiting, self._writing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()

    async def _drain(self) -> None:
        try:
            while self._queue:
                await self._commit()
        except StoreError as error:
            self._stop(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, what is after it is lost
            problem = f"a commit failed in an unknown way ({type(error).__name__}: {error})"
            self._stop(StoreError("runs", problem))
        finally:
            self._writing = None

    def _stop(self, error: StoreError) -> None:
        self._broken = True
        self._queue.clear()
        self._failed(error)

    async def _commit(self) -> None:
        group, self._queue = self._queue, []
        entries = [entry for part, _ in group for entry in part]
        positions: Sequence[int] = ()
        if entries:
            loop = asyncio.get_running_loop()
            positions = await loop.run_in_executor(
                self._thread, self._journal.commit, self._term, entries
            )
            self.commits += 1
        at = 0
        for part, then in group:
            then(positions[at : at + len(part)])
            at += len(part)
