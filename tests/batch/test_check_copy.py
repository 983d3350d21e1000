"""What a check finds in its copy: of the run what it made, of the task what steers the check."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from harness_actors.batch.check_copy import lay, lay_over
from harness_actors.batch.check_files import CheckFiles
from harness_actors.errors import BadInputError

PYTEST = "[tool.pytest.ini_options]\naddopts = '-x'\n"
OTHER = "[tool.pytest.ini_options]\naddopts = ''\n"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A workspace that a run has left, and what becomes of it.

    Attributes:
        left: Its files.
        source: What it began with; None for nothing.
        hidden: What is laid over it; None for nothing.
        seen: What the check finds.
        out: What is said to be left out.
        command: Of the check.
        keep: What of the steering files may be the run's own.
    """

    left: Mapping[str, str]
    seen: Mapping[str, str]
    out: tuple[str, ...] = ()
    source: Mapping[str, str] | None = field(default_factory=dict)
    hidden: Mapping[str, str] | None = None
    command: str = "python -m unittest"
    keep: tuple[str, ...] = ()


def write(top: Path, files: Mapping[str, str]) -> Path:
    """Write files by their paths; one whose text is `-> place` is a link."""
    top.mkdir()
    for name, text in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("-> "):
            path.symlink_to(text[3:])
        else:
            path.write_text(text)
    return top


def read(top: Path) -> dict[str, str]:
    return {
        path.relative_to(top).as_posix(): (
            f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text()
        )
        for path in top.rglob("*")
        if path.is_symlink() or path.is_file()
    }


CASES = {
    "what does not steer is the run's own": Case(
        left={"a.py": "new", "setup.py": "own", "deep/b": "x", ".git/HEAD": "h", "tests/t.py": "t"},
        source={"a.py": "old"},
        seen={"a.py": "new", "setup.py": "own", "deep/b": "x", ".git/HEAD": "h", "tests/t.py": "t"},
    ),
    "nothing to begin with": Case(
        left={"conftest.py": "x", "a": "1"}, source=None, seen={"a": "1"}, out=("conftest.py",)
    ),
    "files that steer and nothing else": Case(
        left=dict.fromkeys(
            (
                *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "a/conftest.py"),
                *(".git/config", ".git/hooks/pre-commit", ".git/info/attributes", ".git/HEAD"),
                *("sub/.git/config.worktree", "sub/.git/commondir", "sub/.git/index"),
                *("x.dist-info/entry_points.txt", "y.egg-info/entry_points.txt"),
                *("entry_points.txt", "z/entry_points.txt", "x.dist-info/METADATA", "pyvenv.cfg"),
            ),
            "x",
        ),
        seen=dict.fromkeys(
            (
                *(".git/HEAD", "sub/.git/index", "entry_points.txt", "z/entry_points.txt"),
                *("x.dist-info/METADATA", "pyvenv.cfg"),
            ),
            "x",
        ),
        out=(
            *(".git/config", ".git/hooks/pre-commit", ".git/info/attributes", ".pytest.ini"),
            *(".pytest.toml", "a/conftest.py", "pytest.ini", "pytest.toml"),
            *("sub/.git/commondir", "sub/.git/config.worktree", "x.dist-info/entry_points.txt"),
            "y.egg-info/entry_points.txt",
        ),
    ),
    "a link that is called .git": Case(left={".git": "-> elsewhere"}, seen={}, out=(".git",)),
    "what was steering is put back where it was": Case(
        left={"conftest.py": "own", "b/conftest.py": "given"},
        source={"conftest.py": "given", "b/conftest.py": "given", "c/d/conftest.py": "deep"},
        seen={"conftest.py": "given", "b/conftest.py": "given", "c/d/conftest.py": "deep"},
        out=("c/d/conftest.py", "conftest.py"),
    ),
    "a folder or a file in its way": Case(
        left={"conftest.py/x": "own", "c": "file"},
        source={"conftest.py": "given", "c/conftest.py": "deep"},
        seen={"conftest.py": "given", "c/conftest.py": "deep"},
        out=("c/conftest.py", "conftest.py"),
    ),
    "a link for a file, a file for a link, another link": Case(
        left={"conftest.py": "-> a", "b/conftest.py": "a", "c/conftest.py": "-> a", "a": "given"},
        source={"conftest.py": "given", "b/conftest.py": "-> a", "c/conftest.py": "-> b"},
        seen={
            "conftest.py": "given",
            "b/conftest.py": "-> a",
            "c/conftest.py": "-> b",
            "a": "given",
        },
        out=("b/conftest.py", "c/conftest.py", "conftest.py"),
    ),
    "the same link": Case(
        left={"conftest.py": "-> a", "a": "given"},
        source={"conftest.py": "-> a"},
        seen={"conftest.py": "-> a", "a": "given"},
    ),
    "only the section for tests of a file counts": Case(
        left={"pyproject.toml": f"[project]\nname = 'b'\n{PYTEST}", "setup.cfg": "[flake8]\n"},
        source={"pyproject.toml": f"[project]\nname = 'a'\n{PYTEST}", "setup.cfg": "[other]\n"},
        seen={"pyproject.toml": f"[project]\nname = 'b'\n{PYTEST}", "setup.cfg": "[flake8]\n"},
    ),
    "a section for tests that was changed, added or removed": Case(
        left={
            "pyproject.toml": OTHER,
            "setup.cfg": "[tool:pytest]\naddopts = -x\n",
            "tox.ini": "[a]\n",
            "b/tox.ini": "[pytest]\n[a]\n",
        },
        source={
            "pyproject.toml": PYTEST,
            "tox.ini": "[pytest]\nx = 1\n[a]\n",
            "setup.cfg": "[a]\n",
        },
        seen={"pyproject.toml": PYTEST, "tox.ini": "[pytest]\nx = 1\n[a]\n"},
        out=("b/tox.ini", "pyproject.toml", "setup.cfg", "tox.ini"),
    ),
    "the last of several sections for tests was changed": Case(
        left={"tox.ini": "[pytest-env]\nx = 1\n[a]\n[pytest]\nx = 2\n"},
        source={"tox.ini": "[pytest-env]\nx = 1\n[b]\n[pytest]\nx = 1\n"},
        seen={"tox.ini": "[pytest-env]\nx = 1\n[b]\n[pytest]\nx = 1\n"},
        out=("tox.ini",),
    ),
    "a section for tests behind another one": Case(
        left={"tox.ini": "[a]\n[pytest]\nx = 2\n", "setup.cfg": "[a]\n[tool:pytest]\nx = 2\n"},
        source={"tox.ini": "[a]\n[pytest]\nx = 1\n"},
        seen={"tox.ini": "[a]\n[pytest]\nx = 1\n"},
        out=("setup.cfg", "tox.ini"),
    ),
    "a link in the place of a file with the same section": Case(
        left={"tox.ini": "-> a", "a": "[pytest]\nx = 1\n"},
        source={"tox.ini": "[pytest]\nx = 1\n"},
        seen={"tox.ini": "[pytest]\nx = 1\n", "a": "[pytest]\nx = 1\n"},
        out=("tox.ini",),
    ),
    "settings that cannot be read": Case(
        left={"pyproject.toml": "[tool\n", "b/pyproject.toml": "tool = 1\n"},
        seen={},
        out=("b/pyproject.toml", "pyproject.toml"),
    ),
    "a recipe of the task": Case(
        left={"Makefile": "own", "GNUmakefile": "own"},
        source={"Makefile": "given"},
        command="make test",
        seen={"Makefile": "given"},
        out=("GNUmakefile", "Makefile"),
    ),
    "a recipe that the task does not give is the run's own": Case(
        left={"Makefile": "own"}, command="make test", seen={"Makefile": "own"}
    ),
    "a recipe among the hidden files": Case(
        left={"Makefile": "own", "makefile": "own"},
        hidden={"Makefile": "given"},
        command="make test",
        seen={"Makefile": "given"},
        out=("makefile",),
    ),
    "a recipe of another program": Case(
        left={"Makefile": "own"},
        source={"Makefile": "given"},
        command="remake; tox",
        seen={"Makefile": "own"},
    ),
    "what is to be kept": Case(
        left={"conftest.py": "own", "a/conftest.py": "own", "pytest.ini": "own"},
        source={"conftest.py": "given"},
        keep=("conf*", "pytest.toml"),
        seen={"conftest.py": "own"},
        out=("a/conftest.py", "pytest.ini"),
    ),
    "hidden files lie over the others": Case(
        left={"a": "own", "b/c": "own", "conftest.py": "own", "d": "own"},
        hidden={"a": "hidden", "b/e": "hidden", "conftest.py": "hidden", "d/x": "hidden"},
        seen={
            "a": "hidden",
            "b/c": "own",
            "b/e": "hidden",
            "conftest.py": "hidden",
            "d/x": "hidden",
        },
    ),
    "a folder of tests belongs to the hidden ones": Case(
        left={"tests/test_own.py": "own", "tests/a/b.py": "own", "other/tests/c.py": "own"},
        hidden={"tests/test_it.py": "hidden"},
        seen={"tests/test_it.py": "hidden", "other/tests/c.py": "own"},
        out=("tests/a/b.py", "tests/test_own.py"),
    ),
    "a package of tests stays one": Case(
        left={"tests/__init__.py": "own", "tests/b/__init__.py": ""},
        hidden={"tests/test_it.py": "hidden"},
        seen={"tests/__init__.py": "", "tests/b/__init__.py": "", "tests/test_it.py": "hidden"},
        out=("tests/__init__.py", "tests/b/__init__.py"),
    ),
    "an environment around hidden files": Case(
        left={"spec/pyvenv.cfg": "", "other/pyvenv.cfg": ""},
        hidden={"spec/test_it.py": "hidden"},
        seen={"spec/test_it.py": "hidden", "other/pyvenv.cfg": ""},
        out=("spec/pyvenv.cfg",),
    ),
    "modules that would be imported in place of hidden ones": Case(
        left={
            "one.so": "x",
            "one.cpython-311.so": "x",
            "one/__init__.py": "x",
            "one.txt": "x",
            "two.py": "x",
            "two.abi3.so": "x",
            "data/y": "x",
            "data.so": "x",
        },
        hidden={"one.py": "hidden", "two/part.py": "hidden", "data.csv": "hidden"},
        seen={
            "one.py": "hidden",
            "two/part.py": "hidden",
            "data.csv": "hidden",
            "one.txt": "x",
            "data/y": "x",
            "data.so": "x",
        },
        out=("one", "one.cpython-311.so", "one.so", "two.abi3.so", "two.py"),
    ),
    "names that are nearly those of hidden ones": Case(
        left={"v1.py": "x", "four": "x", "five.py": "x"},
        hidden={
            "v1.2/part.py": "h",
            "four.py": "h",
            "five.py": "h",
            "five/part.py": "h",
            **{f"n{at}.txt": "h" for at in range(9)},
        },
        seen={
            "v1.py": "x",
            "four": "x",
            "v1.2/part.py": "h",
            "four.py": "h",
            "five.py": "h",
            "five/part.py": "h",
            **{f"n{at}.txt": "h" for at in range(9)},
        },
    ),
    "a module beside a package of its name, which is found first": Case(
        left={"two.py": "x", "two/__init__.py": "x"},
        hidden={"two/part.py": "hidden"},
        seen={"two.py": "x", "two/__init__.py": "x", "two/part.py": "hidden"},
    ),
    "compiled files": Case(
        left={"a.pyc": "x", "b/c.pyo": "x", "b/__pycache__/d.txt": "x", "e.py": "x"},
        seen={"e.py": "x"},
    ),
    "what installers made is passed over": Case(
        left={"node_modules/conftest.py": "x", "v/site-packages/conftest.py": "x"},
        seen={"node_modules/conftest.py": "x", "v/site-packages/conftest.py": "x"},
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_check_finds_what_the_run_made_and_what_the_task_gives(
    case: Case, tmp_path: Path
) -> None:
    files = CheckFiles(
        case.command,
        None if case.hidden is None else write(tmp_path / "hidden", case.hidden),
        None if case.source is None else write(tmp_path / "source", case.source),
        case.keep,
    )
    given = read(tmp_path)
    work = write(tmp_path / "work", case.left)

    out = lay(files, work)

    assert out == case.out
    assert read(work) == case.seen
    assert {name: text for name, text in read(tmp_path).items() if name in given} == given


def test_settings_that_are_no_text_are_compared_as_well(tmp_path: Path) -> None:
    work = write(tmp_path / "work", {})
    for name, head in (
        ("tox.ini", b"[pytest]\n"),
        ("setup.cfg", b"[a]\n"),
        ("pyproject.toml", b""),
    ):
        (work / name).write_bytes(head + b"\xff")

    assert lay(CheckFiles("pytest", None, None, ()), work) == ("pyproject.toml", "tox.ini")
    assert [path.name for path in work.iterdir()] == ["setup.cfg"]


@pytest.mark.parametrize("which", ["source", "hidden"])
def test_what_is_given_must_be_as_it_was_when_the_copy_is_made(which: str, tmp_path: Path) -> None:
    hidden = write(tmp_path / "hidden", {"test.py": "x"})
    source = write(tmp_path / "source", {"conftest.py": "x", "a.py": "x"})
    files = CheckFiles("true", hidden, source, ())
    (source / "a.py").write_text("does not steer")
    assert lay(files, write(tmp_path / "one", {})) == ("conftest.py",)
    (hidden / "test.py" if which == "hidden" else source / "conftest.py").write_text("other")

    with pytest.raises(BadInputError, match=rf"{which}: what it gives to checks was changed"):
        lay(files, write(tmp_path / "two", {}))


def test_links_are_laid_over_as_links_and_never_led_by(tmp_path: Path) -> None:
    mine = write(tmp_path / "elsewhere", {"c": "mine"})
    hidden = write(tmp_path / "hidden", {"a": f"-> {mine}", "b/c": "x", "d": "x", "e": "x"})
    left = {"a/x": "own", "b": "-> ../elsewhere", "d": "-> ../elsewhere/c", "e": "-> ../elsewhere"}
    work = write(tmp_path / "work", left)

    lay_over(hidden, work)

    assert read(work) == {"a": f"-> {mine}", "b/c": "x", "d": "x", "e": "x"}
    assert read(mine) == {"c": "mine"}


def test_links_do_not_lead_elsewhere_what_is_put_back_or_removed(tmp_path: Path) -> None:
    mine = {"down/conftest.py": "mine", "one.so": "mine", "a.pyc": "mine"}
    elsewhere = write(tmp_path / "elsewhere", mine)
    given = write(tmp_path / "source", {"deep/down/conftest.py": "given"})
    hidden = write(tmp_path / "hidden", {"pkg/one.py": "hidden"})
    links = ("deep", "pkg", "conftest.py", "__pycache__", "also.pyc")
    files = CheckFiles("true", hidden, given, ())
    work = write(tmp_path / "work", dict.fromkeys(links, "-> ../elsewhere"))

    out = lay(files, work)

    assert out == ("conftest.py", "deep/down/conftest.py")
    assert read(work) == {"deep/down/conftest.py": "given", "pkg/one.py": "hidden"}
    assert read(elsewhere) == mine


def test_a_file_of_the_same_size_and_time_is_not_taken_for_the_one_that_was_given(
    tmp_path: Path,
) -> None:
    given = write(tmp_path / "source", {"conftest.py": "given"})
    work = write(tmp_path / "work", {"conftest.py": "owned"})
    for folder in (given, work):
        os.utime(folder / "conftest.py", (1, 1))
    files = CheckFiles("true", None, given, ())

    assert lay(files, work) == ("conftest.py",)
    assert read(work) == {"conftest.py": "given"}


def test_a_copy_keeps_the_rights_of_what_is_given(tmp_path: Path) -> None:
    hidden = write(tmp_path / "hidden", {"run.sh": "#!/bin/sh"})
    (hidden / "run.sh").chmod(0o755)
    source = write(tmp_path / "source", {"Makefile": "all:"})
    (source / "Makefile").chmod(0o711)
    work = write(tmp_path / "work", {})

    lay(CheckFiles("make", hidden, source, ()), work)

    assert (work / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (work / "Makefile").stat().st_mode & 0o777 == 0o711
