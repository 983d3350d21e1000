"""What the runs of a batch used, those included of which no line of the results tells."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from harness_actors.batch.run_directory import Runs
from harness_actors.records import RunHeading
from harness_actors.results import Usage
from harness_actors.state import USAGE

COUNTS = (
    "model_calls",
    "tool_calls",
    "turns",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
)


class UsageSum:
    """What many runs used together.

    Attributes:
        runs: How many they are.
    """

    def __init__(self) -> None:
        self.runs = 0
        self._counts = Counter(dict.fromkeys(COUNTS, 0))
        self._cost_usd = 0.0

    def add(self, *, cost_usd: float, **counts: int) -> None:
        """A run used this much of each of `COUNTS`."""
        self.runs += 1
        self._counts.update(counts)
        self._cost_usd += cost_usd

    def include(self, other: "UsageSum") -> None:
        self.runs += other.runs
        self._counts.update(other._counts)
        self._cost_usd += other._cost_usd

    def as_mapping(self) -> dict[str, Any]:
        """The sums as plain values, for `summary.json`."""
        return {**self._counts, "cost_usd": round(self._cost_usd, 6)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlisted:
    """What those runs used that no line tells of.

    Attributes:
        unfinished: Those that are not over, until now.
        ended: Those that are: attempts that another one took the place of, and runs whose
            line the next command writes.
    """

    unfinished: UsageSum = field(default_factory=UsageSum)
    ended: UsageSum = field(default_factory=UsageSum)

    def as_mapping(self) -> dict[str, Any]:
        """The sums as plain values, for `summary.json`."""
        return {
            name: {"runs": used.runs, "usage": used.as_mapping()}
            for name, used in (("unfinished", self.unfinished), ("unlisted", self.ended))
        }


def unlisted_usage(journal: Runs, listed: Collection[str]) -> Unlisted:
    """Add up what the runs of a journal used, without those of which lines tell.

    Args:
        journal: The journal, which may be written meanwhile.
        listed: The runs of the lines.

    Raises:
        StoreError: It cannot be read.
    """
    found = Unlisted()
    for heading in journal.headings():
        if heading.run_id in listed:
            continue
        usage = _usage(journal, heading)
        (found.unfinished if heading.end is None else found.ended).add(
            model_calls=usage.model_calls,
            tool_calls=usage.tool_calls,
            turns=heading.turns,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            cost_usd=usage.cost_usd,
        )
    return found


def _usage(journal: Runs, heading: RunHeading) -> Usage:
    if heading.end is not None:
        return heading.end.usage
    # Without a round there is none, and a state costs more to read than a heading.
    stored = journal.load_run(heading.run_id) if heading.rounds else None
    return Usage() if stored is None else Usage(**stored.state.values.get(USAGE.name, {}))
