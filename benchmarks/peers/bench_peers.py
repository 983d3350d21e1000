"""What does a round cost in other frameworks, in the same conversations with the same server?

Each framework is run as its documentation writes it, in an environment of its own, beside a
loop over `AsyncOpenAI` and the harness (`run_batch`, journal and results file included), in
turn and in the same session. A *round* is one model call and its tool, or its eight read-only
calls, which must all have begun before the first one ends. Units: milliseconds of
CPU per round, user and system, of all of a contender's processes but the model server's; rounds
per second on the wall. Four questions: many conversations at once, a long one, a crowd, and many
calls at once. A fifth, of those that have agents which delegate, is asked per *tree*: one parent
has 16 children at once, by as many calls of one message, each with five rounds of its own. Their
first calls must all have begun before one of them ends.
Starting, imports and a warm-up are not counted; the answer that ends a conversation is charged
to its rounds. What the harness's processes use in the same time without work is shown apart.

Model calls, tool calls and the size of the requests are checked for every contender: who sends
less than the whole conversation, or calls a tool twice, is not compared. A framework that does
not install or run is a row that says why.

What would change our mind: a framework with less CPU per round than ours on Ray. Then being
durable and isolated is not free against what people use today, and the path of a round has to
be made shorter.

    python -m benchmarks.peers.bench_peers [--only NAMES] [--n 5] [--smoke] [--list]
"""

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import chdir
from pathlib import Path

# Run as a file, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.measure import machine
from benchmarks.peers.contenders import CONTENDERS, Contender, chosen
from benchmarks.peers.conversations import Work
from benchmarks.peers.environments import InstallError, python_of, versions_of
from benchmarks.peers.report import Measured, Session, Size, report
from benchmarks.windows import measure_windows
from harness_actors.testing import LoopbackProcess

ROOT = Path(__file__).resolve().parents[2]
SHAPES = {
    "50x10": Size(50, 10),
    "1x200": Size(1, 200),
    "200x10": Size(200, 10),
    "50x10x8": Size(50, 10, 8),
    "delegate": Size(1, 5, children=16),
}
"""Conversations at once × rounds of each × calls at once of each; or who delegates to how many."""
SMOKE = {"2x2": Size(2, 2), "2x2x8": Size(2, 2, 8), "delegate": Size(1, 2, children=3)}
DEADLINE_S = 900.0
LEAST_REQUEST = 0.8
"""Bytes of a whole conversation, as a part of what the hand-written loop sends for it."""


class NotComparedError(RuntimeError):
    """A contender did something else than the work, or did not end; says what."""


def measure(contender: Contender, python: Path, size: Size, server: LoopbackProcess) -> Measured:
    """Let a contender do the work once, in a process of its own.

    Raises:
        NotComparedError: It failed.
    """
    with tempfile.TemporaryDirectory(prefix="bench-peers-") as folder:
        work = Work(
            base_url=server.base_url,
            folder=Path(folder),
            conversations=size.conversations,
            rounds=size.rounds,
            calls=size.calls,
            children=size.children,
        )
        command = [
            *(str(python), *contender.command),
            *("--base-url", work.base_url, "--folder", folder),
            *("--conversations", str(size.conversations), "--rounds", str(size.rounds)),
            *("--calls", str(size.calls), "--children", str(size.children)),
        ]
        before = server.stats()
        try:
            windows = measure_windows(command, cwd=ROOT, deadline_s=DEADLINE_S)
        except (RuntimeError, OSError) as error:
            # A process that dies while it is being answered is a broken pipe.
            said = work.failure.read_text() if work.failure.exists() else str(error)
            raise NotComparedError(said) from error
        if work.failure.exists():
            raise NotComparedError(work.failure.read_text())
        after = server.stats()
        lines = work.log.read_text().splitlines() if work.log.exists() else []
    if "work" not in windows:
        raise NotComparedError("ended without a measured window")
    requests = after["requests"] - before["requests"]
    idle = windows.get("idle")
    return Measured(
        work=windows["work"],
        idle_cpu_s=0.0 if idle is None else idle.cpu_s,
        requests=requests,
        request_bytes=(after["bytes_received"] - before["bytes_received"]) / max(1, requests),
        lines=len(lines),
        notes=len(set(lines)),
    )


def check(found: Measured, size: Size, baseline_bytes: float) -> None:
    """Refuse a measurement of anything but the work.

    Raises:
        NotComparedError: A request or a tool call is missing, was made twice, or is too small.
    """
    asked, calls = size.requests, size.tool_calls
    counted = (found.requests, found.lines, found.notes)
    if counted != (asked, calls, calls):
        raise NotComparedError(
            f"made {counted[0]} requests and {counted[1]} tool calls, {counted[2]} of them "
            f"different; expected {asked} and {calls}"
        )
    if found.request_bytes < LEAST_REQUEST * baseline_bytes:
        raise NotComparedError(
            f"sent {found.request_bytes:.0f} bytes a request, where the whole conversation "
            f"takes {baseline_bytes:.0f}"
        )


def compare(options: argparse.Namespace) -> None:
    """Measure all contenders in turn, as often as asked, and print what came out."""
    facts, session = machine(), Session()
    pythons = environments(options.contenders, session)
    # The server finds its script from the current folder.
    with chdir(ROOT), LoopbackProcess("benchmarks.peers.server:script") as server:
        for turn in range(options.n):
            for shape, size in options.shapes.items():
                for name, python in pythons.items():
                    compared = not size.children or options.contenders[name].delegates
                    if compared and name not in session.failed:
                        said = repeat(name, python, shape, size, server, session)
                        print(f"{turn + 1}/{options.n} {shape} {name}: {said}", file=sys.stderr)
    report(facts, session, n=options.n, contenders=options.contenders, shapes=options.shapes)


def environments(contenders: Mapping[str, Contender], session: Session) -> dict[str, Path]:
    """The interpreters of all contenders, made before anything is measured."""
    pythons = {}
    for name, contender in contenders.items():
        try:
            pythons[name] = python_of(contender.environment)
        except InstallError as error:
            session.failed[name] = f"not installed: {error}"
    return pythons


def repeat(
    name: str,
    python: Path,
    shape: str,
    size: Size,
    server: LoopbackProcess,
    session: Session,
) -> str:
    """One more repetition; returns what to tell of it."""
    try:
        contender = CONTENDERS[name].delegating if size.children else CONTENDERS[name]
        found = measure(contender, python, size, server)
        check(found, size, session.baseline_bytes(shape))
    except NotComparedError as error:
        session.failed[name] = f"{shape}: {error}"
        return session.failed[name]
    session.found.setdefault((shape, name), []).append(found)
    return f"{1e3 * found.work.cpu_s / size.units:.2f} ms CPU, {found.work.wall_s:.1f} s"


def list_contenders(options: argparse.Namespace) -> None:
    """One line each: the name for `--only`, and the versions that would be measured."""
    for name, contender in options.contenders.items():
        found = versions_of(contender.environment, contender.distributions)
        print(f"{name:18} {', '.join(f'{what} {number}' for what, number in found.items())}")


def parse_arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="CPU and pace per round, beside other frameworks.")
    parser.add_argument("--only", metavar="NAMES", help="with commas; --list tells the names")
    parser.add_argument("--shapes", metavar="NAMES", help=f"of {', '.join(SHAPES)}")
    parser.add_argument("--n", type=int, default=5, help="repetitions of each")
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    parser.add_argument("--list", action="store_true", help="the contenders and their versions")
    options = parser.parse_args(given)
    if options.n < 1:
        parser.error("--n must be at least 1")
    try:
        options.contenders = chosen(options.only)
    except ValueError as error:
        parser.error(str(error))
    wanted = options.shapes.split(",") if options.shapes else list(SHAPES)
    if unknown := set(wanted) - set(SHAPES):
        parser.error(f"no shape {sorted(unknown)}; there are {', '.join(SHAPES)}")
    options.shapes = {name: SHAPES[name] for name in wanted}
    if options.smoke:
        options.shapes, options.n = SMOKE, 1
    return options


if __name__ == "__main__":
    asked = parse_arguments()
    if asked.list:
        list_contenders(asked)
    else:
        compare(asked)
