"""Making the calls of a turn: alone, at once, or not at all where they were made before."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from harness_actors.events import Event, call_event
from harness_actors.ports import DeadlineToken, RunContext
from harness_actors.state import CHILDREN, TURN_COUNT
from harness_actors.turn.artifacts import keep_large
from harness_actors.turn.bounds import Bounds, Due
from harness_actors.turn.delegation import delegates
from harness_actors.turn.emission import Emission
from harness_actors.turn.keys import HeldKeys
from harness_actors.turn.lanes import in_lanes
from harness_actors.turn.one_call import PlannedCall, time_of
from harness_actors.turn.outcomes import ToolExecutionResult, ToolOutcome
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.services import AgentTurnServices
from harness_actors.turn.state import TurnState
from harness_actors.turn.workplace import Workplace

LAST_LOOK_S = 0.5
"""For looking at the value of a run whose time is up."""


@dataclass(eq=False)
class Execution:
    """Makes the calls of one turn of one run; it adds nothing to the log."""

    _context: RunContext
    _prepared: PreparedAgent
    _services: AgentTurnServices
    _state: TurnState
    _bounds: Bounds
    _place: Workplace

    async def make(
        self, plan: PlannedCall, key: bytes | None, *, announced: bool = False
    ) -> ToolOutcome:
        """Make a call, unless it was made before.

        Args:
            plan: The call.
            key: What the same calls have in common; see `RepeatGuard.key_of`.
            announced: Readers know of it by a record.
        """
        if not announced and self.is_own_tool(plan):
            self.announce(partial(call_event, plan.call))
        repeats = self._state.repeats
        if key is not None and (earlier := repeats.earlier(key)) is not None:
            return ToolExecutionResult(text=earlier)
        repeats.begins(plan)
        if (held := self._held_keys(plan)) is None:
            return await self._begin(plan)
        return await held.make(plan, self._due(plan), partial(self._begin, plan))

    def _held_keys(self, plan: PlannedCall) -> HeldKeys | None:
        """What holds the keys of a call in its tree; None where it has none, or there is no tree
        and so nobody else."""
        services, spec = self._services, self._context.spec
        if services.locks is None or plan.tool is None or not plan.tool.spec.resource_keys:
            return None
        above = self._prepared.delegates and self._context.get(CHILDREN) > 0
        if spec.parent is None and not above:
            return None
        return HeldKeys(services.locks, spec.root, services.in_thread, spec.workspace)

    async def _begin(self, plan: PlannedCall) -> ToolOutcome:
        due = self._due(plan)
        trace = self._state.begin_trace(time_of(plan, due).seconds)
        emission = Emission(
            self._context,
            self._state.meter.rounds,
            plan.call,
            trace.deadline,
            self._prepared.middleware.text_filters,
        )
        context = self._place.context_of(
            plan.call.id,
            self._context.spec,
            self._services,
            trace.deadline,
            emission.tell,
            emission.want_summary,
        )
        outcome = await self._services.run_call(plan, context, due)
        if not self._prepared.hooks.post_tool:
            # At once, for it may be large; but hooks must see it before it is kept.
            outcome = await keep_large(outcome, plan.call.name, context)
        self._state.complete_trace(trace, outcome)
        return outcome

    async def keep(self, plan: PlannedCall, outcome: ToolOutcome) -> ToolOutcome:
        """What hooks have left of a result, as it enters the log; see `keep_large`."""
        context = self._place.context_of(
            plan.call.id,
            self._context.spec,
            self._services,
            DeadlineToken(),
            lambda _: False,
            lambda _: False,
        )
        return await keep_large(outcome, plan.call.name, context)

    async def make_at_once(
        self, wave: Sequence[PlannedCall], keys: Sequence[bytes | None], *, announced: bool = False
    ) -> Sequence[ToolOutcome]:
        """Make calls that only read, or must not run at all.

        Of those that are the same the first is made, and the next one only where that failed.
        """
        most = self._context.spec.config.max_parallel_calls
        results: dict[int, ToolOutcome] = {}
        while left := [place for place in range(len(wave)) if place not in results]:
            first = {keys[place] or place: place for place in reversed(left)}
            begun = sorted(first.values())
            pieces = [
                partial(self.make, wave[place], keys[place], announced=announced) for place in begun
            ]
            results.update(zip(begun, await in_lanes(pieces, most), strict=True))
            for place in left:
                same = results[first[keys[place] or place]]
                if not same.is_error:
                    results[place] = same
        return [results[place] for place in range(len(wave))]

    def done_elsewhere(self, wave: Sequence[PlannedCall]) -> None:
        """Calls were done by runs of their own, which may have written."""
        for plan in wave:
            self._state.repeats.begins(plan)

    def announce(self, make: Callable[[], Event]) -> None:
        """Tell whoever reads along what the record of the round will imply at its end."""
        sink = self._context.texts
        if sink is not None:
            sink.announce(self._context.get(TURN_COUNT), self._state.meter.rounds, make())

    def is_completion(self, plan: PlannedCall) -> bool:
        """Whether it ends the run."""
        return plan.tool is not None and plan.tool is self._prepared.completion

    def is_own_tool(self, plan: PlannedCall) -> bool:
        """Whether it runs one of the agent's own tools."""
        return plan.tool is not None and plan.tool is not self._prepared.completion

    def may_crash(self, plan: PlannedCall) -> bool:
        """Whether it runs code that is not ours."""
        typed = self._prepared.output is not None and self.is_completion(plan)
        return typed or (self.is_own_tool(plan) and not delegates(plan))

    def _due(self, plan: PlannedCall) -> Due:
        """When a call must end. A run that is done may say so when its time is up, too."""
        due, budget = self._bounds.work_due(self._state.meter.working_s), self._state.budget
        if self.is_completion(plan):
            if self._prepared.output is None or due.seconds is None:
                return Due(None)
            return Due(max(due.seconds, LAST_LOOK_S), due.kind)
        return due if budget is None else budget.sooner(due)
