"""docs/output.md is true of the code."""

import re
from pathlib import Path

from harness_actors.messages import MOST_BITS, MOST_LEVELS
from harness_actors.models.holding import REFUSING_STATUSES
from harness_actors.outputs.output_type import CHECK_S
from harness_actors.outputs.reading import MOST_CHARS
from tests.pages import run_python_of, text_of

PAGE = "docs/output.md"


def test_the_example_prints_what_is_said_of_it(tmp_path: Path) -> None:
    ended = run_python_of(PAGE, tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    (said,) = re.findall(r"^It prints `(.*?)`", text_of(PAGE), re.MULTILINE)
    assert ended.stdout == f"{said}\n"


def test_its_numbers_are_those_of_the_code() -> None:
    page = " ".join(text_of(PAGE).split())
    assert f"It has {MOST_CHARS:,} characters as JSON at most, {MOST_LEVELS} levels" in page
    assert f"whole numbers of {MOST_BITS} bits" in page
    assert f"in a thread, and has {CHECK_S:g} s" in page
    assert f"({', '.join(map(str, REFUSING_STATUSES))})" in page
