"""One executor host, driven by hand: what it takes, what it says, what it forgets."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from weakref import ref

import pytest

from harness_actors.actors.host import executor_host as hosts
from harness_actors.actors.host.executor_host import ExecutorHost
from harness_actors.actors.mailbox import Code, DropCode, Parcel
from harness_actors.actors.packing import pack
from harness_actors.config import HarnessConfig, Limits
from harness_actors.conversation import Conversation
from harness_actors.coordination.graph import DEFAULT_EDGES, Workflow
from harness_actors.coordination.protocol import (
    CUSTOM,
    Answered,
    Changed,
    Committed,
    Cut,
    Deliver,
    Envelope,
    Forget,
    GoOn,
    Park,
    Slot,
    SnapshotWanted,
    Speak,
    ToolsStarted,
)
from harness_actors.errors import WorkflowError
from harness_actors.events import CustomEvent, Event
from harness_actors.messages import Message
from harness_actors.ports import RunContext
from harness_actors.records import ProcessMark, RunSpec
from harness_actors.results import Reason
from harness_actors.signals import (
    CustomSignal,
    RepairComplete,
    RepairTrigger,
    RunEnd,
    Signal,
    TurnComplete,
)
from harness_actors.state import AGENT_TURN, REPAIR, USAGE, StateKey
from harness_actors.testing import ScriptedModel, an_agent
from harness_actors.tools.spawn import DirectProcesses
from tests.actors.places import a_place

MINE: StateKey[Any] = StateKey("mine", Any, REPAIR)

Acts = Callable[[Signal, RunContext], Any]


class Panic(BaseException):
    """What a library in Rust raises: no `Exception`."""


class Acting:
    """An executor that does what a test says, and counts."""

    reads: tuple[StateKey[Any], ...] = (MINE,)

    def __init__(self, act: Acts, *, reads_log: bool = True, name: str = REPAIR) -> None:
        self.name = name
        self.reads_log = reads_log
        self.begun = 0
        self._act = act

    async def handle(self, signal: Signal, context: RunContext) -> Any:
        self.begun += 1
        return await self._act(signal, context)


class Coordinator:
    """What the host says arrives here."""

    def __init__(self) -> None:
        self.heard: list[Envelope] = []
        self.tells: Sequence[Envelope] = ()
        """What it tells with its next answer."""
        self.gate = asyncio.Event()
        self.gate.set()
        self.refuses_hop = 0
        """It fails on whatever is said of this hop."""
        self._changed = asyncio.Event()

    async def receive(self, batch: Sequence[Parcel]) -> Sequence[Envelope]:
        await self.gate.wait()
        if any(isinstance(p, Envelope) and p.hop_number == self.refuses_hop for p in batch):
            raise ValueError("not taken")
        self.heard += [parcel for parcel in batch if isinstance(parcel, Envelope)]
        self._changed.set()
        told, self.tells = self.tells, ()
        return told

    async def next(self, kind: type, count: int = 1) -> Envelope:
        """Wait for that many messages of a kind, and return the last of them."""
        async with asyncio.timeout(10):
            while len(found := self.of(kind)) < count:
                self._changed.clear()
                await self._changed.wait()
        return found[count - 1]

    def of(self, kind: type) -> list[Envelope]:
        return [envelope for envelope in self.heard if isinstance(envelope.body, kind)]

    async def hello(self) -> tuple[ProcessMark, ...]:
        raise NotImplementedError

    async def watch(self) -> None:
        raise NotImplementedError

    def kill(self) -> None:
        raise NotImplementedError


def a_spec(run_id: str = "run") -> RunSpec:
    return RunSpec(
        run_id=run_id,
        conversation_id=run_id,
        task=(),
        code="code",
        config=HarnessConfig(),
        edges=DEFAULT_EDGES,
    )


def deliver(
    *log: Message, log_from: int = 0, again: bool = False, parking: bool = False, **values: Any
) -> Deliver:
    return Deliver(
        signal=RepairTrigger(),
        values=values,
        log_from=log_from,
        log=log,
        started_at=0.0,
        parking=parking,
        spec=None if again else a_spec(),
    )


@dataclass
class Desk:
    """A host and its coordinator."""

    host: ExecutorHost
    coordinator: Coordinator
    executor: Acting

    async def say(self, body: Any, *, hop_number: int = 1, seq: int = 1, term: int = 1) -> None:
        await self.host.receive([Envelope("run", term, hop_number, seq, body)])

    async def answer(self, count: int = 1) -> Answered:
        body = (await self.coordinator.next(Answered, count)).body
        assert isinstance(body, Answered)
        return body


Makes = Callable[..., Desk]


@pytest.fixture
async def a_host() -> AsyncIterator[Makes]:
    desks: list[Desk] = []

    def make(act: Acts, *, slot: Slot | None = None, **facts: Any) -> Desk:
        coordinator = Coordinator()
        executor = Acting(act, **facts)
        host = ExecutorHost(executor, a_place(slot or Slot(REPAIR), coordinator))
        desks.append(Desk(host, coordinator, executor))
        return desks[-1]

    yield make
    for desk in desks:
        desk.host.close()


async def answers(signal: Signal, context: RunContext) -> RepairComplete:
    return RepairComplete()


async def settled() -> None:
    """Let every task that can go on do so."""
    for _ in range(20):
        await asyncio.sleep(0)


# ---- what it takes ------------------------------------------------------------


async def test_a_signal_is_served_and_answered_in_its_hop(a_host: Makes) -> None:
    desk = a_host(answers)
    await desk.say(deliver(), hop_number=7)
    envelope = await desk.coordinator.next(Answered)
    assert (envelope.run_id, envelope.term, envelope.hop_number, envelope.seq) == ("run", 1, 7, 1)
    assert isinstance(envelope.body, Answered)
    assert envelope.body.outcome == RepairComplete()
    assert not envelope.body.delta.writes, "ours count their own time"


async def test_receiving_only_enqueues(a_host: Makes) -> None:
    begun = asyncio.Event()

    async def slow(signal: Signal, context: RunContext) -> RepairComplete:
        begun.set()
        return RepairComplete()

    desk = a_host(slow)
    await desk.say(deliver())
    assert not begun.is_set()
    await desk.answer()


async def test_a_message_delivered_twice_is_handled_once(a_host: Makes) -> None:
    begun: list[int] = []

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        begun.append(1)
        return RepairComplete()

    desk = a_host(act)
    batch = [Envelope("run", 1, 1, 1, deliver())]
    await desk.host.receive(batch)
    await desk.host.receive(batch)
    await desk.answer()
    await settled()
    assert begun == [1]
    assert len(desk.coordinator.of(Answered)) == 1


async def test_messages_of_another_term_are_dropped(a_host: Makes) -> None:
    desk = a_host(answers)
    for term in (0, 2):
        await desk.say(deliver(), term=term)
    await settled()
    assert desk.coordinator.heard == []


async def test_many_runs_are_served_at_once(a_host: Makes) -> None:
    meeting = asyncio.Barrier(50)

    async def meet(signal: Signal, context: RunContext) -> RepairComplete:
        await meeting.wait()
        return RepairComplete()

    desk = a_host(meet)
    batch = [Envelope(f"run{i}", 1, 1, 1, deliver()) for i in range(50)]
    await desk.host.receive(batch)
    await desk.coordinator.next(Answered, 50)


# ---- the log ------------------------------------------------------------


async def test_its_log_grows_by_what_it_writes_and_what_it_is_sent(a_host: Makes) -> None:
    seen: list[list[str]] = []

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        seen.append([message.text for message in context.log])
        context.add_message(Message.user(f"mine {len(seen)}"))
        return RepairComplete()

    desk = a_host(act)
    await desk.say(deliver(Message.user("task")), hop_number=1)
    await desk.answer(1)
    await desk.say(deliver(Message.user("nudge"), log_from=2, again=True), hop_number=2)
    await desk.answer(2)
    assert seen == [["task"], ["task", "mine 1", "nudge"]]


@pytest.mark.parametrize("log_from", [0, 1, 3])
async def test_a_log_that_does_not_fit_is_asked_for_whole(a_host: Makes, log_from: int) -> None:
    lengths: list[int] = []

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        lengths.append(len(context.log))
        return RepairComplete()

    desk = a_host(act)
    await desk.say(deliver(Message.user("a"), Message.user("b")), hop_number=1)
    await desk.answer(1)
    await desk.say(deliver(log_from=log_from, again=True), hop_number=2)
    wanted = await desk.coordinator.next(SnapshotWanted)
    assert (wanted.hop_number, wanted.seq) == (2, 1)
    await desk.say(deliver(*[Message.user("x")] * 3), hop_number=3)
    await desk.answer(2)
    assert lengths == [2, 3]


async def test_a_run_that_it_does_not_know_is_asked_for_whole(a_host: Makes) -> None:
    desk = a_host(answers)
    await desk.say(deliver(log_from=4, again=True))
    await desk.coordinator.next(SnapshotWanted)
    await settled()
    assert not desk.coordinator.of(Answered)


async def test_an_executor_that_does_not_read_the_log_keeps_none(a_host: Makes) -> None:
    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        context.add_message(Message.user("mine"))
        return RepairComplete()

    desk = a_host(act, reads_log=False)
    for hop_number in (1, 2):
        await desk.say(deliver(again=hop_number > 1), hop_number=hop_number)
        assert len((await desk.answer(hop_number)).delta.messages) == 1
    assert not desk.coordinator.of(SnapshotWanted)


# ---- changes ------------------------------------------------------------


async def test_a_change_is_awaited_until_it_is_on_disk(a_host: Makes) -> None:
    passed = asyncio.Event()

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        context.set(MINE, 1)
        await context.flush()
        passed.set()
        return RepairComplete()

    desk = a_host(act)
    await desk.say(deliver())
    change = await desk.coordinator.next(Changed)
    await settled()
    assert not passed.is_set()
    await desk.say(Committed(change.seq), seq=2)
    await desk.answer()


async def test_a_commit_is_heard_with_the_answer_to_its_change(a_host: Makes) -> None:
    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        context.set(MINE, 1)
        await context.flush()
        return RepairComplete()

    desk = a_host(act)
    desk.coordinator.tells = [Envelope("run", 1, 1, 0, Committed(1))]
    await desk.say(deliver())
    await desk.answer()


async def test_a_commit_is_that_of_all_changes_before_it(a_host: Makes) -> None:
    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        context.set(MINE, 1)
        first = context.flush()
        context.set(MINE, 2)
        await context.flush()
        await first
        return RepairComplete()

    desk = a_host(act)
    await desk.say(deliver())
    second = await desk.coordinator.next(Changed, 2)
    await desk.say(Committed(second.seq), seq=2)
    await desk.answer()


async def test_a_commit_of_a_hop_that_is_over_is_none_of_the_next(a_host: Makes) -> None:
    passed = asyncio.Event()

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        context.set(MINE, 1)
        await context.flush()
        passed.set()
        return RepairComplete()

    desk = a_host(act)
    desk.coordinator.tells = [Envelope("run", 1, 7, 0, Committed(1))]
    await desk.say(deliver())
    change = await desk.coordinator.next(Changed)
    await settled()
    assert not passed.is_set()
    await desk.say(Committed(change.seq), seq=2)
    await desk.answer()


async def test_messages_of_a_hop_are_numbered_in_their_order(a_host: Makes) -> None:
    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        context.set(MINE, 1)
        context.flush()
        context.tools_started()
        context.set(MINE, 2)
        context.flush()
        return RepairComplete()

    desk = a_host(act)
    await desk.say(deliver())
    await desk.answer()
    heard = [(type(envelope.body), envelope.seq) for envelope in desk.coordinator.heard]
    # That tools begin may come earlier, and has the number of what it comes after.
    assert heard == [(Changed, 1), (ToolsStarted, 1), (Changed, 2), (Answered, 3)]


async def test_a_commit_for_which_nobody_waits_any_more_does_no_harm(a_host: Makes) -> None:
    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        context.set(MINE, 1)
        waiting = asyncio.ensure_future(context.flush())
        await asyncio.sleep(0)
        waiting.cancel()
        context.set(MINE, 2)
        await context.flush()
        return RepairComplete()

    desk = a_host(act)
    await desk.say(deliver())
    second = await desk.coordinator.next(Changed, 2)
    batch = [
        Envelope("run", 1, 1, 2, Committed(1)),
        Envelope("run", 1, 1, 3, Committed(second.seq)),
        Envelope("run", 1, 1, 4, Committed(99)),
    ]
    await desk.host.receive(batch)
    await desk.answer()


# ---- parking, cutting, forgetting ------------------------------------------------------------


async def test_a_run_is_told_to_park_in_the_middle_of_a_hop(a_host: Makes) -> None:
    gate = asyncio.Event()
    seen: list[bool] = []

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        seen.append(context.parking)
        await gate.wait()
        seen.append(context.parking)
        return RepairComplete()

    desk = a_host(act)
    await desk.say(deliver())
    await settled()
    await desk.say(Park(), seq=2)
    gate.set()
    await desk.answer()
    assert seen == [False, True]


async def test_a_request_to_park_that_comes_with_the_signal_is_not_lost(a_host: Makes) -> None:
    seen: list[bool] = []

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        seen.append(context.parking)
        return RepairComplete()

    desk = a_host(act)
    batch = [Envelope("run", 1, 1, 1, deliver()), Envelope("run", 1, 1, 2, Park())]
    await desk.host.receive(batch)
    await desk.answer(1)
    await desk.say(deliver(again=True), hop_number=2)
    await desk.answer(2)
    assert seen == [True, False], "and it is for its own hop only"


async def test_a_run_that_is_not_to_park_after_all_goes_on(a_host: Makes) -> None:
    gate = asyncio.Event()
    seen: list[bool] = []

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        seen.append(context.parking)
        await gate.wait()
        seen.append(context.parking)
        return RepairComplete()

    desk = a_host(act)
    await desk.say(deliver(parking=True))
    await settled()
    await desk.say(GoOn(), seq=2)
    gate.set()
    await desk.answer()
    assert seen == [True, False]


@pytest.mark.parametrize("word", [Park(), GoOn(), Cut(), Forget(), Speak("stream"), Committed(1)])
async def test_a_word_for_a_run_that_is_not_here_keeps_nothing_from_the_others(
    a_host: Makes, word: Any
) -> None:
    desk = a_host(answers)
    await desk.host.receive(
        [Envelope("another", 1, 1, 1, word), Envelope("run", 1, 1, 1, deliver())]
    )
    await desk.answer()


async def test_what_a_stubborn_hop_adds_is_not_in_the_log_of_the_next(a_host: Makes) -> None:
    begun, gate = asyncio.Event(), asyncio.Event()
    seen: list[list[str]] = []

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        if not begun.is_set():
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await gate.wait()
                context.add_message(Message.user("too late"))
        seen.append([message.text for message in context.log])
        return RepairComplete()

    desk = a_host(act)
    await desk.say(deliver(Message.user("task")), hop_number=1)
    await begun.wait()
    await desk.say(deliver(log_from=1, again=True), hop_number=2)
    await settled()
    gate.set()
    await desk.coordinator.next(Answered)
    assert seen == [["task"]]


def hanging(ended: list[str], begun: asyncio.Event, gate: asyncio.Event) -> Acts:
    """Hangs in its first hop, and takes until the gate opens to end when it is cut."""

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        if begun.is_set():
            ended.append("next began")
            return RepairComplete()
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            await gate.wait()
            ended.append("first ended")
        raise AssertionError("unreachable")

    return act


@pytest.mark.parametrize("how", ["forgotten", "superseded"])
async def test_a_cut_hop_ends_before_the_next_one_of_its_run_begins(
    a_host: Makes, how: str
) -> None:
    ended: list[str] = []
    begun, gate = asyncio.Event(), asyncio.Event()
    desk = a_host(hanging(ended, begun, gate))
    await desk.say(deliver())
    await begun.wait()
    if how == "forgotten":
        await desk.say(Cut(), seq=2)
        await desk.say(Forget(), hop_number=2)
    await desk.say(deliver(), hop_number=3)
    await settled()
    assert ended == []
    gate.set()
    envelope = await desk.coordinator.next(Answered)
    assert envelope.hop_number == 3
    assert ended == ["first ended", "next began"]


async def test_a_hop_that_waits_for_a_lost_commit_gives_way_to_the_next_one(a_host: Makes) -> None:
    first = asyncio.Event()

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        if not first.is_set():
            first.set()
            context.set(MINE, 1)
            await context.flush()
        return RepairComplete()

    desk = a_host(act)
    await desk.say(deliver(), hop_number=5)
    await desk.coordinator.next(Changed)
    await desk.say(deliver(), hop_number=8)
    envelope = await desk.coordinator.next(Answered)
    assert envelope.hop_number == 8


async def test_a_cut_hop_says_nothing(a_host: Makes) -> None:
    ended: list[str] = []
    begun, gate = asyncio.Event(), asyncio.Event()
    gate.set()
    desk = a_host(hanging(ended, begun, gate))
    await desk.say(deliver())
    await begun.wait()
    await desk.say(Cut(), seq=2)
    await settled()
    assert ended == ["first ended"]
    assert desk.coordinator.heard == []


async def test_a_cut_hop_that_does_not_end_is_left_alone(
    a_host: Makes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosts, "CUT_GRACE_S", 0.05)
    ended: list[str] = []
    begun, gate = asyncio.Event(), asyncio.Event()
    desk = a_host(hanging(ended, begun, gate))
    await desk.say(deliver())
    await begun.wait()
    await desk.say(deliver(), hop_number=2)
    await desk.answer()
    assert ended == ["next began"]
    gate.set()


async def test_what_a_stubborn_hop_still_says_belongs_to_its_own_hop(a_host: Makes) -> None:
    begun = asyncio.Event()

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        if not begun.is_set():
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                context.set(MINE, "too late")
                context.flush()
        return RepairComplete()

    desk = a_host(act)
    await desk.say(deliver(), hop_number=1)
    await begun.wait()
    await desk.say(deliver(), hop_number=2)
    await desk.coordinator.next(Answered, 2)
    assert {e.hop_number for e in desk.coordinator.of(Changed)} == {1}
    assert [e.hop_number for e in desk.coordinator.of(Answered)] == [1, 2]


async def test_what_a_cut_hop_could_not_say_is_no_fault_of_the_next(a_host: Makes) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        if not begun.is_set():
            begun.set()
            context.set(MINE, "untold")
            context.flush()
            await asyncio.Event().wait()
        await go_on.wait()
        return RepairComplete()

    desk = a_host(act)
    desk.coordinator.gate.clear()
    await desk.say(deliver(), hop_number=1)
    await begun.wait()
    await settled()
    desk.coordinator.refuses_hop = 1
    await desk.say(deliver(), hop_number=2)
    desk.coordinator.gate.set()
    await settled()
    go_on.set()
    answer = await desk.answer()
    assert answer.outcome == RepairComplete()
    assert [e.hop_number for e in desk.coordinator.of(Answered)] == [2]


async def test_nothing_is_kept_of_a_forgotten_run(a_host: Makes) -> None:
    desk = a_host(answers)
    for number in range(20):
        envelopes = [
            Envelope(f"run{number}", 1, 1, 1, deliver()),
            Envelope(f"run{number}", 1, 2, 1, Forget()),
        ]
        await desk.host.receive(envelopes)
    await settled()
    assert not desk.host._runs
    assert not desk.host._tasks
    assert len(desk.host._seen) == 0


@pytest.fixture
def no_collector() -> Iterator[None]:
    """The collector of garbage looks at nothing: what stays is what circles hold."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("end", ["answered", "failed", "cut"])
async def test_a_log_leaves_memory_with_its_run(a_host: Makes, end: str) -> None:
    logs: list[ref[Conversation]] = []

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        assert isinstance(context.log, Conversation)
        logs.append(ref(context.log))
        if end == "failed":
            raise ValueError("broken")
        if end == "cut":
            await asyncio.Event().wait()
        return RepairComplete()

    desk = a_host(act)
    await desk.say(deliver(Message.user("Hello.")))
    await settled()
    assert logs[0]() is not None, "it is still served here"
    await desk.say(Cut(), seq=2)
    await desk.say(Forget(), hop_number=2)
    await settled()
    assert logs[0]() is None


@pytest.mark.parametrize("late", ["its delivery", "another word of its hop"])
async def test_what_comes_late_after_the_word_that_a_run_is_over_begins_nothing(
    a_host: Makes, late: str
) -> None:
    desk = a_host(answers)
    envelope = Envelope("run", 1, 1, 1, deliver())
    await desk.host.receive([envelope])
    await desk.answer()
    await desk.say(Forget(), hop_number=2)
    if late != "its delivery":
        envelope = Envelope("run", 1, 1, 2, deliver())
    await desk.host.receive([envelope])
    await settled()
    assert desk.executor.begun == 1
    assert not desk.host._runs
    assert len(desk.coordinator.of(Answered)) == 1
    # Taken up again, it is served.
    await desk.say(deliver(), hop_number=3)
    await desk.answer(2)


async def test_closing_cancels_what_is_in_progress(a_host: Makes) -> None:
    ended: list[str] = []
    begun, gate = asyncio.Event(), asyncio.Event()
    gate.set()
    desk = a_host(hanging(ended, begun, gate))
    await desk.say(deliver())
    await begun.wait()
    desk.host.close()
    await settled()
    assert ended == ["first ended"]


class Processes(DirectProcesses):
    """What starts the processes of tools, and says what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    def end_run(self, run_id: str) -> None:
        self.told.append(run_id)

    def close(self) -> None:
        self.told.append("closed")


async def test_the_processes_of_a_run_end_with_it_and_all_with_the_host() -> None:
    processes = Processes()
    place = a_place(Slot(REPAIR), Coordinator(), tool_processes=processes)
    host = ExecutorHost(Acting(answers), place)
    await host.receive([Envelope("run", 1, 1, 1, deliver()), Envelope("run", 1, 2, 1, Forget())])
    assert processes.told == ["run"]
    host.close()
    assert processes.told == ["run", "closed"]


async def test_nothing_is_said_for_a_host_that_is_closed(a_host: Makes) -> None:
    desk = a_host(answers)
    desk.coordinator.gate.clear()
    await desk.say(deliver())
    await settled()
    desk.host.close()
    desk.coordinator.gate.set()
    await settled()
    assert desk.coordinator.heard == []


async def test_that_tools_begin_is_told_before_they_do() -> None:
    told: list[Parcel] = []

    def tell(batch: Sequence[Parcel]) -> bool:
        told.extend(batch)
        return True

    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        context.tools_started()
        assert [type(parcel.body) for parcel in told if isinstance(parcel, Envelope)] == [
            ToolsStarted
        ]
        return RepairComplete()

    coordinator = Coordinator()
    host = ExecutorHost(Acting(act), a_place(Slot(REPAIR), coordinator, tell=tell))
    await host.receive([Envelope("run", 1, 1, 1, deliver())])
    answered = await coordinator.next(Answered)
    assert isinstance(answered.body, Answered)
    assert answered.body.outcome == RepairComplete()
    assert not coordinator.of(ToolsStarted)
    host.close()


@pytest.mark.parametrize("told", [("run", 2, 1), ("run", 1, 2), ("another", 1, 1)])
async def test_a_commit_is_that_of_its_own_run_term_and_hop(
    a_host: Makes, told: tuple[str, int, int]
) -> None:
    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        context.set(MINE, 1)
        await context.flush()
        return RepairComplete()

    desk = a_host(act)
    desk.coordinator.tells = [Envelope(*told, 0, Committed(1))]
    await desk.say(deliver())
    change = await desk.coordinator.next(Changed)
    await settled()
    assert not desk.coordinator.of(Answered)
    await desk.say(Committed(change.seq), seq=2)
    await desk.answer()


# ---- failures ------------------------------------------------------------


async def failure_of(desk: Desk) -> Reason:
    await desk.say(deliver())
    outcome = (await desk.answer()).outcome
    assert isinstance(outcome, RunEnd)
    assert outcome.status == "failed"
    assert outcome.reason.kind == "agent_error"
    return outcome.reason


async def test_an_executor_that_raises_ends_its_run(a_host: Makes) -> None:
    async def act(signal: Signal, context: RunContext) -> None:
        context.add_message(Message.user("what it had said before"))
        raise LookupError("there is no such customer")

    desk = a_host(act)
    reason = await failure_of(desk)
    assert "LookupError: there is no such customer" in reason.message
    assert reason.details["type"] == "LookupError"
    assert len((await desk.answer()).delta.messages) == 1


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), GeneratorExit("early"), asyncio.CancelledError("its own"), Panic("native")],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_an_executor_raises_its_run_is_told(
    a_host: Makes, error: BaseException
) -> None:
    async def act(signal: Signal, context: RunContext) -> None:
        raise error

    reason = await failure_of(a_host(act))
    assert f"{type(error).__name__}: {error}" in reason.message


@pytest.mark.parametrize("answer", [None, "done", {"status": "done"}])
async def test_an_answer_that_is_none_is_told_with_what_was_expected(
    a_host: Makes, answer: object
) -> None:
    async def act(signal: Signal, context: RunContext) -> object:
        return answer

    reason = await failure_of(a_host(act))
    assert repr(answer) in reason.message
    assert "RunEnd" in reason.message


class Odd(Event):
    """An event that no reader of the journal would know."""


def custom_host(a_host: Makes, act: Acts) -> Desk:
    """A host of a user's own executor; its code came with the run."""
    desk = a_host(act, slot=Slot(CUSTOM, "code", pool=REPAIR))
    desk.host._programs.take(Code("code", pack(Workflow(an_agent()))[1], {}, 1))
    return desk


async def test_a_program_that_was_dropped_is_not_there_until_it_comes_again(a_host: Makes) -> None:
    desk = a_host(answers, slot=Slot(AGENT_TURN))
    code = Code("code", pack(Workflow(an_agent()))[1], {}, 1)
    parcels: list[Parcel] = [code, DropCode("code", 2), replace(code, number=3)]
    outcomes: list[Any] = []
    for hop_number, parcel in enumerate(parcels, 1):
        await desk.host.receive([parcel])
        await desk.say(deliver(), hop_number=hop_number)
        outcomes.append((await desk.answer(hop_number)).outcome)
    assert [type(outcome) for outcome in outcomes] == [RepairComplete, RunEnd, RepairComplete]
    assert "the journal does not have it" in outcomes[1].reason.message


async def test_a_users_executor_is_charged_with_its_time(a_host: Makes) -> None:
    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        await asyncio.sleep(0.05)
        return RepairComplete()

    async def fails(signal: Signal, context: RunContext) -> None:
        await asyncio.sleep(0.05)
        raise LookupError("there is no such customer")

    for each in (act, fails):
        desk = custom_host(a_host, each)
        await desk.say(deliver())
        (used,) = [w.value for w in (await desk.answer()).delta.writes if w.key == USAGE.name]
        assert 0.05 <= used["working_s"] < 5


@pytest.mark.parametrize("limit_s", [None, 60.0])
async def test_the_time_of_a_users_executor_is_bounded_from_when_it_begins(
    a_host: Makes, limit_s: float | None
) -> None:
    limits = Limits(working_s=limit_s)
    limited = replace(a_spec(), config=replace(HarnessConfig(), limits=limits))
    desks = [custom_host(a_host, answers), a_host(answers)]
    for desk in desks:
        await desk.say(replace(deliver(), spec=limited))
        await desk.answer()
    told = [len(desk.coordinator.of(ToolsStarted)) for desk in desks]
    assert told == [0 if limit_s is None else 1, 0]


async def test_a_users_executor_keeps_the_whole_log_that_it_may_add_to(a_host: Makes) -> None:
    async def act(signal: Signal, context: RunContext) -> RepairComplete:
        context.add_message(Message.user("mine"))
        return RepairComplete()

    desk = custom_host(a_host, act)
    desk.executor.reads_log = False
    await desk.say(deliver(Message.user("task")), hop_number=1)
    await desk.answer(1)
    await desk.say(deliver(log_from=2, again=True), hop_number=2)
    await desk.answer(2)
    assert not desk.coordinator.of(SnapshotWanted)


async def test_a_users_executor_whose_code_is_not_there_says_so(a_host: Makes) -> None:
    coordinator = Coordinator()
    slot = Slot(CUSTOM, "code", pool="mine")
    host = ExecutorHost(None, a_place(slot, coordinator))
    desk = Desk(host, coordinator, Acting(answers))
    assert "the journal does not have it" in (await failure_of(desk)).message
    host.close()


async def test_values_that_no_journal_holds_end_the_run_and_not_the_cell(a_host: Makes) -> None:
    async def emits(signal: Signal, context: RunContext) -> RepairComplete:
        context.emit(Odd())
        return RepairComplete()

    async def flushes(signal: Signal, context: RunContext) -> RepairComplete:
        context.emit(Odd())
        await context.flush()
        return RepairComplete()

    async def ends(signal: Signal, context: RunContext) -> RunEnd:
        reason = Reason(kind="completed", details={"at": object()})
        return RunEnd(status="done", reason=reason)

    for act in (emits, flushes, ends):
        reason = await failure_of(custom_host(a_host, act))
        assert "WorkflowError" in reason.message
    assert "CustomEvent" in (await failure_of(custom_host(a_host, emits))).message


async def test_plain_values_of_a_users_executor_pass(a_host: Makes) -> None:
    async def act(signal: Signal, context: RunContext) -> CustomSignal:
        context.emit(CustomEvent(name="seen", data={"count": [1, 2]}))
        return CustomSignal(name="next", data={"a": None})

    desk = custom_host(a_host, act)
    await desk.say(deliver())
    answered = await desk.answer()
    assert answered.outcome == CustomSignal(name="next", data={"a": None})
    assert len(answered.delta.events) == 1


def test_values_that_are_not_plain_are_refused_where_they_are_made() -> None:
    with pytest.raises(WorkflowError, match="'next'"):
        CustomSignal(name="next", data={"a": object()})
    with pytest.raises(WorkflowError, match="'seen'"):
        CustomEvent(name="seen", data={"a": {1, 2}})


async def test_a_turn_without_its_agent_says_so(a_host: Makes) -> None:
    desk = a_host(answers, slot=Slot(AGENT_TURN))
    assert "agent_turn" in (await failure_of(desk)).message


async def test_code_that_cannot_be_read_is_told_to_each_run(a_host: Makes) -> None:
    desk = a_host(answers, slot=Slot(AGENT_TURN))
    await desk.host.receive([Code("code", b"no pickle", {}, 1)])
    reason = await failure_of(desk)
    assert "AgentCodeError" in reason.message


class TakesKeys(ScriptedModel):
    """A model that keeps its keys, or refuses them."""

    key_names = ("KEY",)

    def __init__(self, refuses: bool = False) -> None:
        super().__init__([])
        self.refuses = refuses
        self.keys: dict[str, str] = {}

    def use_keys(self, keys: dict[str, str]) -> None:
        if self.refuses:
            raise ValueError("no such key")
        self.keys.update(keys)


async def test_keys_come_beside_the_code_and_new_ones_replace_them(a_host: Makes) -> None:
    seen: list[Any] = []

    async def act(signal: Signal, context: RunContext) -> TurnComplete:
        seen.append(context.agent.model)
        return TurnComplete(ending="text")

    _, blob = pack(Workflow(an_agent(TakesKeys())))
    desk = a_host(act, slot=Slot(AGENT_TURN))
    for hop_number, key in enumerate(("the-first-key", "another"), start=1):
        await desk.host.receive([Code("code", blob, {"KEY": key}, hop_number)])
        await desk.say(deliver(), hop_number=hop_number)
        await desk.answer(hop_number)
    assert [model.keys["KEY"] for model in seen] == ["the-first-key", "another"]
    assert b"the-first-key" not in blob


async def test_a_batch_that_comes_again_late_does_not_take_keys_or_programs_back(
    a_host: Makes,
) -> None:
    seen: list[Any] = []

    async def act(signal: Signal, context: RunContext) -> TurnComplete:
        seen.append(context.agent.model)
        return TurnComplete(ending="text")

    _, blob = pack(Workflow(an_agent(TakesKeys())))
    desk = a_host(act, slot=Slot(AGENT_TURN))
    first: list[Parcel] = [Code("code", blob, {"KEY": "the-first-key"}, 1), DropCode("code", 2)]
    await desk.host.receive(first)
    await desk.host.receive([Code("code", blob, {"KEY": "another"}, 3)])
    for late in first, list(reversed(first)):
        await desk.host.receive(late)
    await desk.say(deliver())
    await desk.answer()
    assert [model.keys["KEY"] for model in seen] == ["another"]


async def test_a_model_that_refuses_its_keys_does_not_disturb_the_batch(a_host: Makes) -> None:
    _, blob = pack(Workflow(an_agent(TakesKeys(refuses=True))))
    desk = a_host(answers, slot=Slot(AGENT_TURN))
    await desk.host.receive([Code("code", blob, {}, 1), Envelope("run", 1, 1, 1, deliver())])
    outcome = (await desk.answer()).outcome
    assert isinstance(outcome, RunEnd)
    assert "no such key" in outcome.reason.message
