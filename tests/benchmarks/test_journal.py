"""The journal's benchmark runs and says what it is to say."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_smoke_run_prints_one_line_with_every_figure(tmp_path: Path) -> None:
    # From another folder: it must find its own modules wherever it is called.
    ran = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "bench_journal.py"), "--smoke"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    (line,) = ran.stdout.splitlines()
    report = json.loads(line)
    assert {"machine", "versions", "n", "unit"} <= set(report)
    assert report["bytes_per_message_byte"]["plain"] > 0
    assert 0 < report["bytes_per_message_byte"]["fenced"] <= 1.5
    for name in ("headings_ms", "load_unfinished_ms"):
        assert report[name]["least"] > 0
    assert set(report["commits_per_s"]) == {"1", "100"}
