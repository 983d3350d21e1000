"""`examples/merged_copies.py`: three repair a program at once, and their patches are merged."""

import subprocess
import sys
from pathlib import Path

from examples.merged_copies import repaired
from tests.pages import ENDS_WITHIN_S, ROOT


async def test_one_patch_is_taken_one_merged_and_one_settled(tmp_path: Path) -> None:
    result, results = await repaired(tmp_path)

    assert (result.status, result.output_text, result.children) == ("done", "all tests pass", 3)
    applied = [text.partition("\n")[0] for text in results[6:9]]
    assert applied == [
        "Taken as they are in the copy:",
        "Merged with what your workspace has:",
        "In conflict, and left as they are:",
    ]
    shop = (tmp_path / "program" / "shop.py").read_text()
    assert "in prices or []:" in shop
    assert "amount * (100 - percent) / 100" in shop


def test_it_runs_as_a_module() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "examples.merged_copies"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN_S,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[-1] == "done(completed): all tests pass"
