"""A small world for the coordinator: a disk, hosts and a network that a test moves by hand.

Nothing happens by itself. A step that the coordinator returns waits until `commit` puts its
entries on the disk, and only then its posts are in the hosts' inboxes; a host takes one
envelope, or does one piece of work, when it is told to.
"""

from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness_actors.actors.host.shipped_executors import executor_needs
from harness_actors.actors.mailbox import SeenEnvelopes
from harness_actors.conversation import Conversation
from harness_actors.coordination.active import Effects, Post
from harness_actors.coordination.at_once import AnswerAtOnce
from harness_actors.coordination.coordinator import Coordinator
from harness_actors.coordination.graph import DEFAULT_EDGES
from harness_actors.coordination.protocol import (
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
    ToolsStarted,
)
from harness_actors.messages import Message
from harness_actors.records import (
    Entry,
    Hop,
    RunAdded,
    RunChanged,
    RunSpec,
    SnapshotTaken,
    StoredRun,
)
from harness_actors.results import HarnessResult
from harness_actors.signals import Signal
from harness_actors.state import SharedState, StateDelta
from harness_actors.testing import ManualClock
from tests.bounded import bounded

Work = Generator[Any, Any, Any]
"""What an executor does: yields a delta to flush it, `WaitFor`, or `TOOLS`."""

Handler = Callable[["Served", Signal], Work]

TOOLS = "tools started"


@dataclass(frozen=True)
class WaitFor:
    """Go on when change number `change` of this step is on disk."""

    change: int


def a_spec(run_id: str = "run", **facts: Any) -> RunSpec:
    given: dict[str, Any] = {
        "conversation_id": run_id,
        "task": (Message.user("the task"),),
        "code": "code",
        "config": bounded(),
        "edges": DEFAULT_EDGES,
        **facts,
    }
    return RunSpec(run_id=run_id, **given)


@dataclass
class Served:
    """A run at a host."""

    spec: RunSpec
    log: Conversation
    hop_number: int
    values: dict[str, Any]
    parking: bool
    sent: int = 0
    work: Work | None = None
    waits_for: int | None = None
    committed: set[int] = field(default_factory=set)
    answer: Any = None
    """What the work is sent when it goes on."""

    def add(self, *messages: Message) -> tuple[Message, ...]:
        self.log.extend(messages)
        return messages


class Host:
    """What fills a slot: keeps replicas as the real one does, and works piece by piece."""

    def __init__(self, slot: Slot, term: int, handlers: Mapping[str, Handler]) -> None:
        self.slot = slot
        self._term = term
        self._handlers = handlers
        self.seen = SeenEnvelopes()
        self.runs: dict[str, Served] = {}
        self.inbox: deque[Envelope] = deque()
        self.outbox: deque[Envelope] = deque()

    def take(self) -> None:
        """Take the next envelope of the inbox."""
        envelope = self.inbox.popleft()
        if envelope.term != self._term or not self.seen.is_new(envelope):
            return
        run = self.runs.get(envelope.run_id)
        match envelope.body:
            case Deliver() as deliver:
                self._deliver(envelope, deliver)
            case Committed(change):
                if run is not None and run.hop_number == envelope.hop_number:
                    run.committed.add(change)
            case Park() if run is not None:
                run.parking = True
            case GoOn() if run is not None:
                run.parking = False
            case Cut() if run is not None:
                run.work = None
            case Forget():
                self.runs.pop(envelope.run_id, None)
                self.seen.forget(envelope.run_id)
            case _:
                pass

    def _deliver(self, envelope: Envelope, deliver: Deliver) -> None:
        known = self.runs.get(envelope.run_id)
        if deliver.spec is not None:
            spec, log = deliver.spec, Conversation()
        elif known is not None and len(known.log) == deliver.log_from:
            spec, log = known.spec, known.log
        else:
            self.runs.pop(envelope.run_id, None)
            wanted = Envelope(envelope.run_id, self._term, envelope.hop_number, 1, SnapshotWanted())
            self.outbox.append(wanted)
            return
        log.extend(deliver.log)
        run = Served(spec, log, envelope.hop_number, dict(deliver.values), deliver.parking)
        run.work = self._handlers[self.slot.executor](run, deliver.signal)
        self.runs[envelope.run_id] = run

    def ready(self) -> list[str]:
        """The runs that a piece of work can be done for."""
        return [
            run_id
            for run_id, run in self.runs.items()
            if run.work is not None and (run.waits_for is None or run.waits_for in run.committed)
        ]

    def work(self, run_id: str) -> None:
        """Do one piece of work for a run."""
        run = self.runs[run_id]
        assert run.work is not None
        run.waits_for = None
        try:
            piece = run.work.send(run.answer)
        except StopIteration as end:
            run.work = None
            delta, outcome = end.value
            self._post(run, Answered(delta, outcome))
            return
        run.answer = None
        if isinstance(piece, StateDelta):
            run.answer = self._post(run, Changed(piece))
        elif isinstance(piece, WaitFor):
            run.waits_for = piece.change
        elif piece == TOOLS:
            # It may overtake what was posted before, so here it does.
            self.outbox.appendleft(self._envelope(run, ToolsStarted()))

    def _post(self, run: Served, body: Any) -> int:
        run.sent += 1
        self.outbox.append(self._envelope(run, body))
        return run.sent

    def _envelope(self, run: Served, body: Any) -> Envelope:
        return Envelope(run.spec.run_id, self._term, run.hop_number, run.sent, body)


class World:
    """A coordinator with its disk and its hosts."""

    def __init__(
        self,
        handlers: Mapping[str, Handler] | None = None,
        *,
        agent_turns: int = 1,
        command: str = "command",
        at_once: AnswerAtOnce | None = None,
    ) -> None:
        self.at_once = at_once
        self.handlers = dict(handlers or {})
        self.clock = ManualClock()
        self.disk: list[Entry] = []
        self.unwritten: deque[Effects] = deque()
        self.hosts: dict[Slot, Host] = {}
        self.sent: list[Post] = []
        """All posts that left, in their order."""
        self.began: Callable[[], None] = lambda: None
        """Called with each further incarnation, before it takes up its runs."""
        self.committed: Callable[[Effects], None] = lambda _: None
        """Called with each step that is on disk."""
        self._agent_turns = agent_turns
        self._command = command
        self.coordinator = self._begin(1)

    def _begin(self, term: int) -> Coordinator:
        return Coordinator(
            term=term,
            command=self._command,
            needs=executor_needs(),
            agent_turns=self._agent_turns,
            clock=self.clock,
            at_once=self.at_once,
        )

    # ---- what a test does -------------------------------------------------------------

    def perform(self, effects: Effects) -> Effects:
        if effects.entries or effects.posts:
            self.unwritten.append(effects)
        return effects

    def submit(self, spec: RunSpec, log: Sequence[Message] = ()) -> Effects:
        return self.perform(self.coordinator.submit(spec, log))

    def commit(self) -> None:
        """Put the oldest step on the disk, then let its posts leave."""
        effects = self.unwritten.popleft()
        self.disk.extend(effects.entries)
        self.committed(effects)
        for post in effects.posts:
            if not self.coordinator.is_current(post.envelope):
                continue
            self.sent.append(post)
            self.host(post.slot).inbox.append(post.envelope)

    def host(self, slot: Slot) -> Host:
        if slot not in self.hosts:
            self.hosts[slot] = Host(slot, self.coordinator.term, self.handlers)
        return self.hosts[slot]

    def hear(self, slot: Slot) -> Effects:
        """Bring the coordinator the next envelope of a host."""
        return self.perform(self.coordinator.received(slot, self.hosts[slot].outbox.popleft()))

    def lose(self, slot: Slot) -> Effects:
        """Kill the process in a slot, with what is in its inbox and its outbox."""
        self.hosts.pop(slot, None)
        return self.perform(self.coordinator.host_lost(slot))

    def crash(self, *, command: str | None = None) -> None:
        """Kill the coordinator with its hosts; the next incarnation takes up its runs.

        Args:
            command: Whose it is; the same one's if None.
        """
        self.hosts.clear()
        self.unwritten.clear()
        self._command = command or self._command
        self.coordinator = self._begin(self.coordinator.term + 1)
        self.began()
        for stored in map(self.stored, self.run_ids()):
            # A tree goes on as one, whoever had which of its runs.
            if self._command in (stored.command, self.stored(stored.spec.root).command):
                self.perform(self.coordinator.adopt(stored))
        for root_id in self.run_ids():
            self.perform(self.coordinator.taken_up(root_id))

    def settle(self, *, hosts: bool = True) -> None:
        """Go on until nothing is left to do; `hosts=False` leaves them as they are."""
        for _ in range(100_000):
            if self.unwritten:
                self.commit()
                continue
            busy = [host for host in self.hosts.values() if hosts and self.move(host)]
            if not busy and not self.unwritten:
                return
        raise AssertionError("this never comes to an end")

    def move(self, host: Host) -> bool:
        if host.inbox:
            host.take()
        elif host.outbox:
            self.hear(host.slot)
        elif ready := host.ready():
            host.work(ready[0])
        else:
            return False
        return True

    # ---- what a test looks at -----------------------------------------------------------

    def run_ids(self) -> list[str]:
        return [e.spec.run_id for e in self.disk if isinstance(e, RunAdded) and not e.again]

    def changes(self, run_id: str = "run") -> list[RunChanged]:
        return [e for e in self.disk if isinstance(e, RunChanged) and e.run_id == run_id]

    def ends(self, run_id: str = "run") -> list[HarnessResult]:
        return [change.end for change in self.changes(run_id) if change.end is not None]

    def events(self, run_id: str = "run") -> list[str]:
        return [event.type for change in self.changes(run_id) for event in change.delta.events]

    def hops(self, run_id: str = "run") -> list[str]:
        return [change.hop.to for change in self.changes(run_id) if change.hop is not None]

    def log(self, run_id: str = "run") -> Conversation:
        return self.stored(run_id).state.log

    def posts(self, kind: type, slot: Slot | None = None) -> list[Envelope]:
        return [
            post.envelope
            for post in self.sent
            if isinstance(post.envelope.body, kind) and slot in (None, post.slot)
        ]

    def stored(self, run_id: str = "run", entries: Sequence[Entry] | None = None) -> StoredRun:
        """A run as a journal would give it back: its entries, played again."""
        entries = self.disk if entries is None else entries
        added = [e for e in entries if isinstance(e, RunAdded) and e.spec.run_id == run_id]
        spec = added[0].spec
        siblings = {
            e.spec.run_id
            for e in entries
            if isinstance(e, RunAdded) and e.spec.conversation_id == spec.conversation_id
        }
        state, log, hop, losses, end = SharedState(), Conversation(), None, 0, None
        for entry in entries:
            if isinstance(entry, SnapshotTaken) and entry.run_id == run_id:
                assert (entry.version, entry.values) == (state.version, state.values)
            if not isinstance(entry, RunChanged):
                continue
            if entry.run_id in siblings:
                log.extend(entry.delta.messages)
            if entry.run_id == run_id:
                state.apply(entry.delta)
                assert state.version == entry.version, "versions have a gap"
                hop, losses, end = entry.hop or hop, entry.losses, entry.end
        state.log = log
        return StoredRun(
            spec=spec,
            command=added[-1].command,
            added_at=added[0].at,
            state=state,
            hop=hop,
            losses=losses,
            end=end,
        )


def hop_of(stored: StoredRun) -> Hop:
    assert stored.hop is not None
    return stored.hop
