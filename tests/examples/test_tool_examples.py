"""The examples of tools print what they promise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PRINTED = {
    "worker_tool": [
        "'count_primes' was stopped: it ran past its limit of 10 s. "
        "Its process was killed with all that it had started.",
        "1229",
        "There are 1229.",
    ],
    "resource": ["opened", "closed", "They cost 200.50 together."],
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", PRINTED)
def test_an_example_prints_what_it_promises(name: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", f"examples.{name}"],
        cwd=ROOT,
        env={**os.environ, "HARNESS_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == PRINTED[name]
