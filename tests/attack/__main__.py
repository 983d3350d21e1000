"""All attacks: ``python -m tests.attack``, or ``make attack``.

The exit status is 1 when something got through, and 2 when an attack could not be tried here.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from tests.attack.attacks import Attack, NotTriedError, Outcome, all_attacks

GOT_THROUGH = 1
NOT_TRIED = 2
LINES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Tried:
    """An attack with its outcome, or with why there is none."""

    attack: Attack
    outcome: Outcome | None
    why_not: str
    wall_s: float

    def as_plain(self) -> dict[str, object]:
        outcome = self.outcome
        return {
            "tries": outcome.tries if outcome else 0,
            "through": list(outcome.through) if outcome else [],
            "figures": dict(outcome.figures) if outcome else {},
            "not_tried": self.why_not,
            "wall_s": round(self.wall_s, 1),
        }


def try_one(attack: Attack, tries: int) -> Tried:
    begun = time.perf_counter()
    try:
        outcome, why_not = attack.run(tries), ""
    except NotTriedError as lack:
        outcome, why_not = None, str(lack)
    return Tried(attack, outcome, why_not, time.perf_counter() - begun)


def main(given: Sequence[str] | None = None) -> int:
    attacks = all_attacks()
    options = parse_arguments(given, list(attacks))
    # In a log there is room for the whole table.
    console = Console(stderr=True, width=None if sys.stderr.isatty() else 140)
    tried: list[Tried] = []
    for name in options.only or attacks:
        attack = attacks[name]
        console.print(f"[bold]{name}[/bold]: {attack.what}", highlight=False)
        tried.append(one := try_one(attack, max(1, round(attack.tries * options.share))))
        console.print(f"  {_word(one)} after {one.wall_s:.0f} s", highlight=False, markup=False)
        for line in (one.outcome.through if one.outcome else ())[:LINES_SHOWN]:
            console.print(f"  {line!a}", style="red", highlight=False, markup=False)
    console.print(_table(tried))
    if options.json:
        print(json.dumps({one.attack.name: one.as_plain() for one in tried}))
    if any(one.outcome and one.outcome.through for one in tried):
        return GOT_THROUGH
    return NOT_TRIED if any(one.why_not for one in tried) else 0


def parse_arguments(given: Sequence[str] | None, names: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.attack",
        description="Attack real processes, files and servers, and count what gets through.",
    )
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        default=[],
        help="classes, or such as neighbours:long_text, comma separated; default all: "
        + ", ".join(dict.fromkeys(map(_class, names))),
    )
    parser.add_argument("--share", type=float, default=1.0, help="of the usual tries (1.0)")
    parser.add_argument("--json", action="store_true", help="the figures as JSON on stdout")
    options = parser.parse_args(given)
    unknown = [one for one in options.only if one not in {*names, *map(_class, names)}]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(names)}")
    options.only = [name for name in names if {name, _class(name)} & {*options.only}]
    return options


def _class(name: str) -> str:
    """Of an attack: what stands before the colon, if there is one."""
    return name.partition(":")[0]


def _word(one: Tried) -> str:
    if one.outcome is None:
        return f"not tried ({one.why_not})"
    return f"{one.outcome.tries:,} tries, {len(one.outcome.through):,} got through"


def _table(tried: Sequence[Tried]) -> Table:
    table = Table("attack", "tries", "got through", "measured", title="Attacks")
    for one in tried:
        if one.outcome is None:
            table.add_row(one.attack.name, "-", "-", one.why_not)
            continue
        through = len(one.outcome.through)
        measured = ", ".join(f"{name} {value:g}" for name, value in one.outcome.figures)
        colour = "red" if through else "green"
        table.add_row(
            one.attack.name, f"{one.outcome.tries:,}", f"[{colour}]{through:,}[/]", measured
        )
    return table


if __name__ == "__main__":
    sys.exit(main())
