"""Slots are filled, watched and filled again; whatever cannot be filled is told."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import pytest

from harness_actors.actors.coordinator import roster as seats
from harness_actors.actors.coordinator.roster import (
    FAILED_STARTS,
    KEPT_CUSTOM_HOSTS,
    Seats,
)
from harness_actors.actors.coordinator.seat import KEPT_PROGRAMS
from harness_actors.actors.hosted import ActorCall
from harness_actors.actors.mailbox import (
    LONGEST_RETRY_S,
    Code,
    DropCode,
    Parcel,
    UnreachableError,
)
from harness_actors.actors.processes import MachineProcesses, this_node
from harness_actors.coordination.protocol import CUSTOM, Envelope, Park, Slot
from harness_actors.errors import ActorLostError, CellError, HarnessError
from harness_actors.records import ProcessMark

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

SLOT = Slot("agent_turn")
SUSPECT_S = 1.0


class Peer:
    """A host in a real process of its own, which does nothing."""

    address = ""

    def __init__(self, number: int) -> None:
        self.number = number
        self.got: list[Parcel] = []
        self.arrived = asyncio.Event()
        self.dead = asyncio.Event()
        self.is_greeted = asyncio.Event()
        self.is_watched = asyncio.Event()
        self.stopped = False
        self.asked = 0
        self.asked_often = asyncio.Event()
        self.hiccups = 0
        self.slow = False
        self.dies: Exception | None = None
        self.unreachable = False
        self.companions: tuple[ProcessMark, ...] = ()
        self._process = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )

    async def hello(self) -> tuple[ProcessMark, ...]:
        self.is_greeted.set()
        self.asked += 1
        if self.asked == 5:
            self.asked_often.set()
        if self.dies is not None:
            raise self.dies
        if self.slow or self.stopped:
            await asyncio.Event().wait()
        return (mark_of(self._process.pid), *self.companions)

    async def call(self, method: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        raise UnreachableError("it does nothing")

    async def receive(self, batch: Sequence[Parcel]) -> tuple[Envelope, ...]:
        self.got.extend(batch)
        self.arrived.set()
        if self.unreachable:
            raise UnreachableError("the connection broke")
        return ()

    async def watch(self) -> None:
        if self.hiccups:
            self.hiccups -= 1
            raise UnreachableError("the connection broke")
        self.is_watched.set()
        await self.dead.wait()
        raise ActorLostError(str(SLOT), "killed")

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()
        self.dead.set()

    def stop(self) -> None:
        """As a debugger or a frozen machine does: it neither answers nor dies."""
        self.stopped = True
        self._process.send_signal(signal.SIGSTOP)

    @property
    def is_killed(self) -> bool:
        return self.dead.is_set()


def mark_of(pid: int) -> ProcessMark:
    started = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
    return ProcessMark(role=str(SLOT), node=this_node(), pid=pid, started=started)


class Cell:
    """Seats, what starts their hosts, and what they told."""

    def __init__(self) -> None:
        self.peers: list[Peer] = []
        self.asked: list[tuple[Slot, int]] = []
        self.start_errors: list[Exception] = []
        self.starts_slowly = False
        self.dies: Exception | None = None
        self.hiccups = 0
        self.companions: tuple[ProcessMark, ...] = ()
        self.marks: list[ProcessMark] = []
        self.ended: list[Slot] = []
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.lost: list[Slot] = []
        self.missing: list[tuple[Slot, str]] = []
        self.failures: list[HarnessError] = []
        self.on_disk = asyncio.Event()
        self.on_disk.set()
        self.ends = False
        self.changed = asyncio.Event()
        self.causes: list[str] = []
        self.seats = Seats(
            self,
            started=self._started,
            end_left=self._end_left,
            lost=self._lost,
            missing=self._missing,
            failed=self._failed,
            processes=MachineProcesses(),
            suspect_s=SUSPECT_S,
        )

    async def start(self, slot: Slot, incarnation: int) -> Peer:
        self.asked.append((slot, incarnation))
        self.changed.set()
        if self.start_errors:
            raise self.start_errors.pop(0)
        peer = Peer(len(self.peers))
        peer.slow, peer.hiccups = self.starts_slowly, self.hiccups
        peer.companions, peer.dies = self.companions, self.dies
        self.peers.append(peer)
        self.changed.set()
        return peer

    async def _started(self, mark: ProcessMark) -> bool:
        self.marks.append(mark)
        self.changed.set()
        await self.on_disk.wait()
        return not self.ends

    async def _end_left(self, slot: Slot) -> None:
        self.ended.append(slot)
        self.changed.set()
        await self.may_end.wait()

    def _lost(self, slot: Slot, cause: str) -> None:
        self.lost.append(slot)
        self.causes.append(cause)
        self.changed.set()

    def _missing(self, slot: Slot, cause: str) -> None:
        self.missing.append((slot, cause))
        self.changed.set()

    def _failed(self, error: HarnessError) -> None:
        self.failures.append(error)
        self.changed.set()

    async def until(self, count: int, what: Sequence[object]) -> None:
        async with asyncio.timeout(20):
            while len(what) < count:
                self.changed.clear()
                await self.changed.wait()


@pytest.fixture
async def cell() -> AsyncIterator[Cell]:
    cell = Cell()
    yield cell
    cell.seats.close()
    for peer in cell.peers:
        peer.kill()


def an_envelope(number: int) -> Envelope:
    return Envelope("run", 1, 1, number, Park())


async def test_what_is_posted_before_the_host_is_up_reaches_it(cell: Cell) -> None:
    cell.seats.post(SLOT, an_envelope(1))
    await cell.until(1, cell.marks)
    await cell.peers[0].arrived.wait()
    assert cell.peers[0].got == [an_envelope(1)]
    assert cell.seats.incarnation(SLOT) == 1


async def test_a_slot_that_was_never_filled_has_no_incarnation(cell: Cell) -> None:
    assert cell.seats.incarnation(SLOT) == 0


async def test_a_host_works_only_when_its_process_is_on_record(cell: Cell) -> None:
    cell.on_disk.clear()
    cell.seats.post(SLOT, an_envelope(1))
    await cell.until(1, cell.marks)
    await asyncio.sleep(0)
    assert cell.peers[0].got == []
    cell.on_disk.set()
    await cell.peers[0].arrived.wait()


async def test_a_host_that_nobody_could_find_any_more_never_works(cell: Cell) -> None:
    cell.ends = True
    cell.seats.post(SLOT, an_envelope(1))
    await cell.until(1, cell.marks)
    async with asyncio.timeout(20):
        await cell.peers[0].dead.wait()
    assert cell.peers[0].got == []
    assert len(cell.peers) == 1, "nor is it replaced"


async def test_each_process_of_a_host_is_put_on_record(cell: Cell) -> None:
    supervisor = ProcessMark(role=f"supervisor of {SLOT}", node=this_node(), pid=1, started=-1)
    cell.companions = (supervisor,)
    cell.seats.post(SLOT, an_envelope(1))
    await cell.until(1, cell.peers)
    await cell.peers[0].arrived.wait()
    assert [mark.role for mark in cell.marks] == [str(SLOT), supervisor.role]


async def test_a_host_that_dies_is_told_and_replaced(cell: Cell) -> None:
    cell.seats.fill(SLOT)
    await cell.until(1, cell.marks)
    cell.peers[0].kill()
    await cell.until(1, cell.lost)
    assert cell.seats.incarnation(SLOT) == 2, "before its runs are sent on"
    cell.seats.post(SLOT, an_envelope(2))
    await cell.until(2, cell.marks)
    await cell.peers[1].arrived.wait()
    assert cell.peers[1].got == [an_envelope(2)]
    assert cell.asked == [(SLOT, 1), (SLOT, 2)]
    assert cell.failures == []
    assert cell.causes == [""], "it was not killed"


async def test_what_the_tools_of_a_dead_host_left_is_ended_before_the_next_has_its_seat(
    cell: Cell,
) -> None:
    cell.seats.fill(SLOT)
    await cell.until(1, cell.marks)
    cell.may_end.clear()
    cell.peers[0].kill()
    await cell.until(1, cell.ended)
    assert (cell.seats.incarnation(SLOT), cell.lost, cell.asked) == (1, [], [(SLOT, 1)])
    cell.may_end.set()
    await cell.until(1, cell.lost)
    await cell.until(2, cell.asked)
    assert cell.ended == [SLOT]


async def test_nothing_is_looked_for_when_a_host_dies_that_runs_no_tools(cell: Cell) -> None:
    compaction = Slot("compaction")
    cell.seats.fill(compaction)
    await cell.until(1, cell.marks)
    cell.peers[0].kill()
    await cell.until(1, cell.lost)
    assert (cell.lost, cell.ended) == ([compaction], [])


async def test_nothing_more_is_said_to_a_host_that_is_gone(cell: Cell) -> None:
    cell.seats.fill(SLOT)
    await cell.until(1, cell.marks)
    cell.peers[0].unreachable = True
    cell.seats.post(SLOT, an_envelope(1))
    await cell.peers[0].arrived.wait()
    cell.peers[0].kill()
    await cell.until(1, cell.lost)
    cell.peers[0].arrived.clear()
    with pytest.raises(TimeoutError):
        # Between two attempts there is a second at most.
        await asyncio.wait_for(cell.peers[0].arrived.wait(), LONGEST_RETRY_S + 0.5)


async def test_the_next_host_has_none_of_the_code_of_the_one_before(cell: Cell) -> None:
    cell.seats.teach(SLOT, "abc", b"blob", {})
    assert cell.seats.knows(SLOT, "abc", {})
    await cell.until(1, cell.marks)
    cell.peers[0].kill()
    await cell.until(1, cell.lost)
    assert not cell.seats.knows(SLOT, "abc", {})


async def test_code_is_known_with_the_keys_that_came_with_it(cell: Cell) -> None:
    cell.seats.teach(SLOT, "abc", b"blob", {"KEY": "wrong"})
    assert cell.seats.knows(SLOT, "abc", {"KEY": "wrong"})
    assert not cell.seats.knows(SLOT, "abc", {"KEY": "right"}), "it must be sent again"
    await cell.until(1, cell.marks)
    await cell.peers[0].arrived.wait()
    assert [type(parcel) for parcel in cell.peers[0].got] == [Code]


async def test_a_broken_watch_is_no_death(cell: Cell) -> None:
    cell.hiccups = 2
    cell.seats.fill(SLOT)
    await cell.until(1, cell.marks)
    await cell.peers[0].is_watched.wait()
    assert cell.lost == []
    cell.peers[0].kill()
    await cell.until(1, cell.lost)


async def test_a_start_that_fails_is_tried_again(cell: Cell) -> None:
    cell.start_errors = [CellError("host", "no room")] * (FAILED_STARTS - 1)
    cell.seats.fill(SLOT)
    await cell.until(1, cell.marks)
    assert cell.failures == []
    assert cell.lost == []


async def test_failed_starts_do_not_add_up_over_the_deaths_of_hosts(cell: Cell) -> None:
    cell.seats.fill(SLOT)
    for deaths in range(FAILED_STARTS):
        await cell.until(deaths + 1, cell.marks)
        cell.start_errors = [CellError("host", "no room")]
        cell.peers[deaths].kill()
    await cell.until(FAILED_STARTS + 1, cell.marks)
    assert cell.failures == []


async def test_starts_that_keep_failing_are_told_once(cell: Cell) -> None:
    cell.start_errors = [CellError("host", "no room")] * 100
    cell.seats.fill(SLOT)
    await cell.until(1, cell.failures)
    assert len(cell.asked) == FAILED_STARTS
    assert "no room" in str(cell.failures[0])
    assert len(cell.failures) == 1


async def test_a_pool_that_does_not_start_stops_no_cell_and_is_tried_when_it_is_needed_again(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seats, "AGAIN_S", 0.01)
    pool = Slot("agent_turn", pool="explore")
    cell.start_errors = [CellError("explore", f"no room {n}") for n in range(FAILED_STARTS)]
    cell.seats.post(pool, an_envelope(1))
    await cell.until(1, cell.missing)
    assert cell.missing == [(pool, f"explore: no room {FAILED_STARTS - 1}")]
    assert cell.failures == []
    assert len(cell.asked) == FAILED_STARTS

    cell.seats.post(pool, an_envelope(2))
    await cell.until(1, cell.marks)
    await cell.peers[0].arrived.wait()
    assert cell.peers[0].got == [an_envelope(2)]


async def test_a_host_that_does_not_come_up_in_time_is_killed_and_told(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seats, "START_DEADLINE_S", 0.1)
    cell.starts_slowly = True
    cell.seats.fill(SLOT)
    await cell.until(1, cell.failures)
    assert "did not come up within" in str(cell.failures[0])
    assert [peer.is_killed for peer in cell.peers] == [True] * FAILED_STARTS


@pytest.mark.parametrize("kind", [UnreachableError, ActorLostError])
async def test_a_host_that_dies_as_it_starts_is_told_as_such(
    cell: Cell, kind: type[Exception]
) -> None:
    cell.dies = kind(str(SLOT), "out of memory")
    cell.seats.fill(SLOT)
    await cell.until(1, cell.failures)
    assert isinstance(cell.failures[0], CellError)
    assert "its process died while it started" in str(cell.failures[0])
    assert "out of memory" in str(cell.failures[0])
    assert len(cell.asked) == FAILED_STARTS


async def test_a_process_that_does_not_end_is_told_and_nothing_takes_its_place(cell: Cell) -> None:
    class Stays(MachineProcesses):
        async def gone(self, mark: ProcessMark, *, timeout_s: float) -> bool:
            return False

    cell.seats._processes = Stays()
    cell.seats.fill(SLOT)
    await cell.until(1, cell.marks)
    await cell.peers[0].is_watched.wait()
    cell.peers[0].kill()
    await cell.until(1, cell.failures)
    assert f"process {cell.marks[0].pid} does not end; kill it by hand" in str(cell.failures[0])
    assert cell.lost == []
    assert cell.asked == [(SLOT, 1)]


async def test_a_start_that_fails_in_an_unknown_way_is_told_too(cell: Cell) -> None:
    cell.start_errors = [RuntimeError("nobody thought of this")]
    cell.seats.fill(SLOT)
    await cell.until(1, cell.failures)
    assert "nobody thought of this" in str(cell.failures[0])
    assert isinstance(cell.failures[0], CellError)


async def test_closing_kills_the_hosts_and_starts_no_more(cell: Cell) -> None:
    cell.seats.fill(SLOT)
    await cell.until(1, cell.marks)
    cell.seats.close()
    cell.seats.post(Slot("repair"), an_envelope(1))
    await asyncio.sleep(0)
    assert cell.peers[0].is_killed
    assert cell.lost == []
    assert cell.asked == [(SLOT, 1)]


async def test_closing_kills_a_host_that_is_still_starting(cell: Cell) -> None:
    cell.starts_slowly = True
    cell.seats.fill(SLOT)
    await cell.until(1, cell.peers)
    await cell.peers[0].is_greeted.wait()
    cell.seats.close()
    await cell.peers[0].dead.wait()


async def test_a_host_that_is_stopped_is_killed_and_replaced(cell: Cell) -> None:
    cell.seats.fill(SLOT)
    await cell.until(1, cell.marks)
    cell.peers[0].stop()
    await cell.until(1, cell.lost)
    assert cell.peers[0].is_killed
    assert cell.causes == ["it did not answer for 1 s and was killed"]
    await cell.until(2, cell.marks)
    assert cell.failures == []


async def test_a_host_that_answers_is_left_alone_however_little_it_says(cell: Cell) -> None:
    cell.seats.fill(SLOT)
    await cell.until(1, cell.marks)
    async with asyncio.timeout(20 * SUSPECT_S):
        await cell.peers[0].asked_often.wait()
    assert cell.lost == []


async def test_a_host_that_speaks_is_not_asked(cell: Cell) -> None:
    cell.seats.fill(SLOT)
    await cell.until(1, cell.marks)
    greeted = cell.peers[0].asked
    for _ in range(30):
        cell.seats.heard(SLOT)
        await asyncio.sleep(SUSPECT_S / 20)
    assert cell.peers[0].asked == greeted


async def test_a_broken_connection_is_settled_by_asking_at_once(cell: Cell) -> None:
    cell.hiccups = 1
    cell.seats.fill(SLOT)
    await cell.until(1, cell.marks)
    cell.peers[0].stop()
    await cell.until(1, cell.lost)
    assert cell.causes != [""]


async def test_hosts_of_users_executors_are_ended_when_many_are_idle(cell: Cell) -> None:
    slots = [Slot(CUSTOM, f"code{number}", pool="mine") for number in range(KEPT_CUSTOM_HOSTS + 1)]
    for number, slot in enumerate(slots):
        cell.seats.teach(slot, slot.code, b"blob", {})
        await cell.until(number + 1, cell.marks)
        cell.seats.tidy(slot, {"code0", slots[-1].code}.__contains__)
    await cell.peers[1].dead.wait()
    await asyncio.sleep(0.1)
    assert [peer.is_killed for peer in cell.peers].count(True) == 1, "code0 is in use"
    assert cell.lost == []
    assert len(cell.asked) == len(slots), "nobody takes its place until it is needed"
    cell.seats.post(slots[1], an_envelope(1))
    await cell.until(len(slots) + 1, cell.marks)
    await cell.peers[-1].arrived.wait()
    assert cell.seats.incarnation(slots[1]) > len(slots), "not to be taken for the one before"
    assert (cell.lost, cell.failures) == ([], []), "nobody misses the one that was ended"


async def test_what_is_in_use_stays_however_much_that_is(cell: Cell) -> None:
    for number in range(KEPT_PROGRAMS + 1):
        cell.seats.teach(SLOT, f"code{number}", b"blob", {})
        cell.seats.tidy(SLOT, lambda _: True)
    assert all(cell.seats.knows(SLOT, f"code{number}", {}) for number in range(KEPT_PROGRAMS + 1))
    cell.starts_slowly = True
    slots = [Slot(CUSTOM, f"code{number}", pool="mine") for number in range(KEPT_CUSTOM_HOSTS + 1)]
    for number, slot in enumerate(slots, 2):
        cell.seats.teach(slot, slot.code, b"blob", {})
        cell.seats.tidy(slot, lambda _: True)
        assert cell.seats.incarnation(slot) == number
    # One that has not started yet can be ended, too.
    cell.seats.tidy(slots[-1], lambda code: code != "code3")
    assert cell.seats.incarnation(slots[3]) == 0


@pytest.mark.parametrize("ends", ["retired", "closed"])
async def test_nothing_more_is_said_to_a_host_that_was_ended(cell: Cell, ends: str) -> None:
    slots = [Slot(CUSTOM, f"code{number}", pool="mine") for number in range(KEPT_CUSTOM_HOSTS + 1)]
    cell.seats.post(slots[0], an_envelope(1))
    await cell.until(1, cell.peers)
    cell.peers[0].unreachable = True
    await cell.peers[0].arrived.wait()
    if ends == "closed":
        cell.seats.close()
        cell.seats.tidy(slots[0], lambda _: False)
    else:
        cell.starts_slowly = True
        for slot in slots:
            cell.seats.teach(slot, slot.code, b"blob", {})
        cell.seats.tidy(slots[-1], lambda code: code != "code0")
    assert cell.peers[0].is_killed
    cell.peers[0].arrived.clear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(cell.peers[0].arrived.wait(), LONGEST_RETRY_S + 0.5)


async def test_a_host_forgets_programs_that_no_run_needs(cell: Cell) -> None:
    for number in range(KEPT_PROGRAMS + 1):
        cell.seats.teach(SLOT, f"code{number}", b"blob", {})
        cell.seats.tidy(SLOT, {"code0"}.__contains__)
    assert cell.seats.knows(SLOT, "code0", {}), "it is in use"
    assert not cell.seats.knows(SLOT, "code1", {})
    assert cell.seats.knows(SLOT, "code2", {})
    await cell.until(1, cell.marks)
    await cell.peers[0].arrived.wait()
    assert cell.peers[0].got[-1] == DropCode("code1", KEPT_PROGRAMS + 2)
