"""What runs inside a coordinator's actor: the state machine with its journal and its hosts."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from harness_actors.actors.coordinator.admission import Admission
from harness_actors.actors.coordinator.alarm import Alarm
from harness_actors.actors.coordinator.cell_programs import Programs
from harness_actors.actors.coordinator.earlier_costs import EarlierCosts
from harness_actors.actors.coordinator.hosted_model import HostedModel
from harness_actors.actors.coordinator.journal_reads import Readings
from harness_actors.actors.coordinator.journal_writer import JournalWriter
from harness_actors.actors.coordinator.news import Bulletin
from harness_actors.actors.coordinator.roster import Seats
from harness_actors.actors.coordinator.seat import HostStarter
from harness_actors.actors.host.shipped_executors import executor_needs
from harness_actors.actors.kinds import KINDS, STREAMS, Kinds
from harness_actors.actors.mailbox import Parcel
from harness_actors.actors.processes import MachineProcesses, Processes
from harness_actors.actors.runtime import News, StopMode
from harness_actors.coordination.active import Effects, Post
from harness_actors.coordination.at_once import AnswerAtOnce
from harness_actors.coordination.coordinator import Coordinator
from harness_actors.coordination.losses import left_by
from harness_actors.coordination.protocol import Committed, Deliver, Envelope, Slot, Summarize
from harness_actors.errors import ActorLostError, CellError, HarnessError, StoreError
from harness_actors.events import RunEvent
from harness_actors.executors.at_once import answer_at_once
from harness_actors.messages import Message
from harness_actors.ports import Clock, Journal
from harness_actors.records import ProcessMark, RunHeading, RunSpec
from harness_actors.state import BUDGET
from harness_actors.stores.standing import WHAT_NOW

T = TypeVar("T")

logger = logging.getLogger(__name__)

EARLIER_TERMS_DEADLINE_S = 20.0


class CoordinatorHost:
    """Serves the runs of the commands that work on one journal, one after the other.

    Args:
        journal: Where the runs survive; opened, but of no term yet.
        store: Its path, for messages to people.
        command: Who owns the runs that are submitted here or taken up. After a restart
            they go on by themselves; those of other owners wait to be taken up.
        starter: Places the other actors.
        agent_turns: Number of agent turn hosts.
        clock: Dates what is committed.
        process: The process that this is, if it may be killed as a leftover of an
            earlier term; None in a process that belongs to the user.
        processes: Those of this machine.
        kinds: What there is to know of the other actors.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        store: str,
        command: str,
        starter: HostStarter,
        agent_turns: int,
        clock: Clock,
        process: ProcessMark | None = None,
        processes: Processes | None = None,
        kinds: Kinds = KINDS,
        at_once: AnswerAtOnce | None = answer_at_once,
    ) -> None:
        processes = processes or MachineProcesses()
        self._journal = journal
        self._store = store
        # First the term, so that nothing of an earlier one can be added; then whoever
        # served this journal before must be gone before anything goes on.
        self.term = journal.begin_term()
        self._await_earlier_terms(processes)
        journal.forget_processes(self.term)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._coordinator = Coordinator(
            term=self.term,
            command=command,
            needs=executor_needs(),
            agent_turns=agent_turns,
            clock=clock,
            at_once=at_once,
        )
        self._alarm = Alarm(clock, self._time_passed)
        self._command = command
        self._process = process
        self.processes: list[ProcessMark] = []
        """Those of this term, as the journal knows them."""
        self._writer = JournalWriter(journal, self.term, self._thread, self.give_up)
        self._bulletin = Bulletin(journal.position())
        self._readings = Readings(journal, self._bulletin, self._thread)
        self._end_tools = processes.end_tools
        self._seats = Seats(
            starter,
            started=self._mark_on_disk,
            end_left=self._end_left,
            lost=self._host_lost,
            missing=self._host_missing,
            failed=self.give_up,
            processes=processes,
            kinds=kinds,
        )
        self._slots = [slot for kind in kinds.values() for slot in kind.slots(agent_turns)]
        self._programs = Programs(journal, self._is_code_in_use)
        self._model = HostedModel(self._seats, self._programs)
        self._broken: HarnessError | None = None
        self._closed = False
        self._earlier = EarlierCosts(self._coordinator, journal, self._read, self._writer.settle)
        self._admission = Admission(
            self._coordinator,
            journal=journal,
            store=store,
            command=command,
            read=self._read,
            settle=self._writer.settle,
            perform=self._perform,
            prepare=self._model.serve,
            has_keys=self._programs.has_keys,
            end_processes=self._end_tools,
        )

    def _await_earlier_terms(self, processes: Processes) -> None:
        marks = self._journal.load_processes()
        within_s = EARLIER_TERMS_DEADLINE_S
        left = processes.end(marks, journal=Path(self._store), timeout_s=within_s)
        if left:
            pids = ", ".join(str(mark.pid) for mark in left)
            problem = f"processes of an earlier command do not end: {pids}; kill them by hand"
            raise StoreError(self._store, problem)

    async def start(self) -> None:
        """Start the hosts, and go on with the runs that this command had begun."""
        # Before it starts anybody: stopped here, and gone on after the next one has
        # begun, it would be one that nobody knows of, with actors of its own.
        if self._process is not None and not await self._mark_on_disk(self._process):
            return
        for slot in self._slots:
            self._seats.fill(slot)
        unfinished = await self._read(self._journal.load_unfinished, self._command)
        specs = [stored.spec for stored in unfinished]
        await self._model.serve_or_wait(specs, self._admission.take_up_held)
        if any(BUDGET.name in stored.state.values for stored in unfinished):
            # How much it is, each of them says itself.
            spent_usd = await self._earlier.ended_usd()
            self._perform(self._coordinator.allow(None, spent_usd=spent_usd))
        await self._admission.end_left_of(unfinished)
        ready = []
        for stored in unfinished:
            if self._programs.has_keys(stored.spec.keys):
                ready.append(stored)
            else:
                # Their keys come when the driver attaches again.
                self._admission.hold(stored.spec)
        self._admission.adopt(ready, asked=False)

    # ---- from the driver ------------------------------------------------------------

    async def attach(self, secrets: Mapping[str, str], budget_usd: float | None = None) -> None:
        """A driver is there, with the keys that it was given, and its budget if it has one."""
        self._programs.add_secrets(secrets)
        if budget_usd is not None:
            await self.allow(budget_usd)
        await self._admission.take_up_held()

    async def submit(
        self, specs: Sequence[RunSpec], code: Mapping[str, bytes], secrets: Mapping[str, str]
    ) -> None:
        """See `Runtime.submit`."""
        self._check()
        self._programs.add_secrets(secrets)
        self._perform(Effects(entries=[*self._programs.add(code)]))
        for slot in self._slots if specs else ():
            # Ahead of the first run: loading a program takes as long as starting a host.
            self._programs.teach(self._seats, slot, specs[0])
        await self._admission.submit(specs)
        await self._on_disk()

    async def resume(self, run_ids: Sequence[str], secrets: Mapping[str, str]) -> None:
        """See `Runtime.resume`."""
        self._check()
        self._programs.add_secrets(secrets)
        await self._admission.take_up(run_ids, asked=True)
        await self._on_disk()

    async def _on_disk(self) -> None:
        """Return when what was done is on disk: whoever called may die now, and so may we."""
        await self._writer.settle()
        self._check()

    async def answer(self, run_id: str, answers: Mapping[str, str]) -> None:
        """See `Runtime.answer`."""
        self._check()
        await self._admission.answer(run_id, answers)
        await self._on_disk()

    async def compact(self, run_id: str, keep: str) -> bool:
        """See `Runtime.compact`."""
        self._check()
        effects, will_be = self._coordinator.compact(run_id, keep)
        self._perform(effects)
        return will_be

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> tuple[str, ...]:
        """See `Runtime.stop`."""
        self._check()
        unserved = await self._admission.stop(run_ids, mode)
        await self._on_disk()
        return unserved

    def forget_driver(self) -> None:
        """Another driver comes. What the one before had stored may have been removed since."""
        self._programs.forget()

    async def allow(self, budget_usd: float | None) -> None:
        """See `Runtime.allow`."""
        self._check()
        if budget_usd is None and self._coordinator.budget.limit_usd is None:
            return
        spent_usd = await self._earlier.ended_usd()
        self._perform(self._coordinator.allow(budget_usd, spent_usd=spent_usd))
        await self._on_disk()

    async def subscribe(self, run_ids: Sequence[str]) -> str:
        """See `Runtime.subscribe`; the name of the stream actor, empty where there is none."""
        self._check()
        stream = await self._seats.address(Slot(STREAMS))
        if stream:
            self._perform(self._coordinator.subscribe(run_ids, stream))
        return stream

    async def wait_for_news(self, cursor: int, messages: bool, at_once: bool = False) -> News:
        """See `Runtime.wait_for_news`."""
        if cursor > self._bulletin.position:
            # Positions only grow, so a driver that knows more was told it by another journal.
            problem = f"it lacks what was committed to it (position {cursor}): it was replaced"
            raise StoreError(self._store, f"{problem}; {WHAT_NOW}")
        while True:
            self._check()
            await self._bulletin.news(cursor, messages=messages, at_once=at_once)
            if self._broken is None and self._bulletin.position > cursor:
                return await self._readings.after(cursor, messages=messages)

    async def position(self) -> int:
        return self._bulletin.position

    async def headings(self, beginning: str = "") -> list[RunHeading]:
        return await self._read(self._journal.headings, beginning)

    async def events(self, run_id: str) -> tuple[RunEvent, ...]:
        self._check_open()
        return await self._readings.events(run_id)

    async def conversation(self, conversation_id: str) -> list[Message]:
        return await self._read(self._journal.load_conversation, conversation_id)

    async def close(self) -> None:
        """Kill the hosts and close the journal; what is committed stays."""
        if self._closed:
            return
        self._closed = True
        if self._broken is None:
            self._broken = ActorLostError("the coordinator", "its command has ended")
        self._model.close()
        self._alarm.set(None)
        await self._seats.leave()
        self._seats.close()
        self._bulletin.wake()
        await self._writer.settle()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._journal.close)
        self._thread.shutdown(wait=False)

    # ---- from the hosts -------------------------------------------------------------

    async def receive(
        self, slot: Slot, incarnation: int, batch: Sequence[Parcel]
    ) -> tuple[Envelope, ...]:
        """Take what the host in a slot posted; returns when it is on disk, and says so."""
        if self._broken is not None or incarnation != self._seats.incarnation(slot):
            return ()
        self._seats.heard(slot)
        envelopes = [parcel for parcel in batch if isinstance(parcel, Envelope)]
        for envelope in envelopes:
            try:
                self._perform(self._coordinator.received(slot, envelope))
            except Exception as error:
                # A fault of ours, or of a user's values: better stop than hang.
                logger.exception("%r of %s was not taken", envelope, slot)
                self.give_up(CellError("the coordinator", f"{type(error).__name__}: {error}"))
        await self._writer.settle()
        return () if self.is_broken else self._coordinator.receipts(envelopes)

    # ---- what follows ---------------------------------------------------------------

    def _perform(self, effects: Effects) -> None:
        def committed(positions: Sequence[int]) -> None:
            self._bulletin.publish(effects.entries, positions)
            for post in effects.posts:
                self._send(post)

        if self._broken is not None:
            return
        if effects.entries or effects.posts:
            self._writer.write(effects.entries, committed)
        self._alarm.set(self._coordinator.next_overdue_at)

    def _time_passed(self) -> None:
        self._perform(self._coordinator.overdue())

    def _send(self, post: Post) -> None:
        if not self._coordinator.is_current(post.envelope):
            return
        body = post.envelope.body
        if isinstance(body, Committed) and self._seats.is_idle(post.slot):
            # Not before what was posted to this host already: it may be that the run is closing.
            self._coordinator.runs[post.envelope.run_id].receipt = body.change
            return
        if isinstance(body, Deliver | Summarize) and body.spec is not None:
            self._programs.teach(self._seats, post.slot, body.spec)
        self._seats.post(post.slot, post.envelope)

    def _is_code_in_use(self, code: str) -> bool:
        return any(run.spec.code == code for run in self._coordinator.runs.values())

    async def _mark_on_disk(self, mark: ProcessMark) -> bool:
        self.processes.append(mark)
        self._perform(Effects(entries=[mark]))
        await self._writer.settle()
        return not self.is_broken

    async def _end_left(self, slot: Slot) -> None:
        # The supervisor, which ends what tools have started, may have been killed as well.
        ended: set[str] = set()
        # Again where the last words of the actor, by which a run leaves it, were taken meanwhile.
        while run_ids := set(left_by(self._coordinator.runs, slot)) - ended:
            await self._end_tools(sorted(run_ids))
            ended |= run_ids

    def _host_lost(self, slot: Slot, cause: str) -> None:
        self._perform(self._coordinator.host_lost(slot, cause))

    def _host_missing(self, slot: Slot, cause: str) -> None:
        self._perform(self._coordinator.host_missing(slot, cause))

    def give_up(self, error: HarnessError) -> None:
        """Stop serving, as where a commit fails; whoever asks is told why."""
        if self._broken is None:
            logger.error("the cell stops: %s", error)
            self._broken = error
            self._alarm.set(None)
            self._seats.close()
            self._bulletin.wake()

    @property
    def in_progress(self) -> tuple[str, ...]:
        """The runs that are being served."""
        return () if self.is_broken else tuple(self._coordinator.runs)

    @property
    def held(self) -> int:
        """How many runs wait for their keys."""
        return self._admission.held

    @property
    def committed(self) -> int:
        """The newest position of the journal that is on disk."""
        return self._bulletin.position

    @property
    def failure(self) -> HarnessError | None:
        """Why nothing can go on here; None where it does."""
        return self._broken

    @property
    def is_broken(self) -> bool:
        """Nothing can go on here; `wait_for_news` says why."""
        return self._broken is not None

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken

    def _check_open(self) -> None:
        """After `close` there is no journal to read; after a failure there still is."""
        if self._closed:
            self._check()

    async def _read(self, call: Callable[..., T], *arguments: object) -> T:
        self._check_open()
        return await self._readings.read(call, *arguments)
