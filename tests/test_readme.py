"""The README's code runs as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


@pytest.mark.ray
@pytest.mark.timeout(240)
def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    script = tmp_path / "readme.py"
    script.write_text(code)

    ended = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "HARNESS_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    status, kind, calls = ended.stdout.split()
    # What so small a model comes to is its own affair; that the run ended well is ours.
    assert (status, kind) in {("done", "completed"), ("limit", "model_calls")}
    assert 1 <= int(calls) <= 5
    assert ended.stderr == ""
