"""How full a model's window is, and how far it is to be emptied."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness_actors.plan import CompactionPlan, ToolPolicy

LEAST_RATIO, MOST_RATIO = 0.25, 4.0
"""Of the provider's count to ours; what is outside is a fault of either."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Shares of a window, each above 0 and at most 1.

    Attributes:
        blocking: Of a request that is not sent before room was made.
        low_water: How full the window may be then. The lower it is, the seldomer a request's
            beginning changes, which providers keep in their caches.
        newest: What the newest messages, which stay as they are, may take of it.
    """

    blocking: float = 0.95
    low_water: float = 0.45
    newest: float = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """What is known of a request that is too large.

    Attributes:
        window_tokens: How large a request may be.
        request_tokens: How large it is, the provider's counts included.
        overhead_tokens: Of that, prompt and tools, as we count them.
        plan: Version of the plan by which it is shown; 0 for none.
        policies: Of the agent's tools.
        waits: Nobody has tried to make room since.
        refused: Its provider has refused it.
    """

    window_tokens: int
    request_tokens: int
    overhead_tokens: int
    plan: int = 0
    policies: Mapping[str, Any] = field(default_factory=dict)
    waits: bool = True
    refused: bool = False

    def ratio(self, shown_tokens: int) -> float:
        """What a token of ours is by the provider's count.

        Args:
            shown_tokens: Of the messages of the request, as we count them.
        """
        counted = self.overhead_tokens + shown_tokens
        return min(MOST_RATIO, max(LEAST_RATIO, self.request_tokens / max(1, counted)))


def shown_tokens(log_tokens: int, view_tokens: int | None) -> int:
    """Tokens of what is shown: of a view where there is one."""
    return log_tokens if view_tokens is None else view_tokens


def next_version(plan: CompactionPlan | None) -> tuple[int, int]:
    """Version and base of the plan that follows one."""
    base = 0 if plan is None else plan.version
    return base + 1, base


def as_policies(plain: Mapping[str, Any]) -> dict[str, ToolPolicy]:
    """Policies from the plain values that a `Pressure` has of them."""
    from harness_actors.plan.plan import tool_policy

    return {name: tool_policy(one) for name, one in plain.items()}
