"""The coordinator of a cell on Ray: a plain class, placed."""

import asyncio
import logging
import os
import pickle
import platform
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ray

from harness_actors.actors.carrying import carry
from harness_actors.actors.cell_calls import CellCalls, PlacedCellCalls
from harness_actors.actors.cell_facts import CellFacts
from harness_actors.actors.cell_lifetime import WARM_CELLS, GoneError
from harness_actors.actors.clock import SystemClock
from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.actors.coordinator.idleness import Idleness
from harness_actors.actors.coordinator.journal_watch import is_standing, watch_journal
from harness_actors.actors.kinds import KINDS
from harness_actors.actors.on_ray.batches import unpack_batch
from harness_actors.actors.on_ray.channels import Channels
from harness_actors.actors.on_ray.collecting import collect_seldom
from harness_actors.actors.on_ray.hosts import RayHostStarter
from harness_actors.actors.on_ray.neighbours import is_memory_short, make_room
from harness_actors.actors.processes import is_alive, mark_of_this_process, memory_mb
from harness_actors.coordination.protocol import Envelope, Slot
from harness_actors.errors import CellError, HarnessError
from harness_actors.records import ProcessMark
from harness_actors.stores import SqliteJournal
from harness_actors.stores.places import holder_of
from harness_actors.stores.standing import FileId

logger = logging.getLogger(__name__)

SETTLED_S = 1.0
"""A cell is idle for others when it has had nothing to do for so long, and looked at so often."""
LEAVE_S = 30.0
"""How long a coordinator stays that can do nothing any more, when its driver knows of it."""


class RayCoordinator:
    """The coordinator of a cell, as its actor makes it.

    A constructor that raises would be the end of the actor, and its cause would reach
    the driver as a text of Ray's; so the error is kept, and every call raises it.

    Args:
        store: Path of the journal.
        command: Who owns its runs.
        node: Ray's id of the node that the cell lives on.
        agent_turns: Number of agent turn hosts.
        leave_s: See `LEAVE_S`.
        idle_s: After how many seconds without runs it leaves; None for never.
        warm_cells: How many newer cells its node may have for it to stay while it is idle.
        home: See `CellFacts`.
        file: Which file the journal is, so that an incarnation that Ray starts does not
            make another where it was taken away; None to make one where there is none.
    """

    def __init__(
        self,
        store: str,
        command: str,
        node: str,
        agent_turns: int,
        leave_s: float = LEAVE_S,
        idle_s: float | None = None,
        warm_cells: int = WARM_CELLS,
        home: str = "",
        file: FileId | None = None,
    ) -> None:
        collect_seldom()
        self._store = store
        self._command = command
        self._node = node
        self._home = home
        self._leave_s = leave_s
        self._warm_cells = warm_cells
        self._leaving = False
        self._leaves_now = asyncio.Event()
        self._host: CoordinatorHost | HarnessError
        self._self: Any = ray.get_runtime_context().current_actor
        self._channels = Channels(self.receive)
        starter = RayHostStarter(self._self, node, self._channels, store, KINDS)
        try:
            journal = SqliteJournal(Path(store), file=file)
            carry(Path(store))
            self._host = CoordinatorHost(
                journal=journal,
                store=store,
                command=command,
                starter=starter,
                agent_turns=agent_turns,
                clock=SystemClock(),
                process=mark_of_this_process("coordinator"),
            )
        except Exception as error:
            if not isinstance(error, HarnessError):
                logger.exception("the coordinator did not start")
                problem = f"it did not start: {type(error).__name__}: {error}"
                error = CellError("the coordinator", problem)
            self._host = error
            # The driver that is told may die before it ends us.
            self._self.leave.remote(leave_s)
            return
        starter.term = self._host.term
        host, self._journal = self._host, journal
        self._idleness = Idleness(lambda: len(host.in_progress), lambda: host.committed, idle_s)
        self._starting = asyncio.ensure_future(self._start(host))
        self._idling = asyncio.ensure_future(self._leave_when_idle())
        self._watching = asyncio.ensure_future(self._leave_with_journal(host))
        self._tidying = asyncio.ensure_future(self._make_room(host))

    async def _start(self, host: CoordinatorHost) -> None:
        await self._channels.open()
        await host.start()

    async def call(self, method: str, *arguments: Any) -> Any:
        """Make a call of `PlacedCellCalls`, by its name; for the driver.

        Raises:
            HarnessError: Whatever it raises, or the reason why there is none.
            GoneError: There is nothing to do here any more, so this actor leaves.
        """
        if isinstance(self._host, HarnessError):
            raise self._host
        if self._leaving:
            raise GoneError("its cell had nothing to do and stops")
        await self._starting
        placed = method == PlacedCellCalls.serve.__name__
        called = self._serve if placed else getattr(self._host, method)
        waits = method == CellCalls.wait_for_news.__name__
        try:
            with nullcontext() if waits else self._idleness.interrupted():
                return await called(*arguments)
        except HarnessError:
            if self._leaving:
                raise GoneError("its cell had nothing to do and stopped", waits) from None
            raise
        finally:
            if waits and self._host.is_broken and not self._leaving:
                # Whoever follows the runs knows; the journal may be read for a while.
                self._self.leave.remote(self._leave_s)

    async def _serve(self, idle_s: float | None, warm_cells: int) -> str:
        """Another driver says how long this cell may be idle, and with how many newer ones.

        Returns:
            Who owns the runs that are in progress here.
        """
        assert isinstance(self._host, CoordinatorHost)
        await is_standing(self._journal, self._host)
        if self._host.failure is not None:
            raise self._host.failure
        self._idleness.idle_s, self._warm_cells = idle_s, warm_cells
        self._host.forget_driver()
        return self._command

    async def describe(self, weigh: bool = False) -> CellFacts:
        """What there is to say of this cell; with its memory if it is to be weighed."""
        facts = CellFacts(
            store=self._store,
            pid=os.getpid(),
            host=platform.node(),
            node=self._node,
            home=self._home,
            version=version("harness_actors"),
            python=sys.prefix,
        )
        if isinstance(self._host, HarnessError):
            return replace(facts, problem=str(self._host))
        return replace(
            facts,
            term=self._host.term,
            in_progress=self._host.in_progress,
            held=self._host.held,
            idle_for_s=self._idleness.lasts_s,
            stops_in_s=self._idleness.left_s,
            problem=str(self._host.failure or ""),
            processes=tuple(mark for mark in self._host.processes if is_alive(mark)),
            in_use=holder_of(Path(self._store)) is not None,
            idle_since=self._idleness.since,
            memory_mb=await asyncio.to_thread(memory_mb, self._host.processes) if weigh else None,
        )

    async def retire(self) -> int:
        """Leave for good, unless runs are in progress; returns how many are."""
        in_progress = 0 if isinstance(self._host, HarnessError) else len(self._host.in_progress)
        if not in_progress and not self._leaving:
            self._leaving = True
            self._going = asyncio.ensure_future(self._go())
        return in_progress

    async def give_room(self, newer: int, short: bool) -> None:
        """Leave if this cell is idle, and there are too many newer ones for it to stay.

        Args:
            newer: How many cells of this node were used later.
            short: There is no place because there is no memory.
        """
        if not self._leaving and self._is_idle() and (short or newer > self._warm_cells):
            logger.info("the cell of %s leaves: %d newer ones are warm", self._store, newer)
            # Nothing is awaited in between, so no call is lost.
            self._leaving = True
            self._going = asyncio.ensure_future(self._go())

    def _is_idle(self) -> bool:
        """Nobody has use for it, but may have again."""
        if isinstance(self._host, HarnessError) or self._idleness.idle_s is None:
            return False
        is_quiet = not self._host.in_progress and self._idleness.lasts_s >= SETTLED_S
        return is_quiet and holder_of(Path(self._store)) is None

    async def _make_room(self, host: CoordinatorHost) -> None:
        """See to it that not too many idle cells stay: when this one starts, and becomes idle."""
        await self._starting
        asked: bool | None = None
        while self._stays(host):
            is_idle = self._is_idle()
            short = is_idle and await asyncio.to_thread(is_memory_short)
            if self._idleness.idle_s is not None and (is_idle != asked or short):
                # At its start, or its next command's, it is not idle, and takes a place.
                await make_room(self._node, short=short)
                asked = is_idle
            await asyncio.sleep(SETTLED_S)

    def _stays(self, host: CoordinatorHost) -> bool:
        return not (self._leaving or host.is_broken)

    async def _leave_when_idle(self) -> None:
        await self._starting
        await self._idleness.until_over()
        # No call is made in between, so none is lost.
        self._leaving = True
        await self._go()

    async def _leave_with_journal(self, host: CoordinatorHost) -> None:
        if await watch_journal(self._journal, host):
            # Nobody may be there to be told, and the journal's next cell has the name then.
            self._self.leave.remote(self._leave_s)

    async def _go(self) -> None:
        if isinstance(self._host, CoordinatorHost):
            await self._host.close()
        self._self.leave.remote(0.0)

    async def leave(self, after_s: float) -> None:
        """End this actor in a while, for good: Ray does not restart one that is killed so.

        Args:
            after_s: How long it stays, in seconds; 0 cuts every longer stay short.
        """
        if not after_s:
            self._leaves_now.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(after_s):
                await self._leaves_now.wait()
        # Not by `exit_actor`, which waits for the answers to all calls that this actor has made:
        # two cells that leave at the same moment would wait for each other forever.
        await asyncio.to_thread(ray.kill, self._self)

    async def receive(self, slot: Slot, incarnation: int, packed: bytes) -> bytes:
        """Take what the host in a slot posted; what is told with the answer, packed."""
        told: Sequence[Envelope] = ()
        if isinstance(self._host, CoordinatorHost):
            told = await self._host.receive(slot, incarnation, unpack_batch(packed))
        return pickle.dumps(told, pickle.HIGHEST_PROTOCOL)

    async def hello(self) -> tuple[ProcessMark, ...]:
        return (mark_of_this_process("coordinator"),)


RayCoordinatorActor = ray.remote(RayCoordinator)
