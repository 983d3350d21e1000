"""Whether the next request fits the window of its model."""

from dataclasses import asdict, replace

from harness_actors.compaction import policies_of
from harness_actors.config import CompactionConfig
from harness_actors.ports import RunContext
from harness_actors.signals import TurnComplete, Yielded
from harness_actors.state import OFFERED, PRESSURE, REQUEST_TOKENS, Pressure
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

    @property
    def _version(self) -> int:
        plan = self._context.plan
        return 0 if plan is None else plan.version

    def full(self) -> Yielded | TurnComplete | None:
        """What the turn comes to where the next request is too large, or a plan is offered by which
        it is smaller; None where it may be made."""
        tokens, size = self._context.get(REQUEST_TOKENS), self._size
        if (version := self._context.offered) > max(self._version, self._context.get(OFFERED)):
            # Whoever makes room takes it; in a workflow where nobody does, it is left.
            self._context.set(OFFERED, version)
            return Yielded()
        if tokens < self._blocking * size:
            return None
        tried = self._pressure
        # One that was guessed from a refusal ends no run: how large it is, its provider knows.
        said = self._context.spec.config.window_tokens
        if tried is not None and tried.waits:
            # Nobody makes room in this workflow.
            fits = tokens <= said and not tried.refused
            return None if fits else _too_large(tokens, tried)
        if tried is not None and tokens < GROWTH * tried.request_tokens:
            asked_in_vain = tried.refused and self._version == tried.plan
            if tokens <= said and not asked_in_vain:
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

    def answered(self, input_tokens: int) -> None:
        """A request was answered: whatever is refused later is another one.

        Args:
            input_tokens: Its size as its provider has counted it; 0 where that is not known.
        """
        known = self._pressure
        if known is None:
            return
        # A window that was guessed from a refusal is as large as this, at least.
        said = self._context.spec.config.window_tokens
        size = max(known.window_tokens, min(said, input_tokens))
        if known.refused or size != known.window_tokens:
            self._pressure = replace(known, refused=False, window_tokens=size)
            self._context.set(PRESSURE, self._pressure)

    def _yield(self, tokens: int, size: int, *, refused: bool = False) -> Yielded:
        tools = self._prepared.by_name.values()
        policies = policies_of(tool.spec for tool in tools)
        self._context.set(
            PRESSURE,
            Pressure(
                window_tokens=max(1, size),
                request_tokens=tokens,
                overhead_tokens=self._prepared.overhead_tokens,
                plan=self._version,
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
