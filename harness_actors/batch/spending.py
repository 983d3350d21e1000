"""What the runs of a batch used, those included of which no line of the results tells."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness_actors.batch.results_file import ResultLine
from harness_actors.batch.roster import Roster
from harness_actors.batch.run_note import RunNote
from harness_actors.records import RunHeading

COUNTS = (
    "model_calls",
    "tool_calls",
    "turns",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
)


MOST = 10**15
"""What one run can use of anything, at most."""


def _possible(used: object) -> Any:
    """A number of a result; 0 if it is not one, so that it does not spoil the sum of all."""
    return used if isinstance(used, int | float) and 0 <= used <= MOST else 0


class UsageSum:
    """What many runs used together.

    Attributes:
        runs: How many they are, without those that they have begun.
    """

    def __init__(self) -> None:
        self.runs = 0
        self._counts = Counter(dict.fromkeys(COUNTS, 0))
        self._cost_usd = 0.0

    def add(self, *, cost_usd: float, **counts: float) -> None:
        """A run used this much of each of `COUNTS`; what no run can have is left out."""
        self.runs += 1
        self.add_below(cost_usd=cost_usd, **counts)

    def add_below(self, *, cost_usd: float, **counts: float) -> None:
        """One that a run has begun used this much; its turns are none of a task's."""
        self._counts.update({name: _possible(counts.get(name, 0)) for name in COUNTS})
        self._cost_usd += _possible(cost_usd)

    def include(self, other: "UsageSum") -> None:
        self.runs += other.runs
        self._counts.update(other._counts)
        self._cost_usd += other._cost_usd

    def as_mapping(self) -> dict[str, Any]:
        """The sums as plain values, for `summary.json`."""
        return {**self._counts, "cost_usd": round(self._cost_usd, 6)}


@dataclass(slots=True, kw_only=True)
class Unlisted:
    """What those runs used that no line tells of.

    Attributes:
        unfinished: Those that are not over yet.
        ended: Those that are: attempts that another one took the place of, and runs whose
            line the next command writes.
        stranded: How many of the unfinished ones are for a task that the command does not have.
        unwritten: For how many of the ended ones the next command writes a line.
    """

    unfinished: UsageSum = field(default_factory=UsageSum)
    ended: UsageSum = field(default_factory=UsageSum)
    stranded: int = 0
    unwritten: int = 0

    def as_mapping(self) -> dict[str, Any]:
        """The sums as plain values, for `summary.json`."""
        unfinished, ended = self.unfinished, self.ended
        return {
            "unfinished": {
                "runs": unfinished.runs,
                "usage": unfinished.as_mapping(),
                "of_removed_tasks": self.stranded,
            },
            "unlisted": {
                "runs": ended.runs,
                "usage": ended.as_mapping(),
                "to_be_written": self.unwritten,
            },
        }


def unlisted_usage(
    headings: Iterable[RunHeading],
    listed: Collection[str],
    roster: Roster,
    lines: Mapping[str, ResultLine],
) -> Unlisted:
    """Add up what the runs of a journal used, without those of which lines tell.

    Args:
        headings: The runs.
        listed: Those of the lines.
        roster: The tasks of the command.
        lines: The newest line of each task.
    """
    found, below = Unlisted(), list[RunHeading]()
    sums: dict[str, UsageSum] = {}
    for heading in headings:
        if heading.root:
            below.append(heading)
            continue
        if heading.run_id in listed:
            continue
        note = RunNote.read(heading.metadata)
        is_ours = note is not None and roster.has(note.task_id, note.task_hash)
        if heading.end is None:
            found.stranded += roster.is_whole and not is_ours
        elif note is not None and is_ours:
            found.unwritten += not _is_replaced(note, lines)
        used = sums[heading.run_id] = found.unfinished if heading.end is None else found.ended
        used.add(turns=heading.turns, **heading.usage.as_mapping())
    for child in below:
        # A line tells of the tree of its run.
        if child.root in sums:
            sums[child.root].add_below(**child.usage.as_mapping())
    return found


def _is_replaced(note: RunNote, lines: Mapping[str, ResultLine]) -> bool:
    line = lines.get(note.task_id)
    return line is not None and line.task_hash == note.task_hash and line.attempt > note.attempt
