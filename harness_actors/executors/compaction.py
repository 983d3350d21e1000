"""The second executor of a cycle: keeps a conversation within its model's window."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from harness_actors.compaction import Ladder
from harness_actors.config import CompactionConfig
from harness_actors.events import ContextCompacted, ContextPressure, StrategyFailed
from harness_actors.plan import Action
from harness_actors.ports import RunContext, Strategy
from harness_actors.signals import CompactionComplete, RepairComplete, Signal
from harness_actors.state import COMPACTION, PRESSURE, REQUEST_TOKENS, TURN_COUNT, StateKey

SOFT = CompactionConfig().soft


class Compaction:
    """Reports pressure, takes a plan that is offered, and makes room where the agent turn says that
    it needs some.

    It is sent token totals and not the log; that is sent where room is to be made.

    Args:
        own: Strategies of an agent's own. With some, it travels in that agent's code.
    """

    name = COMPACTION
    reads: tuple[StateKey[Any], ...] = (REQUEST_TOKENS, TURN_COUNT, PRESSURE)
    reads_log = False

    def __init__(self, own: Sequence[Strategy] = ()) -> None:
        self._own = tuple(own)

    async def handle(self, signal: Signal, context: RunContext) -> CompactionComplete:
        config, turns = context.spec.config, context.get(TURN_COUNT)
        limit, settings = config.window_tokens, config.compaction
        tokens = context.get(REQUEST_TOKENS)
        if turns == 0:
            # The first turn has not put the task into the log yet.
            tokens += sum(message.tokens for message in context.spec.task)
        needed = tokens >= limit * (SOFT if settings is None else settings.soft)
        if needed:
            context.emit(ContextPressure(turn=turns, tokens=tokens, max_input_tokens=limit))
        freed = 0
        if settings is not None:
            freed = _take_offer(context, settings)
            freed = freed or await _make_room(context, settings, self._own)
        return CompactionComplete(
            repairs_made=signal.repairs_made if isinstance(signal, RepairComplete) else 0,
            tokens=tokens - freed,
            plan_updated=freed > 0,
            tokens_freed=freed,
            compaction_needed=needed,
        )


def _take_offer(context: RunContext, settings: CompactionConfig) -> int:
    """Adopt the plan that is offered, if the next request fits by it; how much is gained."""
    if context.offer is None:
        return 0
    plan, freed = context.offer
    pressure, tokens = context.get(PRESSURE), context.get(REQUEST_TOKENS)
    window = context.spec.config.window_tokens if pressure is None else pressure.window_tokens
    if tokens - freed >= settings.blocking * window:
        return 0
    if pressure is not None and pressure.waits:
        context.set(PRESSURE, replace(pressure, waits=False, request_tokens=tokens - freed))
    sizes = Counter[Action]()
    for span in plan.spans:
        sizes[span.action] += span.end - span.start
    context.adopt(plan)
    context.increment(REQUEST_TOKENS, -freed)
    context.emit(
        ContextCompacted(
            turn=context.get(TURN_COUNT),
            version=plan.version,
            tokens_before=tokens,
            tokens_after=tokens - freed,
            window_tokens=window,
            cleared=sizes["clear"],
            externalized=sizes["externalize"],
            dropped=sizes["drop"],
            summarized=sizes["summarize"],
        )
    )
    return freed


async def _make_room(
    context: RunContext, settings: CompactionConfig, own: Sequence[Strategy]
) -> int:
    """Climb the ladder where the turn waits for that; how many tokens were gained."""
    pressure = context.get(PRESSURE)
    if pressure is None or not pressure.waits:
        return 0
    ladder = Ladder(context.log, context.plan, pressure, settings, context.spec.task, own)
    for _ in ladder.climb():
        # Other runs have their turn meanwhile.
        await asyncio.sleep(0)
    made = ladder.result()
    context.set(PRESSURE, made.answered(pressure))
    for name, problem in made.problems:
        turn = context.get(TURN_COUNT)
        context.emit(StrategyFailed(turn=turn, strategy=name, problem=problem))
    if made.plan is None:
        return 0
    freed = pressure.request_tokens - made.request_tokens
    context.adopt(made.plan)
    context.increment(REQUEST_TOKENS, -freed)
    context.emit(
        ContextCompacted(
            turn=context.get(TURN_COUNT),
            version=made.plan.version,
            tokens_before=pressure.request_tokens,
            tokens_after=made.request_tokens,
            window_tokens=pressure.window_tokens,
            cleared=made.cleared,
            externalized=made.externalized,
            dropped=made.dropped,
            summarized=made.summarized,
        )
    )
    return freed
