"""Every bound that a run can have, too far away to be reached.

Tests of one thing alone do not see what breaks where two meet, and most runs of real users are
bounded in some way. So where a test says nothing of a bound its run has it, and must be the same
as without.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from harness_actors.config import HarnessConfig, Limits, StallConfig

FAR = Limits(
    model_calls=10_000,
    tool_calls=10_000,
    tokens=10**9,
    cost_usd=1e6,
    time_s=1e6,
    working_s=1e6,
)
FAR_STALL = StallConfig(threshold=1_000, no_news=1_000, failures=1_000)


def bounded(settings: Mapping[str, Any] | None = None) -> HarnessConfig:
    """The config of these settings, with each bound that they do not give far away."""
    given = {"stall": FAR_STALL, **(settings or {})}
    limits = given.get("limits", {})
    if not isinstance(limits, Limits):
        given["limits"] = {**asdict(FAR), **limits}
    return HarnessConfig.from_mapping(given)
