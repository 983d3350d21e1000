"""Commands that fork without end, in a cage of some thousand processes."""

import json
import sys

from tests.attack.attacks import Attack, Outcome
from tests.attack.cage import in_cage

CAGE = 8_000
TIMEOUT_S = 20
"""For the bomb, which is to reach the bound of a command long before."""
ENDED_WITHIN_S = 90
"""From the start of a bomb to the end of the last of its processes."""
BOMBS = {
    "of bash": "bash -c ':(){ :|:& };:'; sleep 60",
    "that stays": "bash -c 'f(){ f & f & sleep 60; }; f'; sleep 60",
    "of sh, quiet": "b(){ b & b & }; b; sleep 60",
    "in python": 'python3 -c "import os\nwhile True: os.fork()"',
    "that sheds its parents": 'python3 -c "import os\nwhile True:\n if os.fork(): os._exit(0)\n'
    ' os.fork()"; sleep 60',
    "in sessions": 'python3 -c "import os\nwhile True:\n if os.fork() == 0: os.setsid()"',
    "that ignores signals": "trap '' TERM INT HUP QUIT; b(){ b & b & }; b; sleep 60",
}


def throw(tries: int) -> Outcome:
    """Throw the bombs in turn."""
    through: list[str] = []
    longest_s = 0.0
    for number in range(tries):
        name = list(BOMBS)[number % len(BOMBS)]
        program = [sys.executable, "-m", "tests.attack.bombed", BOMBS[name], str(TIMEOUT_S)]
        printed = in_cage(program, most=CAGE, within_s=6 * TIMEOUT_S)
        if not printed.strip():
            through.append(f"{name}: nothing was said within {6 * TIMEOUT_S} s")
            continue
        facts = json.loads(printed)
        longest_s = max(longest_s, facts["took_s"])
        if facts["took_s"] > ENDED_WITHIN_S:
            through.append(f"{name}: it took {facts['took_s']:.1f} s")
        if facts["left"]:
            through.append(f"{name}: {facts['left']} of its processes are left")
        if "hello" not in facts["good"]:
            through.append(f"{name}: a command after it says {facts['good'][:80]!r}")
    return Outcome(tries, tuple(through), (("longest bomb, s", round(longest_s, 1)),))


ATTACKS = (
    Attack(
        name="fork_bombs",
        what="a command forks without end, also in sessions of their own, without parents, and "
        "deaf to signals; then a good one is to run",
        run=throw,
        tries=3 * len(BOMBS),
        quick=0,
    ),
)
