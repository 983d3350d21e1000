"""The code of docs/extending.md runs as it stands, and prints what is said of it."""

import os
import re
import subprocess
import sys
from pathlib import Path

TEXT = (Path(__file__).parent.parent / "docs" / "extending.md").read_text()


def test_a_model_and_an_executor_of_ones_own_are_as_the_docs_say(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (said,) = re.findall(r"^It prints `(.*)`\.$", TEXT, re.MULTILINE)
    script = tmp_path / "own.py"
    script.write_text(code)

    ended = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "HARNESS_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{said}\n"
