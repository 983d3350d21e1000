"""Schemas as the strict mode of providers takes them.

Source: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas. Whatever
such a schema leaves out is looked at when the value is there, so it may allow more than the one
that it is made of; what it must not do is to allow nothing that fits.
"""

from collections.abc import Mapping
from typing import Any

from harness_actors.messages import encode_json
from harness_actors.models.chain import models_of
from harness_actors.outputs.output_type import OutputType
from harness_actors.ports import Model, StrictForm, ToolSet

MOST_LEVELS = 10
MOST_PROPERTIES = 5_000
MOST_CHARS = 100_000

_KEPT = frozenset(
    [
        "type",
        "description",
        "enum",
        "const",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "$ref",
        "$defs",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
    ]
)
_DROPPED = frozenset(
    [
        "title",
        "default",
        "examples",
        "$schema",
        "$comment",
        "deprecated",
        "readOnly",
        "writeOnly",
        "minLength",
        "maxLength",
        "uniqueItems",
        "discriminator",
        "minProperties",
        "maxProperties",
        "contentEncoding",
        "contentMediaType",
    ]
)
"""What says nothing of a value, or narrows one that is looked at in any case."""
_FORMATS = frozenset(
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"],
)


class _NotStrictError(Exception):
    """The schema cannot be said in strict mode."""


def strict_schema(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """A schema as strict mode takes it; None where that cannot be.

    All properties are required and no others allowed.

    Args:
        schema: A JSON schema.

    >>> strict_schema({"type": "object", "properties": {"a": {"type": "integer", "default": 1}}})
    ... # doctest: +NORMALIZE_WHITESPACE
    {'type': 'object', 'properties': {'a': {'type': 'integer'}}, 'required': ['a'],
     'additionalProperties': False}
    >>> strict_schema({"type": "object", "additionalProperties": {"type": "integer"}}) is None
    True
    """
    making = _Making(schema.get("$defs", {}))
    try:
        made = making.part(schema, 0)
    except (_NotStrictError, RecursionError):
        return None
    if made.get("type") != "object" or len(encode_json(made)) > MOST_CHARS:
        return None
    return made


class _Making:
    """Makes one schema.

    Args:
        kinds: Its definitions.
    """

    def __init__(self, kinds: Any) -> None:
        self._kinds = kinds if isinstance(kinds, Mapping) else {}
        self._properties = 0

    def part(self, part: Any, level: int, within: tuple[str, ...] = ()) -> dict[str, Any]:
        if not isinstance(part, Mapping) or level > MOST_LEVELS:
            raise _NotStrictError
        part = _with_one_of(part)
        if "$ref" in part:
            return self._named(part, level, within)
        if not part.keys() & {"type", "anyOf", "enum", "const"}:
            raise _NotStrictError
        made: dict[str, Any] = {}
        for name, value in part.items():
            match name:
                case "properties":
                    made[name] = {
                        own: self.part(one, level + 1, within) for own, one in value.items()
                    }
                    self._count(len(value))
                case "items":
                    made[name] = self.part(value, level + 1, within)
                case "anyOf":
                    made[name] = [self.part(one, level + 1, within) for one in value]
                case "$defs":
                    made[name] = self._all_kinds()
                case "pattern" | "format":
                    if value in _FORMATS if name == "format" else "(?" not in value:
                        made[name] = value
                case _ if name in _KEPT:
                    made[name] = value
                case _ if name not in _DROPPED:
                    raise _NotStrictError
        return _closed(made)

    def _all_kinds(self) -> dict[str, Any]:
        return {name: self.part(one, 1, (name,)) for name, one in self._kinds.items()}

    def _count(self, more: int) -> None:
        self._properties += more
        if self._properties > MOST_PROPERTIES:
            raise _NotStrictError

    def _named(
        self, part: Mapping[str, Any], level: int, within: tuple[str, ...]
    ) -> dict[str, Any]:
        """A part that is a definition, or the root, by its name: nothing else may stand there."""
        reference = part["$ref"]
        name = str(reference).removeprefix("#/$defs/")
        if reference != "#" and name not in self._kinds:
            raise _NotStrictError
        beside = {key: value for key, value in part.items() if key not in ("$ref", "$defs")}
        if level and (not beside or reference == "#" or name in within):
            return {"$ref": reference}
        if reference == "#":
            raise _NotStrictError
        # The root must be an object itself, and what is said beside a name is not to be lost.
        known = {**self._kinds[name], **beside}
        made = self.part(known, level, (*within, name))
        if not level and "$defs" in part:
            made["$defs"] = self._all_kinds()
        return made


def _with_one_of(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Alternatives in the one way in which strict mode has them, and what is alone without it."""
    alone = part.get("allOf")
    if isinstance(alone, list) and len(alone) == 1 and isinstance(alone[0], Mapping):
        part = {**alone[0], **{name: one for name, one in part.items() if name != "allOf"}}
    if "oneOf" in part and "anyOf" not in part:
        part = {"anyOf" if name == "oneOf" else name: one for name, one in part.items()}
    return part


def _closed(made: dict[str, Any]) -> dict[str, Any]:
    """An object with all of its properties and no other."""
    kinds = made.get("type")
    if kinds == "array" and "items" not in made:
        raise _NotStrictError
    if kinds != "object" and not (isinstance(kinds, list) and "object" in kinds):
        return made
    properties = made.get("properties")
    # Without any it is an object of whatever names, which cannot be closed.
    if not properties or made.get("additionalProperties", False) is not False:
        raise _NotStrictError
    if not set(made.get("required", ())) <= properties.keys():
        raise _NotStrictError
    return {**made, "required": list(properties), "additionalProperties": False}


def strict_form(
    output: OutputType, model: Model, tools: ToolSet, completion: str | None
) -> StrictForm | None:
    """What providers are sent that can hold their models to a form; None where none can.

    Args:
        output: The form.
        model: The model of the agent, or the chain of its models.
        tools: What it may call.
        completion: Name of the tool that takes the value; None where the answer is the value.
    """
    if not any(getattr(one, "structured_output", False) for one in models_of(model)):
        return None
    if completion is None:
        return StrictForm(response_format=_response_format(output))
    strict = strict_schema(output.parameters)
    if strict is None:
        return None
    return StrictForm(
        tools=ToolSet.of(
            spec if spec.name != completion else spec.held_to(strict) for spec in tools.specs
        )
    )


def _response_format(output: OutputType) -> bytes | None:
    strict = strict_schema(output.schema)
    schema = output.schema if strict is None else strict
    if schema.get("type") != "object":
        # It is no object at its root, which every provider wants.
        return None
    named = {"name": output.name, "schema": schema, "strict": strict is not None}
    return encode_json({"type": "json_schema", "json_schema": named})
