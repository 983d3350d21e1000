"""The runtime on Ray: a driver's side of a cell."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import ray

from harness_actors.actors.attach import coordinators_of, make_way
from harness_actors.actors.idleness import GoneError, idle_s
from harness_actors.actors.joining.connect import connect
from harness_actors.actors.on_ray.calls import AwayError, CoordinatorCalls, is_ray_up
from harness_actors.actors.on_ray.cells import is_own_ray, retire, retire_others, start_cell
from harness_actors.actors.on_ray.known_cells import find_cell
from harness_actors.actors.on_ray.placement import node_of_driver
from harness_actors.actors.on_ray.streams import reach_streams
from harness_actors.actors.processes import wait_until_gone
from harness_actors.actors.runtime import Happened, StopMode, TextCursor, Texts
from harness_actors.actors.text.listening import Listener
from harness_actors.actors.warm_cells import warm_cells
from harness_actors.errors import ActorLostError, CellError, HarnessError
from harness_actors.events import RunEvent, RunParked
from harness_actors.messages import Message
from harness_actors.records import RunHeading, RunSpec
from harness_actors.stores import SqliteJournal
from harness_actors.stores.standing import FileId, out_of_place

logger = logging.getLogger(__name__)

START_DEADLINE_S = 90.0
CLOSE_DEADLINE_S = 10.0

STARTER_THREAD = ThreadPoolExecutor(1, thread_name_prefix="ray-starter")
"""Starts Ray, and lives as long as this process: the kernel ends Ray's processes with the
thread that started them, so one of an event loop would take them along when that closes."""


class RayRuntime:
    """Answers the `Runtime` port from the actors of a cell.

    Its calls survive the coordinator (see `CoordinatorCalls`) and a cell that stopped
    because there was nothing to do: the next call starts another.

    Args:
        store: The journal's file.
        command: Who owns the runs of a cell that is started.
    """

    def __init__(self, store: Path, command: str) -> None:
        self._store = store.resolve()
        self._command = command
        self._file: FileId | None = None
        """Which file the journal is, of a cell that was opened here."""
        # Under a Ray that was there before, a cell outlives us, and waits for the next command.
        self._idle_s = None if is_own_ray() else idle_s()
        self._warm_cells = warm_cells()
        self._calls: CoordinatorCalls
        self._listener = Listener(partial(self._call, "subscribe"), reach_streams)
        # Of a kind that several event loops may wait for: harnesses of threads share this.
        self._placing: Future[None] | None = None
        self._replaced: Future[None] = Future()
        self._beginning: set[str] = set()
        """The runs that are being submitted or taken up, of those that are not over by now."""
        self._begun: set[str] = set()
        """Those that were, and are not known to be over."""

    @classmethod
    async def open(
        cls, store: Path, command: str, address: str | None = None, *, lasting: bool = True
    ) -> "RayRuntime":
        """Serve a journal from its warm cell, or else from a new one, on the Ray at an address.

        Args:
            store: The journal's file; made if there is none.
            command: Who owns the runs of a cell that is started.
            address: See `connect`.
            lasting: Another command may come for this journal.

        Raises:
            CellError: Ray or the cell did not come up; says what was waited for.
            StoreError: The journal cannot be served.
            StoreInUseError: Another cell has runs of it in progress.
        """
        # ray.init and its like block for seconds; a loop with other work must not.
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(STARTER_THREAD, connect, address)
        runtime = cls(store, command)
        if not lasting and runtime._idle_s is not None:
            runtime._idle_s = 0.0
        runtime._calls = await runtime._serve()
        return runtime

    @classmethod
    def of(cls, store: Path, calls: CoordinatorCalls) -> "RayRuntime":
        """That of a cell which another process has open."""
        runtime = cls(store, "")
        runtime._calls = calls
        # It is theirs to start another.
        runtime._idle_s = None
        return runtime

    async def _serve(self) -> CoordinatorCalls:
        file = await asyncio.to_thread(self._journal_file)
        marks = await asyncio.to_thread(coordinators_of, self._store)
        found = None if self._idle_s is None else await asyncio.to_thread(find_cell, self._store)
        own = [mark for mark in marks if found is not None and mark.pid == found.pid]
        if len(own) < len(marks):
            await retire_others(self._store, found)
            await make_way(self._store, spare=own)
        if found is not None:
            calls = CoordinatorCalls(found.coordinator, own[0] if own else None)
            try:
                async with asyncio.timeout(START_DEADLINE_S):
                    await calls.call("serve", self._idle_s, self._warm_cells)
                    await calls.attach()
                return calls
            except (GoneError, HarnessError, TimeoutError) as error:
                logger.info("the cell of %s is replaced: %s", self._store, error)
                # Where the journal is another one by now, it does not know whom to wait for.
                await retire(found)
        return await self._start(file)

    def _journal_file(self) -> FileId:
        """The journal; made if there is none.

        Raises:
            StoreError: It is not the one that this runtime was opened with, or no journal.
        """
        found = FileId.of(self._store)
        if self._file is not None and found != self._file:
            raise out_of_place(self._store, self._file)
        if found is None or not self._store.stat().st_size:
            # Here and not by the coordinator, which must know an incarnation later which it was.
            SqliteJournal(self._store).close()
            found = FileId.of(self._store)
        assert found is not None, "it was made just now"
        self._file = found
        return found

    async def _start(self, file: FileId) -> CoordinatorCalls:
        coordinator = await asyncio.to_thread(
            start_cell, self._store, file, self._command, self._idle_s, self._warm_cells
        )
        calls = CoordinatorCalls(coordinator)
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                await calls.attach()
        except GoneError as gone:
            raise ActorLostError("the coordinator", gone.problem) from None
        except TimeoutError:
            await asyncio.to_thread(ray.kill, coordinator, no_restart=True)
            raise CellError(
                "the coordinator",
                f"its actor did not come up within {START_DEADLINE_S:.0f} s on node "
                f"{node_of_driver()}; look at `ray status`, the load and the free memory",
            ) from None
        return calls

    async def _call(self, method: str, *arguments: Any) -> Any:
        while True:
            calls = self._calls
            try:
                return await calls.call(method, *arguments)
            except GoneError as gone:
                if gone.waited:
                    # It had nothing more to tell, so this call is no reason to start another.
                    await self._another(calls)
                else:
                    await self._replace(calls, gone)

    async def _another(self, calls: CoordinatorCalls) -> None:
        """Return when another call needed a cell and has started one."""
        replaced = self._replaced
        if self._calls is calls:
            await asyncio.wait([asyncio.wrap_future(replaced)])

    async def _replace(self, calls: CoordinatorCalls, gone: GoneError) -> None:
        """Start another cell, or wait for the call that does."""
        if self._calls is not calls:
            return
        if self._placing is not None:
            # If that fails it is our turn.
            await asyncio.wait([asyncio.wrap_future(self._placing)])
            return
        if self._begun or self._idle_s is None:
            # No cell leaves by itself that has runs in progress.
            raise ActorLostError("the coordinator", gone.problem)
        placing: Future[None] = Future()
        self._placing = placing
        try:
            fresh = await self._serve()
            fresh.secrets.update(calls.secrets)
            fresh.budget_usd = calls.budget_usd
            await fresh.attach()
            replaced, self._replaced = self._replaced, Future()
            self._calls = fresh
            replaced.set_result(None)
        finally:
            self._placing = None
            placing.set_result(None)

    async def submit(
        self,
        specs: Sequence[RunSpec],
        *,
        code: Mapping[str, bytes],
        secrets: Mapping[str, str],
    ) -> None:
        self._calls.secrets.update(secrets)
        run_ids = [spec.run_id for spec in specs]
        await self._begin(run_ids, self._call("submit", specs, code, secrets))

    async def resume(self, run_ids: Sequence[str], *, secrets: Mapping[str, str]) -> None:
        self._calls.secrets.update(secrets)
        await self._begin(run_ids, self._call("resume", run_ids, secrets))

    async def _begin(self, run_ids: Sequence[str], call: Awaitable[None]) -> None:
        self._beginning.update(run_ids)
        try:
            await call
            # Some may be over, and that be told, before the call has returned.
            self._begun.update(self._beginning.intersection(run_ids))
        finally:
            self._beginning.difference_update(run_ids)

    async def happened(self, cursor: int, *, messages: bool = False) -> Happened:
        happened: Happened = await self._call("happened", cursor, messages)
        parked = (e.run_id for e in happened.events if isinstance(e.event, RunParked))
        over = {*happened.results, *parked}
        self._begun -= over
        self._beginning -= over
        return happened

    async def subscribe(self, run_ids: Sequence[str]) -> None:
        await self._listener.subscribe(run_ids)

    async def texts(self, run_id: str, cursor: TextCursor | None = None) -> Texts:
        return await self._listener.texts(run_id, cursor)

    async def allow(self, budget_usd: float | None) -> None:
        self._calls.budget_usd = budget_usd
        await self._call("allow", budget_usd)

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> None:
        await self._call("stop", run_ids, mode)

    async def position(self) -> int:
        return int(await self._call("position"))

    async def headings(self) -> list[RunHeading]:
        headings: list[RunHeading] = await self._call("headings")
        return headings

    async def events(self, run_id: str) -> tuple[RunEvent, ...]:
        events: tuple[RunEvent, ...] = await self._call("events", run_id)
        return events

    async def conversation(self, conversation_id: str) -> list[Message]:
        messages: list[Message] = await self._call("conversation", conversation_id)
        return messages

    @property
    def is_connected(self) -> bool:
        """Calls can reach the cell still: nobody has disconnected this process from Ray."""
        return self._calls.is_connected

    async def close(self) -> None:
        if not self.is_connected:
            # A Ray of our own is gone with it; elsewhere the cell stops when it is idle.
            return
        if self._idle_s:
            leaves = self._calls.once("stop", list(self._begun), "park_now")
        else:
            leaves = self._calls.once("close")
        try:
            async with asyncio.timeout(CLOSE_DEADLINE_S):
                await leaves
            if self._idle_s:
                # It stays for the next command, with those runs that nobody here waits for.
                return
        except (HarnessError, GoneError, TimeoutError, AwayError):
            pass  # it is killed below in any case, and the journal holds what is committed
        if await asyncio.to_thread(is_ray_up):
            await asyncio.to_thread(ray.kill, self._calls.coordinator, no_restart=True)
            if self._calls.process is not None:
                await asyncio.to_thread(
                    wait_until_gone, self._calls.process, timeout_s=CLOSE_DEADLINE_S
                )
