"""What a verification came to, as it is kept on record: bounded, whatever was found."""

import json
from binascii import b2a_base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

from harness_actors.contracts import CoverageLedger, RequirementCoverage, Verification
from harness_actors.contracts.ledger import RequirementStatus

CHANGES_BYTES = 28 * 1024
CAUSE_BYTES = 14 * 1024
SAID_BYTES = 14 * 1024
"""What is kept of changed entries, of what the model is told, and of what judges have said: less
than one observation may have, together."""
NOTES_CHARS = (500, 200, 80, 30, 0)
"""How much of each note and each piece of evidence is kept, where less does not fit."""

STATUS_OF: Mapping[str, RequirementStatus] = {
    "m": "met",
    "p": "partially_met",
    "s": "skipped",
    "u": "unmet",
}
_LETTERS = {status: letter for letter, status in STATUS_OF.items()}
_RANKS = "upms"
MARK_CHARS = 5


def marks_of(ledger: CoverageLedger) -> str:
    """What tells each entry of a ledger from an earlier one; see `Verified`."""
    return "".join(_mark(entry) for entry in ledger.entries.values())


def _mark(entry: RequirementCoverage) -> str:
    told = entry.notes
    for one in entry.evidence:
        told += f"\0{one.kind}\0{one.ref}\0{one.value}"
    # Of so many entries in each attempt: it need not be secure, only quick.
    checked = crc32(told.encode("utf-8", "replace")) & 0xFFFFFF
    return _LETTERS[entry.status] + b2a_base64(checked.to_bytes(3), newline=False).decode()


def statuses_in(marks: str) -> Iterator[RequirementStatus]:
    """The status of each requirement, in the order of the contract."""
    return (STATUS_OF[letter] for letter in marks[::MARK_CHARS])


def changed_places(marks: str, before: str) -> list[int]:
    """Which entries are not as they were.

    Args:
        marks: Of all entries.
        before: Of the same ones at the attempt before; empty for none.
    """
    if marks == before:
        return []
    return [
        at // MARK_CHARS
        for at in range(0, len(marks), MARK_CHARS)
        if marks[at : at + MARK_CHARS] != before[at : at + MARK_CHARS]
    ]


def is_better(marks: str, before: str) -> bool:
    """Whether a requirement stands better than at the attempt before; not at the first one, for
    what is there then was not asked for by anybody."""
    statuses, earlier = marks[::MARK_CHARS], before[::MARK_CHARS]
    if statuses == earlier:
        return False
    pairs = zip(statuses, earlier, strict=False)
    return any(_RANKS.index(now) > _RANKS.index(then) for now, then in pairs)


def record_of(
    verification: Verification, before: str, said: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """What is kept of a verification.

    Args:
        verification: The verification.
        before: The marks of the attempt before; empty for none.
        said: What judges have answered, with their names.

    Returns:
        Plain values: ``at``, ``marks``, ``changed`` with place, notes and evidence of each changed
        entry, ``cause`` in words for the model, empty where the contract is met, and ``said``.
    """
    ledger = verification.ledger
    marks, entries = marks_of(ledger), list(ledger.entries.values())
    record = {
        "at": ledger.at,
        "marks": marks,
        "changed": _fitting(
            lambda most: [
                _kept(place, entries[place], most) for place in changed_places(marks, before)
            ],
            CHANGES_BYTES,
        ),
        "cause": _cut_to(verification.gaps.text(), CAUSE_BYTES),
    }
    if said:
        record["said"] = _fitting(
            lambda most: [[name, text[:most]] for name, text in said], SAID_BYTES
        )
    return record


def _kept(place: int, entry: RequirementCoverage, most: int) -> list[Any]:
    evidence = [[one.kind, one.ref[:most], one.value[:most]] for one in entry.evidence if most]
    return [place, entry.notes[:most], evidence]


def _fitting(make: Callable[[int], list[Any]], most_bytes: int) -> list[Any]:
    """The longest form that has so many bytes as JSON, or else the shortest one."""
    made: list[Any] = []
    for most in NOTES_CHARS:
        made = make(most)
        if len(json.dumps(made)) <= most_bytes:
            break
    return made


def _cut_to(text: str, most_bytes: int) -> str:
    """A text with its end left out where it has more bytes as JSON."""
    cut = text
    while len(json.dumps(cut)) > most_bytes:
        cut = cut[: len(cut) * 3 // 4]
    return cut if cut == text else f"{cut}\n[and more]"


def entry_of(
    status: RequirementStatus, notes: str, evidence: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """An entry of `COVERAGE`; what is empty is left out of it."""
    entry: dict[str, Any] = {"status": status}
    if notes:
        entry["notes"] = notes
    if evidence:
        entry["evidence"] = [
            dict(zip(("kind", "ref", "value"), one, strict=True)) for one in evidence
        ]
    return entry
