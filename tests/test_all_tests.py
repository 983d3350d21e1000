"""`python -m tests`: what fails beside other tests must pass alone."""

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import __main__ as all_tests
from tests.__main__ import GROUPS, Group, Running, run_groups, verdict

FAILS_ONCE = """
from pathlib import Path

def test_it():
    seen = Path(__file__).with_suffix(".seen")
    if not seen.exists():
        seen.touch()
        assert False
"""


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("def test_it(): pass", 0),
        (FAILS_ONCE, 0),
        ("def test_it(): assert False", 1),
        ("no Python", 1),
    ],
    ids=["passes", "fails_once", "fails", "is_broken"],
)
def test_the_exit_status_is_that_of_each_test_alone(code: str, status: int, tmp_path: Path) -> None:
    place = tmp_path / "test_one.py"
    place.write_text(code)
    group = Running(Group("one", (str(place),)), tmp_path / "folder")
    group.process.wait()
    assert verdict([group]) == status


IS_ALONE = """
import os
import signal
from pathlib import Path

def test_it():
    parent = Path(f"/proc/{os.getppid()}/task")
    beside = " ".join(path.read_text() for path in parent.glob("*/children")).split()
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in beside]
    assert len([command for command in commands if b"test_in_a_group" in command]) == 1
"""
MEETS_ANOTHER = """
from pathlib import Path

def test_it():
    # Whoever opens it waits for the one who opens its other end.
    Path(__file__).with_name("pipe").open(MODE).close()
"""
CACHES_WHAT_IT_IMPORTS = "import sys\ndef test_it(): assert not sys.dont_write_bytecode"


def groups_of(*codes: str, folder: Path) -> list[Group]:
    places = [folder / f"test_in_a_group_{number}.py" for number in range(len(codes))]
    for place, code in zip(places, codes, strict=True):
        place.write_text(code)
    return [Group(place.stem, (str(place),)) for place in places]


def test_all_groups_run_and_no_more_at_once_than_may(tmp_path: Path) -> None:
    groups = groups_of(IS_ALONE, IS_ALONE, IS_ALONE, folder=tmp_path)
    running: list[Running] = []

    run_groups(groups, tmp_path, running, at_once=1)

    assert [one.group for one in running] == groups
    assert [one.process.returncode for one in running] == [0, 0, 0]


def test_as_many_groups_as_may_run_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    ends = [MEETS_ANOTHER.replace("MODE", mode) for mode in ('"rb"', '"wb"')]
    running: list[Running] = []

    run_groups(groups_of(*ends, folder=tmp_path), tmp_path, running, at_once=2)

    assert [one.process.returncode for one in running] == [0, 0]


def test_each_test_is_in_one_group() -> None:
    places = [place for group in GROUPS for place in group.places]
    assert len(places) == len(set(places))
    assert [place for place in places if not (Path(__file__).parent / place).exists()] == []
    assert [group.name for group in GROUPS if not group.places] == ["the others"]


def test_processes_of_a_group_keep_what_they_have_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    place = tmp_path / "test_one.py"
    place.write_text(CACHES_WHAT_IT_IMPORTS)
    group = Running(Group("one", (str(place),)), tmp_path / "folder")
    group.process.wait()
    assert verdict([group]) == 0


ONE_IS_LONG = """
import pytest

def test_it(): pass

@pytest.mark.long
def test_it_once_more(): assert False
"""


@pytest.mark.parametrize(("arguments", "status"), [([], 0), (["--all"], 1)])
def test_long_tests_are_left_out_unless_all_are_wanted_and_it_is_told_how_many(
    arguments: list[str],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    groups = groups_of(ONE_IS_LONG, ONE_IS_LONG, folder=tmp_path)
    # Where the project has its own, from which pytest knows the marker.
    marker = "--override-ini=markers=long: a further case"
    monkeypatch.setenv("PYTEST_ADDOPTS", f"'{marker}'")
    monkeypatch.setattr(all_tests, "GROUPS", groups)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        assert all_tests.main(arguments) == status
    finally:
        signal.signal(signal.SIGTERM, handler)

    told = "2 tests marked long were left out: make test-all runs them as well"
    assert (told in capfd.readouterr().out) == (status == 0)


CHILD = "import signal; print(signal.getsignal(signal.SIGINT) is signal.SIG_IGN)"
BEHIND = f"""
import subprocess, sys, tests.__main__ as tests
tests.run_groups = lambda *_, **__: subprocess.run([sys.executable, "-c", {CHILD!r}])
tests.main([])
"""


def test_what_tests_start_hears_ctrl_c_though_a_shell_has_put_them_behind() -> None:
    behind = f"trap '' INT; exec {shlex.quote(sys.executable)} -c {shlex.quote(BEHIND)}"
    ran = subprocess.run(["sh", "-c", behind], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[0] == "False"
