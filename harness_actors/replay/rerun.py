"""A run once more, from its journal: the shipped coordinator, executors and turn loop.

What these decide is decided anew. What came from outside is taken from the journal: what
the model and the tools answered, when time was over, and when the run was cut.
"""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from harness_actors.conversation import Conversation
from harness_actors.coordination.protocol import Answered, Changed, Deliver, ToolsStarted
from harness_actors.executors import (
    AgentTurn,
    AgentTurnServices,
    Compaction,
    DeltaContext,
    Repair,
    StopDecision,
)
from harness_actors.messages import Message
from harness_actors.plan import CompactionPlan
from harness_actors.ports import Executor
from harness_actors.replay.cell import DivergedError, RerunCell
from harness_actors.replay.differences import Difference, of_ends
from harness_actors.replay.ends import as_end
from harness_actors.replay.handed_on import HandedOn
from harness_actors.replay.observed import Observed
from harness_actors.replay.offers import offer_in
from harness_actors.replay.recorded_calls import RecordedCalls
from harness_actors.replay.recording import Recording
from harness_actors.replay.stage import Stage
from harness_actors.replay.stand_ins import (
    RecordedAgent,
    RecordedClock,
    RecordedCounter,
    at_once,
    leave_workspace,
)
from harness_actors.replay.tape import Tape
from harness_actors.replay.visits import Visit, offered_in, own_part, visits_of
from harness_actors.replay.waits import (
    go_on_answered,
    go_on_later,
    go_on_with_children,
    use_up,
)
from harness_actors.results import HarnessResult, Usage
from harness_actors.signals import Outcome, Parked, TurnComplete, Waiting
from harness_actors.state import (
    AGENT_TURN,
    COMPACTION,
    REPAIR,
    STOP_DECISION,
    USAGE,
    StateDelta,
)
from harness_actors.stores import SqliteJournal


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What came of a rerun.

    Attributes:
        run_id: The run.
        messages: Messages that the run added to its log, in the journal.
        same_messages: How many of them the rerun made, from the first on, byte for byte.
        end: How it ended in the journal; None where it is not over.
        facts: What could not be made again and was taken from the journal, as sentences.
        differences: What came out otherwise, in the order of the run.
    """

    run_id: str
    messages: int
    same_messages: int
    end: HarnessResult | None
    facts: tuple[str, ...]
    differences: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        return not self.differences and self.same_messages == self.messages


async def replay(recording: Recording, executors: Iterable[Executor] = ()) -> Replay:
    """Run again what a journal holds, and compare.

    There is no model, no network, no effect, and nobody's code but ours and that of `executors`.
    The rerun has a journal of its own, which is gone afterwards.

    Args:
        recording: The run.
        executors: Those of the run's own that are run again, too, by their names in the workflow;
            what they observed is read, and not made. What others did is taken as it is. Where
            one had flushed a change, and did so again after a death, the journal has both.

    Raises:
        StoreError: There is no room for that journal.
    """
    with TemporaryDirectory(prefix="harness-replay-") as folder:
        journal = await asyncio.to_thread(SqliteJournal, Path(folder) / "runs.db")
        try:
            rerun = _Rerun(recording, journal, executors)
            await rerun.run()
        finally:
            journal.close()
    cell = rerun.cell
    differences = (*cell.differences, *of_ends(recording.end, cell.end))
    return Replay(
        run_id=recording.spec.run_id,
        messages=len(recording.messages),
        same_messages=_same(recording.messages, cell.messages),
        end=recording.end,
        facts=tuple(cell.facts),
        differences=differences,
    )


def _same(journal: Sequence[Message], rerun: Sequence[Message]) -> int:
    for place, (left, right) in enumerate(zip(journal, rerun, strict=False)):
        if (left.encoded, left.is_error) != (right.encoded, right.is_error):
            return place
    return min(len(journal), len(rerun))


class _Rerun:
    """One run, visit by visit."""

    def __init__(
        self, recording: Recording, journal: SqliteJournal, executors: Iterable[Executor]
    ) -> None:
        self._recording = recording
        self._own = {executor.name: executor for executor in executors}
        self._stage = Stage()
        self._clock = RecordedClock(self._stage, recording)
        self._agent = RecordedAgent.of(recording, self._stage)
        self._handed_on = HandedOn.in_recording(recording)
        self._executors = _executors(recording, self._clock, RecordedCalls(self._stage))
        self._left = asyncio.Event()
        self._problem = ""
        self._visit: Visit | None = None
        self._acting: DeltaContext | None = None
        self.cell = RerunCell(recording, journal, self._clock)
        self.cell.tell(_answers_in(recording.messages))

    async def run(self) -> None:
        """Go through all visits, or to where the rerun goes another way."""
        cell = self.cell
        cell.submit()
        try:
            for visit in visits_of(self._recording):
                if cell.is_complete:
                    # The coordinator ended it in front of its next hop, which nobody served.
                    break
                await self._serve(visit)
        except DivergedError as diverged:
            cell.differ("the way", str(diverged))
        if not cell.differences and cell.is_behind:
            cell.differ("the way", "the rerun was over before")

    async def _serve(self, visit: Visit) -> None:
        to = self.cell.run.hop.to
        if to != visit.to:
            raise DivergedError(f"{to!r} is served in place of {visit.to!r}")
        self._visit, self.cell.taken = visit, 0
        if visit.given and not (visit.to in self._own and visit.is_repeatable):
            self._give(visit)
        elif visit.cut is None or visit.changes:
            await self._act(visit)
        self._cut_off(visit)

    def _give(self, visit: Visit) -> None:
        """Take what an executor did as it is."""
        whose = "a failure of" if visit.cut == "failed" else "all that came from the executor"
        self.cell.tell(f"{whose} {visit.to!r}")
        for change in visit.changes:
            last = change is visit.changes[-1]
            if last and visit.hop is not None:
                self._answer(own_part(change.delta), visit.hop.signal, parks=visit.parks)
            elif last and visit.parks:
                self._answer(own_part(change.delta), Parked())
            elif last and visit.end is not None and visit.cut is None:
                break
            else:
                self.cell.receive(Changed(change.delta))
        if visit.end is not None:
            self._answer(StateDelta(), as_end(visit.end))

    async def _act(self, visit: Visit) -> None:
        """Let the executor do it again."""
        self._tell_ending(visit)
        executor, deliver = self._executor(visit.to), self.cell.deliver
        assert deliver is not None, "it is served"
        observed = Observed(visit, self._leave)
        context = self._context(executor, deliver, observed)
        self._acting = context
        self.cell.bring()
        context.take_mail(self.cell.take_mail())
        self._offer_next(visit)
        self._left.clear()
        if visit.to == AGENT_TURN:
            self._stage.tape = Tape(
                visit,
                context.log,
                self._recording.spec.config.limits,
                answered=sum(message.role == "assistant" for message in self.cell.messages),
                handed_on=self._handed_on,
                observed=observed,
                leave=self._leave,
            )
            self._clock.turn_begins()
        work = asyncio.ensure_future(executor.handle(deliver.signal, context))
        left = asyncio.ensure_future(self._left.wait())
        try:
            await asyncio.wait((work, left), return_when=asyncio.FIRST_COMPLETED)
            if work.done() and not self._is_at_cut():
                self._take(visit, work, context)
        finally:
            for task in (work, left):
                task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await work
            self._stage.tape = None
        if self._problem:
            raise DivergedError(self._problem)
        if self.cell.taken < len(visit.changes):
            raise DivergedError(f"{visit.to!r} did less than the journal has")

    def _take(self, visit: Visit, work: "asyncio.Future[Outcome]", context: DeltaContext) -> None:
        if (error := work.exception()) is not None:
            raise DivergedError(f"{visit.to!r} failed: {type(error).__name__}: {error}")
        if self._is_own(visit.to):
            # Its host counts its time with its answer.
            context.increment(USAGE, Usage())
        last = context.last(work.result())
        if visit.cut == "ended":
            # What it had to say was kept, but the run did not go on with it.
            self.cell.receive(Changed(last))
        else:
            self._answer(last, work.result(), parks=visit.parks)

    def _tell_ending(self, visit: Visit) -> None:
        """What a turn ended by that no rerun can bring about by itself."""
        signal = None if visit.hop is None else visit.hop.signal
        if not isinstance(signal, TurnComplete):
            return
        if signal.ending == "error" or signal.limit == "context":
            self.cell.tell("how the model failed")
        elif signal.limit in ("time", "working_time"):
            self.cell.tell("when its time was over")

    def _executor(self, name: str) -> Executor:
        return self._own[name] if self._is_own(name) else self._executors[name]

    def _is_own(self, name: str) -> bool:
        return name in self._recording.spec.custom

    def _context(self, executor: Executor, deliver: Deliver, observed: Observed) -> DeltaContext:
        reads_log = executor.reads_log or self._is_own(executor.name) or bool(deliver.log)
        return DeltaContext(
            spec=self._recording.spec,
            agent=self._agent,
            writer_name=executor.name,
            reads=executor.reads,
            values=deliver.values,
            log=Conversation(self.cell.run.state.log) if reads_log else None,
            plan=self.cell.run.state.plan,
            started_at=deliver.started_at,
            send=self._send,
            recorded=observed.answer,
            offer=self._offer(executor.name),
        )

    def _offer(self, name: str) -> tuple[CompactionPlan, int] | None:
        """The plan that was made beside the run, and that whoever makes room has taken."""
        if name != COMPACTION or self._visit is None or self._recording.spec.replaces_compaction:
            return None
        if (offer := offer_in(self._visit, self.cell.run.state.plan)) is not None:
            self.cell.tell("summaries of what is no longer shown")
        return offer

    def _offer_next(self, visit: Visit) -> None:
        """Tell the turn of a plan where it was told: before it waited for that."""
        if self._acting is not None and self.cell.taken == len(visit.changes) - 1:
            self._acting.offered = offered_in(visit.changes[-1].delta)

    def _send(self, delta: StateDelta) -> Awaitable[None]:
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if self._is_at_cut():
            # Whatever it did from here on was lost with it.
            self._leave("")
            return committed
        try:
            self.cell.receive(Changed(delta))
            committed.set_result(None)
            self.cell.bring()
            if self._acting is not None:
                self._acting.take_mail(self.cell.take_mail())
            if self._visit is not None:
                self._offer_next(self._visit)
        except DivergedError as diverged:
            # Not raised: the executor would take it for a failure of its own.
            self._leave(str(diverged))
        return committed

    def _leave(self, problem: str) -> None:
        self._problem = problem
        self._left.set()

    def _is_at_cut(self) -> bool:
        visit = self._visit
        return visit is not None and visit.cut is not None and self.cell.taken >= len(visit.changes)

    def _answer(self, delta: StateDelta, outcome: Outcome, *, parks: bool = False) -> None:
        if parks:
            self.cell.stop("park")
        visit = self._visit
        assert visit is not None, "somebody has answered"
        if visit.end is not None:
            self.cell.bring()
            use_up(self.cell)
        self.cell.receive(Answered(delta, outcome))
        self.cell.put_aside_below()
        if parks or isinstance(outcome, Parked):
            go_on_later(self.cell, visit.next_position)
        elif isinstance(outcome, Waiting) and not outcome.on_user:
            go_on_with_children(self.cell, visit)
        elif isinstance(outcome, Waiting):
            go_on_answered(self.cell, visit)

    def _cut_off(self, visit: Visit) -> None:
        match visit.cut:
            case "cancelled":
                self.cell.tell(f"its user cancelled it while it was at {visit.to!r}")
                self.cell.bring()
                use_up(self.cell)
                self.cell.stop("cancel")
            case "parked":
                self.cell.stop("park_now")
                go_on_later(self.cell, visit.next_position)
            case "lost":
                self.cell.tell(f"the process of {visit.to!r} died while a tool ran")
                self.cell.receive(ToolsStarted(visit.tools))
                self.cell.lose_host(visit.cause)
            case "died":
                self.cell.tell(f"a process died while the run was at {visit.to!r}")
                self.cell.begin_term()
                if visit.next_position is not None:
                    self.cell.adopt(visit.next_position)
            case "ended" if visit.end is not None:
                self.cell.tell(f"what ended the run: {visit.end.reason.message}")
                self._answer(StateDelta(), as_end(visit.end))
            case _:
                pass


def _answers_in(messages: Sequence[Message]) -> str:
    answers = sum(message.role == "assistant" for message in messages)
    results = sum(message.role == "tool" for message in messages)
    answered = "1 answer" if answers == 1 else f"{answers} answers"
    resulted = "1 result" if results == 1 else f"{results} results"
    return f"{answered} of the model, {resulted} of tools"


def _executors(
    recording: Recording, clock: RecordedClock, calls: RecordedCalls
) -> dict[str, Executor]:
    counter = RecordedCounter.of(recording)
    services = AgentTurnServices(
        counter_for=lambda _model: counter,
        clock=clock,
        in_thread=at_once,
        prepare_workspace=leave_workspace,
        run_call=calls.run,
        text_on_record=calls.text,
        waves_of=calls.waves_of,
        read_stall=calls.stall,
        letters_due=calls.letters_due,
        # Nothing is made there.
        copies=Path("copies"),
    )
    return {
        REPAIR: Repair(),
        COMPACTION: Compaction(),
        AGENT_TURN: AgentTurn(services),
        STOP_DECISION: StopDecision(),
    }
