"""The coordinator with a real journal and real hosts in one process."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from harness_actors.actors.coordinator import host as host_module
from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.actors.coordinator.journal_watch import watch_journal
from harness_actors.actors.host.executor_host import ExecutorHost
from harness_actors.actors.local import LocalHostStarter
from harness_actors.actors.processes import this_node
from harness_actors.agents import Program
from harness_actors.config import HarnessConfig
from harness_actors.coordination.protocol import Answered, Envelope, Slot
from harness_actors.errors import (
    ActorLostError,
    ConversationBusyError,
    HarnessError,
    RunNotFoundError,
    StoreError,
)
from harness_actors.events import DERIVED_EVENTS, RunEvent
from harness_actors.executors import StopDecision
from harness_actors.messages import Message
from harness_actors.ports import RunContext, Tool, ToolContext, ToolSpec
from harness_actors.records import Entry, ProcessMark, RunSpec
from harness_actors.results import HarnessResult
from harness_actors.signals import Outcome, RepairComplete, Signal
from harness_actors.state import AGENT_TURN, StateDelta
from harness_actors.stores import SqliteJournal
from harness_actors.testing import ManualClock, Reply, ScriptedModel, an_agent
from harness_actors.testing.agents import completes_at_once
from harness_actors.tools.processes import read_process
from harness_actors.turn.services import RUN_VARIABLE
from tests.actors import gates
from tests.actors.test_processes import CARRIES, PRINTS_ITS_MARK, Child


class Waits:
    """A tool that waits until the test lets it go on."""

    spec = ToolSpec(name="wait", description="Waits.", parameters={"type": "object"})

    def __init__(self, gate: str) -> None:
        self._gate = gate

    async def run(self, arguments: str, context: ToolContext) -> str:
        from tests.actors.gates import wait_at

        await wait_at(self._gate)
        return "waited"


def waits_once(messages: Sequence[Message]) -> Reply:
    """A script that calls the tool once, and is done."""
    if any(message.role == "tool" for message in messages):
        return completes_at_once(messages)
    return Reply.call("wait")


class KeyedModel(ScriptedModel):
    """A scripted model that asks for a key and says which one it has."""

    key_names = ("TEST_KEY_OF_NOBODY",)

    def __init__(self, *, gated: bool = False) -> None:
        super().__init__(self._says)
        self._gated = gated
        self._key = "none"

    def use_keys(self, keys: dict[str, str]) -> None:
        self._key = keys["TEST_KEY_OF_NOBODY"]

    def _says(self, messages: Sequence[Message]) -> Reply:
        if self._gated and not any(message.role == "tool" for message in messages):
            return Reply.call("wait")
        return Reply.call("work_complete", {"summary": f"with {self._key}"})


class Journal(SqliteJournal):
    """The shipped one; its commits can be held up and made to fail."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.commits_may_go_on = threading.Event()
        self.commits_may_go_on.set()
        self.fault: StoreError | None = None

    def commit(self, term: int, entries: Sequence[Entry]) -> list[int]:
        self.commits_may_go_on.wait()
        if self.fault is not None:
            raise self.fault
        return super().commit(term, entries)


class Cell:
    """A coordinator, its journal, and what a driver does with them."""

    def __init__(self, path: Path, command: str) -> None:
        self.journal = Journal(path)
        self.starter = LocalHostStarter(ManualClock(), copies=True)
        self.host = CoordinatorHost(
            journal=self.journal,
            store=str(path),
            command=command,
            starter=self.starter,
            agent_turns=1,
            clock=ManualClock(),
        )
        self.starter.coordinator = self.host

    @property
    def hosts(self) -> list[ExecutorHost]:
        """Those of its executors."""
        hosted = [peer.hosted for peer in self.starter.hosts.values()]
        return [host for host in hosted if isinstance(host, ExecutorHost)]

    async def submit(self, program: Program, *specs: RunSpec, **secrets: str) -> None:
        await self.host.submit(specs, {program.code: program.blob}, secrets)

    async def until(self, *run_ids: str, parked: bool = False) -> dict[str, HarnessResult]:
        """Wait until runs have ended, or were put aside."""
        cursor, results, parks = 0, dict[str, HarnessResult](), set[str]()
        async with asyncio.timeout(20):
            while not set(run_ids) <= (parks if parked else results.keys()):
                happened = await self.host.wait_for_news(cursor, True)
                cursor = happened.cursor
                results.update(happened.results)
                parks |= {e.run_id for e in happened.events if e.event.type == "run_parked"}
        return results


Opens = Callable[..., Any]


@pytest.fixture
def cell_at(tmp_path: Path) -> Opens:
    @asynccontextmanager
    async def open_cell(command: str = "command") -> AsyncIterator[Cell]:
        cell = Cell(tmp_path / "runs.db", command)
        await cell.host.start()
        try:
            yield cell
        finally:
            cell.journal.commits_may_go_on.set()
            await cell.host.close()

    return open_cell


@pytest.fixture
async def cell(cell_at: Opens) -> AsyncIterator[Cell]:
    async with cell_at() as cell:
        yield cell


def a_program(*tools: Tool) -> Program:
    return Program.of(an_agent(tools=tools))


def a_waiting_program(gate: str) -> Program:
    gates.make(gate)
    return Program.of(an_agent(ScriptedModel(waits_once), [Waits(gate)]))


def a_spec(program: Program, run_id: str = "run", **facts: Any) -> RunSpec:
    return program.spec("the task", HarnessConfig(), run_id=run_id, **facts)


# ---- runs and their followers ------------------------------------------------------------


async def test_a_run_goes_to_its_end_and_is_forgotten(cell: Cell) -> None:
    program = a_program()
    runs = [a_spec(program, f"run{number}") for number in range(20)]
    await cell.submit(program, *runs)
    results = await cell.until(*(run.run_id for run in runs))
    assert {result.status for result in results.values()} == {"done"}
    async with asyncio.timeout(10):
        while any(host._runs for host in cell.hosts):
            await cell.host.wait_for_news(0, True)
            await asyncio.sleep(0)
    assert not cell.host._coordinator.runs
    assert not cell.host._coordinator._conversations
    for host in cell.hosts:
        assert len(host._seen) == 0
        assert not host._tasks


async def test_a_follower_that_comes_back_later_is_told_the_same(cell_at: Opens) -> None:
    program = a_program()
    told: dict[bool, list[RunEvent]] = {}
    async with cell_at() as cell:
        await cell.submit(program, a_spec(program))
        await cell.until("run")
        for messages in (False, True):
            told[messages] = list((await cell.host.wait_for_news(0, messages)).events)
    assert not any(isinstance(event.event, DERIVED_EVENTS) for event in told[False])
    assert any(isinstance(event.event, DERIVED_EVENTS) for event in told[True])
    async with cell_at("another") as cell:
        for messages in (False, True):
            happened = await cell.host.wait_for_news(0, messages)
            assert list(happened.events) == told[messages], "now from the journal"
            assert happened.results["run"].status == "done"


async def test_all_events_of_a_run_are_read_from_the_journal(cell: Cell) -> None:
    program = a_program()
    await cell.submit(program, a_spec(program), a_spec(program, "other"))
    await cell.until("run", "other")
    events = await cell.host.events("run")
    assert {event.run_id for event in events} == {"run"}
    assert events[-1].event.type == "run_completed"
    assert await cell.host.events("nobody") == ()


# ---- what a caller may rely on ------------------------------------------------------------


async def test_a_submission_returns_when_it_is_on_disk(cell: Cell) -> None:
    program = a_program()
    cell.journal.commits_may_go_on.clear()
    submitting = asyncio.ensure_future(cell.submit(program, a_spec(program)))
    done, _ = await asyncio.wait([submitting], timeout=0.05)
    assert not done
    cell.journal.commits_may_go_on.set()
    await submitting
    assert cell.journal.load_run("run") is not None


async def test_a_run_that_is_submitted_twice_runs_once(cell: Cell) -> None:
    program = a_program()
    await asyncio.gather(*(cell.submit(program, a_spec(program)) for _ in range(5)))
    await cell.submit(program, a_spec(program))
    await cell.until("run")
    await cell.submit(program, a_spec(program))
    ends = [e for e in await cell.host.events("run") if e.event.type == "run_completed"]
    assert len(ends) == 1


async def test_a_run_that_was_stopped_a_moment_ago_is_not_submitted_again(cell: Cell) -> None:
    program = a_waiting_program("moment")
    stopping: list[asyncio.Future[object]] = []
    for _ in range(3):
        stopping.append(asyncio.ensure_future(cell.submit(program, a_spec(program))))
        await asyncio.sleep(0)
        stopping.append(asyncio.ensure_future(cell.host.stop(["run"], "cancel")))
    await asyncio.gather(*stopping)
    await cell.host.stop(["run"], "cancel")
    results = await cell.until("run")
    assert results["run"].status == "cancelled"


async def test_a_run_is_taken_up_from_where_it_was_put_aside_a_moment_ago(cell: Cell) -> None:
    program = a_waiting_program("aside")
    await cell.submit(program, a_spec(program))
    await gates.started["aside"].wait()
    # Nothing of the stop is on disk when the run is asked for again.
    await asyncio.gather(cell.host.stop(["run"], "park_now"), cell.host.resume(["run"], {}))
    gates.opened["aside"].set()
    results = await cell.until("run")
    assert results["run"].status == "done"
    kinds = [event.event.type for event in await cell.host.events("run")]
    assert kinds.count("run_parked") == 1
    assert kinds.count("run_resumed") == 1
    assert kinds.count("tool_called") == kinds.count("tool_returned")


async def test_a_run_that_is_taken_up_while_it_is_to_be_cancelled_ends_once(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = a_waiting_program("once")
    await cell.submit(program, a_spec(program))
    await gates.started["once"].wait()
    await cell.host.stop(["run"], "park_now")
    reads = 0

    async def read(call: Callable[..., Any], *arguments: Any) -> Any:
        # Each takes its time after the first, in which the run goes to its end.
        nonlocal reads
        reads += 1
        answer = call(*arguments)
        if reads > 1:
            gates.opened["once"].set()
            await cell.until("run")
        return answer

    monkeypatch.setattr(cell.host._admission, "read", read)
    await asyncio.gather(cell.host.stop(["run"], "cancel"), cell.host.resume(["run"], {}))
    gates.opened["once"].set()
    await cell.until("run")
    kinds = [event.event.type for event in await cell.host.events("run")]
    assert kinds.count("run_completed") == 1


async def test_resuming_a_run_that_is_served_changes_nothing(cell: Cell) -> None:
    program = a_waiting_program("served")
    await cell.submit(program, a_spec(program))
    await gates.started["served"].wait()
    await cell.host.resume(["run"], {})
    gates.opened["served"].set()
    await cell.until("run")
    assert "run_resumed" not in [e.event.type for e in await cell.host.events("run")]


async def test_a_run_that_is_to_park_goes_on_where_it_is_asked_for_again(cell: Cell) -> None:
    program = a_waiting_program("asked")
    await cell.submit(program, a_spec(program))
    await gates.started["asked"].wait()
    await cell.host.stop(["run"], "park")
    await cell.host.resume(["run"], {})
    gates.opened["asked"].set()
    assert (await cell.until("run"))["run"].status == "done"
    assert "run_parked" not in [e.event.type for e in await cell.host.events("run")]


async def test_a_run_that_has_ended_is_neither_resumed_nor_stopped(cell: Cell) -> None:
    program = a_program()
    await cell.submit(program, a_spec(program))
    await cell.until("run")
    before = await cell.host.events("run")
    await cell.host.resume(["run"], {})
    for mode in ("park", "park_now", "cancel"):
        await cell.host.stop(["run"], mode)
    assert not cell.host._coordinator.runs
    assert await cell.host.events("run") == before


async def test_a_run_that_nobody_serves_is_not_put_aside_again(cell: Cell) -> None:
    program = a_waiting_program("twice")
    await cell.submit(program, a_spec(program))
    await gates.started["twice"].wait()
    await cell.host.stop(["run"], "park_now")
    await cell.until("run", parked=True)
    before = await cell.host.events("run")
    await cell.host.stop(["run", "ghost"], "park")
    assert await cell.host.events("run") == before


async def test_a_run_that_was_taken_up_a_moment_ago_is_cancelled_like_any(cell: Cell) -> None:
    program = a_waiting_program("taken")
    ids = ["one", "two"]
    await cell.submit(program, *(a_spec(program, run_id) for run_id in ids))
    await gates.started["taken"].wait()
    await cell.host.stop(ids, "park_now")
    await cell.until(*ids, parked=True)
    # Asked for while nobody serves them, and done when somebody does.
    stopping = asyncio.ensure_future(cell.host.stop(ids, "cancel"))
    await asyncio.gather(cell.host.resume(ids, {}), stopping)
    results = await cell.until(*ids)
    assert {result.status for result in results.values()} == {"cancelled"}


async def test_of_several_runs_the_unknown_keep_nobody_from_being_cancelled(cell: Cell) -> None:
    program = a_waiting_program("several")
    ids = ["one", "two"]
    await cell.submit(program, *(a_spec(program, run_id) for run_id in ids))
    await gates.started["several"].wait()
    await cell.host.stop(ids, "park_now")
    await cell.until(*ids, parked=True)
    with pytest.raises(RunNotFoundError, match="ghost"):
        await cell.host.stop(["ghost", "one", "spook", "two"], "cancel")
    results = await cell.until(*ids)
    assert {result.status for result in results.values()} == {"cancelled"}


async def test_a_run_that_nobody_knows_cannot_be_resumed(cell: Cell) -> None:
    with pytest.raises(RunNotFoundError, match="ghost"):
        await cell.host.resume(["ghost"], {})


async def test_a_busy_conversation_refuses_a_second_run_and_the_cell_goes_on(cell: Cell) -> None:
    program = a_waiting_program("busy")
    await cell.submit(program, a_spec(program, "first", conversation_id="talk"))
    with pytest.raises(ConversationBusyError):
        await cell.submit(program, a_spec(program, "second", conversation_id="talk"))
    gates.opened["busy"].set()
    await cell.until("first")
    await cell.submit(program, a_spec(program, "second", conversation_id="talk"))
    await cell.until("second")
    texts = [message.text for message in await cell.host.conversation("talk")]
    assert texts.count("the task") == 2


# ---- who comes next ------------------------------------------------------------


async def test_unfinished_runs_go_on_in_the_next_incarnation_and_parked_ones_wait(
    cell_at: Opens,
) -> None:
    program = a_waiting_program("next")
    async with cell_at() as cell:
        await cell.submit(program, a_spec(program, "goes"), a_spec(program, "parked"))
        await gates.started["next"].wait()
        await cell.host.stop(["parked"], "park_now")
        await cell.until("parked", parked=True)
    gates.opened["next"].set()
    async with cell_at() as cell:
        assert set(await cell.until("goes")) == {"goes"}
        assert "parked" not in cell.host._coordinator.runs
        await cell.host.resume(["parked"], {})
        await cell.until("parked")


async def test_runs_of_another_command_wait_to_be_taken_up(cell_at: Opens) -> None:
    program = a_waiting_program("another")
    async with cell_at("one") as cell:
        await cell.submit(program, a_spec(program))
        await gates.started["another"].wait()
    gates.opened["another"].set()
    async with cell_at("two") as cell:
        assert not cell.host._coordinator.runs
        await cell.host.resume(["run"], {})
        await cell.until("run")


async def test_runs_whose_keys_are_missing_wait_for_the_driver(cell_at: Opens) -> None:
    gates.make("keys")
    program = Program.of(an_agent(KeyedModel(gated=True), [Waits("keys")]))
    async with cell_at() as cell:
        await cell.submit(program, a_spec(program), TEST_KEY_OF_NOBODY="first")
        await gates.started["keys"].wait()
    gates.opened["keys"].set()
    async with cell_at() as cell:
        assert not cell.host._coordinator.runs
        await cell.host.attach({"ANOTHER_KEY": "of a driver that has none for it"})
        assert not cell.host._coordinator.runs
        assert cell.host.held == 1
        await cell.host.attach({"TEST_KEY_OF_NOBODY": "second"})
        assert cell.host.held == 0
        results = await cell.until("run")
        assert results["run"].output_text == "with second"
        await cell.host.attach({})


async def test_a_run_that_is_asked_for_does_not_wait_for_keys_that_nobody_has(
    cell_at: Opens,
) -> None:
    gates.make("asked for")
    program = Program.of(an_agent(KeyedModel(gated=True), [Waits("asked for")]))
    async with cell_at() as cell:
        await cell.submit(program, a_spec(program), TEST_KEY_OF_NOBODY="first")
        await gates.started["asked for"].wait()
    gates.opened["asked for"].set()
    async with cell_at() as cell:
        await cell.host.resume(["run"], {})
        result = (await cell.until("run"))["run"]
        assert (result.status, result.reason.kind) == ("failed", "agent_error")
        assert "TEST_KEY_OF_NOBODY" in result.reason.message


async def test_a_corrected_key_reaches_hosts_that_have_the_code_already(cell: Cell) -> None:
    program = Program.of(an_agent(KeyedModel()))
    for number, key in enumerate(("wrong", "right")):
        run = a_spec(program, f"run{number}")
        await cell.submit(program, run, TEST_KEY_OF_NOBODY=key)
        results = await cell.until(run.run_id)
        assert results[run.run_id].output_text == f"with {key}"


async def test_a_run_whose_code_the_journal_does_not_have_fails_and_says_so(cell: Cell) -> None:
    program = a_program()
    await cell.host.submit([replace(a_spec(program), code="gone")], {}, {})
    result = (await cell.until("run"))["run"]
    assert (result.status, result.reason.kind) == ("failed", "agent_error")
    assert "agent_turn" in result.reason.message


async def test_processes_of_earlier_terms_are_ended_before_anything_goes_on(tmp_path: Path) -> None:
    journal = SqliteJournal(tmp_path / "runs.db")
    child = Child(CARRIES.format(path=str(journal.path)) + PRINTS_ITS_MARK)
    journal.commit(journal.begin_term(), [child.mark])
    journal.close()
    cell = Cell(tmp_path / "runs.db", "command")
    assert child.collect() < 0
    assert cell.journal.load_processes() == []
    assert cell.host.term == 2
    await cell.host.close()
    child.close()


async def test_an_earlier_term_can_add_nothing_while_its_processes_are_ended(
    tmp_path: Path,
) -> None:
    journal = SqliteJournal(tmp_path / "runs.db")
    term = journal.begin_term()

    class Watched(Journal):
        def load_processes(self) -> list[ProcessMark]:
            mark = ProcessMark(role="late", node=this_node(), pid=1, started=-1)
            with pytest.raises(StoreError):
                journal.commit(term, [mark])
            return super().load_processes()

    watched = Watched(tmp_path / "runs.db")
    host = CoordinatorHost(
        journal=watched,
        store="runs.db",
        command="command",
        starter=LocalHostStarter(ManualClock(), copies=True),
        agent_turns=1,
        clock=ManualClock(),
    )
    await host.close()
    journal.close()


async def test_a_coordinator_starts_nobody_before_the_journal_knows_of_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "runs.db")
    starter = LocalHostStarter(ManualClock(), copies=True)
    mark = ProcessMark(role="coordinator", node=this_node(), pid=1, started=-1)
    host = CoordinatorHost(
        journal=journal,
        store=str(journal.path),
        command="command",
        starter=starter,
        agent_turns=1,
        clock=ManualClock(),
        process=mark,
    )
    starter.coordinator = host
    later = SqliteJournal(journal.path)
    journal.commits_may_go_on.clear()
    try:
        starting = asyncio.ensure_future(host.start())
        await asyncio.sleep(0.02)
        assert not starter.hosts
        later.begin_term()
    finally:
        journal.commits_may_go_on.set()
    await starting
    with pytest.raises(StoreError, match="term 1 is over"):
        await host.subscribe(["run"])
    assert not starter.hosts
    await host.close()
    later.close()


# ---- failures ------------------------------------------------------------


async def test_a_commit_that_fails_stops_the_cell_and_is_told_to_everybody(cell: Cell) -> None:
    program = a_waiting_program("fails")
    await cell.submit(program, a_spec(program))
    await gates.started["fails"].wait()
    cursor = await cell.host.position()
    followers = [asyncio.ensure_future(cell.host.wait_for_news(cursor, m)) for m in (True, False)]
    await asyncio.sleep(0)
    cell.journal.fault = StoreError("runs.db", "no space is left on the disk")
    gates.opened["fails"].set()
    for follower in followers:
        with pytest.raises(StoreError, match="no space"):
            await follower
    with pytest.raises(StoreError):
        await cell.submit(program, a_spec(program, "late"))
    with pytest.raises(StoreError):
        await cell.host.stop(["run"], "park")
    assert all(host._dead.is_set() for host in cell.starter.hosts.values())


async def test_a_submission_that_cannot_be_committed_is_told(cell: Cell) -> None:
    program = a_program()
    cell.journal.fault = StoreError("runs.db", "no space is left on the disk")
    with pytest.raises(StoreError, match="no space"):
        await cell.submit(program, a_spec(program))


async def test_a_driver_that_knows_more_than_the_journal_is_not_left_waiting(cell: Cell) -> None:
    program = a_program()
    await cell.submit(program, a_spec(program))
    await cell.until("run")

    # It was told of it by a journal that had more, and that another has taken the place of.
    with pytest.raises(StoreError, match=r"it lacks what was committed to it \(position 1000\)"):
        await cell.host.wait_for_news(1000, False)


async def test_a_cell_without_runs_stops_when_its_journal_is_taken_away(
    cell: Cell, tmp_path: Path
) -> None:
    program = a_program()
    await cell.submit(program, a_spec(program))
    await cell.until("run")
    waiting = asyncio.create_task(cell.host.wait_for_news(await cell.host.position(), False))
    watching = asyncio.create_task(watch_journal(cell.journal, cell.host, every_s=0.01))
    (tmp_path / "runs.db").rename(tmp_path / "moved.db")

    async with asyncio.timeout(20):
        assert await watching
        with pytest.raises(StoreError, match=r"it was removed or moved away \(it is '.*moved.db'"):
            await waiting


async def test_what_an_earlier_host_of_a_slot_says_is_dropped(cell: Cell) -> None:
    program = a_waiting_program("stale")
    await cell.submit(program, a_spec(program))
    await gates.started["stale"].wait()
    run = cell.host._coordinator.runs["run"]
    answer = Envelope(
        "run", cell.host.term, run.hop_number, 99, Answered(StateDelta(), RepairComplete())
    )
    slot = Slot(AGENT_TURN)
    await cell.host.receive(slot, 7, [answer])
    await cell.host.receive(Slot("nobody"), 1, [answer])
    assert run.slot == slot
    gates.opened["stale"].set()
    await cell.until("run")


async def test_a_host_that_dies_is_replaced_and_its_runs_go_on(cell: Cell) -> None:
    program = a_waiting_program("dies")
    await cell.submit(program, a_spec(program))
    await gates.started["dies"].wait()
    gates.opened["dies"].set()
    cell.starter.hosts[Slot(AGENT_TURN)].kill()
    results = await cell.until("run")
    assert results["run"].status == "done"
    kinds = [event.event.type for event in await cell.host.events("run")]
    assert kinds.count("executor_lost") == 1
    assert kinds.count("repaired") == 1


class Decision:
    """Where a run stands between two turns, for as long as the test likes."""

    def __init__(self) -> None:
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()


@pytest.fixture
def decision(monkeypatch: pytest.MonkeyPatch) -> Decision:
    decision, handle = Decision(), StopDecision.handle

    async def waits(self: StopDecision, why: Signal, context: RunContext) -> Outcome:
        decision.begun.set()
        await decision.may_end.wait()
        return await handle(self, why, context)

    monkeypatch.setattr(StopDecision, "handle", waits)
    return decision


@asynccontextmanager
async def left_by_a_tool(run_id: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that nobody has below it any more."""
    variables = {RUN_VARIABLE: run_id, "PATH": os.defpath}
    stray = await asyncio.create_subprocess_exec("sleep", "300", env=variables)
    try:
        yield stray
    finally:
        if stray.returncode is None:
            stray.kill()
            await stray.wait()


async def test_what_a_dead_host_left_of_a_run_that_is_elsewhere_is_ended(
    cell: Cell, decision: Decision
) -> None:
    # Its processes are looked for on the whole machine, where other tests may run, too.
    run_id = token_hex(6)
    program = a_program()
    await cell.submit(program, a_spec(program, run_id))
    await decision.begun.wait()
    async with left_by_a_tool(run_id) as stray:
        cell.starter.hosts[Slot(AGENT_TURN)].kill()
        async with asyncio.timeout(20):
            assert await stray.wait() == -signal.SIGKILL
    decision.may_end.set()
    assert (await cell.until(run_id))[run_id].status == "done"


async def test_runs_that_leave_a_dead_host_meanwhile_are_looked_for_too(
    cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[list[str]]()

    async def end_tools(run_ids: Sequence[str]) -> None:
        asked.append(list(run_ids))
        left.append("late")

    left = ["early"]
    cell.host._end_tools = end_tools
    monkeypatch.setattr(host_module, "left_by", lambda _runs, _slot: left)
    await cell.host._end_left(Slot(AGENT_TURN))
    assert asked == [["early"], ["late"]]


async def test_what_a_lost_cell_left_of_a_run_between_two_turns_is_ended_before_it_goes_on(
    cell_at: Opens, decision: Decision
) -> None:
    run_id = token_hex(6)
    program = a_program()
    async with cell_at() as cell:
        await cell.submit(program, a_spec(program, run_id))
        await decision.begun.wait()
    decision.may_end.set()
    async with left_by_a_tool(run_id) as stray, cell_at() as cell:
        assert read_process(stray.pid) is None
        assert (await cell.until(run_id))[run_id].status == "done"


async def test_hosts_that_do_not_start_stop_the_cell_with_the_reason(tmp_path: Path) -> None:
    class NoRoom(LocalHostStarter):
        async def start(self, slot: Slot, incarnation: int) -> Any:
            raise ActorLostError(str(slot), "there is no room for it")

    cell = Cell(tmp_path / "runs.db", "command")
    cell.host._seats._starter = NoRoom(ManualClock(), copies=True)
    await cell.host.start()
    with pytest.raises(HarnessError, match="no room"):
        await cell.host.wait_for_news(0, True)
    await cell.host.close()


async def test_closing_twice_is_closing_once_and_later_calls_say_so(cell_at: Opens) -> None:
    async with cell_at() as cell:
        follower = asyncio.ensure_future(cell.host.wait_for_news(0, True))
        await asyncio.sleep(0)
        await cell.host.close()
        await cell.host.close()
        with pytest.raises(ActorLostError):
            await follower
        for call in (cell.host.headings(), cell.host.events("run"), cell.host.stop([], "park")):
            with pytest.raises(ActorLostError):
                await call


async def test_a_fault_while_a_message_is_taken_stops_the_cell_and_does_not_hang(
    cell: Cell,
) -> None:
    program = a_waiting_program("fault")
    await cell.submit(program, a_spec(program))
    await gates.started["fault"].wait()
    run = cell.host._coordinator.runs["run"]
    broken: Any = Answered(StateDelta(messages=(None,)), RepairComplete())  # type: ignore[arg-type]
    envelope = Envelope("run", cell.host.term, run.hop_number, 99, broken)
    await cell.host.receive(Slot(AGENT_TURN), 1, [envelope])
    with pytest.raises(HarnessError, match="AttributeError"):
        await cell.host.wait_for_news(0, True)
