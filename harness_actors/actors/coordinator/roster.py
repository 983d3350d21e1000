"""The actors of a cell: started into their slots, watched, and replaced, whatever their kind."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import count

from harness_actors.actors.coordinator.seat import HostStarter, Peer, Seat
from harness_actors.actors.hosted import LEAVE_WITHIN_S, Hosted
from harness_actors.actors.kinds import KINDS, Kinds
from harness_actors.actors.liveness import SUSPECT_S, Death, until_gone
from harness_actors.actors.mailbox import Parcel, UnreachableError
from harness_actors.actors.processes import Processes
from harness_actors.coordination.protocol import Slot
from harness_actors.errors import ActorLostError, CellError, HarnessError
from harness_actors.records import ProcessMark

logger = logging.getLogger(__name__)

START_DEADLINE_S = 60.0
FAILED_STARTS = 3
STOPPED = "its cell has stopped"
AGAIN_S = 1.0
"""Between two starts where the cell goes on without."""
KEPT_CUSTOM_HOSTS = 8
"""Hosts of users' executors that are kept, if no more are in use; each is a process."""


class Seats:
    """Fills the slots of a cell and keeps them filled.

    Args:
        starter: Places actors.
        started: Called with each process of an actor; says whether it is on record, and else, as
            where the cell ends just then, it must not begin to work.
        end_left: Awaited with the slot of an actor that runs tools, when its processes are gone;
            ends what these tools may have left.
        lost: Called with a slot, and with the reason why its actor had to be killed or did not
            start (empty where it died), when its processes are certainly gone.
        missing: Called with a slot that is not filled until somebody needs it again, and why.
        failed: Called once when a slot cannot be filled without which the cell is of no use.
        processes: Those of this machine.
        kinds: What there is to know of the actors, by the kinds of their slots.
        suspect_s: How long an actor may be silent before it is killed, in seconds.
    """

    def __init__(
        self,
        starter: HostStarter,
        *,
        started: Callable[[ProcessMark], Awaitable[bool]],
        end_left: Callable[[Slot], Awaitable[None]],
        lost: Callable[[Slot, str], None],
        missing: Callable[[Slot, str], None],
        failed: Callable[[HarnessError], None],
        processes: Processes,
        kinds: Kinds = KINDS,
        suspect_s: float = SUSPECT_S,
    ) -> None:
        self._starter = starter
        self._kinds = kinds
        self._processes = processes
        self._suspect_s = suspect_s
        self._started = started
        self._end_left = end_left
        self._lost = lost
        self._missing = missing
        self._failed = failed
        self._seats: dict[Slot, Seat] = {}
        self._keeping: dict[Slot, asyncio.Task[None]] = {}
        self._closed = False
        self._incarnations = count(1)

    def fill(self, slot: Slot) -> Seat:
        """The seat of a slot; its actor is started if it has none."""
        if slot not in self._seats:
            self._seats[slot] = Seat(slot, next(self._incarnations))
            if self._closed:
                self._seats[slot].fail(CellError(str(slot), STOPPED))
            else:
                keeping = asyncio.get_running_loop().create_task(self._keep(slot))
                keeping.add_done_callback(partial(self._kept, slot))
                self._keeping[slot] = keeping
        return self._seats[slot]

    def _kept(self, slot: Slot, keeping: asyncio.Task[None]) -> None:
        """Nobody fills the slot any more, which must not look like a slow actor."""
        error = None if keeping.cancelled() else keeping.exception()
        if error is not None:
            self._give_up(slot, CellError(str(slot), f"{type(error).__name__}: {error}"))

    async def address(self, slot: Slot) -> str:
        """Where others reach the actor in a slot, which may be starting; empty where none is."""
        seat = self.fill(slot)
        await seat.placed.wait()
        return seat.address

    async def serving(self, slot: Slot) -> str:
        """The same, when the actor serves.

        Raises:
            HarnessError: It does not start; says why.
        """
        seat = self.fill(slot)
        await seat.settled.wait()
        if seat.problem is not None:
            raise seat.problem
        return seat.address

    def gets_programs(self, slot: Slot) -> bool:
        """Whether the actor in a slot is sent the programs of runs."""
        return self._kinds[slot.kind].gets_programs

    def post(self, slot: Slot, parcel: Parcel) -> None:
        self.fill(slot).outbox.post(parcel)

    def teach(self, slot: Slot, code: str, blob: bytes, keys: Mapping[str, str]) -> None:
        """Send a host the code of the runs that follow."""
        self.fill(slot).teach(code, blob, keys)

    def tidy(self, slot: Slot, in_use: Callable[[str], bool]) -> None:
        """Make room for what comes: in a host and, of hosts of users' executors, in the cell.

        Args:
            slot: Where a program was added.
            in_use: Whether a run that is being served has a code.
        """
        if self._closed:
            return
        self._seats[slot].drop_a_program(in_use)
        custom = [at for at in self._seats if self._kinds[at.kind].number == "one per program"]
        if len(custom) > KEPT_CUSTOM_HOSTS:
            idle = next((known for known in custom if not in_use(known.code)), None)
            if idle is not None:
                self._retire(idle)

    def knows(self, slot: Slot, code: str, keys: Mapping[str, str]) -> bool:
        """Whether the host in a slot was sent this code with these keys."""
        return self.fill(slot).knows(code, keys)

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
        """End an actor that nobody needs; its slot can be filled again."""
        seat = self._seats.pop(slot)
        self._keeping.pop(slot).cancel()
        seat.outbox.close()
        if seat.peer is not None:
            seat.peer.kill()

    async def leave(self) -> None:
        """Let those who run code of users close what that has opened; they are killed next."""
        peers = [
            seat.peer
            for slot, seat in self._seats.items()
            if seat.peer is not None and self._kinds[slot.kind].runs_tools
        ]
        if peers:
            leaving = [asyncio.ensure_future(_left(peer)) for peer in peers]
            _, late = await asyncio.wait(leaving, timeout=LEAVE_WITHIN_S)
            for task in late:
                task.cancel()

    def close(self) -> None:
        """Kill all actors, and start none any more."""
        self._closed = True
        for task in self._keeping.values():
            task.cancel()
        for seat in self._seats.values():
            seat.fail(CellError(str(seat.slot), STOPPED))
            seat.outbox.close()
            if seat.peer is not None:
                seat.peer.kill()

    async def _keep(self, slot: Slot) -> None:
        failures, has_served = 0, False
        while True:
            seat = self._seats[slot]
            try:
                peer = await self._starter.start(slot, seat.incarnation)
                seat.place(peer.address)
                marks = await _greet(slot, peer)
            except HarnessError as error:
                failures += 1
                logger.warning("%s did not start: %s", slot, error)
                if self._stops_cell(slot):
                    if failures < FAILED_STARTS:
                        continue
                else:
                    seat.fail(error)
                    await asyncio.sleep(AGAIN_S)
                    if failures < FAILED_STARTS if slot.is_pool else has_served:
                        self._renew(slot, str(error))
                        continue
                self._give_up(slot, error)
                return
            failures, has_served = 0, True
            seat.peer = peer
            # Known before it works: whoever comes next must find and end its process.
            for mark in marks:
                if not await self._started(mark):
                    peer.kill()
                    return
            seat.outbox.connect(peer)
            seat.settled.set()
            death = await until_gone(
                peer, marks, seat.signs, self._processes, suspect_s=self._suspect_s
            )
            if death.left is not None:
                problem = f"its process {death.left.pid} does not end; kill it by hand"
                self._give_up(slot, ActorLostError(str(slot), problem))
                return
            logger.warning("%s in process %d was lost", slot, marks[0].pid)
            if self._kinds[slot.kind].runs_tools:
                await self._end_left(slot)
            self._renew(slot, self._cause(death))

    def _stops_cell(self, slot: Slot) -> bool:
        # Without a pool the runs that it is kept for cannot go on, and all others can.
        return self._kinds[slot.kind].failure == "the cell stops" and not slot.is_pool

    def _renew(self, slot: Slot, cause: str) -> None:
        """The actor in a slot is gone, and the next one has the seat."""
        self._seats[slot].outbox.close()
        self._seats[slot] = Seat(slot, next(self._incarnations))
        self._lost(slot, cause)

    def _give_up(self, slot: Slot, error: HarnessError) -> None:
        """A slot is not filled any more: the cell stops, or whoever needs the actor is told."""
        if self._stops_cell(slot):
            self._failed(error)
            return
        seat = self._seats.pop(slot)
        del self._keeping[slot]
        seat.fail(error)
        seat.outbox.close()
        self._missing(slot, str(error))

    def _cause(self, death: Death) -> str:
        if not death.silent:
            return ""
        return f"it did not answer for {self._suspect_s:g} s and was killed"


async def _left(peer: Peer) -> None:
    # One that is dead, or that nobody reaches, has closed what it will.
    with suppress(UnreachableError, HarnessError):
        await peer.call(Hosted.leave)


async def _greet(slot: Slot, peer: Peer) -> tuple[ProcessMark, ...]:
    has_come_up = False
    try:
        async with asyncio.timeout(START_DEADLINE_S):
            marks = await peer.hello()
        has_come_up = True
        return marks
    except TimeoutError:
        problem = (
            f"its process did not come up within {START_DEADLINE_S:.0f} s; "
            "look at the load and the free memory of this machine"
        )
        raise CellError(str(slot), problem) from None
    except (UnreachableError, ActorLostError) as error:
        raise CellError(str(slot), f"its process died while it started ({error})") from None
    finally:
        if not has_come_up:
            # Nobody else knows of it yet.
            peer.kill()
