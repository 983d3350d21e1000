"""Predicates: what can be asked of a finished task, alone and combined by all, any and not."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from harness_actors.contracts.fields import shown
from harness_actors.contracts.leaves import LEAVES, Leaf, PredicateKind
from harness_actors.errors import ConfigError


@dataclass(frozen=True, slots=True)
class AllOf:
    """All of some predicates hold.

    Attributes:
        parts: At least one.
    """

    kind: ClassVar = PredicateKind.ALL
    parts: "tuple[Predicate, ...]"

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _parts_of(self.parts))

    def __str__(self) -> str:
        return " and ".join(map(_within, self.parts))


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of some predicates holds.

    Attributes:
        parts: At least one.
    """

    kind: ClassVar = PredicateKind.ANY
    parts: "tuple[Predicate, ...]"

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _parts_of(self.parts))

    def __str__(self) -> str:
        return " or ".join(map(_within, self.parts))


@dataclass(frozen=True, slots=True)
class Not:
    """A predicate does not hold. Where that cannot be told, this one cannot, either.

    Attributes:
        part: The predicate.
    """

    kind: ClassVar = PredicateKind.NOT
    part: "Predicate"

    def __post_init__(self) -> None:
        if not isinstance(self.part, PREDICATES):
            raise ConfigError("", f"must be a predicate, not {shown(self.part)}")

    def __str__(self) -> str:
        return f"it is not so that {_within(self.part)}"


Predicate = Leaf | AllOf | AnyOf | Not
PREDICATES = (*LEAVES, AllOf, AnyOf, Not)


def leaves(predicate: Predicate) -> "Iterator[Leaf]":
    """What it is made of, in order, without `AllOf`, `AnyOf` and `Not`."""
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            for part in parts:
                yield from leaves(part)
        case Not(part):
            yield from leaves(part)
        case _:
            yield predicate


def _within(predicate: Predicate) -> str:
    return f"({predicate})" if isinstance(predicate, AllOf | AnyOf) else str(predicate)


def _parts_of(given: object) -> "tuple[Predicate, ...]":
    if not isinstance(given, list | tuple) or not given:
        raise ConfigError("", f"must be a list of one or more predicates, not {shown(given)}")
    for place, part in enumerate(given):
        if not isinstance(part, PREDICATES):
            raise ConfigError(f"[{place}]", f"must be a predicate, not {shown(part)}")
    return tuple(given)
