"""The executor hosts of a cell: started into their slots, watched, and replaced."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Protocol

from harness_actors.actors.liveness import SUSPECT_S, Death, Liveness, until_gone
from harness_actors.actors.mailbox import Code, DropCode, Outbox, Parcel, Peer, UnreachableError
from harness_actors.actors.processes import Processes
from harness_actors.coordination.protocol import Slot
from harness_actors.errors import ActorLostError, CellError, HarnessError
from harness_actors.records import ProcessMark

logger = logging.getLogger(__name__)

START_DEADLINE_S = 60.0
FAILED_STARTS = 3
KEPT_CUSTOM_HOSTS = 8
"""Hosts of users' executors that are kept, if no more are in use; each is a process."""
KEPT_PROGRAMS = 64
"""Programs that a host keeps loaded, if no more are in use; those of a batch share one."""


class HostStarter(Protocol):
    """Places executor hosts; one answer per runtime."""

    async def start(self, slot: Slot, incarnation: int) -> Peer:
        """Begin to start a host for a slot, the cell's how-manieth; its `hello` awaits it.

        Raises:
            CellError: It cannot be placed; says why.
        """
        ...


@dataclass(slots=True)
class Seat:
    """A slot with the host that fills it now."""

    slot: Slot
    incarnation: int
    outbox: Outbox = field(default_factory=Outbox)
    peer: Peer | None = None
    signs: Liveness = field(default_factory=Liveness)
    codes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Hashes of the code that this host has, with the keys that it was given."""


class Seats:
    """Fills the slots of a cell and keeps them filled.

    Args:
        starter: Places hosts.
        started: Called with the process of each host; it is posted to when that returns.
        lost: Called with a slot, and with the reason why its host had to be killed (empty
            where it died), when the processes of its host are certainly gone.
        failed: Called once when a slot cannot be filled; the cell is of no use then.
        processes: Those of this machine.
        suspect_s: How long a host may be silent before it is killed, in seconds.
    """

    def __init__(
        self,
        starter: HostStarter,
        *,
        started: Callable[[ProcessMark], Awaitable[None]],
        lost: Callable[[Slot, str], None],
        failed: Callable[[HarnessError], None],
        processes: Processes,
        suspect_s: float = SUSPECT_S,
    ) -> None:
        self._starter = starter
        self._processes = processes
        self._suspect_s = suspect_s
        self._started = started
        self._lost = lost
        self._failed = failed
        self._seats: dict[Slot, Seat] = {}
        self._keeping: dict[Slot, asyncio.Task[None]] = {}
        self._closed = False
        self._incarnations = count(1)

    def fill(self, slot: Slot) -> Seat:
        """The seat of a slot; its host is started if it has none."""
        if slot not in self._seats:
            self._seats[slot] = Seat(slot, next(self._incarnations))
            if not self._closed:
                keeping = asyncio.get_running_loop().create_task(self._keep(slot))
                keeping.add_done_callback(partial(self._kept, slot))
                self._keeping[slot] = keeping
        return self._seats[slot]

    def _kept(self, slot: Slot, keeping: asyncio.Task[None]) -> None:
        """Nobody fills the slot any more, which must not look like a slow host."""
        error = None if keeping.cancelled() else keeping.exception()
        if error is not None:
            self._failed(CellError(str(slot), f"{type(error).__name__}: {error}"))

    def post(self, slot: Slot, parcel: Parcel) -> None:
        self.fill(slot).outbox.post(parcel)

    def teach(self, slot: Slot, code: str, blob: bytes, keys: Mapping[str, str]) -> None:
        """Send a host the code of the runs that follow."""
        seat = self.fill(slot)
        seat.codes[code] = keys
        seat.outbox.post(Code(code, blob, keys))

    def tidy(self, slot: Slot, in_use: Callable[[str], bool]) -> None:
        """Make room for what comes: in a host and, of hosts of users' executors, in the cell.

        Args:
            slot: Where a program was added.
            in_use: Whether a run that is being served has a code.
        """
        if self._closed:
            return
        self._drop_a_program(slot, in_use)
        custom = [known for known in self._seats if known.code]
        if len(custom) > KEPT_CUSTOM_HOSTS:
            idle = next((known for known in custom if not in_use(known.code)), None)
            if idle is not None:
                self._retire(idle)

    def _drop_a_program(self, slot: Slot, in_use: Callable[[str], bool]) -> None:
        codes = self._seats[slot].codes
        if len(codes) > KEPT_PROGRAMS:
            oldest = next((code for code in codes if not in_use(code)), None)
            if oldest is not None:
                del codes[oldest]
                self.post(slot, DropCode(oldest))

    def knows(self, slot: Slot, code: str, keys: Mapping[str, str]) -> bool:
        """Whether the host in a slot was sent this code with these keys."""
        return self.fill(slot).codes.get(code) == keys

    def heard(self, slot: Slot) -> None:
        """The host in a slot said something."""
        self._seats[slot].signs.heard()

    def is_idle(self, slot: Slot) -> bool:
        """Whether whatever was posted to the host in a slot has come through."""
        return self._seats[slot].outbox.is_idle

    def incarnation(self, slot: Slot) -> int:
        """Number of the host in a slot, never given twice; 0 where there is none."""
        return self._seats[slot].incarnation if slot in self._seats else 0

    def _retire(self, slot: Slot) -> None:
        """End a host that nobody needs; its slot can be filled again."""
        seat = self._seats.pop(slot)
        self._keeping.pop(slot).cancel()
        seat.outbox.close()
        if seat.peer is not None:
            seat.peer.kill()

    def close(self) -> None:
        """Kill all hosts, and start none any more."""
        self._closed = True
        for task in self._keeping.values():
            task.cancel()
        for seat in self._seats.values():
            seat.outbox.close()
            if seat.peer is not None:
                seat.peer.kill()

    async def _keep(self, slot: Slot) -> None:
        failures = 0
        while True:
            seat = self._seats[slot]
            try:
                peer = await self._starter.start(slot, seat.incarnation)
                marks = await _greet(slot, peer)
            except HarnessError as error:
                failures += 1
                logger.warning("%s did not start: %s", slot, error)
                if failures >= FAILED_STARTS:
                    self._failed(error)
                    return
                continue
            failures = 0
            seat.peer = peer
            # Known before it works: whoever comes next must find and end its process.
            for mark in marks:
                await self._started(mark)
            seat.outbox.connect(peer)
            death = await until_gone(
                peer, marks, seat.signs, self._processes, suspect_s=self._suspect_s
            )
            if death.left is not None:
                problem = f"its process {death.left.pid} does not end; kill it by hand"
                self._failed(ActorLostError(str(slot), problem))
                return
            logger.warning("%s in process %d was lost", slot, marks[0].pid)
            seat.outbox.close()
            self._seats[slot] = Seat(slot, next(self._incarnations))
            self._lost(slot, self._cause(death))

    def _cause(self, death: Death) -> str:
        if not death.silent:
            return ""
        return f"it did not answer for {self._suspect_s:g} s and was killed"


async def _greet(slot: Slot, peer: Peer) -> tuple[ProcessMark, ...]:
    try:
        async with asyncio.timeout(START_DEADLINE_S):
            return await peer.hello()
    except asyncio.CancelledError:
        # Nobody else knows of it yet.
        peer.kill()
        raise
    except TimeoutError:
        peer.kill()
        problem = (
            f"its process did not come up within {START_DEADLINE_S:.0f} s; "
            "look at the load and the free memory of this machine"
        )
        raise CellError(str(slot), problem) from None
    except (UnreachableError, ActorLostError) as error:
        raise CellError(str(slot), f"its process died while it started ({error})") from None
