"""The arguments of a tool: their JSON schema, and how a model's text is read by it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harness_actors.errors import ToolError
from harness_actors.exact_json import finite, once, quoted
from harness_actors.tools.argument_model import Argument, field_names, model_of, schema_of

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

MAX_FAULTS = 5
"""Faults that one error names; a model that sees more corrects no better."""
MAX_SCHEMA = 600
"""Characters of its schema that one error tells."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of one tool.

    Attributes:
        tool: Its name, for messages.
        items: In the order of the signature.
        names: What the classes among their types name in annotations that are texts; looked up
            where their modules are.
    """

    tool: str
    items: tuple[Argument, ...]
    names: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema, an object that allows no other property.

        Raises:
            ConfigError: An argument has a type that has none; names it.
        """
        return schema_of(self.tool, self.items, self.names)

    def parse(self, text: str) -> dict[str, Any]:
        """The arguments that a model wrote, checked; those it left out are left out.

        Args:
            text: Meant to be a JSON object; blank text counts as ``{}``.

        Raises:
            ToolError: It is not JSON, not an object, or breaks the schema.
        """
        text = text if text.strip() else "{}"
        self._check_json(text)
        return self._read(text)

    def faults_in(self, text: str) -> list[str]:
        """What is wrong with arguments, a sentence each; none where they fit.

        Args:
            text: A JSON object.
        """
        from pydantic import ValidationError

        try:
            self._model.model_validate_json(text)
        except ValidationError as error:
            return self._lines(error)
        return []

    def _read(self, text: str) -> dict[str, Any]:
        from pydantic import ValidationError

        try:
            # In JSON mode, so that strict fields take what JSON has for their type.
            values = self._model.model_validate_json(text)
        except ValidationError as error:
            raise ToolError(self._faults(error)) from None
        return {
            item.name: getattr(values, name)
            for name, item in zip(field_names(self.items), self.items, strict=True)
            # One that the function requires may have a default in its annotation.
            if name in values.model_fields_set or item.required
        }

    def __reduce__(self) -> tuple[Any, ...]:
        # The pydantic model is made again where it is needed: it is large and not
        # everywhere picklable.
        return (Arguments, (self.tool, self.items, self.names))

    @cached_property
    def _model(self) -> "type[BaseModel]":
        return model_of(self.items, self.names)

    def _check_json(self, text: str) -> None:
        """Refuse what pydantic would take or report without a clear word."""
        try:
            value = read_strictly(text)
        except RecursionError:
            raise ToolError(f"{self._intro}: nested too deeply") from None
        except ValueError as error:
            near = _near(text, error) if isinstance(error, json.JSONDecodeError) else ""
            raise ToolError(f"{self._intro}: {error}{near}; {self._expected}") from None
        if not isinstance(value, dict):
            raise ToolError(f"{self._intro}: got {quoted(value)}; {self._expected}")

    @property
    def _intro(self) -> str:
        return f"the arguments of {self.tool!r} are not a JSON object"

    @property
    def _expected(self) -> str:
        names = [f"{item.name}{'' if item.required else ' (optional)'}" for item in self.items]
        return f"expected an object with {', '.join(names)}" if names else "expected {}"

    def _faults(self, error: "ValidationError") -> str:
        told = f"the arguments of {self.tool!r} break its schema: {'; '.join(self._lines(error))}"
        found = error.errors(include_url=False, include_context=False)
        wanted = self._schema_of({str(fault["loc"][0]) for fault in found if fault["loc"]})
        return f"{told}. Wanted: {wanted}" if wanted else told

    def _lines(self, error: "ValidationError") -> list[str]:
        found = error.errors(include_url=False, include_context=False)
        lines = [self._fault(fault) for fault in found[:MAX_FAULTS]]
        if len(found) > MAX_FAULTS:
            lines.append(f"and {len(found) - MAX_FAULTS} more")
        return lines

    def _schema_of(self, at_fault: set[str]) -> str:
        """What the schema says of the arguments at fault; empty where it has none of them."""
        properties, kinds = self.schema["properties"], self.schema.get("$defs", {})
        parts = {}
        for name, part in properties.items():
            if name in at_fault:
                kind = part.get("$ref", "").removeprefix("#/$defs/")
                parts[name] = kinds.get(kind, part)
        text = json.dumps(parts, ensure_ascii=False) if parts else ""
        return text if len(text) <= MAX_SCHEMA else f"{text[: MAX_SCHEMA - 3]}..."

    def _fault(self, fault: Mapping[str, Any]) -> str:
        where = ".".join(str(part) for part in fault["loc"]) or "the object"
        if fault["type"] == "extra_forbidden":
            names = ", ".join(item.name for item in self.items) or "none"
            return f"{where}: no such argument; there are {names}"
        if fault["type"] == "missing":
            return f"{where}: required, but left out"
        return f"{where}: {fault['msg']}, got {quoted(fault['input'])}"


def read_strictly(text: str) -> Any:
    """The value of a JSON text; what JSON does not have, though Python takes it, is refused.

    Raises:
        ValueError: It is no JSON, a key is given twice, or a number is none.
        RecursionError: It is nested too deeply.
    """
    return _strict.decode(text)


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON value")


# Made once: `json.loads` makes one for each text that it reads with such rules.
_strict = json.JSONDecoder(
    object_pairs_hook=once, parse_constant=_refuse_constant, parse_float=finite
)


def _near(text: str, error: json.JSONDecodeError) -> str:
    return f", near {quoted(text[max(0, error.pos - 20) : error.pos + 20])}"
