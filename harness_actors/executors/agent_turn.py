"""The third executor of a cycle: one turn of the agent."""

from collections import OrderedDict
from pathlib import Path
from typing import Any

from harness_actors.events import TurnCompleted, TurnStarted
from harness_actors.ports import Agent, RunContext
from harness_actors.records import RunSpec
from harness_actors.signals import Parked, RunEnd, Signal, TurnComplete, Waiting, Yielded
from harness_actors.state import (
    AGENT_TURN,
    ANSWERS,
    BRIEFER,
    BUDGET,
    CHANGED_FILES,
    CHILD_RESULTS,
    CHILDREN,
    CHILDREN_USAGE,
    MAIL,
    OFFERED,
    OPEN_CALLS,
    PRESSURE,
    QUESTIONS,
    QUESTIONS_ASKED,
    REQUEST_TOKENS,
    SAID_DONE,
    STALLED_ROUNDS,
    STANDING,
    TOOL_USAGE,
    TURN,
    TURN_BEGAN,
    TURN_COUNT,
    UNJUDGED,
    USAGE,
    VERIFIED,
    StateKey,
    TurnProgress,
)
from harness_actors.turn import (
    AgentTurnServices,
    KnownProgress,
    PreparedAgent,
    TurnLoop,
    begin_session,
    begin_task,
    end_session,
    may_delegate,
    prepare,
    refused_input,
)
from harness_actors.turn.child_copies import note_changes
from harness_actors.turn.contract_questions import ask_first, tell_answers

PREPARED_AGENTS = 64
"""Agents kept ready; runs of one batch share one."""


class AgentTurn:
    """Counts turns, puts the task into the log, and lets the loop do the rounds.

    A turn that was parked, or whose process died, is the same turn when it goes on: it
    is not counted or announced again.
    """

    name = AGENT_TURN
    reads: tuple[StateKey[Any], ...] = (
        TURN_COUNT,
        TURN,
        TURN_BEGAN,
        SAID_DONE,
        OPEN_CALLS,
        USAGE,
        REQUEST_TOKENS,
        BUDGET,
        CHANGED_FILES,
        CHILDREN,
        CHILD_RESULTS,
        CHILDREN_USAGE,
        MAIL,
        BRIEFER,
        QUESTIONS,
        QUESTIONS_ASKED,
        ANSWERS,
        STANDING,
        STALLED_ROUNDS,
        PRESSURE,
        OFFERED,
        TOOL_USAGE,
        UNJUDGED,
        VERIFIED,
    )
    reads_log = True

    def __init__(self, services: AgentTurnServices) -> None:
        self._services = services
        self._progress = KnownProgress()
        self._ready: OrderedDict[tuple[int, str, bool, bool, bool, bool], PreparedAgent] = (
            OrderedDict()
        )

    async def handle(
        self, signal: Signal, context: RunContext
    ) -> TurnComplete | Parked | Waiting | Yielded:
        prepared = await self._prepared(context)
        workspace = await self._workspace(context)
        if context.get(TURN) is None:
            begun = await self._begin(context, prepared)
            if isinstance(begun, TurnComplete):
                self._end(context, begun)
            if begun is not None:
                return begun
        elif context.spec.config.contract is not None:
            await tell_answers(context, prepared)
        progress = self._progress.of(context, prepared)
        loop = TurnLoop(context, prepared, self._services, workspace, progress)
        outcome = await loop.run()
        if isinstance(outcome, TurnComplete):
            await note_changes(context, self._services)
            self._end(context, outcome)
        return outcome

    async def _begin(
        self, context: RunContext, prepared: PreparedAgent
    ) -> TurnComplete | Waiting | None:
        """Begin a turn; how it ends already, where a guard does not let the task pass, or that
        the user is asked first."""
        refused: TurnComplete | Waiting | None = None
        is_first = context.get(TURN_COUNT) == 0
        if is_first:
            guarded = (await begin_session(context, prepared, self._services)).plain
            if "ends" in guarded:
                refused = refused_input(guarded["ends"])
            await self._services.bring_artifacts(context.spec)
            # In one delta with the count: after a crash either both are there or neither.
            await begin_task(context, prepared, not_accepted=guarded.get("denied", ""))
        context.increment(TURN_COUNT, 1)
        context.set(TURN, TurnProgress())
        if context.spec.config.turn_limits is not None:
            context.set(TURN_BEGAN, context.get(USAGE))
        context.emit(
            TurnStarted(turn=context.get(TURN_COUNT), max_turns=context.spec.config.max_turns)
        )
        if is_first and refused is None and context.spec.config.contract is not None:
            return await ask_first(context, prepared)
        return refused

    async def over(self, agent: Agent, spec: RunSpec, end: RunEnd, turn: int) -> None:
        """The end of a run that was served here is on disk."""
        await end_session(agent, spec, end, turn, self._services.in_thread)

    def _end(self, context: RunContext, outcome: TurnComplete) -> None:
        progress = context.get(TURN) or TurnProgress()
        context.set(TURN, None)
        if context.get(SAID_DONE) is not None:
            context.set(SAID_DONE, None)
        context.emit(
            TurnCompleted(
                turn=context.get(TURN_COUNT),
                rounds=progress.rounds,
                ending=outcome.ending,
                token_estimate=context.get(REQUEST_TOKENS),
            )
        )

    async def _workspace(self, context: RunContext) -> Path | None:
        spec = context.spec.workspace
        if spec is None:
            return None
        if context.get(TURN_COUNT) == 0:
            path: Path = await self._services.in_thread(self._services.prepare_workspace, spec)
            return path
        return Path(spec.path)

    async def _prepared(self, context: RunContext) -> PreparedAgent:
        agent, config = context.agent, context.spec.config
        # By identity: agents need not be hashable. An entry holds its agent, so the id of
        # one that is listed cannot be taken by another.
        reads_back = context.plan is not None
        facts = (config.artifacts is not None, config.contract is not None, reads_back)
        depth = 0 if context.spec.parent is None else context.spec.parent.depth
        delegates = may_delegate(agent, config, depth)
        key = (id(agent), config.completion, *facts, delegates)
        ready = self._ready.get(key)
        if ready is None:
            counter = self._services.counter_for(agent.model.name)
            self._ready[key] = ready = await prepare(
                agent, config, counter, reads_back=reads_back, depth=depth
            )
            while len(self._ready) > PREPARED_AGENTS:
                self._ready.popitem(last=False)
        return ready
