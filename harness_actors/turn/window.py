"""Whether the next request fits the window of its model."""

from dataclasses import asdict, replace

from harness_actors.compaction import policies_of
from harness_actors.config import CompactionConfig
from harness_actors.ports import RunContext
from harness_actors.signals import TurnComplete, Yielded
from harness_actors.state import PRESSURE, REQUEST_TOKENS, Pressure
from harness_actors.turn.preparation import PreparedAgent

REFUSED_SHARE = 0.9
"""Of a request that a provider has refused: how large the next may be. Whoever refuses one does not
say how large its window is."""
GROWTH = 1.1
"""How much larger a request must be than one in which no more room could be made, until that is
tried again."""


class Window:
    """The window of a model, as one turn of one run sees it.

    Args:
        context: The run.
        prepared: Its agent.
        settings: When it is full.
    """

    def __init__(
        self, context: RunContext, prepared: PreparedAgent, settings: CompactionConfig
    ) -> None:
        self._context = context
        self._prepared = prepared
        self._blocking = settings.blocking
        self._pressure = context.get(PRESSURE)

    @classmethod
    def of(cls, context: RunContext, prepared: PreparedAgent) -> "Window | None":
        """That of a turn; None where nobody keeps the conversation within it."""
        settings = context.spec.config.compaction
        return None if settings is None else cls(context, prepared, settings)

    @property
    def _size(self) -> int:
        known = self._pressure
        return self._context.spec.config.window_tokens if known is None else known.window_tokens

    def full(self) -> Yielded | TurnComplete | None:
        """What the turn comes to where the next request is too large; None where it may be made."""
        tokens, size = self._context.get(REQUEST_TOKENS), self._size
        if tokens < self._blocking * size:
            return None
        tried = self._pressure
        if tried is not None and tried.waits:
            # Nobody makes room in this workflow.
            return None if tokens <= size else _too_large(tokens, tried)
        if tried is not None and tokens < GROWTH * tried.request_tokens:
            if tokens <= size:
                return None
            if tokens <= tried.request_tokens:
                return _too_large(tokens, tried)
        return self._yield(tokens, size)

    def refused(self) -> Yielded | TurnComplete:
        """What the turn comes to where a provider has refused a request as too large."""
        tokens, size = self._context.get(REQUEST_TOKENS), self._size
        known = self._pressure
        if known is not None and (known.refused or known.waits):
            return _too_large(tokens, known)
        return self._yield(tokens, min(size, int(tokens * REFUSED_SHARE)), refused=True)

    def answered(self) -> None:
        """A request was answered: whatever is refused later is another one."""
        if self._pressure is not None and self._pressure.refused:
            self._pressure = replace(self._pressure, refused=False)
            self._context.set(PRESSURE, self._pressure)

    def _yield(self, tokens: int, size: int, *, refused: bool = False) -> Yielded:
        plan, tools = self._context.plan, self._prepared.by_name.values()
        policies = policies_of(tool.spec for tool in tools)
        self._context.set(
            PRESSURE,
            Pressure(
                window_tokens=max(1, size),
                request_tokens=tokens,
                overhead_tokens=self._prepared.overhead_tokens,
                plan=0 if plan is None else plan.version,
                policies={name: asdict(policy) for name, policy in policies.items()},
                refused=refused,
            ),
        )
        return Yielded()


def _too_large(tokens: int, tried: Pressure) -> TurnComplete:
    """The end of a run whose request cannot be made to fit."""
    words = f"the next request has {tokens:,} tokens and the window {tried.window_tokens:,}"
    if tried.overhead_tokens >= tried.window_tokens:
        words += f"; prompt and tools alone have {tried.overhead_tokens:,}"
    elif tried.largest is not None:
        words += f"; the largest message, m{tried.largest}, has {tried.largest_tokens:,}"
    return TurnComplete(ending="limit", limit="context", error={"message": words})
