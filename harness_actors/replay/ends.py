"""How runs have ended by the journal, as it is said again in a rerun."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from harness_actors.results import HarnessResult
from harness_actors.signals import RunEnd
from harness_actors.state import (
    CHANGED_FILES,
    CHILDREN_USAGE,
    USAGE,
    VERIFIED,
    StateDelta,
    Verified,
    Write,
)


def as_end(result: HarnessResult) -> RunEnd:
    """An ending that the journal has, as somebody decides it."""
    return RunEnd(
        status=result.status,
        reason=result.reason,
        output_text=result.output_text,
        completion_verified=result.completion_verified,
        output=result.output,
    )


def left_by(result: HarnessResult, changed: Mapping[str, Any] | None) -> StateDelta:
    """What a run has used and come to, of which the one that has begun it is told.

    Args:
        result: Its own.
        changed: What it has changed in its copy, as plain values; None where it has none.
    """
    used = [Write(USAGE.name, "increment", asdict(result.usage))]
    if result.children_usage is not None:
        used.append(Write(CHILDREN_USAGE.name, "increment", asdict(result.children_usage)))
    if (contract := result.contract) is not None and contract.attempts:
        found = Verified(attempt=contract.attempts, at=0.0, satisfied=contract.satisfied, marks="")
        used.append(Write(VERIFIED.name, "set", asdict(found)))
    if changed is not None:
        used.append(Write(CHANGED_FILES.name, "set", changed))
    return StateDelta(tuple(used))
