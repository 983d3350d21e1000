"""What drivers ask of a cell: runs to begin, to take up again, and to stop."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from harness_actors.actors.coordinator.idle_runs import IdleRun, look_at, look_up
from harness_actors.actors.runtime import StopMode
from harness_actors.coordination.active import Effects
from harness_actors.coordination.asked_below import answers_above
from harness_actors.coordination.coordinator import Coordinator
from harness_actors.coordination.edits import check_edits, edited_calls
from harness_actors.coordination.taking_up import stands_between_turns
from harness_actors.errors import ConversationBusyError, RunNotFoundError
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan
from harness_actors.ports import Journal
from harness_actors.records import CHILD_MARK, RunSpec, StoredRun
from harness_actors.state import CHILDREN, TURN_COUNT
from harness_actors.stores.conversations import RequestHead, head_of

READ_TOGETHER = 50
"""Runs of one call that are looked up together: a reading waits for the commit before it, and
between two of them others have their turn."""


@dataclass(eq=False)
class Admission:
    """Finds out where runs stand, in service or in the journal, and does what is asked.

    Args:
        coordinator: Whose runs they are.
        journal: Where those are that nobody serves.
        store: Its path, for messages to people.
        command: Who owns the runs that are submitted here.
        read: Makes one call of the journal.
        settle: Returns when all that was done before it was called is on disk.
        perform: Does what the coordinator says.
        prepare: Awaited with runs before they begin to be served.
        has_keys: Whether all of these keys are at hand.
        end_processes: Ends what the tools of these runs have left on this machine.
    """

    coordinator: Coordinator
    _: KW_ONLY
    journal: Journal
    store: str
    command: str
    read: Callable[..., Awaitable[Any]]
    settle: Callable[[], Awaitable[None]]
    perform: Callable[[Effects], None]
    prepare: Callable[[Sequence[RunSpec]], Awaitable[None]]
    has_keys: Callable[[Sequence[str]], bool]
    end_processes: Callable[[Sequence[str]], Awaitable[None]]
    _held: dict[str, str] = field(default_factory=dict, init=False)
    """Conversations by run: one that waits for its keys goes on with it, and nobody else."""
    # Between reading that a run is idle and adding it, nobody else may add it.
    _adding: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def submit(self, specs: Sequence[RunSpec]) -> None:
        """Begin runs; those that are known already are left as they are.

        Raises:
            ConversationBusyError: Another run of a conversation is served, or waits for keys or
                for its user.
        """
        await self.prepare(specs)
        async with self._adding:
            new = [spec for spec in specs if spec.run_id not in self.coordinator.runs]
            await self.settle()
            for at in range(0, len(new), READ_TOGETHER):
                await self._submit(new[at : at + READ_TOGETHER])

    async def _submit(self, specs: Sequence[RunSpec]) -> None:
        run_ids = [spec.run_id for spec in specs]
        known: set[str] = await self.read(self.journal.known, run_ids)
        for spec in specs:
            if spec.run_id in known:
                continue
            self._check_free(spec)
            log: list[Message] = []
            plan: CompactionPlan | None = None
            if spec.conversation_id != spec.run_id:
                # Whoever left it just now is on disk with its last words.
                await self.settle()
                if waiting := await self._waits_beside(spec):
                    raise ConversationBusyError(spec.conversation_id, waiting)
                log, plan = await self.read(_as_shown, self.journal, spec.conversation_id)
            self.perform(self.coordinator.submit(spec, log, plan))

    @property
    def held(self) -> int:
        """How many runs wait for their keys."""
        return len(self._held)

    def hold(self, spec: RunSpec) -> None:
        """A run of this command waits for its keys."""
        self._held[spec.run_id] = spec.conversation_id

    async def take_up_held(self) -> None:
        """Go on with the runs that waited for their keys, as far as these are there."""
        await self.take_up(list(self._held), asked=False)

    async def take_up(self, run_ids: Sequence[str], *, asked: bool) -> None:
        """Go on with runs.

        Args:
            run_ids: The runs; one that is served, and was to park, does not after all.
            asked: Somebody asks for just these.

        Raises:
            RunNotFoundError: The journal does not know one of them.
            ConversationBusyError: Another run of a conversation is served, or waits for keys or
                for its user.
            ConversationMovedOnError: Another run has continued the conversation of one.
            BadInputError: The workspace of one is gone.
        """
        async with self._adding:
            for at in range(0, len(run_ids), READ_TOGETHER):
                await self._take_up(run_ids[at : at + READ_TOGETHER], asked=asked)

    async def _take_up(self, run_ids: Sequence[str], *, asked: bool) -> None:
        run_ids = await self._at_the_top(run_ids)
        # Of these somebody may leave while the journal is read, whose last words are missing then.
        busy = set(self.coordinator.conversations)
        idle = [run_id for run_id in run_ids if run_id not in self.coordinator.runs]
        found: dict[str, IdleRun] = {}
        if idle:
            await self.settle()
            found = await self.read(look_up, self.journal, idle)
            await self.end_left_of(run.stored for run in found.values())
        for run_id in run_ids:
            if (served := self.coordinator.runs.get(run_id)) is not None:
                if asked:
                    # Some below it may have been put aside by now.
                    below = await self._below(served.spec, served.state.values)
                    self.perform(self.coordinator.resume(run_id))
                    self.adopt(below, asked=True)
                continue
            run = found.get(run_id)
            if run is not None and run.stored.spec.conversation_id in busy:
                run = None
            stored = await self._stored(run_id) if run is None else run.stored
            if stored.end is not None or not (asked or stored.command == self.command):
                continue  # it was stopped since somebody asked for it
            if not asked and not self.has_keys(stored.spec.keys):
                # Whoever attached is not the driver that has them.
                self.hold(stored.spec)
            else:
                self._check_free(stored.spec)
                if asked:
                    run = run or await self.read(look_at, self.journal, stored)
                    run.check()
                await self.prepare([stored.spec])
                below = await self._below(stored.spec, stored.state.values)
                await self.end_left_of(below)
                busy.add(stored.spec.conversation_id)
                self.adopt((stored, *below), asked=asked)

    async def _at_the_top(self, run_ids: Sequence[str]) -> list[str]:
        """The runs at the top of the trees of runs, each once: a tree goes on as one."""
        roots: dict[str, None] = {}
        for run_id in run_ids:
            served = self.coordinator.runs.get(run_id)
            root = run_id if served is None else served.spec.root
            if served is None and CHILD_MARK in run_id:
                stored: StoredRun | None = await self.read(self.journal.load_run, run_id)
                root = run_id if stored is None else stored.spec.root
            roots[root] = None
        return list(roots)

    async def _below(self, spec: RunSpec, values: Mapping[str, Any]) -> Sequence[StoredRun]:
        """The other runs of the tree of a run that are not over, each after its parent."""
        if spec.parent is None and not values.get(CHILDREN.name):
            return ()
        while True:
            departures = self.coordinator.departures
            await self.settle()
            tree: list[StoredRun] = await self.read(self.journal.load_tree, spec.root)
            if departures == self.coordinator.departures:
                # Else one of them may have ended while this was read.
                return [one for one in tree if one.spec.run_id != spec.run_id]

    def adopt(self, runs: Iterable[StoredRun], *, asked: bool) -> None:
        """Go on with runs of the journal, of a tree with each after its parent."""
        roots: dict[str, None] = {}
        for stored in runs:
            self._held.pop(stored.spec.run_id, None)
            self.perform(self.coordinator.adopt(stored, asked=asked))
            roots[stored.spec.root] = None
        for root_id in roots:
            self.perform(self.coordinator.taken_up(root_id))

    async def end_left_of(self, runs: Iterable[StoredRun]) -> None:
        """End what tools of runs that nobody serves have left, where repair is not to come."""
        if between := [run.spec.run_id for run in runs if stands_between_turns(run)]:
            await self.end_processes(between)

    async def answer(self, run_id: str, answers: Mapping[str, str]) -> None:
        """Take answers to a run that waits; nobody need serve it, and nobody takes it up for that.

        What a run below others has asked is answered at the one at the top of its tree. Where that
        is served, because others go on, so is the one that has asked, once it has its answers; with
        one above it that is about to leave service it waits.

        Raises:
            RunNotFoundError: The journal does not know it.
            AnswerError: It waits for no such answer, or one gives a call other arguments than its
                tool takes, as far as the journal knows.
        """
        async with self._adding:
            stored = await self._stored(run_id)
            if stored.spec.parent is not None:
                named, stored = stored.spec, await self._stored(stored.spec.root)
                answers = answers_above(named, answers, stored.state.values)
            edits = edited_calls(stored.state.values, answers)
            head: RequestHead | None = None
            if edits:
                head = await self.read(head_of, self.journal, stored.spec.code)
                # It may have left service meanwhile, and have changed with that.
                stored = await self._stored(stored.spec.run_id)
                edits = edited_calls(stored.state.values, answers)
            effects = self.coordinator.answer(stored, answers)
            # After all else that may be wrong with them.
            check_edits(run_id, edits, {} if head is None else head.schemas)
            self.perform(effects)
            await self._go_on_below(stored.spec.run_id)

    async def _go_on_below(self, root_id: str) -> None:
        """Serve those again that were answered, where others of their tree go on."""
        found = [await self._stored(run_id) for run_id in self._to_go_on(root_id)]
        # Some may be over by now; or the one at the top leaves, and takes all along later.
        still = set(self._to_go_on(root_id))
        self.adopt([one for one in found if one.spec.run_id in still], asked=True)

    def _to_go_on(self, root_id: str) -> list[str]:
        root = self.coordinator.runs.get(root_id)
        return [] if root is None else self.coordinator.children.to_go_on(root)

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> tuple[str, ...]:
        """Stop runs; to cancel one, nobody need serve it.

        Returns:
            Those that were to be parked and that nobody serves.

        Raises:
            RunNotFoundError: The journal does not know one of them; the others are stopped.
        """
        idle: list[str] = []
        unserved: list[str] = []
        for run_id in run_ids:
            if run_id in self.coordinator.runs:
                self.perform(self.coordinator.stop(run_id, mode))
            elif mode == "cancel" or run_id in self._held:
                idle.append(run_id)
            else:
                unserved.append(run_id)
        if idle:
            # After the others: it may take a while until nobody is being added.
            await self._stop_idle(idle, mode)
        return tuple(unserved)

    async def _stop_idle(self, run_ids: Sequence[str], mode: StopMode) -> None:
        unknown: RunNotFoundError | None = None
        # Repair, which ends what a killed supervisor left, is not to come for them.
        await self.end_processes(run_ids)
        async with self._adding:
            for run_id in run_ids:
                if run_id in self.coordinator.runs:
                    # Taken up meanwhile. It may end while it is read, and must not end twice.
                    self.perform(self.coordinator.stop(run_id, mode))
                    continue
                try:
                    stored, shared, tree = await self._stored_in_tree(run_id)
                except RunNotFoundError as error:
                    unknown = unknown or error
                    continue
                if tree:
                    await self.end_processes([one.spec.run_id for one in tree])
                    # It may have ended meanwhile, or others have left service.
                    stored, shared, tree = await self._stored_in_tree(run_id)
                self.perform(self.coordinator.stop_idle(stored, mode, shared=shared, tree=tree))
                for one in (stored, *tree):
                    self._held.pop(one.spec.run_id, None)
        if unknown is not None:
            raise unknown

    def _check_free(self, spec: RunSpec) -> None:
        """Nobody else goes on with a conversation, nor will while no run is added.

        Raises:
            ConversationBusyError: Somebody does.
        """
        talk = spec.conversation_id
        others = {run_id for run_id, held in self._held.items() if held == talk}
        others |= {self.coordinator.served_in(talk) or spec.run_id}
        if others - {spec.run_id}:
            raise ConversationBusyError(talk)

    async def _waits_beside(self, spec: RunSpec) -> str:
        """Another run of a conversation that waits for its user; empty where none does.

        It is to go on where it stands: what would be said there is none of its answers.
        """
        waiting: str | None = await self.read(self.journal.waiting_in, spec.conversation_id)
        return "" if waiting is None or waiting == spec.run_id else waiting

    async def _stored(self, run_id: str) -> StoredRun:
        """A run that nobody serves, with all that is known of it.

        Its log is that of its conversation, unless another run goes on with that.
        """
        departures = self.coordinator.departures
        stored = await self._load(run_id)
        served = self.coordinator.served_in(stored.spec.conversation_id)
        if served is None and departures != self.coordinator.departures:
            # Another one may have left while this was read, and its last words are missing.
            stored = await self._load(run_id)
        return stored

    async def _stored_beside(self, run_id: str) -> tuple[StoredRun, bool]:
        """A run that nobody serves, and whether what is open in its conversation is another's: of
        one that waits there for its user, or that has spoken since.

        What is known of either is all there is, unless another run goes on with the
        conversation still.
        """
        while True:
            stored = await self._stored(run_id)
            served = self.coordinator.served_in(stored.spec.conversation_id)
            is_behind = await self._is_behind(stored) or bool(await self._waits_beside(stored.spec))
            # Nobody is added meanwhile. Whoever leaves has last words, and may wait for its user.
            if self.coordinator.served_in(stored.spec.conversation_id) == served:
                return stored, is_behind

    async def _is_behind(self, stored: StoredRun) -> bool:
        """Whether a run has said nothing in its conversation, or others have since."""
        has_begun = stored.spec.custom or stored.state.values.get(TURN_COUNT.name)
        later = await self.read(self.journal.run_after, stored.spec.run_id)
        return not has_begun or later is not None

    async def _stored_in_tree(self, run_id: str) -> tuple[StoredRun, bool, Sequence[StoredRun]]:
        """The same, and the other runs of its tree that are not over, all as they are at once."""
        while True:
            departures = self.coordinator.departures
            stored, shared = await self._stored_beside(run_id)
            tree = await self._below(stored.spec, stored.state.values)
            in_tree = bool(tree) or stored.spec.parent is not None
            if not in_tree or departures == self.coordinator.departures:
                return stored, shared, tree

    async def _load(self, run_id: str) -> StoredRun:
        await self.settle()
        stored: StoredRun | None = await self.read(self.journal.load_run, run_id)
        if stored is None:
            raise RunNotFoundError(run_id, self.store)
        return stored


def _as_shown(
    journal: Journal, conversation_id: str
) -> tuple[list[Message], CompactionPlan | None]:
    """A conversation, and how it is shown to its model."""
    return journal.load_conversation(conversation_id), journal.load_plan(conversation_id)
