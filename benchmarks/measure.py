"""What benchmarks share: what processes use, facts of the machine, and the report."""

import os
import platform
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import orjson

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTimes:
    """What the kernel says of one process, times in seconds of CPU, user and system.

    Source: proc(5), /proc/PID/stat; the name in field 2 may hold anything.
    """

    parent: int
    started: int
    """In clock ticks since boot: tells a process from a later one with its pid."""
    own_s: float
    waited_s: float
    """Of its children that ended and were waited for, theirs included."""

    @classmethod
    def read(cls, pid: int) -> "ProcessTimes | None":
        """Of a process; None where there is none."""
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        fields = text[text.rindex(")") + 2 :].split()
        user, system, child_user, child_system = (int(ticks) for ticks in fields[11:15])
        return cls(
            parent=int(fields[1]),
            started=int(fields[19]),
            own_s=(user + system) / TICKS_PER_S,
            waited_s=(child_user + child_system) / TICKS_PER_S,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuReading:
    """CPU seconds of a process tree at a moment; only differences mean something.

    Attributes:
        own_s: Of every process seen so far.
        waited_s: Of ended children, as the living ones were told when they waited.
        ended_s: The part of `own_s` that belongs to processes which are gone.
    """

    own_s: float
    waited_s: float
    ended_s: float

    def since(self, earlier: "CpuReading") -> float:
        """CPU seconds between two readings.

        A process that ends counts with what was last seen of it, or with what its parent
        was told, whichever is more: not every parent waits, and not every process is seen.
        """
        unseen = (self.waited_s - earlier.waited_s) - (self.ended_s - earlier.ended_s)
        return self.own_s - earlier.own_s + max(0.0, unseen)


class ProcessTree:
    """A process and all that descends from it, also what was orphaned since the last look.

    Args:
        root: Its pid.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._seen: dict[tuple[int, int], ProcessTimes] = {}

    def read(self) -> CpuReading:
        """Look at all of its processes. Look often: what ends between two looks is guessed."""
        alive = self._alive()
        self._seen.update(alive)
        own_s = sum(times.own_s for times in self._seen.values())
        return CpuReading(
            own_s=own_s,
            waited_s=sum(times.waited_s for times in alive.values()),
            ended_s=own_s - sum(times.own_s for times in alive.values()),
        )

    def own_s(self) -> dict[int, float]:
        """CPU seconds of each process that was seen, as of the last look, by pid."""
        return {pid: times.own_s for (pid, _), times in self._seen.items()}

    def pids(self) -> list[int]:
        """The living ones."""
        return sorted(pid for pid, _ in self._alive())

    def _alive(self) -> dict[tuple[int, int], ProcessTimes]:
        found = {
            int(entry): times
            for entry in os.listdir("/proc")
            if entry.isdigit() and (times := ProcessTimes.read(int(entry))) is not None
        }
        members = {pid for pid, times in found.items() if (pid, times.started) in self._seen}
        if self._root in found:
            members.add(self._root)
        while grown := {p for p, times in found.items() if times.parent in members} - members:
            members |= grown
        return {(pid, found[pid].started): found[pid] for pid in members}


def pss_kb(pid: int) -> int:
    """Memory of a process, of what it shares with others its part; 0 where there is none."""
    return _rollup_kb(pid).get("Pss", 0)


def own_pss_kb(pid: int) -> int:
    """As `pss_kb`, without its part of files that are mapped.

    A process's part of a library grows and shrinks with whatever else on the machine loads it.
    """
    found = _rollup_kb(pid)
    return found.get("Pss", 0) - found.get("Pss_File", 0)


def peak_mb(*, anew: bool = False) -> float:
    """Most MB that this process has had in memory; with `anew`, from now on."""
    if anew:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak,) = (line for line in lines if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1000


def _rollup_kb(pid: int) -> dict[str, int]:
    """Kinds of memory of a process; none where there is no such process.

    Source: proc(5), /proc/PID/smaps_rollup.
    """
    try:
        # The first line says of which addresses.
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return {}
    return {line.partition(":")[0]: int(line.split()[1]) for line in lines}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """The middle of some measurements, and how far they lie apart."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Self:
        ordered = sorted(values)
        return cls(median=statistics.median(ordered), least=ordered[0], most=ordered[-1])

    def rounded(self, digits: int = 3) -> dict[str, float]:
        return {name: round(value, digits) for name, value in asdict(self).items()}

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.least:.2f}–{self.most:.2f})"


def machine() -> dict[str, Any]:
    """Where a benchmark ran, and how busy that was when it began."""
    return {
        "cpu": _first_value("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "load": round(os.getloadavg()[0], 2),
    }


def _first_value(path: str, name: str) -> str:
    for line in Path(path).read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return ""


def versions(*distributions: str) -> dict[str, str]:
    """Of Python, of this package, and of what the benchmark names."""
    named = {name: version(name) for name in ("harness_actors", *distributions)}
    return {"python": platform.python_version(), **named}


def print_report(
    report: Mapping[str, Any], heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """One JSON line on standard output, and a table for people on standard error."""
    print_table(heads, rows)
    print(orjson.dumps(report).decode(), flush=True)


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table for people on standard error."""
    print(aligned(heads, rows), file=sys.stderr, flush=True)


def aligned(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as text, its columns as wide as they have to be."""
    widths = [max(len(line[place]) for line in (heads, *rows)) for place in range(len(heads))]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (heads, *rows)
    )
    return "\n".join(lines)
