"""Outputs that are values of a JSON schema."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from harness_actors.errors import ConfigError, ToolError
from harness_actors.outputs.output_type import (
    CHECK_S,
    InThread,
    OutputType,
    held,
    read_or_problem,
)
from harness_actors.outputs.words import OUTPUT, OUTPUT_IS, SUMMARY, SUMMARY_IS
from harness_actors.ports import Validate
from harness_actors.tools.argument_model import Argument
from harness_actors.tools.arguments import Arguments

QUICK_CHARS = 100_000
"""Of a value that is looked at in this process, by a schema that takes no longer."""
SAYS_SOMETHING = frozenset(
    [
        "type",
        "properties",
        "items",
        "prefixItems",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "required",
        "$ref",
        "additionalProperties",
        "patternProperties",
        "minimum",
        "maximum",
        "pattern",
    ]
)
"""One of these a schema has that says anything of a value."""
_VALUES = frozenset({"enum", "const", "default", "examples"})
_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions"})


@dataclass(frozen=True)
class SchemaOutput(OutputType):
    """A value is what a JSON schema allows.

    Attributes:
        given: The schema.
    """

    given: Mapping[str, Any]

    @classmethod
    def checked(cls, given: Mapping[str, Any], field: str) -> "SchemaOutput":
        """The form of a schema that a user has given.

        Raises:
            ConfigError: It is no JSON schema, says nothing, or needs something from elsewhere.
        """
        from harness_actors.contracts.schemas import check_schema

        try:
            # A copy: what the caller does to it later is not ours.
            schema = json.loads(json.dumps(dict(given), allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise ConfigError(field, f"must be a JSON schema: {error}") from None
        check_schema(field, schema)
        if not SAYS_SOMETHING & schema.keys():
            known = ", ".join(list(schema)[:5]) or "nothing"
            problem = f"says nothing of a value; it has {known}, and no type, properties or $ref"
            raise ConfigError(field, problem)
        return cls(schema)

    def __hash__(self) -> int:
        return hash(json.dumps(self.given, sort_keys=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return (SchemaOutput, (self.given,))

    @property
    def schema(self) -> Mapping[str, Any]:
        return self.given

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        part = {name: one for name, one in self.given.items() if name != "$schema"}
        kinds = {}
        if "$id" not in part:
            kinds = part.pop("$defs", {})
            part, kinds = _moved(part), _moved({"$defs": kinds})["$defs"]
        part.setdefault("description", OUTPUT_IS)
        return {
            "type": "object",
            "properties": {SUMMARY: {"type": "string", "description": SUMMARY_IS}, OUTPUT: part},
            "required": [SUMMARY, OUTPUT],
            "additionalProperties": False,
            **({"$defs": kinds} if kinds else {}),
        }

    async def read_arguments(self, arguments: str, in_thread: InThread) -> str:
        given = await held(partial(in_thread, self._both.parse, arguments))
        text = json.dumps(given[OUTPUT])
        if fault := await self.problem(text, in_thread):
            raise ToolError(f"the arguments of {self._both.tool!r} break its schema: {fault}")
        return str(given[SUMMARY])

    async def problem(self, text: str, in_thread: InThread) -> str:
        return str(await held(partial(self._problem, text, in_thread)))

    async def _problem(self, text: str, in_thread: InThread) -> str:
        if len(text) <= QUICK_CHARS and self._is_quick:
            return str(await in_thread(_faults, text, self.given))
        _, fault = await in_thread(read_or_problem, text)
        if fault:
            return str(fault)
        from harness_actors.contracts.workspace import WorkspaceFiles

        # In a process, which can be stopped.
        question = Validate(self.given, text)
        look = await WorkspaceFiles(folder=None).look(question, time_s=CHECK_S / 2)
        return "" if look.holds else _named(look.told)

    @cached_property
    def _is_quick(self) -> bool:
        from harness_actors.contracts.schemas import is_quick

        return is_quick(self.given)

    @cached_property
    def _both(self) -> Arguments:
        # What the schema says of it is looked at after that.
        summary = Argument(name=SUMMARY, type=str, description=SUMMARY_IS)
        return Arguments("work_complete", (summary, Argument(name=OUTPUT, type=Any)))


def _faults(text: str, schema: Mapping[str, Any]) -> str:
    from harness_actors.contracts.schema_check import UntoldError, faults_of

    value, fault = read_or_problem(text)
    if fault:
        return fault
    try:
        return _named("; ".join(faults_of(value, schema)))
    except UntoldError as error:
        return f"whether it fits cannot be told: {error}"


def _named(faults: str) -> str:
    """Faults by paths that begin with the name of the value in place of a ``$``."""
    return "; ".join(
        f"{OUTPUT}{one[1:]}" if one.startswith(("$:", "$.", "$[")) else one
        for one in faults.split("; ")
    )


def _moved(part: Any) -> Any:
    """A part of the schema, where the whole is a property of another one: what it refers to has
    moved."""
    if isinstance(part, list):
        return [_moved(one) for one in part]
    if not isinstance(part, dict):
        return part
    moved: dict[str, Any] = {}
    for name, value in part.items():
        if name == "$ref" and isinstance(value, str) and _moves(value):
            moved[name] = f"#/properties/{OUTPUT}{value[1:]}"
        elif name in _BY_NAME and isinstance(value, dict):
            # Names of the user's, which may be those of keywords.
            moved[name] = {own: _moved(one) for own, one in value.items()}
        else:
            moved[name] = value if name in _VALUES else _moved(value)
    return moved


def _moves(reference: str) -> bool:
    return reference == "#" or (reference.startswith("#/") and not reference.startswith("#/$defs/"))
