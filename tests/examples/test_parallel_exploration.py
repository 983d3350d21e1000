"""`examples/parallel_exploration.py`: what several agents find at once in this repository is so."""

import re
import subprocess
import sys

from tests.pages import ENDS_WITHIN_S, ROOT


def test_four_explore_at_once_and_each_answer_names_the_right_file() -> None:
    ended = subprocess.run(
        # Where it stands: it explores the repository around it.
        [sys.executable, "-m", "examples.parallel_exploration"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN_S,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")
    lines = ended.stdout.splitlines()
    begun = [line.partition(" s  ")[2] for line in lines if re.match(r" *[\d.]+ s  ", line)]
    # All have begun before one has ended.
    assert begun[0] == "4 explore at once"
    assert sorted(begun[1:]) == [f"number {number} completed" for number in (1, 2, 3, 4)]
    assert lines[-1] == "4 of 4 answers name the right file."
    found = re.findall(r"  (\w+) is in (\S+):(\d+): ", ended.stdout)
    assert len(found) == 4
    for name, path, line in found:
        assert re.search(
            rf"(def|class) {name}\b", (ROOT / path).read_text().splitlines()[int(line) - 1]
        )
