"""What the repetitions of a contest come to: as JSON, and as a table."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.contest import Contender, Measured
from benchmarks.measure import Spread


def spreads(found: Sequence[Measured]) -> dict[str, Any]:
    """What a contender's repetitions come to, as JSON."""
    roles_seen = sorted({role for one in found for role in one.cpu_by_role})
    by_role = {
        role: Spread.of(1e3 * one.cpu_by_role.get(role, 0.0) / one.rounds for one in found)
        for role in roles_seen
    }
    last = found[-1]
    return {
        "cpu_ms": Spread.of(one.gross_ms for one in found).rounded(),
        "idle_cpu_ms": Spread.of(1e3 * one.idle_cpu_s / one.rounds for one in found).rounded(),
        "net_cpu_ms": Spread.of(one.net_ms for one in found).rounded(),
        "wall_ms": Spread.of(one.wall_ms for one in found).rounded(),
        "rounds_per_s": Spread.of(one.rounds_per_s for one in found).rounded(1),
        "server_load": Spread.of(one.server_load for one in found).rounded(2),
        "cpu_ms_by_role": {role: round(spread.median, 3) for role, spread in by_role.items()},
        "processes": last.window.processes,
        "requests_with_warm_up": last.requests,
        "bytes_sent_with_warm_up": last.sent_bytes,
        "tool_calls": last.tool_calls,
    }


HEADS = ("contender", "ms CPU/round", "idle", "net", "ms wall/round", "server")


def rows(
    contenders: Mapping[str, Contender], found: Mapping[str, Sequence[Measured]]
) -> list[tuple[str, ...]]:
    """A table of all contenders."""
    return [
        (
            contenders[name].title,
            str(Spread.of(one.gross_ms for one in measured)),
            f"{Spread.of(1e3 * one.idle_cpu_s / one.rounds for one in measured).median:.2f}",
            str(Spread.of(one.net_ms for one in measured)),
            str(Spread.of(one.wall_ms for one in measured)),
            f"{Spread.of(one.server_load for one in measured).median:.0%}",
        )
        for name, measured in found.items()
    ]
