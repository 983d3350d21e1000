"""What was measured of the contenders, and how it is told."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from benchmarks.measure import Spread, print_report, versions
from benchmarks.peers.contenders import BASELINE, CONTENDERS, Contender
from benchmarks.peers.conversations import (
    WARM_UP_CHILDREN,
    WARM_UP_CONVERSATIONS,
    WARM_UP_ROUNDS,
)
from benchmarks.peers.environments import versions_of
from benchmarks.windows import Window


class Size(NamedTuple):
    """How much work."""

    conversations: int
    """All at once."""
    rounds: int
    """Of each."""
    calls: int = 1
    """Of each round, at once."""
    children: int = 0
    """To which each conversation delegates, at once, and which hold its rounds; 0 for none."""

    @property
    def units(self) -> int:
        """What costs are told per: trees where conversations delegate, else rounds."""
        return self.conversations * (1 if self.children else self.rounds)

    @property
    def tool_calls(self) -> int:
        return self.conversations * max(1, self.children) * self.rounds * self.calls

    @property
    def requests(self) -> int:
        """Of the model, the warm-up's included."""
        if not self.children:
            warm_up = WARM_UP_CONVERSATIONS * (WARM_UP_ROUNDS + 1)
            return self.conversations * (self.rounds + 1) + warm_up
        warm_up = 2 + WARM_UP_CHILDREN * (WARM_UP_ROUNDS + 1)
        return self.conversations * (2 + self.children * (self.rounds + 1)) + warm_up


def _ratio(costs: Any, beside: Any) -> str:
    """CPU in units of the hand-written loop's, where that was measured."""
    least = beside["cpu_ms"]["median"] if beside else 0.0
    return f"{costs['cpu_ms']['median'] / least:.2f}" if least else "–"


CELLS: Mapping[str, Callable[[Any, Any], str]] = {
    "CPU ms": lambda costs, beside: f"{costs['cpu_ms']['median']:.2f}",
    "×": _ratio,
    "wall ms": lambda costs, beside: f"{costs['wall_ms']['median']:.2f}",
    "rounds/s": lambda costs, beside: f"{costs['rounds_per_s']['median']:.0f}",
    "KB": lambda costs, beside: f"{costs['request_bytes'] / 1e3:.1f}",
}
"""What the table can tell of a contender at a shape; CPU and wall are per round, or per tree."""
MEASURES = {
    "50x10": ("CPU ms", "×", "KB"),
    "1x200": ("CPU ms", "×", "wall ms"),
    "200x10": ("CPU ms", "rounds/s"),
    "50x10x8": ("CPU ms", "×"),
    "delegate": ("CPU ms", "×", "wall ms"),
}
"""What it does tell, by shape; all at others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One repetition of one contender at one shape."""

    work: Window
    idle_cpu_s: float
    """CPU of the same processes in the same time without work; 0 where nobody looked."""
    requests: int
    """What the server counted, warm-up included."""
    request_bytes: float
    """Mean size of their bodies."""
    lines: int
    """All lines of the tool's log."""
    notes: int
    """Different lines of it."""


@dataclass(slots=True)
class Session:
    """All that was measured so far.

    Attributes:
        found: Repetitions, by shape and contender.
        failed: Why a contender is out of the comparison.
    """

    found: dict[tuple[str, str], list[Measured]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def baseline_bytes(self, shape: str) -> float:
        """Mean size of the hand-written loop's requests; 0 where it was not measured."""
        found = self.found.get((shape, BASELINE))
        return found[0].request_bytes if found else 0.0


def report(
    facts: Mapping[str, Any],
    session: Session,
    *,
    n: int,
    contenders: Mapping[str, Contender],
    shapes: Mapping[str, Size],
) -> None:
    """Print the medians."""
    line = {
        "benchmark": "peers",
        "unit": "per round, or per tree of those that delegate: ms CPU, ms wall; number per s",
        "machine": facts,
        "versions": versions("ray", "openai", "aiohttp"),
        "n": n,
        "warm_up": {"conversations": WARM_UP_CONVERSATIONS, "rounds": WARM_UP_ROUNDS},
        "contenders": {
            name: {
                "versions": versions_of(contender.environment, contender.distributions),
                "failed": session.failed.get(name),
                "questions": {
                    shape: plain(session.found[shape, name], size)
                    for shape, size in shapes.items()
                    if (shape, name) in session.found
                },
            }
            for name, contender in contenders.items()
        },
    }
    print_table(line, shapes)


def plain(found: Sequence[Measured], size: Size) -> dict[str, Any]:
    """What a contender's repetitions at one shape come to."""
    units = size.units
    last = found[-1]
    return {
        "cpu_ms": Spread.of(1e3 * one.work.cpu_s / units for one in found).rounded(),
        "idle_cpu_ms": Spread.of(1e3 * one.idle_cpu_s / units for one in found).rounded(),
        "wall_ms": Spread.of(1e3 * one.work.wall_s / units for one in found).rounded(),
        "rounds_per_s": Spread.of(units / one.work.wall_s for one in found).rounded(1),
        "request_bytes": round(last.request_bytes),
        "processes": last.work.processes,
        "requests_with_warm_up": last.requests,
        "tool_calls": last.lines,
    }


def print_table(line: Any, shapes: Mapping[str, Size]) -> None:
    """The JSON line, the table, and below it why a contender is not in it."""
    columns = [(shape, name) for shape in shapes for name in MEASURES.get(shape, CELLS)]
    rows = [
        [CONTENDERS[name].label, *(cell(line["contenders"], name, *column) for column in columns)]
        for name in line["contenders"]
    ]
    print_report(line, ["contender", *(f"{shape} {name}" for shape, name in columns)], rows)
    for name, contender in line["contenders"].items():
        if contender["failed"]:
            print(f"{CONTENDERS[name].label}: {contender['failed']}", file=sys.stderr)


def cell(contenders: Any, name: str, shape: str, measure: str) -> str:
    """One figure; a dash where there is none to tell."""
    costs = contenders[name]["questions"].get(shape)
    beside = contenders.get(BASELINE, {}).get("questions", {}).get(shape)
    return "–" if costs is None else CELLS[measure](costs, beside)
