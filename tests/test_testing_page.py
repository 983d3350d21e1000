"""The example of docs/testing.md: models without a key."""

import re
from pathlib import Path

import pytest

from tests.pages import run_python_of, text_of

PAGE = "docs/testing.md"


@pytest.mark.timeout(240)
def test_the_example_prints_what_is_said_of_it(tmp_path: Path) -> None:
    said = re.search(r"It prints `(.*?)`, and then `(.*?)`", text_of(PAGE))
    assert said is not None

    ended = run_python_of(PAGE, tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines() == list(said.groups())
