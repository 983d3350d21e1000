"""Contracts that nothing can meet, found before anybody tries to."""

import posixpath
from collections.abc import Iterator, Sequence
from typing import Protocol

from harness_actors.contracts.leaves import (
    AlwaysTrue,
    ContainsText,
    FileExists,
    JsonSchemaValid,
    Leaf,
)
from harness_actors.contracts.predicates import (
    AllOf,
    AnyOf,
    Not,
    Predicate,
)


class _Output(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def predicate(self) -> Predicate: ...
    @property
    def optional(self) -> bool: ...


def contradiction_in(outputs: Sequence[_Output]) -> tuple[int, str] | None:
    """Two things that are required together and cannot both be so.

    Looked at is what must hold in any case: of `AnyOf`, and of what is optional, nothing.

    Returns:
        Which output is the first that cannot be met beside those before it, and why; None where
        there is none.
    """
    seen = _Seen()
    for place, output in enumerate(outputs):
        # One that is optional must be possible by itself alone.
        known = _Seen() if output.optional else seen
        for predicate, holds in _certain(output.predicate, holds=True):
            if problem := known.add(predicate, holds, output.id):
                return place, problem
    return None


class _Seen:
    """What is required so far, and by which output."""

    def __init__(self) -> None:
        self._facts: list[tuple[Predicate, bool, str]] = []
        self._kinds: dict[str, tuple[str, str]] = {}
        self._absent: dict[str, str] = {}

    def add(self, predicate: Predicate, holds: bool, by: str) -> str:
        """Add one; why that cannot be, empty where it can."""
        if isinstance(predicate, AlwaysTrue) and not holds:
            return "can never be met: always_true is never false"
        for known, known_holds, known_by in self._facts:
            if known_holds != holds and known == predicate:
                return f"contradicts {known_by!r}: {predicate}, and it is to be not so"
        self._facts.append((predicate, holds, by))
        return self._add_paths(predicate, holds, by)

    def _add_paths(self, predicate: Predicate, holds: bool, by: str) -> str:
        if not holds:
            match predicate:
                case FileExists(path=path, folder=False, min_bytes=0):
                    path = posixpath.normpath(path)
                    if self._kinds.get(path, ("", ""))[0] == "file":
                        return (
                            f"contradicts {self._kinds[path][1]!r}, which needs the file {path!r}"
                        )
                    self._absent[path] = by
            return ""
        for path, kind in _needed(predicate):
            if kind == "file" and path in self._absent:
                return f"contradicts {self._absent[path]!r}: the file {path!r} is not to be there"
            known, known_by = self._kinds.setdefault(path, (kind, by))
            if known != kind:
                return f"contradicts {known_by!r}: {path!r} is to be both a file and a folder"
        return ""


def _needed(predicate: Predicate) -> Iterator[tuple[str, str]]:
    """The paths that must be there, and as what; folders above them, too."""
    match predicate:
        case FileExists(path=path, folder=folder):
            kind = "folder" if folder else "file"
        case ContainsText(file=str(path)) | JsonSchemaValid(file=str(path)):
            kind = "file"
        case _:
            return
    path = posixpath.normpath(path)
    yield path, kind
    while path := posixpath.dirname(path):
        yield path, "folder"


def _certain(predicate: Predicate, *, holds: bool) -> Iterator[tuple[Leaf | AnyOf | AllOf, bool]]:
    """What must hold, or must not, for a predicate to hold, or not."""
    match predicate:
        case Not(part):
            yield from _certain(part, holds=not holds)
        case AllOf(parts) if holds:
            for part in parts:
                yield from _certain(part, holds=True)
        case AnyOf(parts) if not holds:
            for part in parts:
                yield from _certain(part, holds=False)
        case AllOf(parts) | AnyOf(parts) if len(parts) == 1:
            yield from _certain(parts[0], holds=holds)
        case _:
            yield predicate, holds
