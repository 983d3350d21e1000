"""The embedded model of a cell: started for the runs that ask it, and waited for by those."""

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar, TypeVarTuple

import pytest

from harness_actors.actors.coordinator.cell_programs import Programs
from harness_actors.actors.coordinator.hosted_model import AGAIN_S, HostedModel
from harness_actors.actors.coordinator.roster import Seats
from harness_actors.actors.embedded import EMBEDDED_MODEL_URL
from harness_actors.actors.hosted import ActorCall
from harness_actors.actors.kinds import EMBEDDED_MODEL
from harness_actors.actors.mailbox import Parcel
from harness_actors.actors.processes import MachineProcesses
from harness_actors.coordination.protocol import Envelope, Slot
from harness_actors.errors import CellError, HarnessError
from harness_actors.records import ProcessMark
from harness_actors.stores import SqliteJournal
from tests.coordination.world import a_spec
from tests.virtual_time import VirtualTimeLoop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

ASKS = a_spec("asks", keys=(EMBEDDED_MODEL_URL,))
ASKS_ANOTHER = a_spec("asks another", keys=("OPENAI_API_KEY",))
MARK = ProcessMark(role=EMBEDDED_MODEL, node="here", pid=1, started=1)


class Serving:
    """A model that serves as long as anybody looks."""

    address = "127.0.0.1:4000"

    async def hello(self) -> tuple[ProcessMark, ...]:
        return (MARK,)

    async def watch(self) -> None:
        await asyncio.Event().wait()

    async def call(self, method: ActorCall[*Ts, T], *arguments: *Ts) -> T:
        raise AssertionError("nobody asks it anything")

    async def receive(self, batch: Sequence[Parcel]) -> tuple[Envelope, ...]:
        raise AssertionError("nobody posts to a model")

    def kill(self) -> None:
        """It ends with its test."""


class Machine:
    """Where it is started, so many times in vain."""

    def __init__(self, journal: SqliteJournal, *, fails: int = 0) -> None:
        self.fails = fails
        self.started: list[Slot] = []
        self.programs = Programs(journal, lambda _: False)
        self.seats = Seats(
            self,
            started=self._on_record,
            end_left=self._end_left,
            lost=lambda *_: None,
            missing=lambda *_: None,
            failed=self._failed,
            processes=MachineProcesses(),
        )
        self.model = HostedModel(self.seats, self.programs)

    async def start(self, slot: Slot, incarnation: int) -> Serving:
        self.started.append(slot)
        if len(self.started) <= self.fails:
            raise CellError(str(slot), "there is no room")
        return Serving()

    async def _end_left(self, slot: Slot) -> None:
        raise NotImplementedError("it runs no tools")

    async def _on_record(self, mark: ProcessMark) -> bool:
        assert mark == MARK
        return True

    def _failed(self, error: HarnessError) -> None:
        raise AssertionError("no cell stops for it")

    @property
    def url(self) -> str | None:
        return self.programs.key(EMBEDDED_MODEL_URL)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(tmp_path / "runs.db")) as journal:
        yield journal


def timed(test: Coroutine[object, object, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(test)


async def test_runs_that_ask_it_are_told_where_it_serves_and_no_others_start_it(
    journal: SqliteJournal,
) -> None:
    machine = Machine(journal)
    await machine.model.serve([ASKS_ANOTHER])
    assert (machine.started, machine.url) == ([], None)

    await machine.model.serve([ASKS_ANOTHER, ASKS])
    await machine.model.serve([ASKS])
    assert machine.started == [Slot(EMBEDDED_MODEL)]
    assert machine.url == "http://127.0.0.1:4000/v1"
    machine.seats.close()


async def test_that_it_does_not_start_is_told_to_those_who_ask_now(journal: SqliteJournal) -> None:
    machine = Machine(journal, fails=1)
    with pytest.raises(CellError, match="there is no room"):
        await machine.model.serve([ASKS])
    machine.seats.close()


def test_runs_of_an_earlier_term_wait_until_it_serves(journal: SqliteJournal) -> None:
    async def wait() -> None:
        machine = Machine(journal, fails=2)
        loop = asyncio.get_running_loop()
        taken_up: list[tuple[float, str | None]] = []
        serves = asyncio.Event()

        async def take_up() -> None:
            taken_up.append((loop.time(), machine.url))
            if machine.url is not None:
                serves.set()

        await machine.model.serve_or_wait([ASKS], take_up)
        assert taken_up == [], "the cell goes on without them"
        await serves.wait()
        assert taken_up[-1] == (2 * AGAIN_S, "http://127.0.0.1:4000/v1")
        await asyncio.sleep(10 * AGAIN_S)
        assert len(machine.started) == 3
        assert taken_up[-1][0] == 2 * AGAIN_S
        machine.seats.close()

    timed(wait())


def test_runs_that_find_it_serving_wait_for_nothing(journal: SqliteJournal) -> None:
    async def wait() -> None:
        machine = Machine(journal)

        async def take_up() -> None:
            raise AssertionError("their cell takes them up itself")

        await machine.model.serve_or_wait([ASKS], take_up)
        assert machine.url is not None
        await asyncio.sleep(10 * AGAIN_S)
        machine.seats.close()

    timed(wait())


def test_a_cell_that_stops_waits_for_it_no_longer(journal: SqliteJournal) -> None:
    async def wait() -> None:
        machine = Machine(journal, fails=10)

        async def take_up() -> None:
            raise AssertionError("the cell has stopped")

        await machine.model.serve_or_wait([ASKS], take_up)
        machine.model.close()
        await asyncio.sleep(10 * AGAIN_S)
        assert len(machine.started) == 1
        machine.seats.close()

    timed(wait())
