"""What runs inside a coordinator's actor: the state machine with its journal and its hosts."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from harness_actors.actors.bulletin import Bulletin, events_of, results_of
from harness_actors.actors.embedded import (
    EMBEDDED_MODEL_URL,
    EmbeddedModelPeer,
    EmbeddedModelSeat,
)
from harness_actors.actors.mailbox import Parcel
from harness_actors.actors.processes import end_processes
from harness_actors.actors.runtime import Happened, StopMode
from harness_actors.actors.seats import HostStarter, Seats
from harness_actors.actors.writer import JournalWriter
from harness_actors.coordination.active import ExecutorNeeds, Post, Step
from harness_actors.coordination.coordinator import Coordinator
from harness_actors.coordination.protocol import Deliver, Envelope, Slot
from harness_actors.errors import (
    ActorLostError,
    CellError,
    HarnessError,
    RunNotFoundError,
    StoreError,
)
from harness_actors.events import DERIVED_EVENTS, RunCompleted, RunEvent
from harness_actors.messages import Message
from harness_actors.ports import Clock, Journal
from harness_actors.records import CodeStored, ProcessMark, RunHeading, RunSpec
from harness_actors.results import HarnessResult
from harness_actors.state import AGENT_TURN

T = TypeVar("T")

logger = logging.getLogger(__name__)

EARLIER_TERMS_DEADLINE_S = 20.0
EVENTS_PER_PAGE = 5_000


class CoordinatorHost:
    """Serves the runs of one command on one journal.

    Args:
        journal: Where the runs survive; opened, but of no term yet.
        store: Its path, for messages to people.
        command: The command that submits runs. After a restart its unfinished runs go
            on by themselves; those of other commands wait to be taken up.
        starter: Places executor hosts.
        needs: What each of our executors is sent, by name.
        agent_turns: Number of agent turn hosts.
        clock: Dates what is committed.
        place_model: Begins to start a host of the embedded model, given its port; None
            where agents that need it start one in their own process.
        process: The process that this is, if it may be killed as a leftover of an
            earlier term; None in a process that belongs to the user.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        store: str,
        command: str,
        starter: HostStarter,
        needs: Mapping[str, ExecutorNeeds],
        agent_turns: int,
        clock: Clock,
        place_model: Callable[[int], Awaitable[EmbeddedModelPeer]] | None = None,
        process: ProcessMark | None = None,
    ) -> None:
        self._journal = journal
        self._store = store
        # First the term, so that nothing of an earlier one can be added; then whoever
        # served this journal before must be gone before anything goes on.
        self.term = journal.begin_term()
        self._await_earlier_terms()
        journal.forget_processes(self.term)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._coordinator = Coordinator(
            term=self.term,
            command=command,
            needs=needs,
            agent_turns=agent_turns,
            clock=clock,
        )
        self._command = command
        self._process = process
        self._writer = JournalWriter(journal, self.term, self._thread, self._break)
        self._bulletin = Bulletin(journal.position())
        self._seats = Seats(
            starter, started=self._mark_on_disk, lost=self._host_lost, failed=self._break
        )
        self._model = EmbeddedModelSeat(place_model, self._mark) if place_model else None
        self._slots = [
            *(Slot(AGENT_TURN, index=index) for index in range(agent_turns)),
            *(Slot(name) for name in needs if name != AGENT_TURN),
        ]
        self._blobs: dict[str, bytes] = {}
        self._secrets: dict[str, str] = {}
        self._broken: HarnessError | None = None
        self._closed = False
        self._held: list[str] = []
        # Between reading that a run is idle and adding it, nobody else may add it.
        self._adding = asyncio.Lock()

    def _await_earlier_terms(self) -> None:
        left = end_processes(self._journal.load_processes(), timeout_s=EARLIER_TERMS_DEADLINE_S)
        if left:
            pids = ", ".join(str(mark.pid) for mark in left)
            problem = f"processes of an earlier command do not end: {pids}; kill them by hand"
            raise StoreError(self._store, problem)

    async def start(self) -> None:
        """Start the hosts, and go on with the runs that this command had begun."""
        if self._process is not None:
            self._mark(self._process)
        for slot in self._slots:
            self._seats.fill(slot)
        unfinished = self._journal.load_unfinished(self._command)
        await self._start_model([stored.spec for stored in unfinished])
        for stored in unfinished:
            if all(self._key(name) is not None for name in stored.spec.keys):
                self._perform(self._coordinator.adopt(stored))
            else:
                # Their keys come when the driver attaches again.
                self._held.append(stored.spec.run_id)

    # ---- from the driver ------------------------------------------------------------

    async def attach(self, secrets: Mapping[str, str]) -> None:
        """A driver is there, with the keys that it was given."""
        self._secrets.update(secrets)
        held, self._held = self._held, []
        await self._take_up(held)

    async def submit(
        self, specs: Sequence[RunSpec], code: Mapping[str, bytes], secrets: Mapping[str, str]
    ) -> None:
        """See `Runtime.submit`."""
        self._check()
        self._secrets.update(secrets)
        self._store_code(code)
        await self._start_model(specs)
        async with self._adding:
            idle = await self._idle([spec.run_id for spec in specs])
            for spec in specs:
                if spec.run_id not in idle:
                    continue
                if await self._read(self._journal.load_run, spec.run_id) is not None:
                    continue
                log: list[Message] = []
                if spec.conversation_id != spec.run_id:
                    log = await self._read(self._journal.load_conversation, spec.conversation_id)
                self._perform(self._coordinator.submit(spec, log))
        await self._on_disk()

    async def resume(self, run_ids: Sequence[str], secrets: Mapping[str, str]) -> None:
        """See `Runtime.resume`."""
        self._check()
        self._secrets.update(secrets)
        await self._take_up(run_ids)
        await self._on_disk()

    async def _take_up(self, run_ids: Sequence[str]) -> None:
        async with self._adding:
            for run_id in await self._idle(run_ids):
                stored = await self._read(self._journal.load_run, run_id)
                if stored is None:
                    raise RunNotFoundError(run_id, self._store)
                await self._start_model([stored.spec])
                self._perform(self._coordinator.adopt(stored))

    async def _idle(self, run_ids: Sequence[str]) -> list[str]:
        """Those that are not being served, when all that is known of them is on disk."""
        idle = [run_id for run_id in run_ids if run_id not in self._coordinator.runs]
        await self._writer.settle()
        return idle

    async def _on_disk(self) -> None:
        """Return when what was done is on disk: whoever called may die now, and so may we."""
        await self._writer.settle()
        self._check()

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> None:
        """See `Runtime.stop`."""
        self._check()
        for run_id in run_ids:
            self._perform(self._coordinator.stop(run_id, mode))
        await self._on_disk()

    async def happened(self, cursor: int, messages: bool) -> Happened:
        """See `Runtime.happened`."""
        while True:
            self._check()
            await self._bulletin.news(cursor, at_once=messages)
            if self._broken is None and self._bulletin.position > cursor:
                return await self._behind(cursor, messages)

    async def _behind(self, cursor: int, messages: bool) -> Happened:
        # Of now: while the journal is read, more may come to be on disk.
        newest = self._bulletin.position
        notices = self._bulletin.behind(cursor)
        if notices is not None:
            events = events_of(notices, messages=messages)
            return Happened(cursor=newest, events=events, results=results_of(notices))
        # Behind what is held in memory, as after a restart: ask the journal.
        events = tuple(await self._read(self._journal.load_events, cursor))
        results: dict[str, HarnessResult] = {}
        for event in events:
            if isinstance(event.event, RunCompleted):
                stored = await self._read(self._journal.load_run, event.run_id)
                if stored is not None and stored.end is not None:
                    results[event.run_id] = stored.end
        newest = events[-1].position if events else newest
        if not messages:
            events = tuple(event for event in events if not isinstance(event.event, DERIVED_EVENTS))
        return Happened(cursor=newest, events=events, results=results)

    async def position(self) -> int:
        return self._bulletin.position

    async def headings(self) -> list[RunHeading]:
        return await self._read(self._journal.headings)

    async def events(self, run_id: str) -> tuple[RunEvent, ...]:
        """All events of a run, oldest first."""
        found: list[RunEvent] = []
        while True:
            after = found[-1].position if found else 0
            page = await self._read(self._load_page, run_id, after)
            if not page:
                return tuple(found)
            found.extend(page)

    def _load_page(self, run_id: str, after: int) -> list[RunEvent]:
        return self._journal.load_events(after, run_id=run_id, limit=EVENTS_PER_PAGE)

    async def conversation(self, conversation_id: str) -> list[Message]:
        return await self._read(self._journal.load_conversation, conversation_id)

    async def close(self) -> None:
        """Kill the hosts and close the journal; what is committed stays."""
        if self._closed:
            return
        self._closed = True
        if self._broken is None:
            self._broken = ActorLostError("the coordinator", "its command has ended")
        self._seats.close()
        if self._model is not None:
            self._model.close()
        self._bulletin.wake()
        await self._writer.settle()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._journal.close)
        self._thread.shutdown(wait=False)

    async def watch(self) -> None:
        """Never returns: the call fails when the process of this actor dies."""
        await asyncio.Event().wait()

    # ---- from the hosts -------------------------------------------------------------

    async def receive(self, slot: Slot, incarnation: int, batch: Sequence[Parcel]) -> None:
        """Take what the host in a slot posted."""
        if self._broken is not None or incarnation != self._seats.incarnation(slot):
            return
        for parcel in batch:
            if isinstance(parcel, Envelope):
                try:
                    self._perform(self._coordinator.received(slot, parcel))
                except Exception as error:
                    # A fault of ours, or of a user's values: better stop than hang.
                    logger.exception("%r of %s was not taken", parcel, slot)
                    self._break(CellError("the coordinator", f"{type(error).__name__}: {error}"))

    # ---- what follows ---------------------------------------------------------------

    def _perform(self, step: Step) -> None:
        def committed(positions: Sequence[int]) -> None:
            self._bulletin.publish(step.entries, positions)
            for post in step.posts:
                self._send(post)

        if self._broken is None and (step.entries or step.posts):
            self._writer.write(step.entries, committed)

    def _send(self, post: Post) -> None:
        if not self._coordinator.is_current(post.envelope):
            return
        body = post.envelope.body
        if isinstance(body, Deliver) and body.spec is not None:
            self._teach(post.slot, body.spec)
        self._seats.post(post.slot, post.envelope)

    def _teach(self, slot: Slot, spec: RunSpec) -> None:
        """Send the run's code ahead of it, to a host that needs it and has it not."""
        if slot.executor != AGENT_TURN and not slot.code:
            return
        keys = {name: key for name in spec.keys if (key := self._key(name)) is not None}
        if self._seats.knows(slot, spec.code, keys):
            return
        if spec.code not in self._blobs:
            # Of a run taken up from the journal; rare, and once per code.
            blob = self._thread.submit(self._journal.load_code, spec.code).result()
            if blob is None:
                logger.error("the journal has no code %s", spec.code)
                return
            self._blobs[spec.code] = blob
        self._seats.teach(slot, spec.code, self._blobs[spec.code], keys)

    async def _start_model(self, specs: Sequence[RunSpec]) -> None:
        """Start the embedded model of the cell, if a run is the first to need it."""
        if any(EMBEDDED_MODEL_URL in spec.keys for spec in specs) and self._model is not None:
            self._secrets[EMBEDDED_MODEL_URL] = await self._model.url()

    def _key(self, name: str) -> str | None:
        return self._secrets.get(name) or os.environ.get(name)

    def _store_code(self, code: Mapping[str, bytes]) -> None:
        fresh = {name: blob for name, blob in code.items() if name not in self._blobs}
        self._blobs.update(fresh)
        entries = [CodeStored(code=name, blob=blob) for name, blob in fresh.items()]
        self._perform(Step(entries=list(entries)))

    def _mark(self, mark: ProcessMark) -> None:
        self._perform(Step(entries=[mark]))

    async def _mark_on_disk(self, mark: ProcessMark) -> None:
        self._mark(mark)
        await self._writer.settle()

    def _host_lost(self, slot: Slot) -> None:
        self._perform(self._coordinator.host_lost(slot))

    def _break(self, error: HarnessError) -> None:
        """Nothing can go on: the cell stops, and says so to whoever asks."""
        if self._broken is None:
            logger.error("the cell stops: %s", error)
            self._broken = error
            self._seats.close()
            if self._model is not None:
                self._model.close()
            self._bulletin.wake()

    def _check(self) -> None:
        if self._broken is not None:
            raise self._broken

    async def _read(self, call: Callable[..., T], *arguments: object) -> T:
        if self._closed:
            self._check()
        # Reads share the writer's thread: they see what was committed before them.
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)
