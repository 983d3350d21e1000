"""The cell of one journal, whichever serves it: found, started, and begun anew when it is gone."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import ray

from harness_actors.actors.cell_calls import PlacedCellCalls
from harness_actors.actors.cell_lifetime import GoneError, idle_s, warm_cells
from harness_actors.actors.cell_processes import coordinators_of
from harness_actors.actors.hosted import ActorCall
from harness_actors.actors.joining.connect import connect
from harness_actors.actors.joining.connection import Connection, RayLostError
from harness_actors.actors.joining.losses import Losses
from harness_actors.actors.joining.starter import on_starter_thread
from harness_actors.actors.on_ray.calls import LOSS_SHOWS_S, CoordinatorCalls
from harness_actors.actors.on_ray.cells import is_own_ray, retire, retire_others, start_cell
from harness_actors.actors.on_ray.known_cells import find_cell
from harness_actors.actors.on_ray.placement import node_of_driver
from harness_actors.actors.retiring import make_way
from harness_actors.errors import ActorLostError, CellError, HarnessError
from harness_actors.stores import SqliteJournal
from harness_actors.stores.standing import FileId, out_of_place

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

logger = logging.getLogger(__name__)

START_DEADLINE_S = 90.0


class ServedCell:
    """Calls whatever cell serves a journal.

    Calls survive the coordinator (see `CoordinatorCalls`), a cell that stopped because there was
    nothing to do, and Ray itself (see `Losses`). The cell of another Ray goes on with what was
    in progress, as an incarnation does.

    Args:
        store: The journal's file.
        command: Who owns the runs of a cell that is started.
        lasting: Another command may come for this journal.
        tell: As of `Losses`.
    """

    def __init__(
        self,
        store: Path,
        command: str,
        *,
        lasting: bool = True,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._store = store.resolve()
        self._command = command
        self._lasting = lasting
        self._file: FileId | None = None
        """Which file the journal is, once a cell was opened here."""
        self._warm_cells = warm_cells()
        self.calls: CoordinatorCalls
        self.idle_s: float | None = None
        """For how long it waits for the next command; None where it ends with this one."""
        self.busy: Callable[[], bool] = lambda: False
        """Whether runs are in progress that this process has begun."""
        # Of a kind that several event loops may wait for: harnesses of threads share this.
        self._placing: Future[None] | None = None
        self._replaced: Future[None] = Future()
        self._losses = Losses(tell)
        self._given_up: HarnessError | None = None

    @property
    def is_within_reach(self) -> bool:
        """Calls reach the cell, or another one: nobody has disconnected this process from Ray."""
        return self._given_up is None and (self.calls.is_connected or self.is_ray_lost)

    @property
    def is_ray_lost(self) -> bool:
        """The Ray of the cell that was served last is no more."""
        return self.calls.connection.problem is not None

    async def open(self, address: str | None) -> None:
        """Find the cell or start it, on the Ray at an address; see `connect`.

        Raises:
            HarnessError: It did not come up.
        """
        connection = await on_starter_thread(connect, address)
        self.calls = await self._settle(connection)

    def went_on(self) -> None:
        """Work was done that is on disk, so whatever was lost before is made good for."""
        self._losses.made_good()

    async def call(self, call: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        """See `CoordinatorCalls.call`."""
        while True:
            calls = self.calls
            try:
                return await calls.call(call, *arguments)
            except GoneError as gone:
                if gone.waited:
                    # It had nothing more to tell, so this call is no reason to start another.
                    await self._another(calls)
                else:
                    await self._replace(calls, gone)
            except RayLostError as lost:
                await self._replace(calls, lost)

    async def _another(self, calls: CoordinatorCalls) -> None:
        """Return when another call needed a cell and has started one."""
        replaced = self._replaced
        if self.calls is calls:
            await asyncio.wait([asyncio.wrap_future(replaced)])

    async def _replace(self, calls: CoordinatorCalls, why: GoneError | RayLostError) -> None:
        """Start another cell, or wait for the call that does."""
        if self._given_up is not None:
            raise self._given_up
        if self.calls is not calls:
            return
        if self._placing is not None:
            # If that is cut it is our turn.
            await asyncio.wait([asyncio.wrap_future(self._placing)])
            return
        placing: Future[None] = Future()
        self._placing = placing
        try:
            await self._check_gone(calls, why)
            fresh = await self._settle(calls.connection, calls)
            replaced, self._replaced = self._replaced, Future()
            self.calls = fresh
            replaced.set_result(None)
        except HarnessError as error:
            if self.is_ray_lost:
                self._given_up = error
            raise
        finally:
            self._placing = None
            placing.set_result(None)

    async def _check_gone(self, calls: CoordinatorCalls, why: GoneError | RayLostError) -> None:
        if isinstance(why, RayLostError) or not (self.busy() or self.idle_s is None):
            return
        # No cell leaves by itself that has runs in progress; it may have died with all of Ray.
        if not await calls.connection.is_lost(within_s=LOSS_SHOWS_S):
            raise ActorLostError("the coordinator", why.problem)

    async def _settle(
        self, connection: Connection, earlier: CoordinatorCalls | None = None
    ) -> CoordinatorCalls:
        """Have a cell that serves, on the Ray that is connected to or, if that is lost, another."""
        while True:
            try:
                if connection.problem is not None:
                    connection = await self._losses.replace(connection)
                return await connection.unless_lost(self._take_over(connection, earlier))
            except RayLostError as lost:
                logger.info("lost again: %s", lost)

    async def _take_over(
        self, connection: Connection, earlier: CoordinatorCalls | None
    ) -> CoordinatorCalls:
        # Of the Ray that is there now: the user may have come with another one in between.
        self.idle_s = None if is_own_ray() else idle_s() if self._lasting else 0.0
        fresh = await self._serve(connection)
        if earlier is not None:
            fresh.secrets.update(earlier.secrets)
            fresh.budget_usd = earlier.budget_usd
            await fresh.attach()
        return fresh

    async def _serve(self, connection: Connection) -> CoordinatorCalls:
        file = await asyncio.to_thread(self._journal_file)
        marks = await asyncio.to_thread(coordinators_of, self._store)
        found = None if self.idle_s is None else await asyncio.to_thread(find_cell, self._store)
        own = [mark for mark in marks if found is not None and mark.pid == found.pid]
        if len(own) < len(marks):
            await retire_others(self._store, found)
            await make_way(self._store, spare=own)
        if found is not None:
            mark = own[0] if own else None
            calls = CoordinatorCalls(found.coordinator, mark, connection=connection)
            try:
                async with asyncio.timeout(START_DEADLINE_S):
                    # Another cell in its place goes on with what it had in progress.
                    took = calls.call(PlacedCellCalls.serve, self.idle_s, self._warm_cells)
                    self._command = await took
                    await calls.attach()
                return calls
            except (GoneError, HarnessError, TimeoutError) as error:
                logger.info("the cell of %s is replaced: %s", self._store, error)
                # Where the journal is another one by now, it does not know whom to wait for.
                await retire(found)
        return await self._start(connection, file)

    def _journal_file(self) -> FileId:
        """The journal; made if there is none.

        Raises:
            StoreError: It is not the one that this cell was opened with, or no journal.
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

    async def _start(self, connection: Connection, file: FileId) -> CoordinatorCalls:
        coordinator = await asyncio.to_thread(
            start_cell, self._store, file, self._command, self.idle_s, self._warm_cells
        )
        calls = CoordinatorCalls(coordinator, connection=connection)
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                await calls.attach()
        except GoneError as gone:
            if await connection.is_lost(within_s=LOSS_SHOWS_S):
                raise RayLostError(str(connection.problem)) from None
            raise ActorLostError("the coordinator", gone.problem) from None
        except TimeoutError:
            await asyncio.to_thread(ray.kill, coordinator, no_restart=True)
            raise CellError(
                "the coordinator",
                f"its actor did not come up within {START_DEADLINE_S:.0f} s on node "
                f"{node_of_driver()}; look at `ray status`, the load and the free memory",
            ) from None
        return calls
