"""Verifies a contract: all is looked at anew, and what was found before counts for nothing."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness_actors.contracts.combining import combine
from harness_actors.contracts.contract import RequiredOutput, TaskContract
from harness_actors.contracts.file_findings import FilePredicate
from harness_actors.contracts.findings import CONFIRMED_BY_MODEL, Finding
from harness_actors.contracts.gaps import CompletionReport, GapReport
from harness_actors.contracts.leaves import (
    AlwaysTrue,
    ContainsText,
    FileExists,
    JsonSchemaValid,
    Leaf,
)
from harness_actors.contracts.ledger import (
    VALUE_CHARS,
    CoverageLedger,
    RequirementCoverage,
    RequirementStatus,
)
from harness_actors.contracts.looking import Grounds, Looks
from harness_actors.contracts.predicates import (
    leaves,
)
from harness_actors.errors import ConfigError

VERIFICATION_S = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What one attempt to be done came to.

    Attributes:
        contract: What was required.
        ledger: How that stands now.
        findings: What was found, by the ids of the outputs.
        gaps: What is missing.
        confidence: How sure the model said that it is; None where it did not.
    """

    contract: TaskContract
    ledger: CoverageLedger
    findings: Mapping[str, Finding]
    gaps: GapReport
    confidence: float | None = None

    @property
    def satisfied(self) -> bool:
        """Whether nothing is missing."""
        return self.gaps.is_empty

    def report(self, summary: str = "") -> CompletionReport:
        """What the task came to, with the model's own words."""
        return CompletionReport.of(
            self.contract, self.ledger, confidence=self.confidence, summary=summary
        )

    def assuming(self) -> "Verification":
        """The same, with what only a run can tell taken as met, by whoever says so."""
        ledger = self.ledger
        for name, finding in self.findings.items():
            if finding.needs_run:
                ledger = ledger.skip(name, reason=f"assumed: {finding.why}")
        gaps = GapReport.of(self.contract, ledger, confidence=self.confidence)
        return Verification(
            contract=self.contract,
            ledger=ledger,
            findings=self.findings,
            gaps=gaps,
            confidence=self.confidence,
        )

    def as_plain(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "satisfied": self.satisfied,
            "percent": round(self.ledger.percent(self.contract), 1),
            "verdicts": {name: finding.verdict for name, finding in self.findings.items()},
            "ledger": self.ledger.as_plain(),
            "gaps": self.gaps.as_plain(),
        }


class ContractVerifier:
    """Verifies one contract, as often as somebody wants to be done.

    It holds nothing of what it has found.

    Args:
        contract: The contract.
        limit_s: How long one verification may take, in seconds. What was not looked at by then is
            unknown, and so not met.
    """

    def __init__(self, contract: TaskContract, *, limit_s: float = VERIFICATION_S) -> None:
        self._contract = contract
        self._limit_s = limit_s
        self._leaves = [list(leaves(output.predicate)) for output in contract.outputs]

    async def verify(
        self,
        grounds: Grounds,
        *,
        ledger: CoverageLedger | None = None,
        attempt: int = 1,
        confidence: float | None = None,
    ) -> Verification:
        """Look at all that is required.

        What runs or asks comes first, in the order of the contract, and files last: what is found
        of them is so after the last command.

        Args:
            grounds: What is looked at.
            ledger: What is skipped there is not looked at; of all else nothing is taken over.
                None for none.
            attempt: Which attempt to be done this is, from 1.
            confidence: How sure the model says that it is, from 0 to 1; None for nothing said.

        Raises:
            ConfigError: The ledger is of another contract. What fails while it looks is a finding.
        """
        known = ledger or CoverageLedger.begin(self._contract)
        if known.contract_id != self._contract.id:
            problem = f"is of contract {known.contract_id!r}, not of {self._contract.id!r}"
            raise ConfigError("ledger", problem)
        at = grounds.now()
        until = asyncio.get_running_loop().time() + self._limit_s
        looks = Looks(grounds, attempt, until, self._limit_s)
        wanted = [
            (place, leaf)
            for place, output in enumerate(self._contract.outputs)
            if known.entries[output.id].status != "skipped"
            for leaf in self._leaves[place]
        ]
        found = await _all_findings(looks, [leaf for _, leaf in wanted])
        by_output: dict[int, list[Finding]] = {}
        for (place, _), finding in zip(wanted, found, strict=True):
            by_output.setdefault(place, []).append(finding)
        findings: dict[str, Finding] = {}
        entries = dict(known.entries)
        for place, output in enumerate(self._contract.outputs):
            if place in by_output:
                finding = findings[output.id] = _combined(output, by_output[place])
                entries[output.id] = _entry(output, finding)
        now = CoverageLedger(contract_id=self._contract.id, entries=entries, attempt=attempt, at=at)
        gaps = GapReport.of(self._contract, now, confidence=confidence)
        return Verification(
            contract=self._contract,
            ledger=now,
            findings=findings,
            gaps=gaps,
            confidence=confidence,
        )


async def _all_findings(looks: Looks, wanted: list[Leaf]) -> list[Finding]:
    """Of each predicate, in their order."""
    found: dict[int, Finding] = {}
    last: dict[int, FilePredicate] = {}
    for place, leaf in enumerate(wanted):
        match leaf:
            case AlwaysTrue():
                found[place] = CONFIRMED_BY_MODEL
            case FileExists() | ContainsText() | JsonSchemaValid():
                last[place] = leaf
            case _:
                found[place] = await looks.at(leaf)
    if last:
        found.update(zip(last, await looks.at_files(list(last.values())), strict=True))
    return [found[place] for place in range(len(wanted))]


def _combined(output: RequiredOutput, found: list[Finding]) -> Finding:
    if len(found) == 1 and isinstance(output.predicate, Leaf):
        return found[0]
    # In the same order as `leaves` goes through them.
    coming = iter(found)
    return combine(output.predicate, lambda _: next(coming))


def _entry(output: RequiredOutput, finding: Finding) -> RequirementCoverage:
    return RequirementCoverage(
        requirement_id=output.id,
        status=_status(finding),
        evidence=finding.evidence,
        notes=finding.why[:VALUE_CHARS],
    )


def _status(finding: Finding) -> RequirementStatus:
    if finding.verdict == "met":
        return "met"
    return "partially_met" if any(part.verdict == "met" for part in finding.parts) else "unmet"
