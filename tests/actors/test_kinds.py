"""A kind of actor is a row of the table and the class that it hosts, wherever it lives."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.actors.coordinator.roster import (
    AGAIN_S,
    FAILED_STARTS,
    Seats,
)
from harness_actors.actors.coordinator.seat import HostStarter
from harness_actors.actors.host.shipped_executors import marks_of_host
from harness_actors.actors.hosted import Hosted, Place, Reach
from harness_actors.actors.kinds import KINDS, ActorKind, Kinds, table_of
from harness_actors.actors.local import LocalHostPeer, LocalHostStarter
from harness_actors.actors.mailbox import Code
from harness_actors.actors.on_ray.channels import Channels
from harness_actors.actors.on_ray.hosts import RayHostStarter
from harness_actors.actors.on_ray.peer import reach
from harness_actors.actors.on_ray.placement import node_of_driver
from harness_actors.actors.processes import MachineProcesses, kill_process
from harness_actors.coordination.protocol import Slot
from harness_actors.errors import CellError, HarnessError
from harness_actors.records import ProcessMark
from harness_actors.stores import SqliteJournal
from harness_actors.testing import ManualClock
from harness_actors.tools.supervision.client import SupervisedProcesses
from tests.actors.followers import opened

WITHIN_S = 150.0
Kill = Callable[[Slot, ProcessMark], None]
ECHO, LAME = Slot("echo"), Slot("lame")


class Echo(Hosted):
    """Says again what was posted to it."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._heard: list[str] = []
        self._news = asyncio.Event()

    async def receive(self, batch: Sequence[Code]) -> tuple[()]:
        self._heard += [parcel.code for parcel in batch]
        self._news.set()
        return ()

    async def say(self, how: str) -> str:
        """What it was told first, when it was told something."""
        await self._news.wait()
        return f"{how} {self._heard[0]} from {self._place.slot}"


class Lame(Hosted):
    """Never serves."""

    def __init__(self, place: Place) -> None:
        self._slot = place.slot

    async def ready(self) -> None:
        raise CellError(str(self._slot), "it has no legs")


ECHOES = ActorKind(name="echo", host=Echo, reachable="by name")
LAME_ALONE = ActorKind(name="lame", host=Lame)
LAME_FOR_ALL = ActorKind(name="lame", host=Lame, failure="the cell stops")


class Desk:
    """Seats with what they told; what is `started` is on disk at once."""

    def __init__(self, starter: HostStarter, reach: Reach, kill: Kill, kinds: Kinds) -> None:
        self.reach = reach
        self.marks: list[ProcessMark] = []
        self.served: asyncio.Queue[str] = asyncio.Queue()
        self.lost: asyncio.Queue[tuple[Slot, str]] = asyncio.Queue()
        self.failed: asyncio.Queue[HarnessError] = asyncio.Queue()
        self._kill = kill
        self.seats = Seats(
            starter,
            started=self._started,
            end_left=self._end_left,
            lost=lambda slot, cause: self.lost.put_nowait((slot, cause)),
            missing=lambda slot, cause: self.lost.put_nowait((slot, cause)),
            failed=self.failed.put_nowait,
            processes=MachineProcesses(),
            kinds=kinds,
        )

    async def _end_left(self, slot: Slot) -> None:
        """Nothing has started anything."""

    async def _started(self, mark: ProcessMark) -> bool:
        self.marks.append(mark)
        self.served.put_nowait(mark.role)
        return True

    def kill(self, slot: Slot) -> None:
        """End the newest actor in a slot, as the machine may."""
        self._kill(slot, self.marks[-1])


class NoCoordinator:
    """Takes the place of the coordinator, to which these kinds say nothing."""

    term = 1


async def takes_nothing(slot: Slot, incarnation: int, packed: bytes) -> bytes:
    raise AssertionError(f"{slot} has nothing to say")


@asynccontextmanager
async def a_desk(runtime: str, store: Path, *kinds: ActorKind) -> AsyncIterator[Desk]:
    """Seats for some kinds on a runtime."""
    table = table_of(*kinds)
    async with AsyncExitStack() as leaving:
        await leaving.enter_async_context(asyncio.timeout(WITHIN_S))
        if runtime == "local":
            local = LocalHostStarter(ManualClock(), copies=True, kinds=table)
            local.coordinator = NoCoordinator()  # type: ignore[assignment]
            desk = Desk(local, local.reach, lambda slot, _: local.hosts[slot].kill(), table)
        else:
            await leaving.enter_async_context(opened("ray", store))
            channels = Channels(takes_nothing)
            await channels.open()
            leaving.callback(channels.close)
            nobody: Any = None
            starter = RayHostStarter(nobody, node_of_driver(), channels, str(store), table)
            desk = Desk(starter, reach, lambda _, mark: kill_process(mark), table)
        leaving.callback(desk.seats.close)
        yield desk


RUNTIMES = ["local", pytest.param("ray", marks=pytest.mark.ray)]


@pytest.mark.parametrize("runtime", RUNTIMES)
async def test_a_new_kind_is_started_reached_killed_and_replaced(
    runtime: str, tmp_path: Path
) -> None:
    async with a_desk(runtime, tmp_path / "runs.db", ECHOES) as desk:
        addresses = []
        for said in ("one", "two"):
            desk.seats.post(ECHO, Code(said, b"", {}, 1))
            addresses.append(await desk.seats.serving(ECHO))
            actor = await desk.reach(addresses[-1])
            assert await actor.call(Echo.say, "I heard") == f"I heard {said} from echo"
            assert [mark.role for mark in desk.marks] == ["echo"] * len(addresses)
            desk.kill(ECHO)
            assert await desk.lost.get() == (ECHO, "")
        assert len(set(addresses)) == 2, "nobody takes the next one for the one before"
        assert desk.failed.empty()


@pytest.mark.parametrize("runtime", RUNTIMES)
async def test_a_kind_that_does_not_start_fails_its_users_and_nobody_else(
    runtime: str, tmp_path: Path
) -> None:
    async with a_desk(runtime, tmp_path / "runs.db", ECHOES, LAME_ALONE) as desk:
        desk.seats.post(ECHO, Code("still here", b"", {}, 1))
        for _ in range(FAILED_STARTS):
            with pytest.raises(HarnessError, match="it has no legs"):
                await desk.seats.serving(LAME)
            slot, cause = await desk.lost.get()
            assert slot == LAME
            assert "it has no legs" in cause, "whoever had posted to it is told"
        echo = await desk.reach(await desk.seats.serving(ECHO))
        assert "still here" in await echo.call(Echo.say, "")
        assert desk.failed.empty()
        assert {mark.role for mark in desk.marks} == {"echo"}


@pytest.mark.parametrize("runtime", RUNTIMES)
async def test_a_kind_that_does_not_start_stops_the_cell_where_the_table_says_so(
    runtime: str, tmp_path: Path
) -> None:
    async with a_desk(runtime, tmp_path / "runs.db", LAME_FOR_ALL) as desk:
        desk.seats.fill(LAME)
        assert "it has no legs" in str(await desk.failed.get())
        assert desk.lost.empty()
        assert desk.seats.incarnation(LAME) == 1


async def test_what_has_served_is_started_again_until_it_serves_unasked() -> None:
    class Moody(LocalHostStarter):
        refusals = 0

        async def start(self, slot: Slot, incarnation: int) -> LocalHostPeer:
            if self.refusals:
                self.refusals -= 1
                raise CellError(str(slot), "not now")
            return await super().start(slot, incarnation)

    table = table_of(ECHOES)
    starter = Moody(ManualClock(), copies=True, kinds=table)
    starter.coordinator = NoCoordinator()  # type: ignore[assignment]
    desk = Desk(starter, starter.reach, lambda slot, _: starter.hosts[slot].kill(), table)
    now = asyncio.get_running_loop().time
    async with asyncio.timeout(WITHIN_S):
        await desk.seats.serving(ECHO)
        assert await desk.served.get() == "echo"
        starter.refusals = 1
        desk.kill(ECHO)
        assert await desk.lost.get() == (ECHO, "")
        refused_at = now()
        assert await desk.lost.get() == (ECHO, "echo: not now")
        assert await desk.served.get() == "echo", "nobody has asked for it"
        assert now() - refused_at > 0.9 * AGAIN_S, "its machine has time to recover"
        assert await desk.seats.serving(ECHO)
        assert len(desk.marks) == 2
    desk.seats.close()
    with pytest.raises(CellError, match="its cell has stopped"):
        await desk.seats.serving(ECHO)
    assert await desk.seats.address(Slot("echo", index=1)) == ""


async def test_a_kind_whose_start_has_a_fault_keeps_nobody_waiting() -> None:
    class Faulty(LocalHostStarter):
        async def start(self, slot: Slot, incarnation: int) -> LocalHostPeer:
            raise RuntimeError("nobody thought of this")

    table = table_of(ECHOES)
    starter = Faulty(ManualClock(), copies=True, kinds=table)
    desk = Desk(starter, starter.reach, lambda *_: None, table)
    async with asyncio.timeout(WITHIN_S):
        with pytest.raises(CellError, match="nobody thought of this"):
            await desk.seats.serving(ECHO)
        assert await desk.seats.address(ECHO) == ""
    assert desk.failed.empty()
    desk.seats.close()


async def test_a_cell_serves_a_new_kind_beside_its_own(tmp_path: Path) -> None:
    """On the coordinator itself, whose own kinds go on as they are."""
    kinds = {**KINDS, **table_of(ECHOES, LAME_ALONE)}
    clock, store = ManualClock(), tmp_path / "runs.db"
    starter = LocalHostStarter(clock, copies=True, kinds=kinds)
    host = CoordinatorHost(
        journal=SqliteJournal(store),
        store=str(store),
        command="command",
        starter=starter,
        agent_turns=2,
        clock=clock,
        kinds=kinds,
    )
    starter.coordinator = host
    async with asyncio.timeout(WITHIN_S):
        await host.start()
        with pytest.raises(CellError, match="it has no legs"):
            await host._seats.serving(LAME)
        await host._seats.serving(ECHO)
        assert host.failure is None
        with_cell = {slot for kind in KINDS.values() for slot in kind.slots(2)}
        assert with_cell == {Slot("agent_turn", index=0), Slot("agent_turn", index=1)}
        assert set(starter.hosts) == {*with_cell, ECHO, LAME}
        assert "echo" in {mark.role for mark in host.processes}
        await host.close()
    assert starter.hosts[ECHO]._dead.is_set()


async def test_an_actor_names_its_own_process_and_then_the_one_of_its_tools() -> None:
    assert [mark.role for mark in marks_of_host(ECHO)] == ["echo"]
    with closing(SupervisedProcesses()) as processes:
        own, supervisor = marks_of_host(ECHO, processes)
    assert (own.pid, own.role) == (os.getpid(), "echo")
    assert (supervisor.role, supervisor.pid != own.pid) == ("supervisor of echo", True)
