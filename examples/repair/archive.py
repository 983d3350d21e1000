"""Makes the tasks of the part *delegated*: how a function was before, lies somewhere in an archive.

Each is one of the repair tasks, with a folder `archive/` in its workspace. Its modules hold the
functions of all these tasks as they were before their faults, in an order that depends on the seed
and the task, under names that tell nothing.
"""

import json
import random
import shutil
from collections.abc import Sequence
from pathlib import Path

from examples.repair.build import SEED, Problem, Task, problems

FUNCTIONS_EACH = 4
"""Of a module of the archive."""

TASK = (
    "Repair task {id}: the function `{function}` in solution.py has one fault. How it was before "
    "is somewhere below archive/, and nobody remembers where. Have it found out, repair the "
    "function with one small edit, see that the module still imports, and then say that the work "
    "is complete."
)


def build_delegated(tasks: Path, out: Path, limit: int, *, seed: int = SEED) -> list[Task]:
    """Write tasks that need an archive to be searched.

    Args:
        tasks: A folder of tasks, as `build` writes it.
        out: Where to write `tasks.jsonl`, `workspaces/ID` and `checks/ID`. Made if it is not there.
        limit: How many tasks to make at most.
        seed: Says where in an archive a function lies.

    Returns:
        The lines of `tasks.jsonl`. Their paths are relative to `out`.
    """
    lines = (tasks / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
    known = {each.name: each for each in problems()}
    chosen: dict[str, Task] = {}
    for task in map(json.loads, lines):
        # Two functions of one name would both be found.
        if len(chosen) < limit:
            chosen.setdefault(str(task["metadata"]["function"]), task)
    before = [known[str(task["metadata"]["problem"])] for task in chosen.values()]
    made = [_write(tasks, out, task, before, seed) for task in chosen.values()]
    text = "".join(json.dumps(task) + "\n" for task in made)
    # Last, so that where this file is, the others are.
    (out / "tasks.jsonl").write_text(text, encoding="utf-8")
    return made


def _write(tasks: Path, out: Path, task: Task, before: Sequence[Problem], seed: int) -> Task:
    for folder in (task["workspace"], task["check"]["files"]):
        shutil.copytree(tasks / folder, out / folder)
    archive = out / task["workspace"] / "archive"
    archive.mkdir()
    shuffled = random.Random(f"{seed} {task['id']}").sample(before, len(before))
    for number, start in enumerate(range(0, len(shuffled), FUNCTIONS_EACH)):
        held = shuffled[start : start + FUNCTIONS_EACH]
        text = "\n\n".join(each.solution for each in held)
        (archive / f"part_{number}.py").write_text(text, encoding="utf-8")
    function = str(task["metadata"]["function"])
    return {**task, "task": TASK.format(id=task["id"], function=function)}
