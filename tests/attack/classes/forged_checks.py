"""Finished workspaces that do not hold what was asked for, and would have their check pass."""

import asyncio
import importlib.util
import marshal
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness_actors.batch.check_copy import lay_over
from harness_actors.batch.checks import Checks
from harness_actors.batch.installed import base_interpreter
from harness_actors.batch.tasks import Check
from harness_actors.tools.environment import _cache_folder, command_environment, python_folder
from harness_actors.tools.workspace import copy_workspace
from tests.attack.attacks import Attack, Outcome

WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"
TEST = """\
import fractions
import unittest

import solution


class AddTest(unittest.TestCase):
    def test_adds(self):
        self.assertEqual(solution.add(fractions.Fraction(2), 3), 5)
"""
PASSES = "import unittest\nclass T(unittest.TestCase):\n    def test_it(self): pass\n"
ENDS = "import os\nos._exit(0)\n"
ENDS_NOW = "import os; os._exit(0)"
UNITTEST, PYTEST = "python -m unittest", "python -m pytest -q -p no:cacheprovider"
ON_PATH = "PYTHONPATH=. python -m unittest"
ADDS_NOTHING = "[{}]\naddopts = --collect-only\n"
LETS_PASS = """\
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    report.outcome = "passed"
"""
MAKEFILE = "test:\n\tpython -m unittest\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgery:
    """One way to have a check pass.

    Attributes:
        command: Of the check.
        left: Files that the run leaves, by path below its workspace.
        does: What else it does there; it is given the workspace and the folder of the check's
            files, which it is not told of but may find.
        given: Files that the workspace began with, besides the wrong solution.
        place: Where the hidden test lies below the check's files.
    """

    command: str = UNITTEST
    left: Mapping[str, str] = field(default_factory=dict)
    does: Callable[[Path, Path], None] = lambda _workspace, _hidden: None
    given: Mapping[str, str] = field(default_factory=dict)
    place: str = "test_add.py"


def _compiled(workspace: Path, _: Path) -> None:
    place = Path(importlib.util.cache_from_source(str(workspace / "test_add.py")))
    place.parent.mkdir()
    # Marked as one that is not to be compared with its source.
    head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
    place.write_bytes(head + marshal.dumps(compile(PASSES, "test_add.py", "exec")))


def _link(workspace: Path, _: Path) -> None:
    (workspace.parent / "elsewhere.py").write_text(PASSES)
    (workspace / "test_add.py").symlink_to(workspace.parent / "elsewhere.py")


def _pipe(workspace: Path, _: Path) -> None:
    os.mkfifo(workspace / "test_add.py")


def _fixed(workspace: Path, _: Path) -> None:
    (workspace / "test_add.py").write_text(PASSES)
    (workspace / "test_add.py").chmod(0o444)
    workspace.chmod(0o555)


def _rewrites_hidden(_: Path, hidden: Path) -> None:
    (hidden / "test_add.py").write_text(PASSES)


def _git(workspace: Path, _: Path) -> None:
    script = workspace / "watch.sh"
    script.write_text("#!/bin/sh\ncp passes.txt test_add.py\n")
    script.chmod(0o755)
    (workspace / "passes.txt").write_text(PASSES)
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    with (workspace / ".git" / "config").open("a") as file:
        file.write("[core]\n\tfsmonitor = ./watch.sh\n")


def _bare(workspace: Path, _: Path) -> None:
    """The workspace itself is a repository, whose settings name a program."""
    bare = workspace.parent / "bare"
    subprocess.run(["git", "init", "-q", "--bare", str(bare)], check=True)
    lay_over(bare, workspace)
    (workspace / "refs" / "keep").touch()
    script = workspace / "watch.sh"
    script.write_text("#!/bin/sh\ncp passes.txt test_add.py\n")
    script.chmod(0o755)
    (workspace / "passes.txt").write_text(PASSES)
    (workspace / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n"
        "\tfsmonitor = ./watch.sh\n"
    )


def _linked_plugin(workspace: Path, _: Path) -> None:
    (workspace / "let-1.0.dist-info").rename(workspace / "inner")
    (workspace / "let-1.0.dist-info").symlink_to("inner")


PADDING = "# padding\n" * 110_000
"""More than 1 MiB."""
PLUGIN = {
    "let-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: let\nVersion: 1.0\n",
    "let-1.0.dist-info/entry_points.txt": "[pytest11]\nlet = letpass\n",
    "letpass.py": LETS_PASS,
}

FORGERIES: dict[str, Forgery] = {
    "unittest.py": Forgery(left={"unittest.py": ENDS}),
    "a package unittest": Forgery(left={"unittest/__init__.py": "", "unittest/__main__.py": ENDS}),
    "argparse.py": Forgery(left={"argparse.py": ENDS}),
    "argparse.py for another Python": Forgery(
        command=f"{base_interpreter()} -m unittest", left={"argparse.py": ENDS}
    ),
    "a module of the library that the test uses": Forgery(left={"fractions.py": ENDS}),
    "a module of the library beside a script": Forgery(
        command="python test_add.py", left={"unittest.py": ENDS}
    ),
    "a package that is discovered": Forgery(left={"helpers/__init__.py": ENDS}),
    "a package that is discovered and says what its tests are": Forgery(
        left={"zz/__init__.py": f"def load_tests(loader, tests, pattern):\n    {ENDS_NOW}\n"}
    ),
    "a package that is discovered in packages": Forgery(
        command="python -m unittest discover -p 'test_*.py'",
        left={"a/__init__.py": "", "a/b/__init__.py": ENDS, "a/b/ok.txt": ""},
    ),
    "a package that is discovered and compares nothing": Forgery(
        left={"zz/__init__.py": "import unittest\n"
              "unittest.TestCase.assertEqual = lambda *given: None\n"},
    ),
    "a package in place of the test": Forgery(
        command="python -m unittest test_add", left={"test_add/__init__.py": PASSES}
    ),
    "a compiled file in place of the test": Forgery(does=_compiled),
    "a link in place of the test": Forgery(does=_link),
    "a pipe in place of the test": Forgery(does=_pipe),
    "a test that cannot be written to": Forgery(does=_fixed),
    "a folder of tests that chooses": Forgery(
        place="tests/test_add.py",
        left={"tests/__init__.py": "def load_tests(loader, _, pattern):\n"
              "    return loader.loadTestsFromName('ok')\n", "ok.py": PASSES},
    ),
    "a module that says it is the folder of tests": Forgery(
        place="tests/test_add.py",
        left={"tests.py": "__path__ = ['forged']\n", "forged/test_add.py": PASSES},
        command="python -m unittest tests.test_add",
    ),
    "encodings on PYTHONPATH": Forgery(command=ON_PATH, left={"encodings/__init__.py": ENDS}),
    "sitecustomize on PYTHONPATH": Forgery(command=ON_PATH, left={"sitecustomize.py": ENDS}),
    "usercustomize at home": Forgery(
        left={f".local/lib/python3.{sys.version_info[1]}/site-packages/usercustomize.py": ENDS},
        command="PYTHONNOUSERSITE= python -m unittest",
    ),
    "another Makefile": Forgery(
        command="make test", given={"Makefile": MAKEFILE}, left={"GNUmakefile": "test:\n\ttrue\n"}
    ),
    "the Makefile": Forgery(
        command="make test", given={"Makefile": MAKEFILE}, left={"Makefile": "test:\n\ttrue\n"}
    ),
    "a watcher of git": Forgery(command="git status >/dev/null; python -m unittest", does=_git),
    "settings of git at home": Forgery(
        command="git --version >/dev/null; git ok 2>/dev/null || python -m unittest",
        left={".gitconfig": "[alias]\n\tok = !true\n"},
    ),
    "the hidden test itself": Forgery(does=_rewrites_hidden),
    "a test beside the hidden one": Forgery(left={"test_aaa.py": ENDS}),
    "a package around hidden tests": Forgery(
        place="spec/test_add.py",
        command="python -m unittest spec.test_add",
        left={"spec/__init__.py": ENDS},
    ),
    "a repository without files": Forgery(
        command="git status >/dev/null; python -m unittest test_add", does=_bare
    ),
    "a Makefile of another name": Forgery(
        command="make -f rules.mk test",
        given={"rules.mk": MAKEFILE},
        left={"rules.mk": "test:\n\ttrue\n"},
    ),
}  # fmt: skip
WITH_PYTEST: dict[str, Forgery] = {
    "pytest.py": Forgery(command=PYTEST, left={"pytest.py": ENDS}),
    "_pytest": Forgery(command=PYTEST, left={"_pytest/__init__.py": ENDS}),
    "conftest.py": Forgery(command=PYTEST, left={"conftest.py": LETS_PASS}),
    "conftest.py beside hidden tests": Forgery(
        command=PYTEST, left={"spec/conftest.py": LETS_PASS}, place="spec/test_add.py"
    ),
    "a plugin": Forgery(command=PYTEST, left=PLUGIN),
    "pytest.ini": Forgery(command=PYTEST, left={"pytest.ini": ADDS_NOTHING.format("pytest")}),
    "tox.ini": Forgery(command=PYTEST, left={"tox.ini": ADDS_NOTHING.format("pytest")}),
    "setup.cfg": Forgery(command=PYTEST, left={"setup.cfg": ADDS_NOTHING.format("tool:pytest")}),
    "pyproject.toml": Forgery(
        command=PYTEST,
        left={"pyproject.toml": '["tool"."\\u0070ytest".ini_options]\naddopts="--collect-only"\n'},
    ),
    "an environment around hidden tests": Forgery(
        command=PYTEST,
        left={"spec/pyvenv.cfg": "", "test_ok.py": PASSES},
        place="spec/test_add.py",
    ),
    "a test beside the hidden one, for pytest": Forgery(command=PYTEST, left={"test_aaa.py": ENDS}),
    "a package around all": Forgery(command=PYTEST, left={"__init__.py": ENDS}),
    "an environment of conda around hidden tests": Forgery(
        command=PYTEST,
        left={"spec/conda-meta/history": "", "test_ok.py": PASSES},
        place="spec/test_add.py",
    ),
    "a plugin in capitals": Forgery(
        command=PYTEST,
        left={name.replace("dist-info", "DIST-INFO"): text for name, text in PLUGIN.items()},
    ),
    "a plugin behind a link": Forgery(command=PYTEST, left=PLUGIN, does=_linked_plugin),
    "setup.cfg beyond a MiB": Forgery(
        command=PYTEST, left={"setup.cfg": PADDING + ADDS_NOTHING.format("tool:pytest")}
    ),
    "pyproject.toml beyond a MiB": Forgery(
        command=PYTEST,
        left={
            "pyproject.toml": f'{PADDING}[tool.pytest.ini_options]\naddopts = "--collect-only"\n'
        },
    ),
    "setup.cfg with other ends of lines": Forgery(
        command=PYTEST,
        left={"setup.cfg": ADDS_NOTHING.format("tool:pytest").replace("\n", "\r")},
    ),
    "the program pytest": Forgery(command="pytest -q", left={"conftest.py": LETS_PASS}),
}
JUDGE = "judge-of-additions"


def _judges(_workspace: Path, _hidden: Path) -> None:
    Path(shutil.which(JUDGE) or "").write_text("#!/bin/sh\nexit 0\n")


def _adds_a_program(_workspace: Path, _hidden: Path) -> None:
    for name in ("python3", "grep"):
        program = Path(shutil.which(JUDGE) or "").with_name(name)
        program.write_text("#!/bin/sh\nexit 0\n")
        program.chmod(0o755)


def _interprets(_workspace: Path, _hidden: Path) -> None:
    python = python_folder() / "python"
    # Put in place, not written to: a link there leads to the interpreter of this machine.
    other = python.parents[2] / "other"
    other.write_text("#!/bin/sh\nexit 0\n")
    other.chmod(0o755)
    other.rename(python)


OF_PROGRAMS: dict[str, Forgery] = {
    "a program of PATH": Forgery(command=JUDGE, does=_judges),
    "a program put into PATH": Forgery(command="grep -q 'a + b' solution.py", does=_adds_a_program),
    "the interpreter that commands get": Forgery(does=_interprets),
}
"""They are there for all later commands; so nothing else is tried beside them."""
HONEST: dict[str, Forgery] = {
    "unittest": Forgery(),
    "a script": Forgery(command="python test_add.py", place="test_add.py"),
    "tests in a folder": Forgery(
        place="tests/test_add.py", command="python -m unittest tests.test_add"
    ),
    "PYTHONPATH": Forgery(
        command="PYTHONPATH=src python -m unittest",
        left={"src/solution.py": RIGHT},
        does=lambda workspace, _: (workspace / "solution.py").unlink(),
    ),
    "a Makefile of its own": Forgery(command="make test", left={"Makefile": MAKEFILE}),
    "an environment of its own": Forgery(
        command="env/bin/python -m unittest",
        does=lambda workspace, _: venv.create(workspace / "env", symlinks=True),
    ),
    "a package that is new": Forgery(
        left={"adding/__init__.py": RIGHT, "solution.py": "from adding import add\n"}
    ),
    "tests of its own beside": Forgery(left={"test_own.py": PASSES}),
    "a shell": Forgery(command="grep -q 'a + b' solution.py"),
}


def _write(top: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)


@dataclass(frozen=True, slots=True)
class Trial:
    """The folders of one forgery."""

    top: Path
    forgery: Forgery
    solution: str

    def give(self) -> Check:
        """What the task gives."""
        ends = "\n\nif __name__ == '__main__':\n    unittest.main()\n"
        test = TEST + ends if "test_add.py" in self.forgery.command else TEST
        _write(self.top / "hidden", {self.forgery.place: test})
        _write(self.top / "source", {"solution.py": WRONG, **self.forgery.given})
        return Check(command=self.forgery.command, files=str(self.top / "hidden"))

    def work(self) -> Path:
        """What the run does, and where."""
        workspace = self.top / "workspace"
        copy_workspace(self.top / "source", workspace)
        _write(workspace, {"solution.py": self.solution, **self.forgery.left})
        self.forgery.does(workspace, self.top / "hidden")
        return workspace

    def passes_plainly(self, workspace: Path) -> bool:
        """Whether it would pass with its test laid over, and nothing done against it."""
        copy = self.top / "plain"
        copy_workspace(workspace, copy)
        lay_over(self.top / "hidden", copy)
        environment = command_environment(copy, {})
        ended = subprocess.run(
            ["/bin/sh", "-c", self.forgery.command],
            cwd=copy, env=environment, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        return ended.returncode == 0


async def _tried(
    folder: Path, forgeries: Mapping[str, Forgery], solution: str, *, plainly: bool = False
) -> tuple[list[str], list[str]]:
    """Those that passed, and those that would have where nothing is done, if that is asked."""
    checks = Checks(folder / "copies")

    async def one(number: int, name: str, forgery: Forgery) -> tuple[str, bool, bool]:
        trial = Trial(folder / str(number), forgery, solution)
        check, source = trial.give(), str(trial.top / "source")
        await checks.begin(check, source)
        workspace = trial.work()
        would = plainly and await asyncio.to_thread(trial.passes_plainly, workspace)
        result = await checks.run(check, workspace, source)
        return name, result.passed, would

    found = await asyncio.gather(
        *(one(number, *each) for number, each in enumerate(forgeries.items()))
    )
    passing = [name for name, passed, _ in found if passed]
    return passing, [name for name, _, would in found if would]


def forge(tries: int) -> Outcome:
    """Try the forgeries, and that honest solutions pass."""
    forgeries = {**FORGERIES, **(WITH_PYTEST if _has_pytest() else {})}
    chosen = dict(list(forgeries.items())[:tries])
    all_ = len(chosen) == len(forgeries)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            scored, would = asyncio.run(_tried(folder / "forged", chosen, WRONG, plainly=all_))
            honest, _ = asyncio.run(_tried(folder / "honest", HONEST, RIGHT))
            with _own_programs(folder / "programs"):
                more, also = asyncio.run(_tried(folder / "more", OF_PROGRAMS, WRONG, plainly=all_))
        finally:
            for place in folder.rglob("workspace"):
                place.chmod(0o755)
    refused = [f"honest: {name}" for name in HONEST if name not in honest]
    return Outcome(
        tries=len(chosen) + len(OF_PROGRAMS),
        through=(*scored, *more, *refused),
        figures=(
            *([("pass where nothing is done", len(would) + len(also))] if all_ else []),
            ("honest that pass", len(honest)),
        ),
    )


@contextmanager
def _own_programs(folder: Path) -> Iterator[None]:
    """Have a folder of PATH and a cache that may be spoilt."""
    _write(folder, {f"bin/{JUDGE}": "#!/bin/sh\nexit 1\n"})
    (folder / "bin" / JUDGE).chmod(0o755)
    before = dict(os.environ)
    os.environ["PATH"] = f"{folder / 'bin'}:{before['PATH']}"
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    _cache_folder.cache_clear()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        _cache_folder.cache_clear()


def _has_pytest() -> bool:
    python = shutil.which("python", path=command_environment(Path("/"), {})["PATH"])
    assert python is not None
    return subprocess.run([python, "-c", "import pytest"], capture_output=True).returncode == 0


ATTACKS = (
    Attack(
        name="forged_checks",
        what="Has a check pass without the work: by what lies in the workspace, or by programs.",
        run=forge,
        tries=100,
        quick=len(FORGERIES) - 1,
    ),
)
