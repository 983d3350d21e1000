"""The calls of assistant messages: announced, run wave after wave, and answered."""

from collections.abc import Collection, Sequence

import orjson

from harness_actors.conversation import UNKNOWN_OUTCOME
from harness_actors.events import answer_event
from harness_actors.messages import Message, ToolCall
from harness_actors.ports import RunContext
from harness_actors.results import LimitKind
from harness_actors.signals import TurnComplete, Waiting
from harness_actors.state import OPEN_CALLS, TURN_COUNT, OpenCall
from harness_actors.turn.approvals import first_to_approve
from harness_actors.turn.bounds import Bounds
from harness_actors.turn.call_gates import CallGates
from harness_actors.turn.delegation import Delegating, delegates
from harness_actors.turn.execution import Execution
from harness_actors.turn.one_call import PlannedCall, plan_calls
from harness_actors.turn.outcomes import (
    ToolDenied,
    ToolExecutionResult,
    ToolFailure,
    ToolOutcome,
)
from harness_actors.turn.outputs import value_in
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.questions import NOT_BEGUN, Asking, asks
from harness_actors.turn.services import AgentTurnServices
from harness_actors.turn.state import TurnState
from harness_actors.turn.texts import tokens_of
from harness_actors.turn.workplace import Workplace

OTHER_CALL_FAILED = (
    "Not accepted: another call of this message failed; look at it and call work_complete again."
)
NOT_MADE = "The call was not made: it had been refused before its turn came."
NOT_LAST = (
    "Not accepted: work_complete must be the last call of its message. "
    "Look at the results of the others and call it again."
)


class ToolCalls:
    """Runs the calls of one turn of one run, and adds their results to the log."""

    def __init__(
        self,
        context: RunContext,
        prepared: PreparedAgent,
        services: AgentTurnServices,
        state: TurnState,
        bounds: Bounds,
        place: Workplace,
        gates: CallGates | None = None,
    ) -> None:
        self._context = context
        self._prepared = prepared
        self._services = services
        self._meter = state.meter
        self._repeats = state.repeats
        self._budget = state.budget
        self._bounds = bounds
        self._gates = gates
        self._asking = Asking(context)
        self._delegating = Delegating(
            context, state.meter, bounds, services.copies_of(context.spec)
        )
        self._execution = Execution(context, prepared, services, state, bounds, place)

    async def run(
        self, calls: Sequence[ToolCall], *, finish_reason: str
    ) -> TurnComplete | Waiting | None:
        """Run the calls of the message that was just added.

        Args:
            calls: All calls of the message, at least one.
            finish_reason: Why the model stopped after them.

        Returns:
            How the turn ends, or that it waits for its user; None where it goes on.
        """
        # Repair may have closed the last call of a message that had asked; ids come again.
        self._asking.forget()
        judged = await self._judged(self._plan(calls, finish_reason))
        plans = [self._asking.settled(plan) for plan in judged]
        held = self._first_to_wait(plans)
        # Where nothing begins before somebody is asked there is nothing to fence off yet.
        fenced = held != 0 and not all(plan.idempotent for plan in plans)
        if fenced:
            self._context.set(OPEN_CALLS, self._index(plans))
            if held is not None:
                self._asking.hold(plans[held:])
            self._meter.write()
            await self._context.flush()
        elif held != 0 and (
            own := [plan.call.name for plan in plans if self._execution.may_crash(plan)]
        ):
            self._context.tools_started(list(dict.fromkeys(own)))
            self._execution.announce(lambda: answer_event(self._context.log[-1]))
        return await self._run_in_order(plans, last_id=calls[-1].id, failed=False, listed=fenced)

    async def finish(self) -> TurnComplete | Waiting | None:
        """Run again what a crash left open, or begin what waited for its user; there is something.

        Repair has closed what must not run again. What is open without being listed as
        idempotent is closed here, should something else stand in for Repair.
        """
        log, held = self._context.log, self._asking.held
        listed = {
            call.call_id: call
            for call in self._context.get(OPEN_CALLS)
            if call.idempotent or call.call_id in held
        }
        again = [call for call in log.open_calls() if call.id in listed]
        self._context.set(OPEN_CALLS, tuple(listed[call.id] for call in again))
        for call in log.open_calls():
            if call.id not in listed:
                lost = ToolDenied(text=UNKNOWN_OUTCOME, how="unknown")
                await self._add_result(call, lost)
        calls, results = _newest_round(log)
        tools = self._prepared.by_name
        planned = [
            self._delegating.ended(plan, tools.get(plan.call.name))
            for plan in self._plan(again, "")
        ]
        if begins := [plan.call.name for plan in planned if not delegates(plan)]:
            self._context.tools_started(list(dict.fromkeys(begins)))
        # Of what a gate has denied, its record says so; of the others, there is nothing to ask.
        refused = [plan for plan in planned if plan.call.id not in held and not plan.idempotent]
        judged = await self._judged(planned, unasked={plan.call.id for plan in refused})
        settled = [self._asking.settled(plan) for plan in judged]
        plans = [plan if plan.call.id in held else _still_refused(plan) for plan in settled]
        if held and (self._asking.has_asked or self._delegating.has_results):
            if first_to_approve(judged) is not None:
                self._asking.keep_standing(judged)
                # What is not to be made after all may be refused, or answered, twice.
                self._context.set(OPEN_CALLS, self._index(plans))
            self._asking.release(self._waiting(plans))
            # What was held and is not idempotent may be lost from here on.
            await self._context.flush()
        return await self._run_in_order(
            plans,
            last_id=calls[-1].id,
            failed=any(result.is_error for result in results),
            listed=True,
        )

    async def _run_in_order(
        self, plans: Sequence[PlannedCall], *, last_id: str, failed: bool, listed: bool
    ) -> TurnComplete | Waiting | None:
        """Run calls of one message.

        Args:
            plans: Those that have no result yet.
            last_id: The last call of the message.
            failed: A call of the message has failed before.
            listed: They are in the index of open calls, which shrinks as they end.
        """
        limit: LimitKind | None = None
        begun = 0
        for wave in self._services.waves_of(plans):
            keys = [None if self._is_gated(plan) else self._repeats.key_of(plan) for plan in wave]
            results: Sequence[ToolOutcome] | None
            if self._prepared.delegates and delegates(wave[0]):
                left = plans[begun + len(wave) :]
                ended = self._delegating.has_results
                outcomes = self._delegating.outcomes(wave, left)
                if isinstance(outcomes, Waiting):
                    return self._delegate(outcomes, len(wave), plans[begun:], listed=listed)
                results = outcomes
                if not ended and self._asking.release(self._waiting(left)):
                    # None of them has begun a run, for which what stands after them would wait.
                    await self._context.flush()
                self._execution.done_elsewhere(wave)
            else:
                results = await self._results(
                    wave, keys, last_id=last_id, failed=failed, listed=listed
                )
            if results is None:
                return await self._ask(plans[begun:], listed=listed)
            begun += len(wave)
            results = await self._looked_at(wave, results)
            for plan, key, result in zip(wave, keys, results, strict=True):
                failed, limit = failed or result.is_error, limit or result.limit
                await self._add_result(plan.call, result, own=self._execution.is_own_tool(plan))
                if key is not None and not result.is_error:
                    self._repeats.succeeded(key)
            if listed and begun < len(plans):
                # What has ended, and not what is left: that of thousands would be quadratic.
                self._context.drop(OPEN_CALLS, len(wave))
            elif listed:
                self._context.set(OPEN_CALLS, ())
                self._asking.forget()
            if self._execution.is_completion(wave[0]) and (
                over := self._over(wave[0].call, results[0])
            ):
                return over
            if listed and begun < len(plans):
                # The last results leave with what belongs to the whole round.
                self._meter.write()
                self._context.flush()
        return None if limit is None else TurnComplete(ending="limit", limit=limit)

    async def _results(
        self,
        wave: Sequence[PlannedCall],
        keys: Sequence[bytes | None],
        *,
        last_id: str,
        failed: bool,
        listed: bool,
    ) -> Sequence[ToolOutcome] | None:
        """What comes of the calls of a wave, in its order; None where its user must be asked."""
        if len(wave) > 1:
            return await self._execution.make_at_once(wave, keys, announced=listed)
        plan = wave[0]
        result = self._refused(plan, last_id=last_id, failed=failed)
        if result is None and plan.answer is not None:
            result = ToolExecutionResult(text=plan.answer)
        if plan.approval is not None:
            return None
        if result is None and asks(plan):
            result = self._asking.answered(plan)
            if result is None:
                return None
        return (result or await self._execution.make(plan, keys[0], announced=listed),)

    def _over(self, call: ToolCall, result: ToolOutcome) -> TurnComplete | None:
        """How the turn ends by a `work_complete`; None where it does not."""
        if not result.is_error:
            output = None if self._prepared.output is None else value_in(call)
            return TurnComplete(ending="completed", text=_summary(call), output=output)
        if isinstance(result, ToolFailure) and result.ends is not None:
            return TurnComplete(ending="error", error=result.ends)
        return None

    def _is_gated(self, plan: PlannedCall) -> bool:
        """Whether gates have a say in it, who may want it otherwise than the last time."""
        return plan.around is not None or self._gates is not None

    async def _judged(
        self, plans: list[PlannedCall], *, unasked: Collection[str] = ()
    ) -> list[PlannedCall]:
        """What gates leave of the calls of a message."""
        return plans if self._gates is None else await self._gates.before_calls(plans, unasked)

    async def _looked_at(
        self, wave: Sequence[PlannedCall], results: Sequence[ToolOutcome]
    ) -> Sequence[ToolOutcome]:
        """What gates leave of the results of a wave: in its order, so that it is always the same
        in which they are asked."""
        if self._gates is None or not self._gates.of_results:
            return results
        left = []
        for plan, result in zip(wave, results, strict=True):
            looked_at = await self._gates.after_call(plan, result)
            left.append(await self._execution.keep(plan, looked_at))
        return left

    async def _ask(self, plans: Sequence[PlannedCall], *, listed: bool) -> TurnComplete | Waiting:
        if (failed := self._asking.must_not(plans)) is not None:
            # Whoever comes after a turn that is over finds no call open.
            for plan in plans:
                await self._add_result(plan.call, ToolDenied(text=NOT_BEGUN))
            if listed:
                self._context.set(OPEN_CALLS, ())
            self._asking.forget()
            return failed
        if not listed:
            self._context.set(OPEN_CALLS, self._index(plans))
        self._meter.write()
        return self._asking.ask(plans)

    def _delegate(
        self, waiting: Waiting, calls: int, plans: Sequence[PlannedCall], *, listed: bool
    ) -> Waiting:
        """Have the calls of a wave done by runs of their own.

        Args:
            waiting: What the run waits for.
            calls: How many calls these are.
            plans: All calls of the message that have no result yet, these first.
            listed: They are in the index of open calls.
        """
        if not listed:
            self._context.set(OPEN_CALLS, self._index(plans))
        if len(plans) > calls:
            # What stands after them has not begun, and is not lost.
            self._asking.hold(plans)
        self._meter.write()
        return waiting

    def _plan(self, calls: Sequence[ToolCall], finish_reason: str) -> list[PlannedCall]:
        left = self._bounds.tool_calls_left(self._meter.tool_calls)
        of_turn = None if self._budget is None else self._budget.tool_calls_left()
        return plan_calls(
            calls, self._prepared, finish_reason=finish_reason, calls_left=left, of_turn=of_turn
        )

    def _first_to_wait(self, plans: Sequence[PlannedCall]) -> int | None:
        """The place of the first call that waits for a person, or for a run of its own; None where
        none does."""
        if not self._prepared.delegates:
            return first_to_approve(plans)
        begins = (place for place, plan in enumerate(plans) if self._delegating.is_begun_by(plan))
        places = (first_to_approve(plans), next(begins, None))
        return min((place for place in places if place is not None), default=None)

    def _waiting(self, plans: Sequence[PlannedCall]) -> Sequence[PlannedCall]:
        """The first call that waits, and what waits with it; empty where none does."""
        first = self._first_to_wait(plans)
        return () if first is None else plans[first:]

    def _refused(self, plan: PlannedCall, *, last_id: str, failed: bool) -> ToolOutcome | None:
        """The answer to a `work_complete` that does not count; None for all other calls."""
        if not self._execution.is_completion(plan):
            return None
        if plan.call.id != last_id:
            return ToolDenied(text=NOT_LAST)
        return ToolDenied(text=OTHER_CALL_FAILED) if failed else None

    async def _add_result(self, call: ToolCall, result: ToolOutcome, *, own: bool = False) -> None:
        tokens = await tokens_of([result.text], self._prepared.counter) + result.image_tokens
        failure = result.failure
        message = Message.tool_result(
            call.id,
            result.text,
            failure=failure,
            tokens=tokens,
            facts=result.facts,
            images=result.images,
        )
        self._context.add_message(message)
        self._meter.called(
            call.name,
            counts=own and result.ran,
            progress=own and failure is None,
            tokens=tokens,
        )

    def _index(self, plans: Sequence[PlannedCall]) -> tuple[OpenCall, ...]:
        turn = self._context.get(TURN_COUNT)
        return tuple(
            [
                OpenCall(
                    call_id=plan.call.id,
                    tool_name=plan.call.name,
                    idempotent=plan.idempotent,
                    turn=turn,
                )
                for plan in plans
            ]
        )


def _still_refused(plan: PlannedCall) -> PlannedCall:
    """The plan of a call that is open, if it may run.

    One that is not idempotent and yet was listed as such was not to run: there were no
    calls left for it, say. What a crash took from the books must not let it run now, for
    no record of its own says that it began.
    """
    if plan.idempotent:
        return plan
    return PlannedCall(call=plan.call, refusal=NOT_MADE)


def _newest_round(log: Sequence[Message]) -> tuple[tuple[ToolCall, ...], list[Message]]:
    """The calls of the newest assistant message, and the results that they have."""
    results: list[Message] = []
    for message in reversed(log):
        if message.role != "tool":
            return message.tool_calls, results
        results.append(message)
    return (), results


def _summary(call: ToolCall) -> str:
    """The summary of a `work_complete` that succeeded, so its arguments fit its schema."""
    return str(orjson.loads(call.arguments)["summary"]).strip()
