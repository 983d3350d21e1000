"""Runs of one conversation are asked for while another one of it leaves service."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from harness_actors.actors.coordinator.admission import READ_TOGETHER, Admission
from harness_actors.actors.runtime import StopMode
from harness_actors.conversation import UNKNOWN_OUTCOME, repaired
from harness_actors.coordination.active import Effects
from harness_actors.coordination.protocol import Slot
from harness_actors.errors import (
    AnswerError,
    BadInputError,
    ConversationBusyError,
    ConversationMovedOnError,
    RunNotFoundError,
)
from harness_actors.records import RunAdded, RunSpec, WorkspaceSpec
from harness_actors.signals import Signal
from harness_actors.state import AGENT_TURN, ANSWERS, OPEN_CALLS, REPAIR, StateDelta, is_waiting
from harness_actors.stores import SqliteJournal
from tests.coordination.agents import Team
from tests.coordination.test_children import step_until
from tests.coordination.world import Handler, Served, WaitFor, Work, World, a_spec

TURN = Slot(AGENT_TURN)
TALK = "talk"


class Entrance:
    """The admission of a world, whose journal is read slowly: `read` was, and may be heard of."""

    def __init__(self, world: World, journal: SqliteJournal) -> None:
        self.world = world
        self.read = asyncio.Event()
        self.heard = asyncio.Event()
        self.heard.set()
        self.has_keys = True
        self.reads = 0
        self._journal = journal
        self._kept = 0
        self.admission = Admission(
            world.coordinator,
            journal=journal,
            store="runs.db",
            command="command",
            read=self._read,
            settle=self._settle,
            perform=self._perform,
            prepare=self._prepare,
            has_keys=lambda names: self.has_keys or not names,
            end_processes=self._end_processes,
        )
        self.reading: Callable[[], None] = lambda: None
        """Called when the journal was read, and before what it said is known."""
        self.preparing: Callable[[Sequence[RunSpec]], None] = lambda _: None
        """Called with the runs whose needs are prepared, while they are."""
        self.prepared: list[tuple[str, bool]] = []
        """Runs, and whether they were served already."""
        self.ending: Callable[[Sequence[str]], None] = lambda _: None
        """Called with the runs whose processes are ended, while they are."""
        self.ended: list[tuple[str, bool]] = []
        """Runs, and whether they were over already."""

    def _perform(self, effects: Effects) -> None:
        self.world.perform(effects)

    async def _prepare(self, specs: Sequence[RunSpec]) -> None:
        served = self.world.coordinator.runs
        self.prepared += [(spec.run_id, spec.run_id in served) for spec in specs]
        self.preparing(specs)

    async def _end_processes(self, run_ids: Sequence[str]) -> None:
        known = set(self.world.run_ids()) & set(run_ids)
        self.ended += [(run_id, self.world.stored(run_id).end is not None) for run_id in known]
        self.ending(run_ids)

    async def _settle(self) -> None:
        while self.world.unwritten:
            self.world.commit()
        new = self.world.disk[self._kept :]
        self._kept += len(new)
        self._journal.commit(1, new)

    async def _read(self, call: Callable[..., object], *arguments: object) -> object:
        found = call(*arguments)
        self.reads += 1
        self.read.set()
        self.reading()
        await self.heard.wait()
        return found


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[SqliteJournal]:
    with closing(SqliteJournal(tmp_path / "runs.db")) as journal:
        yield journal


@pytest.fixture
def entrance(journal: SqliteJournal) -> Entrance:
    """`first` is parked with its task said; `second` is in the middle of a tool."""
    journal.begin_term()
    world = World(Team(plan=("effect",)).handlers)
    world.submit(a_spec("first", conversation_id=TALK))
    _to_the_turn(world)
    world.perform(world.coordinator.stop("first", "park_now"))
    world.settle(hosts=False)
    world.submit(a_spec("second", conversation_id=TALK), world.log("first"))
    _to_a_call(world, "second")
    return Entrance(world, journal)


def _to_the_turn(world: World) -> None:
    while not any(run.slot == TURN for run in world.coordinator.runs.values()):
        world.settle(hosts=False)
        for host in list(world.hosts.values()):
            world.move(host)
    world.settle(hosts=False)


def _to_a_call(world: World, run_id: str) -> None:
    _to_the_turn(world)
    while not world.stored(run_id).state.values.get(OPEN_CALLS.name):
        world.move(world.hosts[TURN])
        world.settle(hosts=False)


def _in_two_steps(handler: Handler) -> Handler:
    """The same, but the last change is on disk before the answer is given."""

    def handle(run: Served, signal: Signal) -> Work:
        delta, outcome = yield from handler(run, signal)
        change = yield delta
        yield WaitFor(change)
        return StateDelta(), outcome

    return handle


def _at_reading(entrance: Entrance, number: int, happens: Callable[[], None]) -> None:
    """Have something happen after this many readings, before the last one's result is known."""

    def reading() -> None:
        if entrance.reads == number:
            happens()

    entrance.reading = reading


async def second_leaves(entrance: Entrance) -> None:
    """Between what is read and what is made of it, the second run ends its call and parks."""
    await entrance.read.wait()
    world = entrance.world
    world.perform(world.coordinator.stop("second", "park"))
    while "second" in world.coordinator.runs:
        assert world.move(world.hosts[TURN]) or world.unwritten
        if world.unwritten and "second" in world.coordinator.runs:
            world.commit()
    entrance.heard.set()


def check_log(world: World) -> None:
    """Every call of the conversation has one result, and it is that of its tool."""
    world.settle(hosts=False)
    log = list(world.log("first"))
    assert repaired(log)[1] == 0
    results = [message for message in log if message.role == "tool"]
    assert len(results) == 1
    assert not results[0].is_error


async def test_what_runs_need_is_prepared_before_they_are_served(entrance: Entrance) -> None:
    await entrance.admission.submit([a_spec("third")])
    await entrance.admission.stop(["second"], "park_now")
    await entrance.admission.take_up(["first"], asked=True)
    assert entrance.prepared == [("third", False), ("first", False)]


async def test_what_a_run_has_left_on_the_machine_is_ended_before_it_is_over(
    entrance: Entrance,
) -> None:
    await entrance.admission.stop(["first"], "cancel")
    entrance.world.settle(hosts=False)
    assert entrance.ended == [("first", False)]
    end = entrance.world.stored("first").end
    assert end is not None
    assert end.status == "cancelled"


async def test_what_a_run_has_left_is_ended_before_it_goes_on_between_two_turns(
    journal: SqliteJournal,
) -> None:
    journal.begin_term()
    world = World(Team(plan=("lookup", "turn")).handlers)
    world.submit(a_spec("first"))
    _to_the_turn(world)
    while world.coordinator.runs["first"].slot == TURN:
        world.settle(hosts=False)
        world.move(world.hosts[TURN])
    world.perform(world.coordinator.stop("first", "park_now"))
    world.settle(hosts=False)
    entrance = Entrance(world, journal)

    await entrance.admission.take_up(["first"], asked=True)

    assert entrance.ended == [("first", False)]
    assert world.coordinator.runs["first"].slot != TURN


async def test_what_a_run_has_left_is_repairs_to_end_where_it_was_in_a_turn(
    entrance: Entrance,
) -> None:
    await entrance.admission.stop(["second"], "park_now")
    await entrance.admission.take_up(["first"], asked=True)
    assert entrance.ended == []
    assert entrance.world.coordinator.runs["first"].slot == Slot(REPAIR)


async def test_a_run_that_is_cancelled_does_not_answer_what_another_has_answered_meanwhile(
    entrance: Entrance,
) -> None:
    entrance.heard.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(entrance.admission.stop(["first"], "cancel"))
        group.create_task(second_leaves(entrance))
    assert entrance.world.unwritten, "the second run left, and that was not on disk"
    check_log(entrance.world)
    assert entrance.world.ends("first")[0].status == "cancelled"


async def test_a_run_that_is_cancelled_leaves_alone_what_is_answered_while_it_is_looked_who_waits(
    entrance: Entrance,
) -> None:
    _at_reading(entrance, 2, entrance.world.settle)

    await entrance.admission.stop(["first"], "cancel")

    assert "second" not in entrance.world.coordinator.runs
    check_log(entrance.world)
    assert entrance.world.ends("first")[0].status == "cancelled"


@pytest.mark.parametrize("reading", [1, 2, 3])
async def test_a_run_that_is_cancelled_leaves_alone_what_another_answers_of_its_own_just_then(
    journal: SqliteJournal, reading: int
) -> None:
    journal.begin_term()
    world = World(Team(plan=("effect",)).handlers)
    world.submit(a_spec("first", conversation_id=TALK))
    _to_a_call(world, "first")
    world.perform(world.coordinator.stop("first", "park_now"))
    world.submit(a_spec("second", conversation_id=TALK), world.log("first"))
    entrance = Entrance(world, journal)
    _at_reading(entrance, reading, world.settle)

    await entrance.admission.stop(["first"], "cancel")

    world.settle(hosts=False)
    log = world.log("first")
    assert repaired(list(log))[1] == 0
    assert [message.text for message in log if message.role == "tool"] == [UNKNOWN_OUTCOME]
    assert world.ends("second")[0].status == "done"
    assert world.ends("first")[0].status == "cancelled"


async def test_a_run_is_begun_with_all_that_was_said_until_it_was_its_turn(
    entrance: Entrance,
) -> None:
    third = a_spec("third", conversation_id=TALK)
    entrance.heard.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(entrance.admission.submit([third]))
        group.create_task(second_leaves(entrance))
    world = entrance.world
    world.settle(hosts=False)
    assert list(world.coordinator.runs["third"].state.log) == list(world.log("second"))


async def test_a_run_is_taken_up_with_all_that_was_said_until_it_was_its_turn(
    entrance: Entrance,
) -> None:
    entrance.heard.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(entrance.admission.take_up(["first"], asked=True))
        group.create_task(second_leaves(entrance))
    world = entrance.world
    world.settle(hosts=False)
    assert list(world.coordinator.runs["first"].state.log) == list(world.log("second"))


async def test_a_run_that_is_cancelled_leaves_its_conversation_to_whoever_has_it(
    entrance: Entrance,
) -> None:
    await entrance.admission.stop(["first"], "cancel")
    with pytest.raises(ConversationBusyError):
        await entrance.admission.submit([a_spec("third", conversation_id=TALK)])
    assert set(entrance.world.coordinator.runs) == {"second"}


async def test_a_run_that_waits_for_its_keys_keeps_its_conversation(journal: SqliteJournal) -> None:
    journal.begin_term()
    world = World(Team().handlers)
    spec = a_spec("first", conversation_id=TALK, keys=("KEY",))
    world.disk.append(RunAdded(spec=spec, command="command", at=0.0))
    entrance = Entrance(world, journal)
    await entrance._settle()
    entrance.admission.hold(spec)
    entrance.has_keys = False
    third = a_spec("third", conversation_id=TALK)
    with pytest.raises(ConversationBusyError):
        await entrance.admission.submit([third])
    await entrance.admission.take_up_held()
    assert (entrance.admission.held, set(world.coordinator.runs)) == (1, set())
    entrance.has_keys = True
    await entrance.admission.take_up_held()
    assert (entrance.admission.held, set(world.coordinator.runs)) == (0, {"first"})
    with pytest.raises(ConversationBusyError):
        await entrance.admission.submit([third])


@pytest.mark.parametrize("mode", ["cancel", "park"])
async def test_a_run_that_is_stopped_as_it_waits_for_its_keys_leaves_its_conversation(
    journal: SqliteJournal, mode: StopMode
) -> None:
    journal.begin_term()
    world = World(Team().handlers)
    spec = a_spec("first", conversation_id=TALK, keys=("KEY",))
    world.disk.append(RunAdded(spec=spec, command="command", at=0.0))
    entrance = Entrance(world, journal)
    await entrance._settle()
    entrance.admission.hold(spec)
    await entrance.admission.stop(["first"], mode)
    assert entrance.admission.held == 0
    await entrance.admission.submit([a_spec("third", conversation_id=TALK)])
    assert set(world.coordinator.runs) == {"third"}


async def test_who_puts_runs_aside_is_told_which_nobody_serves(journal: SqliteJournal) -> None:
    journal.begin_term()
    world = World(Team().handlers)
    held, left = a_spec("held", keys=("KEY",)), a_spec("left")
    world.disk += [RunAdded(spec=spec, command="command", at=0.0) for spec in (held, left)]
    entrance = Entrance(world, journal)
    await entrance._settle()
    entrance.admission.hold(held)
    await entrance.admission.submit([a_spec("served")])

    stopped = await entrance.admission.stop(["served", "left", "held"], "park")
    again = await entrance.admission.stop(["served", "left"], "park_now")
    cancelled = await entrance.admission.stop(["left"], "cancel")

    assert (stopped, again, cancelled) == (("left",), ("left",), ())


@pytest.mark.parametrize("mode", ["cancel", "park"])
@pytest.mark.parametrize("come", [True, False])
async def test_a_run_that_is_stopped_as_somebody_comes_with_keys_is_waited_for_no_more(
    journal: SqliteJournal, mode: StopMode, come: bool
) -> None:
    journal.begin_term()
    world = World(Team().handlers)
    spec = a_spec("first", keys=("KEY",))
    world.disk.append(RunAdded(spec=spec, command="command", at=0.0))
    entrance = Entrance(world, journal)
    await entrance._settle()
    entrance.admission.hold(spec)
    entrance.heard.clear()
    entrance.has_keys = come

    async def attach() -> None:
        await entrance.read.wait()
        entrance.heard.set()
        await entrance.admission.take_up_held()

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(entrance.admission.stop(["first"], mode))
        group.create_task(attach())

    assert (entrance.admission.held, set(world.coordinator.runs)) == (0, set())


async def test_runs_that_come_together_are_looked_up_together_and_known_ones_left_alone(
    journal: SqliteJournal,
) -> None:
    journal.begin_term()
    world = World(Team().handlers)
    over = [a_spec(f"over-{number}") for number in (1, 2)]
    world.disk.extend(RunAdded(spec=spec, command="command", at=0.0) for spec in over)
    entrance = Entrance(world, journal)
    await entrance._settle()
    new = [a_spec(f"new-{number}") for number in range(2 * READ_TOGETHER)]

    await entrance.admission.submit([over[0], *new, over[1]])

    assert set(world.coordinator.runs) == {spec.run_id for spec in new}
    # A reading waits for the commit that is under way: 5,000 of them are most of a start.
    assert entrance.reads == 3


@pytest.fixture
def beside(journal: SqliteJournal) -> Entrance:
    """`first` was parked before it had said its task; `second` has asked its user since."""
    journal.begin_term()
    world = World(Team(plan=("ask", "effect")).handlers)
    world.submit(a_spec("first", conversation_id=TALK))
    world.perform(world.coordinator.stop("first", "park_now"))
    world.settle()
    world.submit(a_spec("second", conversation_id=TALK))
    world.settle()
    assert is_waiting(world.stored("second").state.values)
    return Entrance(world, journal)


async def test_nobody_goes_on_in_a_conversation_whose_run_waits_for_its_user(
    beside: Entrance,
) -> None:
    for ask in (
        beside.admission.submit([a_spec("third", conversation_id=TALK)]),
        beside.admission.take_up(["first"], asked=True),
    ):
        with pytest.raises(ConversationBusyError, match=r"'second' of .* waits for answers"):
            await ask
    assert not beside.world.coordinator.runs


async def test_of_two_answers_that_come_at_once_the_first_counts(beside: Entrance) -> None:
    beside.heard.clear()
    asyncio.get_running_loop().call_later(0, beside.heard.set)

    given = await asyncio.gather(
        *(beside.admission.answer("second", {"q0": text}) for text in ("yes", "no")),
        return_exceptions=True,
    )
    beside.world.settle()

    assert [type(found) for found in given] == [type(None), AnswerError]
    assert beside.world.stored("second").state.values[ANSWERS.name] == {"q0": "yes"}


async def test_a_run_that_is_cancelled_leaves_the_calls_open_of_one_that_waits(
    beside: Entrance,
) -> None:
    await beside.admission.stop(["first"], "cancel")
    world = beside.world
    world.settle()
    assert world.ends("first")[0].status == "cancelled"
    asked = [call.id for call in world.stored("second").state.log.open_calls()]
    assert len(asked) == 2

    await beside.admission.answer("second", {"q0": "yes", "q1": "no"})
    await beside.admission.take_up(["second"], asked=True)
    world.settle()

    results = [message.text for message in world.log("second") if message.role == "tool"]
    assert results == ["yes", "no", "done"]
    assert world.ends("second")[0].status == "done"


@pytest.mark.parametrize("reading", [1, 2])
async def test_a_run_that_is_cancelled_leaves_the_calls_open_of_one_that_begins_to_wait(
    journal: SqliteJournal, reading: int
) -> None:
    journal.begin_term()
    handlers = Team(plan=("ask", "effect")).handlers
    world = World({**handlers, AGENT_TURN: _in_two_steps(handlers[AGENT_TURN])})
    world.submit(a_spec("first", conversation_id=TALK))
    world.perform(world.coordinator.stop("first", "park_now"))
    world.settle()
    world.submit(a_spec("second", conversation_id=TALK))
    _to_a_call(world, "second")
    entrance = Entrance(world, journal)
    _at_reading(entrance, reading, world.settle)

    await entrance.admission.stop(["first"], "cancel")

    world.settle()
    assert world.ends("first")[0].status == "cancelled"
    assert is_waiting(world.stored("second").state.values)
    assert len(world.log("second").open_calls()) == 2


@pytest.mark.parametrize("has_spoken", [True, False])
async def test_a_run_that_is_cancelled_leaves_the_calls_open_of_one_that_is_aside_with_its_children(
    journal: SqliteJournal, has_spoken: bool
) -> None:
    journal.begin_term()
    world = World(Team({"second": ["delegate", "effect"]}, plan=["effect"]).handlers)
    world.submit(a_spec("first", conversation_id=TALK))
    if has_spoken:
        step_until(world, lambda: "first" in world.run_ids() and bool(world.log("first")))
    world.perform(world.coordinator.stop("first", "park_now"))
    world.settle()
    assert bool(world.log("first")) == has_spoken
    world.submit(a_spec("second", conversation_id=TALK), world.log("first"))
    step_until(world, lambda: "second.2" in world.run_ids())
    world.perform(world.coordinator.stop("second", "park_now"))
    entrance = Entrance(world, journal)

    await entrance.admission.stop(["first"], "cancel")

    assert len(world.stored("second").state.log.open_calls()) == 2
    await entrance.admission.take_up(["second"], asked=True)
    world.settle()
    results = [message.text for message in world.log("second") if message.role == "tool"]
    assert results == ["completed: ok", "completed: ok", "done"]
    assert world.ends("second")[0].status == "done"


async def test_the_last_of_a_conversation_closes_what_its_own_calls_have_left_open(
    beside: Entrance,
) -> None:
    await beside.admission.stop(["second"], "cancel")
    await beside.admission.stop(["first"], "cancel")
    beside.world.settle()
    assert repaired(list(beside.world.log("second")))[1] == 0


async def test_runs_that_are_taken_up_together_are_looked_up_together(
    journal: SqliteJournal,
) -> None:
    journal.begin_term()
    world = World(Team().handlers)
    parked = [a_spec(f"parked-{number}") for number in range(2 * READ_TOGETHER)]
    world.disk.extend(RunAdded(spec=spec, command="", at=0.0) for spec in parked)
    entrance = Entrance(world, journal)

    await entrance.admission.take_up([spec.run_id for spec in parked], asked=True)

    assert set(world.coordinator.runs) == {spec.run_id for spec in parked}
    assert entrance.reads == 2


async def test_a_run_that_is_taken_up_as_it_is_to_be_cancelled_ends_once(
    journal: SqliteJournal,
) -> None:
    journal.begin_term()
    world = World(Team().handlers)
    for run_id in ("first", "other"):
        world.disk.append(RunAdded(spec=a_spec(run_id), command="", at=world.clock.now()))
    entrance = Entrance(world, journal)
    entrance.heard.clear()

    async def cancel() -> None:
        await entrance.read.wait()
        assert "first" not in world.coordinator.runs
        asyncio.get_running_loop().call_soon(entrance.heard.set)
        entrance.reading = world.settle
        with pytest.raises(RunNotFoundError, match="nobody"):
            await entrance.admission.stop(["first", "nobody", "other"], "cancel")

    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(entrance.admission.take_up(["first"], asked=True))
        group.create_task(cancel())
    world.settle()

    assert entrance.prepared == [("first", False)], "it was taken up"
    for run_id in ("first", "other"):
        assert [end.status for end in world.ends(run_id)] == ["cancelled"]
    assert not world.coordinator.runs


async def test_of_several_runs_those_that_are_served_keep_no_other_from_being_taken_up(
    entrance: Entrance,
) -> None:
    world = entrance.world
    world.disk.append(RunAdded(spec=a_spec("other"), command="", at=world.clock.now()))
    world.perform(world.coordinator.stop("second", "park"))

    await entrance.admission.take_up(["second", "other"], asked=True)

    assert set(world.coordinator.runs) == {"second", "other"}
    world.settle()
    assert world.ends("second")[0].status == "done", "it does not park after all"


async def test_of_runs_that_are_taken_up_together_one_goes_on_in_each_conversation(
    journal: SqliteJournal,
) -> None:
    journal.begin_term()
    world = World(Team().handlers)
    parked = [a_spec(f"parked-{number}", conversation_id=TALK) for number in (1, 2)]
    world.disk.extend(RunAdded(spec=spec, command="", at=0.0) for spec in parked)
    entrance = Entrance(world, journal)

    with pytest.raises(ConversationBusyError):
        await entrance.admission.take_up([spec.run_id for spec in parked], asked=True)
    assert set(world.coordinator.runs) == {"parked-1"}


async def test_what_a_run_has_said_meanwhile_is_in_the_log_of_one_that_is_taken_up_after_it(
    journal: SqliteJournal,
) -> None:
    journal.begin_term()
    world = World(Team().handlers)
    asked = {"before": TALK, "between": "another", "after": TALK}
    specs = [a_spec(run_id, conversation_id=talk) for run_id, talk in asked.items()]
    at = world.clock.now()
    world.disk.extend(RunAdded(spec=spec, command="", at=at) for spec in specs)
    entrance = Entrance(world, journal)

    def end_the_first(prepared: Sequence[RunSpec]) -> None:
        if prepared[0].run_id == "between":
            world.settle()

    entrance.preparing = end_the_first
    await entrance.admission.take_up(list(asked), asked=True)

    assert world.ends("before")[0].status == "done"
    assert list(world.coordinator.runs["after"].state.log) == list(world.log("before"))


@pytest.mark.parametrize("goes_on", [True, False], ids=["moved on", "without its workspace"])
async def test_a_run_that_was_cut_goes_on_where_it_stood_or_not_at_all(
    journal: SqliteJournal, tmp_path: Path, goes_on: bool
) -> None:
    journal.begin_term()
    world = World(Team().handlers)
    gone = WorkspaceSpec(path=str(tmp_path / "gone"))
    cut = a_spec("cut", conversation_id=TALK, workspace=None if goes_on else gone)
    world.submit(cut)
    _to_a_call(world, "cut")
    world.perform(world.coordinator.stop("cut", "park_now"))
    world.settle(hosts=False)
    if goes_on:
        world.submit(a_spec("later", conversation_id=TALK), world.log("cut"))
        world.settle()
    entrance = Entrance(world, journal)

    with pytest.raises(ConversationMovedOnError if goes_on else BadInputError):
        await entrance.admission.take_up(["cut"], asked=True)
    assert not world.coordinator.runs
