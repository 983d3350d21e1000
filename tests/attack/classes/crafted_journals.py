"""Journals that somebody made to harm whoever opens them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.attack.attacks import Attack, Outcome
from tests.attack.crafts import BROKEN, HARMLESS, REFUSED

ROOT = Path(__file__).parents[3]
MOST_S = 60.0
"""Without bounds they take minutes, or for ever; what they take with them is a figure."""
MOST_MB = 300.0
"""As that: without bounds they take gigabytes."""
COUNT = len(REFUSED) + len(BROKEN) + len(HARMLESS)


def run(tries: int) -> Outcome:
    """Open each in some ways, or in all."""
    told = list(_told("few" if tries <= COUNT else "all"))
    return Outcome(
        tries=sum(len(one["told"]) for one in told),
        through=tuple(fault for one in told for fault in _faults(one)),
        figures=(
            ("journals", len(told)),
            ("slowest, s", round(max(one["slowest_s"] for one in told), 2)),
            ("most memory, MB", round(max(one["grown_mb"] for one in told))),
        ),
    )


def _told(ways: str) -> Iterator[dict[str, Any]]:
    with TemporaryDirectory(prefix="harness-crafted-") as folder:
        command = [sys.executable, "-m", "tests.attack.opens_crafted", folder, ways]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            yield from map(json.loads, child.stdout)
        assert child.returncode == 0, "the process that opens them has died"


def _faults(one: dict[str, Any]) -> Iterator[str]:
    """What should not have come of a crafted journal."""
    answers: dict[str, str] = one["told"]
    for way, answer in answers.items():
        if "NOT TOLD" in answer:
            yield f"{one['name']}, {way}: {answer}"
        elif one["kind"] == "refused" and "journal '" not in answer:
            yield f"{one['name']}, {way}: it was not refused: {answer!r}"
    if one["kind"] == "broken" and not any(answers.values()):
        yield f"{one['name']}: nobody noticed"
    if one["slowest_s"] > MOST_S:
        yield f"{one['name']}: it took {one['slowest_s']:.1f} s"
    if one["grown_mb"] > MOST_MB:
        yield f"{one['name']}: it took {one['grown_mb']:.0f} MB"


ATTACKS = (
    Attack(
        name="crafted_journals",
        what="Journals with triggers, views, bombs, holes and nonsense, opened by every command.",
        run=run,
        tries=2 * COUNT,
        quick=COUNT,
    ),
)
