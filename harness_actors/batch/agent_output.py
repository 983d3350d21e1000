"""The output type of an agent file: `persona.output_type`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from harness_actors.errors import BadInputError, ConfigError
from harness_actors.outputs import OutputType
from harness_actors.tools import find_object

FIELD = "persona.output_type"


def output_of(given: object, beside: Path, path: Path, section: str = FIELD) -> OutputType | None:
    """What the runs of an agent are to come to; None for words alone.

    Args:
        given: A JSON schema, the path of a file with one, ending in ``.json``, or ``module:Name``
            of a type.
        beside: Where paths and modules are looked for.
        path: The agent file, for errors.
        section: Where that stands in it.

    Raises:
        BadInputError: It is none of these, or nothing can be held to it.
    """
    field = section
    try:
        if isinstance(given, str) and given.endswith(".json"):
            field = f"{section}: {given}"
            return OutputType.of(_schema_in(beside / given, section), field)
        if isinstance(given, str):
            return OutputType.of(_named(given, beside, section), field)
        if given is not None and not isinstance(given, Mapping):
            problem = f"must be a JSON schema, a .json file, or module:Name, not {given!r:.80}"
            raise ConfigError(field, problem)
        return OutputType.of(given, field)
    except ConfigError as error:
        raise BadInputError(str(path), (f"{error.field}: {error.problem}",)) from error


def _named(name: str, beside: Path, section: str) -> Any:
    try:
        found = find_object(name, beside=beside)
    except ConfigError as error:
        problem = error.problem
        if ":" not in name:
            problem = f"{name!r} must be a JSON schema, a .json file, or module:Name of a type"
        raise ConfigError(section, problem) from error
    if found is None:
        raise ConfigError(section, f"{name!r}: its module has no such type")
    return found


def _schema_in(path: Path, section: str) -> Any:
    try:
        schema = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ConfigError(section, f"{str(path)!r}: {error.strerror or error}") from error
    except orjson.JSONDecodeError as error:
        raise ConfigError(section, f"{str(path)!r} is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise ConfigError(section, f"{str(path)!r} has no JSON schema, which is an object")
    return schema
