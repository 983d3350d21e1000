"""The sweep finds what it should: edits are made, put in, and noticed or not."""

import ast
import os
import re
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from tests.sweep import forks
from tests.sweep.__main__ import APART
from tests.sweep.edits import edited, edited_text, edits
from tests.sweep.forks import put_in

ROOT = Path(__file__).parents[2]
MODULE = """\
TOP = max(1, 2)


class Sums:
    def add(self, more: int, *, twice: bool = False) -> int:
        if more < 0 or twice:
            raise ValueError(more)
        self.sum = more + 1
        return self.sum


def added(*numbers: int) -> list[int]:
    def one(number: int) -> int:
        return Sums().add(number, twice=False)

    return [one(number) for number in sorted(numbers)]
"""


def test_what_could_be_forgotten_is_left_out_once_each() -> None:
    found = [(edit.line, edit.what, edit.functions[-1]) for edit in edits(MODULE)]
    assert found == [
        (6, "take more < 0 or twice for True", "Sums.add"),
        (6, "take more < 0 or twice for False", "Sums.add"),
        (6, "leave more < 0 out of more < 0 or twice", "Sums.add"),
        (6, "leave twice out of more < 0 or twice", "Sums.add"),
        (6, "move the bound of more < 0", "Sums.add"),
        (7, "leave out raise ValueError(more)", "Sums.add"),
        (8, "leave out self.sum = more + 1", "Sums.add"),
        (8, "take more for more + 1", "Sums.add"),
        (14, "leave twice= out of Sums().add(number, twice=False)", "added.<locals>.one"),
        (14, "take True for False", "added.<locals>.one"),
        (16, "take numbers for sorted(numbers)", "added"),
    ]


def test_each_edit_is_another_module() -> None:
    texts = {ast.unparse(edited(MODULE, edit.number)) for edit in edits(MODULE)}
    assert len(texts) == len(edits(MODULE))
    assert ast.unparse(ast.parse(MODULE)) not in texts
    with pytest.raises(IndexError):
        edited(MODULE, len(texts))


def test_the_text_of_an_edit_differs_where_the_edit_is_and_nowhere_else() -> None:
    for source in (MODULE, Path(forks.__file__).read_text()):
        for edit in edits(source):
            text = edited_text(source, edit.number)
            assert ast.dump(ast.parse(text)) == ast.dump(
                ast.parse(ast.unparse(edited(source, edit.number)))
            )
            before, after = source.splitlines(), text.splitlines()
            assert before[: edit.line - 1] == after[: edit.line - 1]
    with pytest.raises(IndexError):
        edited_text(MODULE, len(edits(MODULE)))


@pytest.mark.parametrize(
    ("what", "comes_to"),
    [("take more for more + 1", [1, 2]), ("take numbers for sorted(numbers)", [3, 2])],
)
def test_an_edit_holds_for_whoever_has_the_function_already(
    tmp_path: Path, what: str, comes_to: list[int]
) -> None:
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    spec = spec_from_file_location("module", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    added = module.added
    assert added(2, 1) == [2, 3]
    (edit,) = [edit for edit in edits(MODULE) if edit.what == what]
    put_in(path, edit)
    assert added(2, 1) == comes_to


IMPORTS_LATE = """\
def test_late():
    from harness_actors.late.module import added

    assert added(2, 1) == [2, 3]
"""
TRIES = """\
import sys
from pathlib import Path

import pytest

from tests.sweep.edits import edits
from tests.sweep.forks import Forks

root = Path(sys.argv[1])
sys.path.insert(0, sys.argv[1])
path = Path("harness_actors", "late", "module.py")
wanted = "take more for more + 1"
work = [(path, edit) for edit in edits((root / path).read_text()) if edit.what == wanted]
options = ["-p", "no:terminal", "-p", "no:cacheprovider", "--rootdir", sys.argv[1]]
sys.exit(pytest.main([*options, sys.argv[1]], plugins=[Forks(root, work, print, 60.0)]))
"""


def test_a_module_that_a_test_imports_late_has_its_edit(tmp_path: Path) -> None:
    package = tmp_path / "harness_actors" / "late"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    (package / "module.py").write_text(MODULE)
    (tmp_path / "test_late.py").write_text(IMPORTS_LATE)
    ran = subprocess.run(
        [sys.executable, "-c", TRIES, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    _, outcome = ran.stdout.splitlines()
    assert outcome.startswith("found ")
    assert outcome.endswith("test_late.py::test_late")


def test_a_sweep_says_which_edits_live() -> None:
    words = ["coordination/routing.py", "--tests", "tests/coordination/test_router.py"]
    ran = subprocess.run(
        [sys.executable, "-m", "tests.sweep", *words, "--seconds", "60"],
        cwd=ROOT,
        # The router ends no processes, and a container may not allow a namespace for them.
        env={**os.environ, APART: "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=True,
    )
    first, *lived, last = ran.stdout.splitlines()
    assert first.endswith("; 0 that fail are left out")
    assert not lived, "all of the router is tested by its own tests"
    assert re.fullmatch(r"of (\d+) edits, \1 were tried: \{'found': \1\}", last)
