"""Tasks files whose lines are to take more memory than there is."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from harness_actors.batch.task_file import MAX_LINE_BYTES
from tests.attack.attacks import Attack, Outcome

MEMORY_MB = 300.0
WITHIN_S = 120.0
HUGE_BYTES = 256_000_000
REFUSED = 2
"""The exit status of a command whose input is at fault."""


def _repeated(piece: str, before: str, after: str) -> str:
    room = MAX_LINE_BYTES - len(before) - len(after)
    return f"{before}{','.join([piece] * (room // (len(piece) + 1)))}{after}"


def _numbered(before: str, after: str) -> str:
    names = (f'"{number:06}":1' for number in range((MAX_LINE_BYTES - 60) // 11))
    return f"{before}{','.join(names)}{after}"


DATA, FIELDS = '{"task":"x","metadata":{"a":[', '{"task":"x","metadata":{'
LINES: dict[str, Callable[[], str]] = {
    "numbers": lambda: _repeated("1", DATA, "]}}"),
    "lists": lambda: _repeated("[]", DATA, "]}}"),
    "objects": lambda: _repeated('{"a":{}}', DATA, "]}}"),
    "names": lambda: _numbered(FIELDS, "}}"),
    "limits": lambda: _numbered('{"task":"x","limits":{', "}}"),
    "strange fields": lambda: _numbered('{"task":"x",', "}"),
    "text": lambda: '{"task":"' + "x" * (MAX_LINE_BYTES - 20) + '😀"}',
}


def _huge() -> Iterator[str]:
    yield '{"task":"'
    for _ in range(HUGE_BYTES // 1_000_000):
        yield "x" * 1_000_000
    yield '"}'


def _read(path: Path) -> tuple[int, float, str]:
    """Let a command read the file; its exit status, its most memory in MB, and what it said."""
    program = (
        "import resource, sys\n"
        "from harness_actors.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "    print('PEAK', most, file=sys.stderr)\n"
    )
    arguments = ("batch", path, "--run-dir", path.parent / "run", "--model", "scripted")
    # A second fault, so that it stops where the tasks have been read.
    ended = subprocess.run(
        [sys.executable, "-c", program, *arguments, "--runtime", "local"],
        env={**os.environ, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    said, _, peak_kb = ended.stderr.rpartition("PEAK ")
    return ended.returncode, int(peak_kb) / 1024, said


def _write(path: Path, pieces: Iterator[str]) -> None:
    with path.open("w") as file:
        for piece in pieces:
            file.write(piece)
        file.write('\n{"no": "task"}\n')


def read_tasks(tries: int) -> Outcome:
    """Read a small file, one with a huge line, and ones with the largest that are taken."""
    lines = {**{name: _once(make) for name, make in LINES.items()}, "huge": _huge}
    through: list[str] = []
    worst_mb = 0.0
    with tempfile.TemporaryDirectory(prefix="ha") as folder:
        path = Path(folder, "tasks.jsonl")
        _write(path, iter([json.dumps({"task": "x"})]))
        _, usual_mb, _ = _read(path)
        for name in list(lines)[:tries]:
            _write(path, lines[name]())
            status, peak_mb, said = _read(path)
            worst_mb = max(worst_mb, peak_mb - usual_mb)
            if peak_mb - usual_mb > MEMORY_MB:
                through.append(f"{name}: {peak_mb - usual_mb:.0f} MB more")
            if status != REFUSED:
                through.append(f"{name}: exit {status}: {said[-300:]}")
            if name == "huge" and "line 1: it has 256,000,0" not in said:
                through.append(f"{name}: not told: {said[-300:]}")
    return Outcome(min(tries, len(lines)), tuple(through), (("memory, MB", round(worst_mb)),))


def _once(make: Callable[[], str]) -> Callable[[], Iterator[str]]:
    return lambda: iter([make()])


ATTACKS = (
    Attack(
        "big_tasks",
        "lines of a tasks file that take many times their size, or all there is",
        read_tasks,
        1 + len(LINES),
        1,
    ),
)
