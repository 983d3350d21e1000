"""Whether arguments break the JSON schema of a tool, looked at without its code.

Not all of JSON Schema: what is looked at is what schemas of tools are made of. What else one says
is for the tool itself, which checks whatever it is called with.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_CHECKS = 10_000
"""Values that are looked at, at most: each way of an alternative looks at all that is in it."""
MOST_LEVELS = 60
"""Of schemas within schemas, of which references may make a ring."""

_KINDS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_NAMES: Mapping[str, str] = {
    "object": "a JSON object",
    "array": "a list",
    "string": "a text",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}


def schema_problem(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """In what arguments break a schema, in words for a person; empty where in nothing.

    Args:
        schema: That of a tool's parameters.
        arguments: Plain JSON values by name.

    >>> schema_problem({"properties": {"usd": {"type": "number"}}}, {"usd": "much"})
    "usd must be a number, not 'much'"
    """
    try:
        return _Looking(schema).problem("", schema, dict(arguments), 0)
    except _TooMuchError:
        return ""


class _TooMuchError(Exception):
    """Nobody can look at all of it; the tool will."""


@dataclass(slots=True)
class _Looking:
    whole: Mapping[str, Any]
    checks: int = field(default=0)

    def problem(self, where: str, schema: Any, value: Any, level: int) -> str:
        self.checks += 1
        if self.checks > MOST_CHECKS or level > MOST_LEVELS:
            raise _TooMuchError
        if schema is False:
            return f"{where or 'they'} must not be given"
        if not isinstance(schema, Mapping):
            return ""
        if "$ref" in schema:
            named = self._named(schema["$ref"])
            if said := self.problem(where, named, value, level + 1):
                return said
        return (
            _own_problem(where, schema, value)
            or self._of_alternatives(where, schema, value, level)
            or self._within(where, schema, value, level)
        )

    def _named(self, reference: object) -> Any:
        """What a reference of the same document names; all may be where it names nothing."""
        found: Any = self.whole
        for part in str(reference).removeprefix("#/").split("/"):
            found = found.get(part) if isinstance(found, Mapping) else None
        return True if found is None else found

    def _of_alternatives(
        self, where: str, schema: Mapping[str, Any], value: Any, level: int
    ) -> str:
        for part in _listed(schema.get("allOf")):
            if said := self.problem(where, part, value, level + 1):
                return said
        for name in ("anyOf", "oneOf"):
            faults = []
            for part in _listed(schema.get(name)):
                faults.append(self.problem(where, part, value, level + 1))
                if not faults[-1]:
                    break
            if faults and faults[-1]:
                # The last of a type that may be left out is null, of which nobody thinks.
                return faults[0]
        return ""

    def _within(self, where: str, schema: Mapping[str, Any], value: Any, level: int) -> str:
        if isinstance(value, dict):
            return self._within_object(where, schema, value, level)
        if isinstance(value, list) and (items := schema.get("items")) is not None:
            for at, item in enumerate(value):
                if said := self.problem(f"{where}[{at}]", items, item, level + 1):
                    return said
        return ""

    def _within_object(
        self, where: str, schema: Mapping[str, Any], value: dict[str, Any], level: int
    ) -> str:
        before = f"{where}." if where else ""
        properties = schema.get("properties")
        known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
        for name in _listed(schema.get("required")):
            if isinstance(name, str) and name not in value:
                return f"{before}{name} is missing"
        # Names that match a pattern are not looked at.
        other = True if "patternProperties" in schema else schema.get("additionalProperties")
        for name, item in value.items():
            if name not in known and other is False:
                return f"there is no {before}{name}; there are {', '.join(known) or 'none'}"
            if said := self.problem(f"{before}{name}", known.get(name, other), item, level + 1):
                return said
        return ""


def _own_problem(where: str, schema: Mapping[str, Any], value: Any) -> str:
    name = where or "the arguments"
    kinds = schema.get("type")
    wanted = [kinds] if isinstance(kinds, str) else _listed(kinds)
    known = [kind for kind in wanted if isinstance(kind, str) and kind in _KINDS]
    if known and len(known) == len(wanted) and not any(_is(kind, value) for kind in known):
        return f"{name} must be {' or '.join(_NAMES[kind] for kind in known)}, not {_shown(value)}"
    choices = [schema["const"]] if "const" in schema else _listed(schema.get("enum"))
    if choices and not any(_same(value, choice) for choice in choices):
        return f"{name} must be one of {', '.join(map(_shown, choices))}, not {_shown(value)}"
    return _out_of_range(name, schema, value)


def _is(kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS[kind])


def _same(value: Any, choice: Any) -> bool:
    return isinstance(value, bool) == isinstance(choice, bool) and bool(value == choice)


def _out_of_range(name: str, schema: Mapping[str, Any], value: Any) -> str:
    match value:
        case bool() | None:
            return ""
        case int() | float():
            size, unit, kind = value, "", "imum"
        case str():
            size, unit, kind = len(value), " characters", "Length"
        case list():
            size, unit, kind = len(value), " items", "Items"
        case _:
            return ""
    low, high = _bound(schema, f"min{kind}"), _bound(schema, f"max{kind}")
    if low is not None and size < low:
        return f"{name} must be at least {low}{unit}, not {size}"
    if high is not None and size > high:
        return f"{name} must be at most {high}{unit}, not {size}"
    if unit:
        return ""
    above, below = _bound(schema, "exclusiveMinimum"), _bound(schema, "exclusiveMaximum")
    if above is not None and size <= above:
        return f"{name} must be above {above}, not {size}"
    if below is not None and size >= below:
        return f"{name} must be below {below}, not {size}"
    return ""


def _bound(schema: Mapping[str, Any], name: str) -> float | None:
    found = schema.get(name)
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _listed(given: Any) -> list[Any]:
    return given if isinstance(given, list) else []


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"
