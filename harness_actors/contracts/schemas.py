"""JSON schemas of contracts: checked before anything runs, and never fetched from elsewhere."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from harness_actors.contracts.fields import is_fields, shown
from harness_actors.contracts.patterns import check_pattern
from harness_actors.contracts.schema_check import sentence_of
from harness_actors.errors import ConfigError
from harness_actors.messages import MOST_LEVELS, encode_json, is_too_deep

MOST_BYTES = 200_000
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_VALUES = frozenset({"enum", "const", "default", "examples"})
"""Keywords whose values are no schemas, whatever they look like."""
_SLOW = frozenset({*_REFERENCES, "pattern", "patternProperties", "uniqueItems"})
"""With them, the time that a document takes may grow faster than its size."""
_DIALECTS = re.compile(
    r"https?://json-schema\.org/(?:draft-0[3467]|draft/20(?:19-09|20-12))/schema#?"
)


def check_schema(field: str, value: object) -> None:
    """Refuse what is no JSON schema, or needs something from elsewhere.

    Args:
        field: The name of the field, for the error.
        value: What was given.

    Raises:
        ConfigError: It is no schema, of an unknown dialect, too large, refers to another document,
            or has a pattern that may never end.
    """
    if not is_fields(value):
        raise ConfigError(field, f"must be a JSON schema, not {shown(value)}")
    assert isinstance(value, Mapping)
    if is_too_deep(value):
        raise ConfigError(field, f"is nested more than {MOST_LEVELS} levels deep")
    size = len(encode_json(value))
    if size > MOST_BYTES:
        raise ConfigError(field, f"has {size:,} bytes as JSON, and may have {MOST_BYTES:,}")
    dialect = value.get("$schema")
    if dialect is not None and not (isinstance(dialect, str) and _DIALECTS.fullmatch(dialect)):
        problem = f"{shown(dialect)} is no dialect that is known here; leave it out for 2020-12"
        raise ConfigError(f"{field}.$schema", problem)
    _check_parts(field, value)
    _check_meaning(field, value)
    _check_references(field, value, value)


def is_quick(schema: object) -> bool:
    """Whether checking a document takes no longer than its size times that of the schema.

    Names of properties are taken for keywords here: one too many only costs a process.
    """
    if isinstance(schema, Mapping):
        return not _SLOW & schema.keys() and all(map(is_quick, schema.values()))
    return not isinstance(schema, list | tuple) or all(map(is_quick, schema))


def _check_parts(field: str, part: object) -> None:
    """Look at what means danger wherever it stands."""
    if isinstance(part, list | tuple):
        for place, item in enumerate(part):
            _check_parts(f"{field}[{place}]", item)
    if not isinstance(part, Mapping):
        return
    for name, value in part.items():
        if name in _REFERENCES and isinstance(value, str) and not value.startswith("#"):
            problem = (
                f"{shown(value)} refers to another document, and nothing is fetched; put what it "
                "names under $defs, and refer to #/$defs/NAME"
            )
            raise ConfigError(f"{field}.{name}", problem)
        if name == "pattern" and isinstance(value, str):
            check_pattern(f"{field}.pattern", value)
        if name == "patternProperties" and isinstance(value, Mapping):
            for pattern in value:
                check_pattern(f"{field}.patternProperties", pattern)
        if name not in _VALUES:
            _check_parts(f"{field}.{name}", value)


def _check_meaning(field: str, schema: Mapping[str, Any]) -> None:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema, default=Draft202012Validator).check_schema(dict(schema))
    except SchemaError as error:
        where = "".join(
            f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path
        )
        problem = f"is no JSON schema: {sentence_of(error).partition(': ')[2]}"
        raise ConfigError(f"{field}{where}", problem) from None
    except RecursionError:
        raise ConfigError(field, "is nested too deeply") from None


def _check_references(field: str, part: object, schema: Mapping[str, Any]) -> None:
    """Refuse a reference to a part that is not there."""
    if isinstance(part, list | tuple):
        for place, item in enumerate(part):
            _check_references(f"{field}[{place}]", item, schema)
    if not isinstance(part, Mapping):
        return
    for name, value in part.items():
        is_own = name == "$ref" and isinstance(value, str) and "$id" not in schema
        if is_own and _pointed_at(schema, value[1:]) is None:
            raise ConfigError(f"{field}.$ref", f"the schema has no {shown(value)}")
        if name not in _VALUES:
            _check_references(f"{field}.{name}", value, schema)


def _pointed_at(schema: Any, pointer: str) -> Any:
    """What a JSON pointer names; None where there is nothing. An anchor is taken to be there."""
    if pointer and not pointer.startswith("/"):
        return pointer
    found = schema
    for part in unquote(pointer).split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(name)
        elif isinstance(found, list | tuple) and name.isdecimal() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found
