"""How full a model's window is, and how far it is to be emptied."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness_actors.plan import CompactionPlan, ToolPolicy
from harness_actors.plan.plan import tool_policy
from harness_actors.state import Pressure

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


def ratio_of(pressure: Pressure, shown_tokens: int) -> float:
    """What a token of ours is by the provider's count.

    Args:
        pressure: Of the newest request.
        shown_tokens: Of its messages, as we count them.
    """
    counted = max(1, pressure.overhead_tokens + shown_tokens)
    return min(MOST_RATIO, max(LEAST_RATIO, pressure.request_tokens / counted))


def next_version(plan: CompactionPlan | None) -> tuple[int, int]:
    """Version and base of the plan that follows one."""
    base = 0 if plan is None else plan.version
    return base + 1, base


def as_policies(plain: Mapping[str, Any]) -> dict[str, ToolPolicy]:
    """Policies from the plain values that a `Pressure` has of them."""
    return {name: tool_policy(one) for name, one in plain.items()}
