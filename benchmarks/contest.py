"""Lets contenders do the same work, each in a process of its own, and compares what it took.

Contenders are measured one after the other, as often as asked, so that whatever slows the
machine down meets all of them. Their model server is a process of its own, which is not counted.
"""

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.contend import Kind, warm_up_of
from benchmarks.harnessed import roles
from benchmarks.notes import Work
from benchmarks.windows import Window, measure_windows
from harness_actors.testing import LoopbackProcess

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = "benchmarks.notes:script"
DEADLINE_S = 900.0
SAME_BYTES = 0.01
"""By how much what contenders send may differ: the paths of their files do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """Who does some work.

    Attributes:
        kind: How.
        title: For people.
        work: What, without the server and the folder, which it gets when it begins.
        latency_s: Seconds that each answer of its server takes.
    """

    kind: Kind
    title: str
    work: Work
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One repetition of one contender.

    Attributes:
        window: The work.
        idle_cpu_s: CPU of the same processes in the same time without work; 0 where there
            is nothing.
        cpu_by_role: CPU seconds of its processes by what they are.
        requests: What the server counted, warm-up included.
        sent_bytes: Sizes of their bodies together.
        counts: What the coordinators counted, if they did.
        rounds: Rounds with a tool call, of all conversations.
        tool_calls: Those that were made in them.
    """

    window: Window
    idle_cpu_s: float
    cpu_by_role: Mapping[str, float]
    requests: int
    sent_bytes: int
    counts: Sequence[Mapping[str, int]]
    rounds: int
    tool_calls: int

    @property
    def net_ms(self) -> float:
        """CPU per round without what the same processes use idle."""
        return 1e3 * (self.window.cpu_s - self.idle_cpu_s) / self.rounds

    @property
    def gross_ms(self) -> float:
        return 1e3 * self.window.cpu_s / self.rounds

    @property
    def wall_ms(self) -> float:
        """Time on the wall per round of all conversations together."""
        return 1e3 * self.window.wall_s / self.rounds

    @property
    def rounds_per_s(self) -> float:
        return self.rounds / self.window.wall_s

    @property
    def server_load(self) -> float:
        """Share of a core that the model server took: near 1 it is what is measured."""
        return self.window.beside_cpu_s / self.window.wall_s


def compete(contenders: Mapping[str, Contender], repeats: int) -> dict[str, list[Measured]]:
    """Measure all contenders in turn, as often as asked.

    Raises:
        RuntimeError: One did not do the work, or did another.
    """
    found: dict[str, list[Measured]] = {name: [] for name in contenders}
    with _servers({contender.latency_s for contender in contenders.values()}) as servers:
        for turn in range(repeats):
            for name, contender in contenders.items():
                measured = measure(contender, servers[contender.latency_s])
                found[name].append(measured)
                told = f"{measured.gross_ms:.2f} ms CPU, {measured.wall_ms:.2f} ms wall per round"
                print(f"  {turn + 1}/{repeats} {name}: {told}", file=sys.stderr, flush=True)
    _check_bytes(contenders, found)
    return found


@contextmanager
def _servers(latencies_s: Iterable[float]) -> Iterator[dict[float, LoopbackProcess]]:
    """A server for each latency."""
    with ExitStack() as stack:
        # They find their script from the current folder.
        stack.enter_context(chdir(ROOT))
        yield {
            latency_s: stack.enter_context(LoopbackProcess(SCRIPT, latency_s=latency_s))
            for latency_s in latencies_s
        }


def measure(contender: Contender, server: LoopbackProcess) -> Measured:
    """Let a contender do its work once.

    Raises:
        RuntimeError: A request or a tool call is missing, or one was made twice.
    """
    with tempfile.TemporaryDirectory(prefix="contest-") as folder:
        work = replace(contender.work, base_url=server.base_url, folder=Path(folder))
        command = [sys.executable, "-m", "benchmarks.contend", contender.kind, work.as_json()]
        before = server.stats()
        windows = measure_windows(command, cwd=ROOT, deadline_s=DEADLINE_S, beside=server.pid)
        seen = {name: count - before[name] for name, count in server.stats().items()}
        _check_counts(contender, seen["requests"], work.log.read_text().splitlines())
        counts = work.folder / "counts"
        return Measured(
            window=windows["work"],
            idle_cpu_s=_idle_s(windows),
            cpu_by_role=_by_role(windows["work"], roles(work.folder)),
            requests=seen["requests"],
            sent_bytes=seen["bytes_received"],
            counts=json.loads(counts.read_text()) if counts.exists() else (),
            rounds=work.conversations * work.rounds,
            tool_calls=work.tool_calls,
        )


def _idle_s(windows: Mapping[str, Window]) -> float:
    """What the processes of the work would have used in its time without it."""
    idle = windows.get("idle")
    return 0.0 if idle is None else idle.cpu_s * windows["work"].wall_s / idle.wall_s


def _by_role(window: Window, known: Mapping[int, str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for pid, cpu_s in window.cpu_by_pid.items():
        role = "driver" if pid == window.root else known.get(pid, "Ray")
        found[role] = found.get(role, 0.0) + cpu_s
    return found


def _check_counts(contender: Contender, requests: int, notes: Sequence[str]) -> None:
    """Refuse a measurement of anything but the work."""
    work, warm_up = contender.work, warm_up_of(contender.work)
    asked, calls = work.model_calls + warm_up.model_calls, work.tool_calls
    found = (requests, len(notes), len(set(notes)))
    if found != (asked, calls, calls):
        raise RuntimeError(
            f"{contender.title!r} made {found[0]} requests and {found[1]} tool calls, {found[2]} "
            f"of them different; expected {asked} and {calls}"
        )


def _check_bytes(
    contenders: Mapping[str, Contender], found: Mapping[str, Sequence[Measured]]
) -> None:
    """Refuse a comparison of contenders that send more or less than each other."""
    for name, first, other, second in _pairs(contenders):
        sent = [one[-1].sent_bytes for one in (found[name], found[other])]
        if abs(sent[0] - sent[1]) > SAME_BYTES * max(sent):
            raise RuntimeError(
                f"{first.title!r} sent {sent[0]} bytes and {second.title!r} {sent[1]}: "
                "they did not do the same work"
            )


def _pairs(
    contenders: Mapping[str, Contender],
) -> Iterator[tuple[str, Contender, str, Contender]]:
    """Those that are to say the same."""

    def spoken(work: Work) -> tuple[int, ...]:
        return (
            work.conversations,
            work.rounds,
            work.result_bytes,
            work.task_bytes,
            work.calls,
        )

    names = list(contenders)
    for at, name in enumerate(names):
        for other in names[:at]:
            if spoken(contenders[name].work) == spoken(contenders[other].work):
                yield other, contenders[other], name, contenders[name]
