"""The README's code runs as it stands."""

import re
import resource
import time
from pathlib import Path

import pytest

from tests.pages import run_python_of

MOST_CPU_S = 6.0
"""Of two cores at rest these are less than 3 s; what the clock says depends on the neighbours."""
LOOP = 3_000_000
LOOP_S = 0.15
"""What a loop of so many rounds takes of such a core. A machine that needs longer is slower at
everything, and has as much more."""
TRIES = 3
"""Neighbours that come and go in the middle slow a model down and no loop; what the code takes is
the least of these."""


@pytest.mark.timeout(240)
def test_the_python_of_the_readme_runs_and_is_soon_done(tmp_path: Path) -> None:
    took: list[str] = []
    for number in range(TRIES):
        before_s, slowness = _cpu_of_children_s(), _slowness()
        (folder := tmp_path / str(number)).mkdir()

        ended = run_python_of("README.md", folder)

        assert (ended.returncode, ended.stderr) == (0, "")
        # How so small a model puts it is its own affair.
        said = r"done with [1-4] model calls: .*\S.*\n"
        assert re.fullmatch(said, ended.stdout), ended.stdout
        took_s, most_s = _cpu_of_children_s() - before_s, MOST_CPU_S * max(slowness, _slowness())
        if took_s < most_s:
            return
        took.append(f"{took_s:.1f} s of at most {most_s:.1f} s")
    pytest.fail(f"the README's example takes {', '.join(took)} of CPU")


def _slowness() -> float:
    began, total = time.process_time(), 0
    for number in range(LOOP):
        total += number
    return max(1.0, (time.process_time() - began) / LOOP_S)


def _cpu_of_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
