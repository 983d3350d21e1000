"""What an attack is, and what came of it."""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from tests.attack import classes


class NotTriedError(Exception):
    """This machine lacks what the attack needs; the text says what."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an attack.

    Attributes:
        tries: How often it was really tried.
        through: What got through, one short line each; empty where all of it held.
        figures: What was measured on the way, by name: `{"worst delay, ms": 41.0}`.
    """

    tries: int
    through: tuple[str, ...] = ()
    figures: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Attack:
    """One class of attack.

    Attributes:
        name: Short, for `--only` and the table.
        what: What it tries, one sentence.
        run: Tries it so many times.
        tries: How often in `make attack`.
        quick: How often in the tests, within some seconds; 0 where it takes longer than that.
    """

    name: str
    what: str
    run: Callable[[int], Outcome]
    tries: int
    quick: int


def all_attacks() -> dict[str, Attack]:
    """Those of all modules in `classes`, by name."""
    found: dict[str, Attack] = {}
    for module in sorted(one.name for one in pkgutil.iter_modules(classes.__path__)):
        for attack in importlib.import_module(f"{classes.__name__}.{module}").ATTACKS:
            assert attack.name not in found, attack.name
            found[attack.name] = attack
    return found
