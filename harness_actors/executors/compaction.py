"""The second executor of a cycle: measures how full the model's window is."""

from typing import Any

from harness_actors.events import ContextPressure
from harness_actors.ports import RunContext
from harness_actors.signals import CompactionComplete, RepairComplete, Signal
from harness_actors.state import COMPACTION, REQUEST_TOKENS, TURN_COUNT, StateKey

SOFT_PERCENT = 80


class Compaction:
    """Reports pressure when the next request reaches 80 % of `max_input_tokens`.

    It is sent token totals and not the log.
    """

    name = COMPACTION
    reads: tuple[StateKey[Any], ...] = (REQUEST_TOKENS, TURN_COUNT)
    reads_log = False

    async def handle(self, signal: Signal, context: RunContext) -> CompactionComplete:
        turns, limit = context.get(TURN_COUNT), context.spec.config.max_input_tokens
        tokens = context.get(REQUEST_TOKENS)
        if turns == 0:
            # The first turn has not put the task into the log yet.
            tokens += sum(message.tokens for message in context.spec.task)
        needed = tokens * 100 >= limit * SOFT_PERCENT
        if needed:
            context.emit(ContextPressure(turn=turns, tokens=tokens, max_input_tokens=limit))
        return CompactionComplete(
            repairs_made=signal.repairs_made if isinstance(signal, RepairComplete) else 0,
            tokens=tokens,
            compaction_needed=needed,
        )
