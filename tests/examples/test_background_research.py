"""`examples/background_research.py`: whoever works in the background outlives a SIGKILL."""

import subprocess
import sys

from examples.background_research import MODULES
from tests.pages import ENDS_WITHIN_S, ROOT


def test_a_researcher_goes_on_after_a_kill_and_heeds_what_it_is_told() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "examples.background_research"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN_S,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    first, second, *found, last = ended.stdout.splitlines()
    assert first.startswith("killed after ")
    assert second == "done(completed), 1 researcher:"
    read = [line.partition(": ")[0] for line in found]
    # What it had read before stays; of the rest it has left out what nobody wants.
    assert read[:2] == list(MODULES[:2])
    assert set(read[3:]) == {"coordination/beside.py"}
    assert int(last.split()[0]) <= len(read) + 1
