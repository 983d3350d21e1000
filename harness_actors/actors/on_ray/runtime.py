"""The runtime on Ray: a driver's side of a cell."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import ray

from harness_actors.actors.cell_calls import CellCalls, CellRuntime
from harness_actors.actors.cell_lifetime import GoneError
from harness_actors.actors.hosted import ActorCall
from harness_actors.actors.joining.connection import RayLostError
from harness_actors.actors.on_ray.calls import AwayError, CoordinatorCalls
from harness_actors.actors.on_ray.peer import ActorOfDriver
from harness_actors.actors.on_ray.serving import ServedCell
from harness_actors.actors.processes import wait_until_gone
from harness_actors.actors.runtime import News, StopMode
from harness_actors.errors import ActorLostError, HarnessError
from harness_actors.events import InputAwaited, RoundCompleted, RunParked
from harness_actors.records import RunSpec

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

logger = logging.getLogger(__name__)

CLOSE_DEADLINE_S = 10.0


class RayRuntime(CellRuntime):
    """Answers the `Runtime` port from the actors of a cell.

    Its calls survive the coordinator, a cell that stopped, and Ray itself; see `ServedCell`.

    Args:
        cell: What serves the journal.
    """

    def __init__(self, cell: ServedCell) -> None:
        super().__init__(self._reach)
        self._cell = cell
        cell.busy = lambda: bool(self._begun)
        self._beginning: set[str] = set()
        """The runs that are being submitted or taken up, of those that are not over by now."""
        self._begun: set[str] = set()
        """Those that were, and are not known to be over."""

    @classmethod
    async def open(
        cls,
        store: Path,
        command: str,
        address: str | None = None,
        *,
        lasting: bool = True,
        on_loss: Callable[[str], None] | None = None,
    ) -> "RayRuntime":
        """Serve a journal from its warm cell, or else from a new one, on the Ray at an address.

        Args:
            store: The journal's file; made if there is none.
            command: Who owns the runs of a cell that is started.
            address: See `connect`.
            lasting: Another command may come for this journal.
            on_loss: Told in a line what is done about a Ray that was lost; None logs it.

        Raises:
            CellError: Ray or the cell did not come up; says what was waited for.
            StoreError: The journal cannot be served.
            StoreInUseError: Another cell has runs of it in progress.
        """
        tell = on_loss or logger.warning
        cell = ServedCell(store, command, lasting=lasting, tell=tell)
        runtime = cls(cell)
        await cell.open(address)
        return runtime

    @classmethod
    def of(cls, store: Path, calls: CoordinatorCalls) -> "RayRuntime":
        """That of a cell which another process has open."""
        # It is theirs to start another.
        cell = ServedCell(store, "")
        cell.calls = calls
        return cls(cell)

    async def ask(self, call: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        return await self._cell.call(call, *arguments)

    async def _reach(self, name: str) -> ActorOfDriver:
        return await ActorOfDriver.reach(name, self._cell.calls.connection)

    async def submit(
        self,
        specs: Sequence[RunSpec],
        *,
        code: Mapping[str, bytes],
        secrets: Mapping[str, str],
    ) -> None:
        self._cell.calls.secrets.update(secrets)
        run_ids = [spec.run_id for spec in specs]
        await self._begin(run_ids, super().submit(specs, code=code, secrets=secrets))

    async def resume(self, run_ids: Sequence[str], *, secrets: Mapping[str, str]) -> None:
        self._cell.calls.secrets.update(secrets)
        await self._begin(run_ids, super().resume(run_ids, secrets=secrets))

    async def _begin(self, run_ids: Sequence[str], call: Awaitable[None]) -> None:
        self._beginning.update(run_ids)
        try:
            await call
            # Some may be over, and that be told, before the call has returned.
            self._begun.update(self._beginning.intersection(run_ids))
        finally:
            self._beginning.difference_update(run_ids)

    async def wait_for_news(
        self, cursor: int, *, messages: bool = False, at_once: bool = False
    ) -> News:
        news = await super().wait_for_news(cursor, messages=messages, at_once=at_once)
        if news.results or any(isinstance(e.event, RoundCompleted) for e in news.events):
            self._cell.went_on()
        parked = (e.run_id for e in news.events if isinstance(e.event, RunParked | InputAwaited))
        over = {*news.results, *parked}
        self._begun -= over
        self._beginning -= over
        return news

    async def allow(self, budget_usd: float | None) -> None:
        self._cell.calls.budget_usd = budget_usd
        await super().allow(budget_usd)

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> tuple[str, ...]:
        if mode == "park_now" and self._cell.is_ray_lost:
            # Whoever leaves at once does not wait for another Ray. What is on disk stays.
            raise ActorLostError("Ray", str(self._cell.calls.connection.problem))
        return await super().stop(run_ids, mode)

    @property
    def is_connected(self) -> bool:
        """Calls can reach the cell still: nobody has disconnected this process from Ray."""
        return self._cell.is_within_reach

    async def close(self) -> None:
        calls = self._cell.calls
        if self._cell.is_ray_lost or not calls.is_connected:
            # A Ray of our own is gone with it; elsewhere the cell stops when it is idle.
            return
        leaves: Awaitable[object]
        if self._cell.idle_s:
            leaves = calls.once(CellCalls.stop, list(self._begun), "park_now")
        else:
            leaves = calls.once(CellCalls.close)
        try:
            async with asyncio.timeout(CLOSE_DEADLINE_S):
                await leaves
            if self._cell.idle_s:
                # It stays for the next command, with those runs that nobody here waits for.
                return
        except (HarnessError, GoneError, TimeoutError, AwayError, RayLostError):
            pass  # it is killed below in any case, and the journal holds what is committed
        try:
            await calls.connection.unless_lost(asyncio.to_thread(_kill, calls))
            if calls.process is not None:
                await asyncio.to_thread(wait_until_gone, calls.process, timeout_s=CLOSE_DEADLINE_S)
        except RayLostError:
            pass  # and the cell with it


def _kill(calls: CoordinatorCalls) -> None:
    with calls.connection.in_use():
        ray.kill(calls.coordinator, no_restart=True)
