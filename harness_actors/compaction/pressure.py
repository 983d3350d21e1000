"""What a token of ours is to a provider, and which plan follows."""

from harness_actors.plan import CompactionPlan
from harness_actors.state import Pressure

LEAST_RATIO, MOST_RATIO = 1 / 64, 64.0
"""Of the provider's count to ours; what is outside is a fault of either. A line of dots is one
token for ours, and a token for each four of them for others."""


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
