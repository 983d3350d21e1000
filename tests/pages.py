"""The code of a page, run as a reader would who copies it."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENDS_WITHIN_S = 200.0


def run_python_of(page: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run the one Python example of a page, and wait for its end.

    Args:
        page: Its path below the root of the project.
        folder: An empty one, for the script and its journal.
    """
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    script = folder / "example.py"
    script.write_text(code)
    return subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "HARNESS_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN_S,
        check=False,
    )
