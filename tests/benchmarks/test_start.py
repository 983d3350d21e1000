"""The benchmark of start-up times runs and says what it is to say."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_smoke_run_prints_one_line_with_its_figures(tmp_path: Path) -> None:
    # From another folder: it must find its own modules wherever it is called.
    ran = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "bench_start.py"), "--smoke"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    (line,) = ran.stdout.splitlines()
    first_call, of_import = json.loads(line)["findings"]
    assert first_call["unit"] == of_import["unit"] == "s"
    assert 0 < of_import["median"] < first_call["median"]
    assert of_import["at_most"] == 0.15
