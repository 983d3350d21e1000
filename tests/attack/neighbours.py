"""What a hostile run costs six good ones that run beside it, in time and in memory.

A hostile mode is an entry of `hostile_modes.MODES`.
"""

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tests.attack.attacks import Outcome
from tests.attack.battle import GOOD, Seen, fight
from tests.attack.hostile_modes import MODES

SECONDS = 10.0
"""How long the six work alone, and at least beside a hostile run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What good runs may suffer.

    Attributes:
        median_ms: Delay of a round, as a rule.
        worst_ms: Delay of the worst one.
        memory_mb: What one process of ours may take more than its like without the hostile run.
    """

    median_ms: float = 20.0
    worst_ms: float = 200.0
    memory_mb: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Suffered:
    """What good runs suffered.

    Attributes:
        rounds: How many rounds of theirs were measured.
        median_ms: Delay of a round beyond the usual one of the six alone, as a rule.
        worst_ms: That of the worst round beyond the worst of the six alone: what the machine
            does besides delays both.
        worst_alone_ms: The worst round of the six alone, beyond their usual one.
        memory_mb: Of all processes, the most that one took beyond the largest of its role
            while the six were alone.
        role: Which that is.
    """

    rounds: int
    median_ms: float
    worst_ms: float
    worst_alone_ms: float
    memory_mb: float
    role: str

    @classmethod
    def of(cls, alone: Seen, beside: Seen) -> "Suffered":
        usual_s = median(alone.rounds_s)
        grown = {role: mb - alone.peaks_mb.get(role, 0.0) for role, mb in beside.peaks_mb.items()}
        role = max(grown, key=lambda role: grown[role])
        return cls(
            rounds=len(beside.rounds_s),
            median_ms=1000 * (median(beside.rounds_s) - usual_s),
            worst_ms=1000 * (max(beside.rounds_s) - max(alone.rounds_s)),
            worst_alone_ms=1000 * (max(alone.rounds_s) - usual_s),
            memory_mb=grown[role],
            role=role,
        )


def over_bounds(bounds: Bounds, suffered: Suffered) -> list[str]:
    """What of it is more than they may suffer, in words."""
    over = []
    if suffered.median_ms > bounds.median_ms:
        over.append(f"a good round took {suffered.median_ms:.0f} ms longer")
    if suffered.worst_ms > bounds.worst_ms:
        over.append(f"the worst good round took {suffered.worst_ms:.0f} ms longer")
    if suffered.memory_mb > bounds.memory_mb:
        over.append(f"{suffered.role} took {suffered.memory_mb:.0f} MB more")
    return over


def try_modes(
    names: Iterable[str],
    *,
    bounds: Bounds | None = None,
    seconds: float = SECONDS,
    local: bool = False,
) -> Outcome:
    """Run six good runs alone, and then beside hostile ones.

    Args:
        names: The modes, all at once.
        bounds: What the six may suffer.
        seconds: How long they work at least.
        local: In one process without Ray.
    """
    modes = {name: MODES[name] for name in names}
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="ha") as folder:
        first, second = Path(folder, "alone"), Path(folder, "beside")
        first.mkdir()
        second.mkdir()
        alone = fight(first, {}, seconds=seconds, local=local)
        beside = fight(second, modes, seconds=seconds, local=local)
    expected = dict.fromkeys(GOOD, "done(completed)")
    faults = [
        *_other_endings(expected, alone),
        *_other_endings(expected | {name: mode.ends for name, mode in modes.items()}, beside),
    ]
    if not alone.rounds_s or not beside.rounds_s:
        return Outcome(len(modes), (*faults, "no round of a good run was seen"))
    suffered = Suffered.of(alone, beside)
    return Outcome(
        len(modes), (*faults, *over_bounds(bounds or Bounds(), suffered)), _figures(suffered)
    )


def _other_endings(expected: dict[str, str], seen: Seen) -> list[str]:
    wrong = [
        f"{name} ended {seen.endings.get(name, 'never')}, not {ending}"
        for name, ending in expected.items()
        if seen.endings.get(name) != ending
    ]
    # First, since no more than some lines are printed: it is why, where nothing has worked.
    return [f"the command said: {seen.said[-1000:]}", *wrong] if wrong else []


def _figures(suffered: Suffered) -> tuple[tuple[str, float], ...]:
    return (
        ("good rounds", suffered.rounds),
        ("median, ms", round(suffered.median_ms, 1)),
        ("worst, ms", round(suffered.worst_ms)),
        ("worst alone, ms", round(suffered.worst_alone_ms)),
        ("memory, MB", round(suffered.memory_mb)),
    )
