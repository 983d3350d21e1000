"""Contracts as plain values, as files have them: read with all their faults, and written."""

import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from harness_actors.contracts.contract import (
    AcceptabilityCriteria,
    RequiredOutput,
    TaskContract,
    UserQuestion,
)
from harness_actors.contracts.fields import is_fields, shown
from harness_actors.contracts.leaves import (
    AlwaysTrue,
    CommandSucceeds,
    ContainsText,
    Custom,
    FileExists,
    JsonSchemaValid,
    ModelJudged,
    PredicateKind,
    ToolResultSuccess,
)
from harness_actors.contracts.predicates import (
    AllOf,
    AnyOf,
    Not,
    Predicate,
)
from harness_actors.errors import AND_MORE, BadInputError, ConfigError
from harness_actors.messages import MOST_LEVELS, is_too_deep

MOST_FAULTS = 20
CONTRACT = "contract"
KINDS: Mapping[str, type[Any]] = {
    kind.kind.value: kind
    for kind in (
        FileExists,
        ContainsText,
        ToolResultSuccess,
        JsonSchemaValid,
        CommandSucceeds,
        Custom,
        ModelJudged,
        AlwaysTrue,
        AllOf,
        AnyOf,
        Not,
    )
}
SHORT_NAMES: Mapping[str, str] = {"command": PredicateKind.COMMAND_SUCCEEDS.value}
_SHORT_FORMS = {
    FileExists: "path",
    ContainsText: "pattern",
    ToolResultSuccess: "tool_name",
    CommandSucceeds: "command",
    Custom: "name",
    ModelJudged: "rubric",
}
"""The field that a predicate given by one text has."""


class Faults:
    """What is wrong with a contract, each with the field that it is about."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        """Fields and problems, in the order of the contract."""

    def add(self, field: str, problem: str) -> None:
        self.found.append((field, problem))

    def below(self, field: str) -> "Faults":
        """The same, of a contract that is a field of something else."""
        faults = Faults()
        for name, problem in self.found:
            faults.add(_below(field, name), problem)
        return faults

    def sentences(self, lines: Mapping[str, int] | None = None) -> tuple[str, ...]:
        """A sentence each, `MOST_FAULTS` of them at most.

        Args:
            lines: The line of each field, from 1; None where there are none.
        """
        told = [
            (f"line {line}: " if (line := _line(lines or {}, field)) else "")
            + (f"{field}: {problem}" if field else problem)
            for field, problem in self.found[:MOST_FAULTS]
        ]
        return (*told, AND_MORE) if len(self.found) > MOST_FAULTS else tuple(told)


def contract_of(given: object, *, source: str = CONTRACT) -> TaskContract:
    """The contract that plain values describe.

    Args:
        given: Its fields.
        source: Where they stand, for the error.

    Raises:
        BadInputError: Something is wrong with it; names all fields at fault.
    """
    contract, faults = read_contract(given)
    if contract is None:
        raise BadInputError(source, faults.sentences())
    return contract


def read_contract(given: object) -> tuple[TaskContract | None, Faults]:
    """The contract that plain values describe, or None and what is wrong with them."""
    reader = _Reader()
    if is_too_deep(given):
        reader.faults.add("", f"it is nested more than {MOST_LEVELS} levels deep")
        return None, reader.faults
    contract = reader.contract(given)
    return (None if reader.faults.found else contract), reader.faults


def as_plain(contract: TaskContract) -> dict[str, Any]:
    """A contract as plain values, which `contract_of` takes."""
    plain = _fields_of(contract)
    plain["outputs"] = [
        {**_fields_of(output), "predicate": predicate_as_plain(output.predicate)}
        for output in contract.outputs
    ]
    plain["questions"] = [_fields_of(question) for question in contract.questions]
    plain["acceptability"] = _fields_of(contract.acceptability)
    return {name: value for name, value in plain.items() if value not in ([], {})}


def predicate_as_plain(predicate: Predicate) -> Any:
    """A predicate as plain values."""
    match predicate:
        case AllOf(parts) | AnyOf(parts):
            return {predicate.kind.value: [predicate_as_plain(part) for part in parts]}
        case Not(part):
            return {predicate.kind.value: predicate_as_plain(part)}
        case AlwaysTrue():
            return predicate.kind.value
        case _:
            return {predicate.kind.value: _fields_of(predicate)}


class _Reader:
    """Reads one contract; goes on after a fault, so that all are told at once."""

    def __init__(self) -> None:
        self.faults = Faults()

    def contract(self, given: object) -> TaskContract | None:
        values = self._values("", given, TaskContract)
        if values is None:
            return None
        assert isinstance(given, Mapping), "else it has no values"
        for name, make in (("outputs", self._output), ("questions", self._question)):
            if given.get(name) is not None:
                values[name] = self._list(name, values[name], make)
        if "acceptability" in values:
            criteria = self._values("acceptability", values["acceptability"], AcceptabilityCriteria)
            values["acceptability"] = self._made("acceptability", AcceptabilityCriteria, criteria)
        if self.faults.found:
            # What is at fault stands in no relation to the rest, but the rest may be at fault.
            alone = {**values, "outputs": _stand_in("outputs"), "questions": ()}
            self._made("", TaskContract, {**alone, "acceptability": AcceptabilityCriteria()})
            return None
        made: TaskContract | None = self._made("", TaskContract, values)
        return made

    def _output(self, place: int, at: str, given: object) -> Any:
        if isinstance(given, str):
            given = {"description": given}
        values = self._values(at, given, RequiredOutput, optional=("id", "description"))
        if values is None:
            return None
        if "predicate" in values:
            values["predicate"] = self._predicate(f"{at}.predicate", values["predicate"])
            if values["predicate"] is None:
                # The others of its fields may be at fault, too.
                values["predicate"] = AlwaysTrue()
            values.setdefault("description", str(values["predicate"]))
        return self._made(at, RequiredOutput, {"id": f"R{place + 1}", **values})

    def _question(self, place: int, at: str, given: object) -> Any:
        if isinstance(given, str):
            given = {"question": given}
        values = self._values(at, given, UserQuestion, optional=("id",))
        if values is None:
            return None
        return self._made(at, UserQuestion, {"id": f"Q{place + 1}", **values})

    def _predicate(self, at: str, given: object) -> Any:
        if isinstance(given, str):
            given = {given: {}}
        if not isinstance(given, Mapping) or len(given) != 1:
            self.faults.add(at, f"must be one predicate by its name, such as {_EXAMPLE}")
            return None
        ((name, value),) = given.items()
        kind = KINDS.get(SHORT_NAMES.get(name, name)) if isinstance(name, str) else None
        if kind is None:
            self.faults.add(at, f"there is no predicate {shown(name)}; there are {_known()}")
            return None
        at = f"{at}.{name}"
        if kind is Not:
            part = self._predicate(at, value)
            return None if part is None else Not(part)
        if kind in (AllOf, AnyOf):
            if not isinstance(value, list | tuple) or not value:
                problem = f"must be a list of one or more predicates, not {shown(value)}"
                self.faults.add(at, problem)
                return None
            parts = [self._predicate(f"{at}[{place}]", part) for place, part in enumerate(value)]
            return None if None in parts else self._made(at, kind, {"parts": tuple(parts)})
        if kind is AlwaysTrue:
            value = {} if value is None or value is True else value
        elif isinstance(value, str) and kind in _SHORT_FORMS:
            value = {_SHORT_FORMS[kind]: value}
            # The name of the field is not in the file.
            return self._made(at, kind, self._values(at, value, kind), named=False)
        return self._made(at, kind, self._values(at, value, kind))

    def _values(
        self, at: str, given: object, kind: type[Any], optional: tuple[str, ...] = ()
    ) -> dict[str, Any] | None:
        """The fields of a mapping; None, and a fault, where it is none or they are not right."""
        where = at or "it"
        known = {field.name: field for field in fields(kind)}
        if not is_fields(given):
            problem = (
                f"must have fields such as {next(iter(known), 'none')!r}, not be {shown(given)}"
            )
            self.faults.add(at, problem if at else f"{where} {problem}")
            return None
        assert isinstance(given, Mapping)
        for name in (name for name in given if name not in known):
            there = f"there are {', '.join(known)}" if known else "it has none"
            self.faults.add(_below(at, name), f"there is no such field; {there}")
        values = {
            name: value for name, value in given.items() if value is not None and name in known
        }
        needed = [name for name, field in known.items() if not _has_default(field)]
        for name in needed:
            if name in values or (name in optional and _can_do_without(name, values)):
                continue
            self.faults.add(_below(at, name), "is missing")
            values[name] = _stand_in(name)
        return values

    def _made(
        self, at: str, kind: type[Any], values: Mapping[str, Any] | None, *, named: bool = True
    ) -> Any:
        if values is None:
            return None
        left = dict(values)
        while True:
            try:
                return kind(**left)
            except ConfigError as error:
                self.faults.add(_below(at, error.field) if named else at, error.problem)
                name = _FIRST_NAME.split(error.field, maxsplit=1)[0]
                if name not in left or left[name] == _stand_in(name):
                    return None
                left[name] = _stand_in(name)
                if any(one.name == name and _has_default(one) for one in fields(kind)):
                    del left[name]

    def _list(self, name: str, given: object, make: Any) -> Any:
        if not isinstance(given, list | tuple):
            self.faults.add(name, f"must be a list, not {shown(given)}")
            return ()
        return tuple(make(place, f"{name}[{place}]", one) for place, one in enumerate(given))


_EXAMPLE = "{file_exists: report.md}"
_FIRST_NAME = re.compile(r"[.\[]")


def _stand_in(name: str) -> Any:
    """What stands in the place of a field that is at fault, so that the others are looked at."""
    match name:
        case "schema":
            return {}
        case "outputs":
            return (RequiredOutput(id="R1", description="a part"),)
        case "parts":
            return (AlwaysTrue(),)
    return "x"


def _has_default(field: Any) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _known() -> str:
    return ", ".join((*SHORT_NAMES, *KINDS))


def _can_do_without(name: str, values: Mapping[str, Any]) -> bool:
    return name != "description" or "predicate" in values


def _below(at: str, name: str) -> str:
    return f"{at}{name}" if name.startswith("[") or not at or not name else f"{at}.{name}"


def _line(lines: Mapping[str, int], field: str) -> int:
    """The line of a field, or of the nearest one that it is in; 0 where none is known."""
    while field and field not in lines:
        field = field[: max(field.rfind("."), field.rfind("["), 0)]
    return lines.get(field, 0)


def _fields_of(value: Any) -> dict[str, Any]:
    """The fields that are not as they are by default."""
    plain = {}
    for field in fields(value):
        found = getattr(value, field.name)
        default = field.default
        if default is MISSING and field.default_factory is not MISSING:
            default = field.default_factory()
        if found != default:
            plain[field.name] = list(found) if isinstance(found, tuple) else found
    return plain
