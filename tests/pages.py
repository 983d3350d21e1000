"""The code of a page, run as a reader would who copies it."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENDS_WITHIN_S = 200.0


def text_of(page: str) -> str:
    """A page, by its path below the root of the project."""
    return (ROOT / page).read_text(encoding="utf-8")


def run_python_of(page: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run the one Python example of a page, and wait for its end.

    Args:
        page: Its path below the root of the project.
        folder: An empty one, for the script and its journal.
    """
    (code,) = re.findall(r"```python\n(.*?)```", text_of(page), re.DOTALL)
    return run_python(code, folder)


def run_python(code: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run an example in a folder of its own, and wait for its end."""
    script = folder / "example.py"
    script.write_text(code, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env={**os.environ, "HARNESS_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN_S,
        check=False,
    )
