"""What the demo came to: read from the run directories that `harness batch` leaves."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from harness_actors.batch import TaskFile
from harness_actors.events import ContextCompacted
from harness_actors.stores import JournalReader

MILLION = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One part of the demo: one run directory.

    Attributes:
        done: Tasks of which nothing is left to do.
        failed: Those of them that ended in an error, such as a wrong key.
        wall_s: Seconds of the last command on the run directory, Ray's start included.
        rounds_per_s: Of the same command.
        compactions: How often room was made in the window of a run.
        first_run: The first task that ended, and its run; None where there is none.
    """

    part: str
    run_dir: str
    tasks: int
    done: int
    failed: int
    passed: int
    model_calls: int
    tokens: int
    cost_usd: float
    wall_s: float
    rounds_per_s: float
    compactions: int
    first_run: tuple[str, str] | None


def read_row(part: str, tasks_dir: Path, run_dir: Path, tasks: int) -> Row:
    """The row of a part, for the first so many tasks; zeros where nothing was run yet."""
    wanted = {task.id: task.task_hash for task in TaskFile(tasks_dir / "tasks.jsonl", limit=tasks)}
    results = {
        result["id"]: result
        for result in read_results(run_dir / "results.jsonl")
        if wanted.get(result["id"]) == result["task_hash"]
    }
    command = read_command(run_dir / "summary.json")
    # Of a run that has delegated, what all of its tree used.
    usages = [result.get("usage_tree") or result["usage"] for result in results.values()]
    return Row(
        part=part,
        run_dir=str(run_dir),
        tasks=tasks,
        # The summary is written last: without one, there may be something left.
        done=len(results) if command else 0,
        failed=sum(result["status"] == "failed" for result in results.values()),
        passed=sum(
            bool(result["check"] and result["check"]["passed"]) for result in results.values()
        ),
        model_calls=sum(
            (result.get("usage_tree") or result)["model_calls"] for result in results.values()
        ),
        tokens=sum(usage["input_tokens"] + usage["output_tokens"] for usage in usages),
        cost_usd=sum(usage["cost_usd"] for usage in usages),
        wall_s=command.get("wall_s", 0.0),
        rounds_per_s=command["rounds"] / max(command["wall_s"], 0.001) if command else 0.0,
        compactions=count_compactions(run_dir / "runs.db"),
        first_run=next(((each["id"], each["run_id"]) for each in results.values()), None),
    )


def count_compactions(journal: Path) -> int:
    """How often the runs of a journal made room in the windows of their models."""
    if not journal.exists():
        return 0
    told, after = 0, 0
    reader = JournalReader(journal)
    while events := reader.load_events(after):
        told += sum(isinstance(one.event, ContextCompacted) for one in events)
        after = events[-1].position
    return told


def read_results(path: Path) -> list[dict[str, Any]]:
    """The lines of results.jsonl, of which a killed command may have left the last one torn."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")]


def read_command(path: Path) -> dict[str, Any]:
    """What summary.json says of the last command; empty where there is none."""
    if not path.exists():
        return {}
    command: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["command"]
    return command


def draw_table(rows: Sequence[Row]) -> Table:
    """One line for each part."""
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    costs = any(row.cost_usd for row in rows)
    compacts = any(row.compactions for row in rows)
    names = ["tasks", "ended", "checks passed", "model calls", "tokens", "wall", "rounds/s"]
    table.add_column("part", no_wrap=True, min_width=max(len(row.part) for row in rows))
    more = [*(["compacts"] if compacts else []), *(["cost"] if costs else [])]
    for name in [*names, *more]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            row.part,
            str(row.tasks),
            str(row.done),
            f"{row.passed} ({row.passed / row.tasks:.0%})",
            f"{row.model_calls:,}",
            f"{row.tokens:,}" if row.tokens < MILLION else f"{row.tokens / MILLION:.1f} M",
            f"{row.wall_s:.1f} s",
            f"{row.rounds_per_s:.1f}",
            *([f"{row.compactions:,}"] if compacts else []),
            *([f"${row.cost_usd:.2f}"] if costs else []),
        )
    return table


def look_further(rows: Sequence[Row], tasks_dir: Path) -> list[str]:
    """Where the results are, and commands that show more of the first part's."""
    lines = [f"{row.part}: {row.run_dir}/results.jsonl, {row.run_dir}/summary.json" for row in rows]
    if rows[0].first_run is not None:
        task, run = rows[0].first_run
        lines += [
            "To look further:",
            f"$ python3 -m json.tool --json-lines {rows[0].run_dir}/results.jsonl | less",
            f"$ diff {tasks_dir}/workspaces/{task} {rows[0].run_dir}/workspaces/{run}",
        ]
    return lines
