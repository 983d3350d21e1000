"""A seed that breaks a promise can be looked at: what is printed of it breaks it again."""

import re
import shlex
import sys

import pytest

from tests.simulation.__main__ import parsed, simulate
from tests.simulation.planted import BUGS


@pytest.mark.parametrize("mode", ["protocol", "disk"])
def test_a_seed_that_breaks_prints_one_command_that_breaks_it_again(
    mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bug = next(bug for bug in BUGS if bug.name == "there is no pending record")
    many = ["--mode", mode, "--seeds", "200", "--jobs", "1", "--without", "twice,early"]
    with bug.planted():
        assert simulate(parsed(many)) == 1
        told = capsys.readouterr().out
        command = shlex.split(told.rpartition("to see how: ")[2])
        assert command[:3] == [sys.executable, "-m", "tests.simulation"]
        assert simulate(parsed(command[3:])) == 1
        replayed = capsys.readouterr().out
    found = re.search(r"^seed (\d+) breaks: (.+)$", told, re.MULTILINE)
    assert found is not None
    assert f"\nseed {found[1]}: " in replayed
    broken = re.findall(r"^BROKEN at [0-9.]+: (.+)$", replayed, re.MULTILINE)
    assert broken[0] == found[2]
    assert len(replayed.splitlines()) > 50  # its trace


def test_a_seed_that_breaks_nothing_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(parsed(["--seed", "7"])) == 0
    assert "BROKEN" not in capsys.readouterr().out
