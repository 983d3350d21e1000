"""Runs of one tree that write to the same shelves: planned, and watched."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from harness_actors.config import HarnessConfig, SubAgentConfig
from tests.simulation.ledger import Happening, Ledger, root_of
from tests.simulation.trees import PlannedDelegation
from tests.simulation.workload import PlannedRound, PlannedRun, PlannedTool, ToolKind, Workload

APART = "calls of one tree that touch the same run at once only where all of them read"
SHARE = 0.5
"""Of the schedules with trees."""
CRASHES = 0.2
"""Share of those that are sent out which take their process along, and whoever holds keys there."""
SHELVED: tuple[ToolKind, ...] = ("stow", "stow", "peek")
SHELVES = ("a", "b", "ab", "ba")
"""Which a call touches, in the order of its arguments."""


def plan_shelves(workload: Workload, seed: int) -> Workload:
    """The workload, perhaps with runs of one tree that touch the same."""
    chance = Random(f"{seed}/shelves")
    if not workload.sub_agents or chance.random() >= SHARE:
        return workload
    runs = {name: _shelving(chance, run) for name, run in workload.runs.items()}
    return replace(workload, runs=runs, shelved=True)


def _shelving(chance: Random, run: PlannedRun) -> PlannedRun:
    return replace(run, rounds=_rounds(chance, run.rounds), config=_side_by_side(run.config))


def _side_by_side(config: HarnessConfig) -> HarnessConfig:
    """The settings, with children of which several are served at once."""
    settings = config.sub_agents or SubAgentConfig()
    most = max(3, settings.max_parallel)
    return replace(config, sub_agents=replace(settings, max_parallel=most))


def _rounds(chance: Random, rounds: Sequence[PlannedRound]) -> tuple[PlannedRound, ...]:
    found: list[PlannedRound] = []
    for planned in rounds:
        calls = tuple(_below(chance, call) for call in planned.calls)
        found.append(replace(planned, calls=calls))
        if any(call.to is not None for call in calls) and chance.random() < 0.5:
            # Perhaps beside those that were just sent out.
            found.append(_round(chance, SHELVED))
    return tuple(found)


def _below(chance: Random, call: PlannedTool) -> PlannedTool:
    if call.to is None or call.to.given:
        return call
    kinds: Sequence[ToolKind] = ("peek",) if call.to.agent == "explore" else SHELVED
    rounds = list(_rounds(chance, call.to.rounds))
    for _ in range(chance.choice((1, 1, 2))):
        rounds.insert(chance.randint(0, len(rounds)), _round(chance, kinds))
    if call.to.agent != "explore" and chance.random() < CRASHES:
        crash = PlannedRound((PlannedTool("crash", chance.choice((0.1, 0.5))),), 0.1)
        rounds.insert(chance.randint(0, len(rounds)), crash)
    delegation: PlannedDelegation = replace(call.to, rounds=tuple(rounds))
    return replace(call, to=delegation)


def _round(chance: Random, kinds: Sequence[ToolKind]) -> PlannedRound:
    return PlannedRound(tuple(_call(chance, kinds) for _ in range(chance.choice((1, 1, 2)))), 0.02)


def _call(chance: Random, kinds: Sequence[ToolKind]) -> PlannedTool:
    kind, takes_s = chance.choice(kinds), chance.choice((0.05, 0.5, 1.5, 3.0))
    shelf = chance.choice(SHELVES)
    return PlannedTool(kind, takes_s, shelf=shelf if kind == "stow" else shelf[0])


@dataclass
class Shelves:
    """Watches what runs of one tree do at their shelves.

    Args:
        ledger: Where it is written down.
    """

    ledger: Ledger
    _at_work: list[tuple[Happening, str, bool]] = field(default_factory=list)

    def called(self, call: Happening, shelves: str, *, reads: bool) -> None:
        """A tool is called that touches shelves; one that was told to end is nobody's any more."""
        self._at_work = [one for one in self._at_work if one[0].is_open and not one[0].let_go]
        for other, touched, only_read in self._at_work:
            same = root_of(other.run_id) == root_of(call.run_id)
            if same and not set(touched).isdisjoint(shelves) and not (reads and only_read):
                name = f"{call.what} of {call.key}"
                text = f"{name} begins at {shelves!r} beside {other.what} of {other.key}"
                self.ledger.broken(APART, f"{text} at {touched!r}")
        self._at_work.append((call, shelves, reads))
