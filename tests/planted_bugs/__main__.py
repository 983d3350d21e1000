"""`python -m tests.planted_bugs`: plants each bug into a copy, and shows which test finds it."""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from tests.planted_bugs import BUGS
from tests.planted_bugs.drawn import drawn
from tests.planted_bugs.hunt import LIMIT_S, hunt


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.planted_bugs", description=__doc__)
    parser.add_argument("--only", default="", help="bugs with this in their name or path")
    parser.add_argument("--jobs", type=int, default=1, help="bugs at once")
    parser.add_argument("--without-ray", action="store_true", help="leave out tests that need Ray")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for a bug's tests")
    parser.add_argument("--list", action="store_true", help="print the bugs, and plant none")
    parser.add_argument("--drawn", type=int, metavar="SEED", help="not these, but 30 drawn edits")
    given = parser.parse_args()
    known = BUGS if given.drawn is None else drawn(given.drawn)
    bugs = [bug for bug in known if given.only in f"{bug.path} {bug.name}"]
    if not bugs:
        parser.error(f"no bug has {given.only!r} in its name or path; see --list")
    if given.list:
        for bug in bugs:
            print(f"{bug.path}: {bug.name}" + (f"\n    breaks: {bug.promise}" * bool(bug.promise)))
        return 0
    found = 0
    with ThreadPoolExecutor(given.jobs) as pool:
        for verdict in pool.map(
            lambda bug: hunt(bug, without_ray=given.without_ray, limit_s=given.limit), bugs
        ):
            print(verdict, flush=True)
            found += bool(verdict.found_by)
    print(f"{found} of {len(bugs)} were found")
    return 0 if found == len(bugs) else 1


if __name__ == "__main__":
    sys.exit(main())
