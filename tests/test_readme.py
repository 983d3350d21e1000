"""The README's code runs as it stands."""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


MOST_CPU_S = 6.0
"""Of two cores at rest these are less than 3 s; what the clock says depends on the neighbours."""


@pytest.mark.timeout(240)
def test_the_python_of_the_readme_runs_and_is_soon_done(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    script = tmp_path / "readme.py"
    script.write_text(code)
    before_s = _cpu_of_children_s()

    ended = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "HARNESS_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    # How so small a model puts it is its own affair.
    said = r"done with [1-4] model calls: .*\S.*\n"
    assert re.fullmatch(said, ended.stdout), ended.stdout
    assert _cpu_of_children_s() - before_s < MOST_CPU_S


def _cpu_of_children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
