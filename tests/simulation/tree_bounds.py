"""What the runs of a tree use together: no more than its root may, but for rounds in flight."""

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any

from harness_actors.config import Limits
from harness_actors.records import RunChanged
from harness_actors.results import HarnessResult, Usage
from harness_actors.state import USAGE
from harness_actors.turn.bounds import is_spent
from tests.simulation.disk import DiskRun
from tests.simulation.kin import Kin
from tests.simulation.ledger import Ledger

BOUNDS = "the bounds of a run hold for its tree, but for one round of each that was in flight"
NOT_BEFORE = "no run ends by a bound that neither it nor its tree has reached"
SUMMED = "what its children used is told with the end of a run"
NEARLY = 1e-6


@dataclass
class TreeBounds:
    """Adds up what is on disk, by trees.

    Args:
        ledger: Where it is written down.
        kin: Knows whose children they are.
    """

    ledger: Ledger
    kin: Kin
    _used: dict[str, Usage] = field(default_factory=dict)
    """By the run at the top."""
    _reached: dict[str, str] = field(default_factory=dict)
    """Which bound of it is."""
    _since: Counter[str] = field(default_factory=Counter)
    """Rounds that runs have counted since then."""

    def changed(self, run: DiskRun, change: RunChanged) -> None:
        """A change is on disk."""
        root = run.spec.root
        for write in change.delta.writes:
            if write.key == USAGE.name:
                self._count(run, root, Usage(**write.value))
        if change.end is not None:
            self._ends(run, change.end)

    def _count(self, run: DiskRun, root: str, used: Usage) -> None:
        run_id, kind = run.spec.run_id, self._reached.get(root)
        self._used[root] = self._used.get(root, Usage()) + used
        if kind is None:
            limits = self.ledger.disk.runs[root].spec.config.limits
            kind = _reached(limits, self._used[root])
            if kind is not None and self.kin.of(root):
                self._reached[root] = kind
                self.ledger.note("!", f"the tree of {root} reaches its bound of {kind}")
            return
        # One that has no calls left may say so.
        if kind == "tool_calls" and run_id == root:
            return
        self._since[run_id] += used.model_calls
        if self._since[run_id] > 1:
            text = f"{run_id} has {self._since[run_id]} rounds more, behind the {kind} of {root}"
            self.ledger.broken(BOUNDS, text)

    def _ends(self, run: DiskRun, end: HarnessResult) -> None:
        ends = [self.ledger.disk.runs[child].end for child in self.kin.of(run.spec.run_id)]
        used = sum((one.usage_tree for one in ends if one is not None), Usage())
        told = end.children_usage or Usage()
        kind, limits = end.reason.kind, run.spec.config.limits
        root = self.ledger.disk.runs[run.spec.root]
        if (
            end.status == "limit"
            and kind in _COUNTED
            and not _has_reached(limits, end.usage_tree, kind)
            and not _has_reached(root.spec.config.limits, self._used.get(run.spec.root), kind)
        ):
            text = f"{run.spec.run_id} ends by {kind} after {end.usage_tree}"
            self.ledger.broken(NOT_BEFORE, f"{text}, and its tree {self._used[run.spec.root]}")
        if (end.children_usage is not None) != bool(ends) or not _equal(used, told):
            text = f"{run.spec.run_id} says {end.children_usage} of {len(ends)} children"
            self.ledger.broken(SUMMED, f"{text}, which used {used}")


_COUNTED = ("model_calls", "tokens", "cost")


def _has_reached(limits: Limits, used: Usage | None, kind: str) -> bool:
    match kind:
        case "model_calls":
            return used is not None and used.model_calls >= limits.model_calls
        case "tokens":
            return used is not None and limits.tokens is not None and used.tokens >= limits.tokens
    within = limits.cost_usd
    return used is not None and within is not None and is_spent(used.cost_usd, within)


def _reached(limits: Limits, used: Usage) -> str | None:
    if used.model_calls >= limits.model_calls:
        return "model_calls"
    if limits.tokens is not None and used.tokens >= limits.tokens:
        return "tokens"
    if limits.cost_usd is not None and is_spent(used.cost_usd, limits.cost_usd):
        return "cost"
    if limits.tool_calls is not None and used.tool_calls >= limits.tool_calls:
        return "tool_calls"
    return None


def _equal(one: Usage, other: Usage) -> bool:
    return all(_close(getattr(one, part.name), getattr(other, part.name)) for part in fields(one))


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return abs(one - other) < NEARLY
    return bool(one == other)
