"""`python -m tests.sweep ROOM`: tries all small edits of a room, and shows those that live.

Each is put into a fork of one process, which runs the tests of the room that come by it, the
quickest first. Tests that need Ray are left out, and what runs in another process does not have
the edit. An edit that lives is a test that is missing, code that does nothing, or noticed by the
tests of another room. See docs/testing.md.
"""

import argparse
import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.planted_bugs.hunt import TESTS_OF
from tests.sweep.drawn import drawn_edits
from tests.sweep.edits import edits
from tests.sweep.forks import FOUND, Forks, Outcome

ROOT = Path(__file__).parents[2]
APART = "HARNESS_SWEEP_APART"
UNSHARE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.sweep",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("room", help="turn, stores, actors/text, … or one file of one, in full")
    parser.add_argument("--tests", nargs="+", help="in place of those of the room")
    parser.add_argument("--seconds", type=float, default=600.0, help="stop after so many")
    parser.add_argument("--seed", type=int, default=0, help="of the order in which they are tried")
    parser.add_argument("--drawn", type=int, metavar="SEED", help="only those of this choice of 30")
    parser.add_argument("--all", action="store_true", help="show those that are found, too")
    given = parser.parse_args()
    if not os.environ.get(APART):
        return _apart(parser)
    place = ROOT / "harness_actors" / given.room
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    work = [(file.relative_to(ROOT), edit) for file in files for edit in edits(file.read_text())]
    if given.drawn is not None:
        chosen = drawn_edits(given.drawn, ROOT)
        work = [one for one in work if one in chosen]
    if not work:
        parser.error(f"there is nothing to edit in {place}")
    random.Random(given.seed).shuffle(work)
    room = given.room.split("/")[0]
    tests = given.tests or TESTS_OF.get(room, (f"tests/{room}",))
    counts: Counter[str] = Counter()

    def tell(outcome: Outcome) -> None:
        counts[outcome.verdict] += 1
        if given.all or outcome.verdict != FOUND:
            print(outcome, flush=True)

    forks = Forks(ROOT, work, tell, given.seconds)
    # Without its reports: forks would write into them.
    quiet = ["-p", "no:terminal", "-p", "no:cacheprovider"]
    pytest.main([*quiet, "-o", "addopts=", "-m", "not ray", *tests], plugins=[forks])
    print(f"of {len(work)} edits, {sum(counts.values())} were tried:", dict(counts))
    return 0


def _apart(parser: argparse.ArgumentParser) -> int:
    """Sweep among processes of its own: an edit of what ends some may end any that it sees."""
    unshare = (*UNSHARE, "--user", "--map-root-user") if os.geteuid() else UNSHARE
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        parser.error(f"needs processes of its own, by {' '.join(unshare)}, which fails here")
    # A shell is the first of them, which collects those that edits leave behind.
    command = ("sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-m", "tests.sweep")
    environment = {**os.environ, APART: "1"}
    return subprocess.run(
        [*unshare, *command, *sys.argv[1:]], env=environment, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
