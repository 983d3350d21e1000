"""`python -m tests`: what fails beside other tests must pass alone."""

from pathlib import Path

import pytest

from tests.__main__ import Group, Running, verdict

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
