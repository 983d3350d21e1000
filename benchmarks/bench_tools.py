"""What do the file tools cost themselves, and what did they in another tree of the code?

    python benchmarks/bench_tools.py [TREE] [--files 10000] [--repeats 9]

Milliseconds of wall per call: `read_file` and `edit_file` on a file of 4 KB three folders down,
and `grep_files` on a workspace of 10,000 files of 200 bytes in 100 folders. A process for each tree
stays for the whole measurement, and the two are asked in turn, so that ratios are of the same
moment. Above 1.1 times of before we would look for another way to open files.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish
from benchmarks.contest import ROOT
from benchmarks.findings import Finding, ratios
from benchmarks.measure import Spread, machine

CALLS = {"read_file": 300, "edit_file": 60, "grep_files": 1}
"""The tools, and how often each is called for one figure."""
AT_MOST = 1.1

SERVED = """
import asyncio, json, sys, time
from pathlib import Path
import harness_actors
if not Path(harness_actors.__file__).is_relative_to(Path.cwd()):
    sys.exit(f"{harness_actors.__file__} would be measured")
from harness_actors.ports import ToolContext
from harness_actors.tools import find_tool

async def at_once(function, *arguments):
    return function(*arguments)

workspace = Path(sys.argv[1])
context = ToolContext(run_id="run", call_id="call", workspace=workspace, in_thread=at_once)
name = "folder0/deep/er/a.py"
ARGUMENTS = {
    "read_file": [{"path": name}],
    "edit_file": [
        {"path": name, "old_text": old, "new_text": new}
        for old, new in (("# first", "# other"), ("# other", "# first"))
    ],
    "grep_files": [{"pattern": "nowhere to be found"}],
}
for line in sys.stdin:
    kind, times = json.loads(line)
    tool, given = find_tool(kind), [json.dumps(one) for one in ARGUMENTS[kind]]

    async def work():
        for number in range(times):
            await tool.run(given[number % len(given)], context)

    begun = time.perf_counter()
    asyncio.run(work())
    print(1e3 * (time.perf_counter() - begun) / times, flush=True)
"""
"""Run in a tree, whose modules it takes."""


class Tree:
    """The tools of one tree, in a process of its own with a workspace of its own."""

    def __init__(self, path: Path, workspace: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVED, str(workspace)],
            cwd=path,
            env={**os.environ, "PYTHONPATH": str(path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ms(self, tool: str) -> float:
        """Milliseconds of one call."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps((tool, CALLS[tool])) + "\n")
        stdin.flush()
        return float(stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def make_workspace(place: Path, files: int) -> Path:
    """A folder with so many files in 100 folders, and one that is read and edited."""
    for number in range(files):
        folder = place / f"folder{number % 100}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"file{number}.py").write_text("x = 'some text of a file'\n" * 8)
    deep = place / "folder0" / "deep" / "er"
    deep.mkdir(parents=True)
    (deep / "a.py").write_text("# first\n" + "y = 1  # a line\n" * 256)
    return place


def measure(trees: Sequence[Path], files: int, repeats: int) -> list[dict[str, list[float]]]:
    """Milliseconds per call of each tool, by tree."""
    found: list[dict[str, list[float]]] = [{tool: [] for tool in CALLS} for _ in trees]
    with tempfile.TemporaryDirectory() as place:
        serving = [
            Tree(tree, make_workspace(Path(place) / str(number), files))
            for number, tree in enumerate(trees)
        ]
        try:
            for turn in range(repeats + 1):
                for tool in CALLS:
                    # Who is first meets a colder cache.
                    for number in sorted(range(len(trees)), reverse=bool(turn % 2)):
                        ms = serving[number].ms(tool)
                        if turn:
                            found[number][tool].append(ms)
        finally:
            for tree in serving:
                tree.close()
    return found


def main() -> None:
    options = parse_arguments()
    options.machine = machine()
    trees = [ROOT] if options.tree is None else [ROOT, options.tree.resolve()]
    found = measure(trees, options.files, options.repeats)
    findings = [
        Finding.of(f"{tool}, beside before", ratios(now, found[1][tool]), at_most=AT_MOST)
        if len(found) > 1
        else Finding.of(f"{tool}, a call", now, unit="ms")
        for tool, now in found[0].items()
    ]
    options.tree = str(options.tree or "")
    rows = [(tool, *(str(Spread.of(of_tree[tool])) for of_tree in found)) for tool in CALLS]
    heads = ("ms per call", *(str(tree) for tree in trees))
    publish("tools", "ms of wall per call", options, findings, {"trees": found}, (heads, rows))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tree", type=Path, nargs="?", metavar="TREE", help="another checkout")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    options = parser.parse_args()
    if options.smoke:
        options.files, options.repeats = 100, 1
    return options


if __name__ == "__main__":
    main()
