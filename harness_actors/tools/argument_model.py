"""The pydantic model of a tool's arguments, and the JSON schema that providers are sent."""

import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness_actors.errors import ConfigError
from harness_actors.tools.annotations import fault_of, with_typed_dicts

if TYPE_CHECKING:
    from pydantic import BaseModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument of a tool, its type resolved.

    Attributes:
        name: As the model writes it and the function takes it.
        type: What pydantic checks it by; ``Annotated`` with a ``Field`` is allowed.
        default: Its default, or `inspect.Parameter.empty` where it is required.
        description: For the model; empty for none.
    """

    name: str
    type: Any
    default: Any = inspect.Parameter.empty
    description: str = ""

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty


def field_names(items: tuple[Argument, ...]) -> list[str]:
    """The fields of the model, in the order of the arguments."""
    return [f"argument_{index}" for index in range(len(items))]


def model_of(items: tuple[Argument, ...], names: Mapping[str, Any]) -> "type[BaseModel]":
    """A model with a field for each argument, which has its name as an alias.

    Args:
        items: The arguments.
        names: What their types name in annotations that are texts.
    """
    from pydantic import ConfigDict, create_model

    made: dict[Any, Any] = {}
    # Names of our own, for pydantic refuses some such as `_id` and `copy`.
    fields: dict[str, Any] = {
        name: (with_typed_dicts(item.type, names, made), _field(item))
        for name, item in zip(field_names(items), items, strict=True)
    }
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    model: type[BaseModel] = create_model("Arguments", __config__=config, **fields)
    if not model.__pydantic_complete__:
        model.model_rebuild(_types_namespace=dict(names))
    return model


def schema_of(tool: str, items: tuple[Argument, ...], names: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of arguments.

    Raises:
        ConfigError: There is none for the type of one; names it.
    """
    for item in items:
        if (fault := fault_of(item.type, names)) is not None:
            raise _no_schema(tool, item, fault)
    if (schema := _tried(items, names)) is None:
        for item in items:
            _tried((item,), names, tool)
        raise ConfigError(f"tool {tool!r}", "its parameters have no JSON schema together")
    schema.pop("description", None)
    schema.setdefault("properties", {})
    return schema


def _tried(
    items: tuple[Argument, ...], names: Mapping[str, Any], tool: str | None = None
) -> dict[str, Any] | None:
    """The schema; where there is none, None or the error of a tool's one argument."""
    from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

    try:
        plain: dict[str, Any] = _for_providers(model_of(items, names).model_json_schema())
    except (PydanticUserError, PydanticUndefinedAnnotation, TypeError) as error:
        if tool is None:
            return None
        raise _no_schema(tool, items[0], str(error).splitlines()[0]) from None
    return plain


def _no_schema(tool: str, item: Argument, fault: str) -> ConfigError:
    return ConfigError(f"tool {tool!r}", f"parameter {item.name!r} has no JSON schema: {fault}")


def _field(item: Argument) -> Any:
    from pydantic import Field

    facts: dict[str, Any] = {"alias": item.name}
    if item.description:
        facts["description"] = item.description
    if item.required:
        return Field(**facts)
    try:
        json.dumps(item.default, allow_nan=False)
    except (TypeError, ValueError):
        # A default that JSON cannot say stays out of the schema.
        return Field(default_factory=lambda: item.default, **facts)
    return Field(default=item.default, **facts)


def _for_providers(schema: Any) -> Any:
    """Without the titles that pydantic adds: they repeat the names and cost tokens.

    Some providers refuse an array that does not say what its items are, also one that does so
    place by place.
    """
    if isinstance(schema, list):
        return [_for_providers(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            kept[key] = {name: _for_providers(entry) for name, entry in value.items()}
        elif key in ("default", "const", "enum", "examples"):
            kept[key] = value
        elif key != "title":
            kept[key] = _for_providers(value)
    if kept.get("type") == "array" and not isinstance(kept.get("items"), dict):
        places = kept.get("prefixItems", [])
        different = [place for at, place in enumerate(places) if place not in places[:at]]
        kept["items"] = {"anyOf": different} if different else {}
    return kept
