"""What the findings of several predicates come to together, in a logic of three values."""

from collections.abc import Callable, Sequence
from typing import Literal

from harness_actors.contracts.findings import Finding
from harness_actors.contracts.leaves import (
    Leaf,
)
from harness_actors.contracts.predicates import (
    AllOf,
    AnyOf,
    Not,
    Predicate,
)


def combine(predicate: Predicate, found: Callable[[Leaf], Finding]) -> Finding:
    """The finding of a predicate.

    What could not be told of one part leaves the whole untold, unless the others decide it alone;
    so `Not` of a command that crashed does not hold.

    Args:
        predicate: The predicate.
        found: The finding of each leaf.
    """
    match predicate:
        case AllOf(parts):
            return _joined([combine(part, found) for part in parts], "unmet", "met")
        case AnyOf(parts):
            return _joined([combine(part, found) for part in parts], "met", "unmet")
        case Not(part):
            return _opposite(part, combine(part, found))
        case _:
            return found(predicate)


def _joined(
    parts: Sequence[Finding], deciding: Literal["met", "unmet"], else_: Literal["met", "unmet"]
) -> Finding:
    """One with the deciding verdict decides; else one that is unknown leaves it unknown."""
    verdicts = {part.verdict for part in parts}
    unknown = [part for part in parts if part.verdict == "unknown"]
    verdict = deciding if deciding in verdicts else "unknown" if unknown else else_
    missing = [part.why for part in parts if part.verdict != "met" and part.why]
    return Finding(
        verdict=verdict,
        why="" if verdict == "met" else "; ".join(dict.fromkeys(missing)),
        evidence=tuple(one for part in parts if part.verdict == "met" for one in part.evidence),
        parts=tuple(parts),
        needs_run=verdict == "unknown" and all(part.needs_run for part in unknown),
    )


def _opposite(part: Predicate, finding: Finding) -> Finding:
    match finding.verdict:
        case "met":
            return Finding(verdict="unmet", why=f"it is so, and must not be: {part}")
        case "unmet":
            return Finding(verdict="met")
        case _:
            return Finding(
                verdict="unknown", why=finding.why, parts=(finding,), needs_run=finding.needs_run
            )
