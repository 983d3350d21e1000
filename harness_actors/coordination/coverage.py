"""How the contract of a run stands, by the entries of its state: for its result."""

from collections.abc import Mapping
from typing import Any

from harness_actors.results import ContractResult, Requirement
from harness_actors.state import ANSWERS, COVERAGE, VERIFIED
from harness_actors.turn.contract_questions import with_answers

SHOWN_CHARS = 200
"""Of a description, in a result."""


def contract_result(
    contract: Mapping[str, Any] | None, values: Mapping[str, Any]
) -> ContractResult | None:
    """How a contract stood when it was last verified; None where there is none.

    Args:
        contract: Its plain values, as the settings of the run have them.
        values: The entries of the state of the run.
    """
    if contract is None:
        return None
    contract = with_answers(contract, values.get(ANSWERS.name) or {})
    verified, coverage = values.get(VERIFIED.name), values.get(COVERAGE.name) or {}
    requirements = tuple(
        _requirement(output, coverage.get(output["id"])) for output in contract["outputs"]
    )
    asked = tuple(
        one["question"] for one in contract.get("questions", ()) if one.get("answer") is None
    )
    satisfied = verified is not None and bool(verified["satisfied"])
    return ContractResult(
        satisfied=satisfied,
        attempts=0 if verified is None else verified["attempt"],
        recommendation=_recommended(contract, requirements, satisfied=satisfied),
        requirements=requirements,
        open_questions=asked,
    )


def _requirement(output: Mapping[str, Any], entry: Mapping[str, Any] | None) -> Requirement:
    text = output["description"]
    return Requirement(
        id=output["id"],
        description=text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…",
        status="unmet" if entry is None else entry["status"],
        why="nobody has looked" if entry is None else entry.get("notes", ""),
        optional=bool(output.get("optional")),
    )


def _recommended(
    contract: Mapping[str, Any], requirements: tuple[Requirement, ...], *, satisfied: bool
) -> str:
    if satisfied:
        return "done"
    enough = {"met", "skipped"}
    if contract.get("acceptability", {}).get("allow_partial"):
        enough.add("partially_met")
    there = all(one.optional or one.status in enough for one in requirements)
    return "need_user" if there else "continue"
