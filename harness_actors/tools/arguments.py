"""The arguments of a tool: their JSON schema, and how a model's text is read by it."""

import inspect
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness_actors.errors import ToolError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

MAX_FAULTS = 5
"""Faults that one error names; a model that sees more corrects no better."""
MAX_QUOTE = 80
"""Characters quoted of a value at fault."""


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


@dataclass(frozen=True)
class Arguments:
    """The arguments of one tool.

    Attributes:
        tool: Its name, for messages.
        items: In the order of the signature.
    """

    tool: str
    items: tuple[Argument, ...]

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema, an object that allows no other property."""
        schema: dict[str, Any] = _untitled(self._model.model_json_schema())
        schema.pop("description", None)
        schema.setdefault("properties", {})
        return schema

    def parse(self, text: str) -> dict[str, Any]:
        """The arguments that a model wrote, checked; those it left out are left out.

        Args:
            text: Meant to be a JSON object; blank text counts as ``{}``.

        Raises:
            ToolError: It is not JSON, not an object, or breaks the schema.
        """
        from pydantic import ValidationError

        text = text if text.strip() else "{}"
        self._check_json(text)
        try:
            # In JSON mode, so that strict fields take what JSON has for their type.
            values = self._model.model_validate_json(text)
        except ValidationError as error:
            raise ToolError(self._faults(error)) from None
        return {
            item.name: getattr(values, field)
            for field, item in zip(_field_names(self.items), self.items, strict=True)
            if field in values.model_fields_set
        }

    def __reduce__(self) -> tuple[Any, ...]:
        # The pydantic model is made again where it is needed: it is large and not
        # everywhere picklable.
        return (Arguments, (self.tool, self.items))

    @cached_property
    def _model(self) -> "type[BaseModel]":
        from pydantic import ConfigDict, create_model

        # Fields have names of our own and the arguments' as aliases, for pydantic
        # refuses names such as `_id` and `copy`.
        fields: dict[str, Any] = {
            field: (item.type, _field(item))
            for field, item in zip(_field_names(self.items), self.items, strict=True)
        }
        config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
        model: type[BaseModel] = create_model("Arguments", __config__=config, **fields)
        return model

    def _check_json(self, text: str) -> None:
        """Refuse what pydantic would take or report without a clear word."""
        try:
            value = json.loads(
                text,
                object_pairs_hook=_unique_keys,
                parse_constant=_refuse_constant,
                parse_float=_finite,
            )
        except RecursionError:
            raise ToolError(f"{self._intro}: nested too deeply") from None
        except ValueError as error:
            near = _near(text, error) if isinstance(error, json.JSONDecodeError) else ""
            raise ToolError(f"{self._intro}: {error}{near}; {self._expected}") from None
        if not isinstance(value, dict):
            raise ToolError(f"{self._intro}: got {_quote(value)}; {self._expected}")

    @property
    def _intro(self) -> str:
        return f"the arguments of {self.tool!r} are not a JSON object"

    @property
    def _expected(self) -> str:
        names = [f"{item.name}{'' if item.required else ' (optional)'}" for item in self.items]
        return f"expected an object with {', '.join(names)}" if names else "expected {}"

    def _faults(self, error: "ValidationError") -> str:
        found = error.errors(include_url=False, include_context=False)
        lines = [self._fault(fault) for fault in found[:MAX_FAULTS]]
        if len(found) > MAX_FAULTS:
            lines.append(f"and {len(found) - MAX_FAULTS} more")
        return f"the arguments of {self.tool!r} break its schema: {'; '.join(lines)}"

    def _fault(self, fault: Mapping[str, Any]) -> str:
        where = ".".join(str(part) for part in fault["loc"]) or "the object"
        if fault["type"] == "extra_forbidden":
            names = ", ".join(item.name for item in self.items) or "none"
            return f"{where}: no such argument; there are {names}"
        if fault["type"] == "missing":
            return f"{where}: required, but left out"
        return f"{where}: {fault['msg']}, got {_quote(fault['input'])}"


def _field_names(items: tuple[Argument, ...]) -> list[str]:
    return [f"argument_{index}" for index in range(len(items))]


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


def _untitled(schema: Any) -> Any:
    """Without the titles that pydantic adds: they repeat the names and cost tokens."""
    if isinstance(schema, list):
        return [_untitled(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            kept[key] = {name: _untitled(entry) for name, entry in value.items()}
        elif key in ("default", "const", "enum", "examples"):
            kept[key] = value
        elif key != "title":
            kept[key] = _untitled(value)
    return kept


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {_quote(key)} is given twice")
        result[key] = value
    return result


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON value")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {_quote(digits)} is too large")
    return value


def _near(text: str, error: json.JSONDecodeError) -> str:
    return f", near {_quote(text[max(0, error.pos - 20) : error.pos + 20])}"


def _quote(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= MAX_QUOTE else f"{shown[: MAX_QUOTE - 3]}..."
