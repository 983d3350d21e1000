"""One command of the user: a process that asks for runs, and follows them to their ends."""

import asyncio
from typing import TYPE_CHECKING, Literal

from harness_actors.actors.embedded import EMBEDDED_MODEL_URL
from harness_actors.actors.mailbox import UnreachableError
from harness_actors.actors.runtime import StopMode
from harness_actors.actors.simulated.processes import current_process
from harness_actors.errors import (
    ConversationBusyError,
    ConversationMovedOnError,
    HarnessError,
)
from harness_actors.events import InputAwaited, RunCompleted, RunParked
from harness_actors.records import RunHeading
from tests.simulation.beside import Reader
from tests.simulation.ledger import Request, root_of
from tests.simulation.meddling import meddle
from tests.simulation.people import People
from tests.simulation.talks import Talk
from tests.simulation.workload import PlannedRun

if TYPE_CHECKING:
    from tests.simulation.user import User


class Driver:
    """One command: submits what is missing, takes up what is left, and follows all."""

    def __init__(self, user: "User", command: str) -> None:
        self._user = user
        self.book = user.book
        self._ledger = user._ledger
        self.name = command
        self.people = People(self, user._people, soon=user._workload.soon)
        self.replies = user._oracle.waits.replies
        # So many at once; the others wait their turn.
        self._room = asyncio.Semaphore(user._chance.choice((1, 2, 9, 9)))
        self.known: set[str] = set()
        """Runs of talks that the journal has."""
        self._ended: dict[str, asyncio.Event] = {}
        self._parked: dict[str, asyncio.Event] = {}
        for run_id in user._workload.runs:
            self._ended[run_id], self._parked[run_id] = asyncio.Event(), asyncio.Event()

    async def live(self) -> None:
        self.runtime = runtime = await self._user.open(self.name)
        if self.book.cursor is None:
            self.book.cursor = await runtime.position()
        if self._user._workload.budget_usd is not None:
            await runtime.allow(self._user._workload.budget_usd)
        try:
            async with asyncio.TaskGroup() as group:
                following = group.create_task(self._follow(group))
                looking_on = group.create_task(self._look_on())
                reading = [
                    group.create_task(self._read(run_id))
                    for run_id in sorted(self._user._workload.listened)
                ]
                asking = [
                    group.create_task(self._ask_for_summaries(plan))
                    for plan in self._user._workload.runs.values()
                    if any(plan.asks)
                ]
                for plan in self._user._workload.runs.values():
                    if plan.guesses:
                        group.create_task(self.people.guess(plan))
                chains = [
                    group.create_task(self._work(chain))
                    for chain in self._user._workload.conversations()
                ]
                await asyncio.wait(chains)
                following.cancel()
                for task in (looking_on, *reading, *asking):
                    task.cancel()
            if len(self.book.ended) == len(self._user._workload.runs):
                await self._user.settled()
        except BaseExceptionGroup as failures:
            raise _first(failures) from None

    async def _look_on(self) -> None:
        """Attach as somebody who has no keys does."""
        after_s = self._user._workload.onlooker_after_s
        while after_s is not None:
            await asyncio.sleep(after_s + 0.1)
            try:
                await self._user._ray.network.call(
                    self.runtime.coordinator, "call", "attach", {}, None
                )
            except (UnreachableError, HarnessError):
                return

    async def _ask_for_summaries(self, plan: PlannedRun) -> None:
        """Ask for summaries of a run, whether it is served just then or not."""
        for after_s in filter(None, plan.asks):
            await asyncio.sleep(after_s)
            await self.runtime.compact(plan.run_id, "what was said")

    async def _read(self, run_id: str) -> None:
        """Read what is said in a run, from before it begins."""
        reader = Reader(run_id, self._ledger)
        while True:
            reader.take(await self.runtime.texts(run_id, reader.cursor))

    async def _follow(self, group: asyncio.TaskGroup) -> None:
        while True:
            assert self.book.cursor is not None
            happened = await self.runtime.wait_for_news(self.book.cursor)
            self.book.cursor = happened.cursor
            for event in happened.events:
                self._ledger.told.append(event)
                if isinstance(event.event, RunCompleted):
                    if event.run_id in self._ended:
                        self.book.ended.add(event.run_id)
                        self._ended[event.run_id].set()
                    if event.run_id not in happened.results:
                        self._ledger.broken("who follows misses nothing", f"end of {event.run_id}")
                elif event.run_id not in self._parked:
                    # A child: it goes on when its root does, or is answered while others go on.
                    if isinstance(event.event, InputAwaited):
                        group.create_task(self.people.hear(event.run_id, event.event.questions))
                elif isinstance(event.event, RunParked):
                    self._parked[event.run_id].set()
                elif isinstance(event.event, InputAwaited):
                    self._parked[event.run_id].set()
                    group.create_task(self.people.answer(event.run_id, event.event.questions))

    async def _work(self, chain: list[PlannedRun]) -> None:
        if chain[0].shares:
            async with self._room:
                await Talk(self, chain, self._user._chance).live()
            return
        for plan in chain:
            async with self._room:
                await self._begin(plan)

    async def _begin(self, plan: PlannedRun) -> None:
        """Submit a run, or take it up, and follow it; nothing where it is over."""
        heading = await self._heading(plan)
        if heading is not None and heading.end is not None:
            return
        if heading is None:
            await asyncio.sleep(plan.after_s)
            await self._submit(plan)
        else:
            await self._resume(plan.run_id)
        await self._see_through(plan)

    async def _heading(self, plan: PlannedRun) -> RunHeading | None:
        """What the journal says of a run; None where it does not know it."""
        headings = {h.run_id: h for h in await self.runtime.headings()}
        heading = headings.get(plan.run_id)
        if heading is None and plan.run_id in self.book.submitted:
            self._ledger.broken("what was acknowledged is on disk", plan.run_id)
        if heading is not None and heading.end is not None:
            self.book.ended.add(plan.run_id)
        return heading

    async def _submit(self, plan: PlannedRun) -> None:
        code = self._user.code_of(plan)
        spec = self._user.spec_of(plan)
        if 0.0 in plan.asks:
            await self.runtime.compact(plan.run_id, "what was said")
        await self.runtime.submit([spec], code=code, secrets=self._secrets(plan.keys))
        self.book.submitted.add(plan.run_id)

    def waits(self, run_id: str) -> bool:
        """Whether a run waits for its user."""
        return self._user._oracle.waits.is_waiting(run_id)

    # ---- for talks --------------------------------------------------------------------

    async def is_over(self, plan: PlannedRun) -> bool:
        """Whether a run has ended."""
        heading = await self._heading(plan)
        if heading is not None:
            self.known.add(plan.run_id)
        return heading is not None and heading.end is not None

    async def submit_or_resume(self, plan: PlannedRun) -> None:
        """Have a run served, as a harness does that is asked to.

        Raises:
            ConversationBusyError: Another run of its conversation is.
            ConversationMovedOnError: Another run has continued what it had begun to say.
        """
        run_id, rules = plan.run_id, self._user._oracle.talks
        asked = rules.asks(run_id, plan.conversation_id)
        try:
            self._parked[run_id].clear()
            if run_id in self.known:
                self._user.check_taking_up(run_id)
                await self._resume(run_id)
            else:
                await self._submit(plan)
                self.known.add(run_id)
        except ConversationBusyError as error:
            rules.was_busy(asked, error.waiting)
            raise
        except ConversationMovedOnError as error:
            rules.has_moved_on(run_id, error.later_run_id)
            raise
        finally:
            rules.done(asked)

    async def until_it_stops(self, run_id: str, patience_s: float) -> None:
        """Wait until a run has ended or parked, or so many seconds."""
        stops = (self._ended[run_id], self._parked[run_id])
        waiting = [asyncio.ensure_future(stop.wait()) for stop in stops]
        try:
            await asyncio.wait(waiting, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()

    # ---- for a run by itself ----------------------------------------------------------

    async def _see_through(self, plan: PlannedRun) -> None:
        """Follow a run to its end; stop it as planned, and take it up when it has parked."""
        stopping = asyncio.ensure_future(self._stop(plan))
        meddling: asyncio.Future[None] | None = None
        if plan.meddles:
            meddling = asyncio.ensure_future(meddle(self, plan, self._user._chance))
        ended = asyncio.ensure_future(self._ended[plan.run_id].wait())
        try:
            while not ended.done():
                parked = asyncio.ensure_future(self._parked[plan.run_id].wait())
                waiting: set[asyncio.Future[object]] = {ended, parked}  # type: ignore[arg-type]
                if not stopping.done():
                    waiting.add(stopping)  # type: ignore[arg-type]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                if stopping.done():
                    stopping.result()
                if parked.done() and not ended.done():
                    self._parked[plan.run_id].clear()
                    await self._pause(plan.run_id)
                    await self._resume(plan.run_id)
                parked.cancel()
        finally:
            if not stopping.cancel() and not stopping.cancelled():
                stopping.exception()  # it says no more than all the others do
            if meddling is not None:
                meddling.cancel()
            ended.cancel()

    async def _pause(self, run_id: str) -> None:
        """Leave a run alone that nobody serves; one that waits, mostly until it is answered."""
        if self.waits(run_id):
            await self.people.done(run_id)
            return
        chance = self._user._chance
        await asyncio.sleep(chance.random() * chance.choice((0.1, 0.5, 8.0, 30.0)))

    async def _stop(self, plan: PlannedRun) -> None:
        asked = self.book.asked.setdefault(plan.run_id, 0)
        for stop in plan.stops[asked:]:
            await asyncio.sleep(stop.after_s)
            self.book.asked[plan.run_id] += 1
            await self.request(plan.run_id, stop.mode)
            if stop.resume and stop.mode != "cancel":
                await self._resume(plan.run_id)

    async def _resume(self, run_id: str) -> None:
        await self.request(run_id, "resume")

    async def request(self, run_id: str, what: StopMode | Literal["resume"]) -> None:
        """Ask something of a run, and write it down."""
        request = Request(run_id, what, self._ledger.loop.time())
        self._ledger.requests.append(request)
        self._user._oracle.promptness.requested(request, current_process())
        if what == "resume":
            keys = self._user._workload.runs[root_of(run_id)].keys
            try:
                await self.runtime.resume([run_id], secrets=self._secrets(keys))
            except ConversationBusyError:
                request.done_at = self._ledger.loop.time()
                raise
        else:
            request.in_vain = run_id in await self.runtime.stop([run_id], what)
        request.done_at = self._ledger.loop.time()

    def tree_of(self, root: str) -> list[str]:
        """The runs of a tree that are on disk and not over."""
        runs = self._ledger.disk.runs.values()
        return [run.spec.run_id for run in runs if run.spec.root == root and run.end is None]

    def _secrets(self, keys: tuple[str, ...]) -> dict[str, str]:
        return {name: "its value" for name in keys if name != EMBEDDED_MODEL_URL}


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one of several failures that says most: ours before others."""
    ours, others = failures.split(HarnessError)
    group: BaseException = others or ours or failures
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
