"""The ledger of a contract: how each requirement stood when it was last looked at, and why."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self, get_args

from harness_actors.contracts.contract import TaskContract
from harness_actors.contracts.fields import check_text, shown
from harness_actors.errors import ConfigError

RequirementStatus = Literal["unmet", "met", "partially_met", "skipped"]
STATUSES: tuple[RequirementStatus, ...] = get_args(RequirementStatus)
EvidenceKind = Literal[
    "artifact", "response", "tool_result", "user_confirmation", "command", "judgement", "custom"
]
VALUE_CHARS = 500
"""Of one piece of evidence, and of the notes of a requirement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Something that was seen.

    Attributes:
        kind: What it is.
        ref: Where: a path, the id of a call, a command, a name.
        value: What was there, in short.
    """

    kind: EvidenceKind
    ref: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequirementCoverage:
    """How one requirement stands.

    Attributes:
        requirement_id: The id of its output.
        status: How it stands; `skipped` was left out by somebody's word, and counts as met.
        evidence: What shows it.
        notes: What is missing, or why it is skipped; empty where it is met.
    """

    requirement_id: str
    status: RequirementStatus = "unmet"
    evidence: tuple[Evidence, ...] = ()
    notes: str = ""

    def is_enough(self, *, allow_partial: bool = False) -> bool:
        """Whether it counts as met, where a part may be enough or not."""
        enough = self.status in ("met", "skipped")
        return enough or (allow_partial and self.status == "partially_met")


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageLedger:
    """How all requirements of a contract stand. A value: what changes it returns another one.

    Attributes:
        contract_id: The contract.
        entries: By the ids of its outputs, in their order.
        attempt: The attempt that they were last looked at for, from 1; 0 for none.
        at: When that was, in seconds since the epoch.
    """

    contract_id: str
    entries: Mapping[str, RequirementCoverage]
    attempt: int = 0
    at: float = 0.0

    @classmethod
    def begin(cls, contract: TaskContract) -> Self:
        """The ledger of a contract of which nothing is met yet."""
        ids = [output.id for output in contract.outputs]
        return cls(
            contract_id=contract.id,
            entries={each: RequirementCoverage(requirement_id=each) for each in ids},
        )

    def put(self, *changed: RequirementCoverage) -> Self:
        """The ledger with some entries in place of those of their ids.

        Raises:
            KeyError: There is no such requirement.
        """
        if strange := [one for one in changed if one.requirement_id not in self.entries]:
            raise KeyError(strange[0].requirement_id)
        entries = {**self.entries, **{one.requirement_id: one for one in changed}}
        return replace(self, entries=entries)

    def skip(self, requirement_id: str, *, reason: str) -> Self:
        """The ledger with one requirement left out, by the word of whoever may say so.

        Raises:
            ConfigError: `reason` is empty.
            KeyError: There is no such requirement.
        """
        check_text("reason", reason)
        notes = reason[:VALUE_CHARS]
        return self.put(
            RequirementCoverage(requirement_id=requirement_id, status="skipped", notes=notes)
        )

    def changed_since(self, earlier: "CoverageLedger") -> tuple[RequirementCoverage, ...]:
        """The entries that are not as they were: what has to be written down."""
        return tuple(
            entry for name, entry in self.entries.items() if earlier.entries.get(name) != entry
        )

    def counts(self, ids: Iterable[str], *, allow_partial: bool = False) -> int:
        """How many of some requirements are met, or skipped."""
        return sum(self.entries[each].is_enough(allow_partial=allow_partial) for each in ids)

    def percent(self, contract: TaskContract) -> float:
        """How much of what is required is met, from 0 to 100; 100 where nothing is required."""
        required = [output.id for output in contract.required]
        return 100.0 * self.counts(required) / len(required) if required else 100.0

    def as_plain(self) -> dict[str, Any]:
        """As plain values, which `from_plain` takes."""
        return {
            "contract_id": self.contract_id,
            "attempt": self.attempt,
            "at": self.at,
            "entries": [asdict(entry) for entry in self.entries.values()],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The ledger of what `as_plain` gave.

        Raises:
            ConfigError: A status is unknown.
        """
        return cls(
            contract_id=plain["contract_id"],
            attempt=plain["attempt"],
            at=plain["at"],
            entries={one["requirement_id"]: _entry(one) for one in plain["entries"]},
        )


def status_of(text: str) -> RequirementStatus:
    """The status of a word.

    Raises:
        ConfigError: There is none.
    """
    for status in STATUSES:
        if status == text:
            return status
    raise ConfigError("status", f"must be one of {', '.join(STATUSES)}, not {shown(text)}")


def _entry(plain: Mapping[str, Any]) -> RequirementCoverage:
    return RequirementCoverage(
        requirement_id=plain["requirement_id"],
        status=status_of(plain["status"]),
        evidence=tuple(Evidence(**one) for one in plain["evidence"]),
        notes=plain["notes"],
    )
