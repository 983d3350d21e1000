"""What `python -m tests.chaos` prints."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.chaos.battle import Verdict
from tests.chaos.checks import WORDS
from tests.chaos.kinds import KINDS
from tests.chaos.recovery import Delays

SHOWN = WORDS[:4]
"""What has a column of its own; the others share one."""


def is_slow(kind: str, delays: Delays) -> bool:
    """Whether recovery took longer than it may."""
    return kind in KINDS and delays.p95 is not None and delays.p95 > KINDS[kind].bar_s


def print_table(console: Console, verdicts: Mapping[str, Verdict]) -> None:
    """A row for each batch, and below what is broken, with where to look."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("batch", no_wrap=True)
    for head in ("hits", "asked", "lost", "double", "twice", "open", "other"):
        table.add_column(head, justify="right", no_wrap=True, min_width=len(head))
    table.add_column("median / p95 / max", justify="right", no_wrap=True)
    table.add_column("bar", justify="right")
    for name, verdict in verdicts.items():
        table.add_row(name, *_cells(name, verdict))
    console.print(table)
    console.print(
        "asked: runs that waited for their users; twice: calls begun again that must not be; open: "
        "calls without result, or questions without their answer; median and so on: "
        "seconds until the runs that were touched asked their model again",
        style="dim",
    )
    for name, verdict in verdicts.items():
        for word, sentence in verdict.findings.broken:
            console.print(f"{name}: {word}: {sentence}", style="red", markup=False, highlight=False)
        if verdict.memory is not None:
            console.print(f"{name}: processes killed: {verdict.memory}", style="dim", markup=False)
        if verdict.folder is not None:
            style = "dim" if verdict.is_clean else "red"
            console.print(f"{name}: look at {verdict.folder}", style=style, highlight=False)


def _cells(name: str, verdict: Verdict) -> list[str]:
    findings = verdict.findings
    counts = [findings.count(word) for word in SHOWN]
    counts.append(len(findings.broken) - sum(counts))
    cells = [str(sum(kind in KINDS for kind in verdict.kinds)), str(findings.waited)]
    cells += [f"[red]{count}[/red]" if count else "0" for count in counts]
    delays = verdict.delays.get(name, Delays(seconds=()))
    if delays.p95 is None:
        return [*cells, "", ""]
    shown = f"{delays.median:.1f} / {delays.p95:.1f} / {delays.most:.1f}"
    bar = f"{KINDS[name].bar_s:.0f}"
    return [*cells, shown, f"[red]{bar}[/red]" if is_slow(name, delays) else bar]


def as_plain(verdicts: Mapping[str, Verdict]) -> dict[str, Any]:
    """The verdicts as plain values, by kind."""
    return {name: _plain(verdict) for name, verdict in verdicts.items()}


def _plain(verdict: Verdict) -> dict[str, Any]:
    findings = verdict.findings
    return {
        "strikes": sum(kind in KINDS for kind in verdict.kinds),
        "overlapping": verdict.overlapping,
        "calls": findings.calls,
        "waited": findings.waited,
        "questions": findings.questions,
        "decided": findings.decided,
        "children": findings.children,
        "waves": findings.waves,
        "unknown_outcomes": findings.unknown,
        "repeated_idempotent": findings.repeated,
        "broken": {word: findings.count(word) for word in WORDS},
        "recovery_s": {kind: plain_delays(delays) for kind, delays in verdict.delays.items()},
        "memory_deaths": None if verdict.memory is None else asdict(verdict.memory),
        "wall_s": round(verdict.wall_s, 1),
        "folder": None if verdict.folder is None else str(verdict.folder),
    }


def plain_delays(delays: Delays) -> dict[str, float | int | None]:
    """Recovery of one kind: number of runs, median, 95th percentile and most, in seconds."""

    def rounded(value: float | None) -> float | None:
        return None if value is None else round(value, 3)

    return {
        "n": len(delays.seconds),
        "median": rounded(delays.median),
        "p95": rounded(delays.p95),
        "max": rounded(delays.most),
    }


def exit_status(verdicts: Sequence[Verdict]) -> int:
    """0 where all invariants hold."""
    return 0 if all(verdict.is_clean for verdict in verdicts) else 1
