"""What `@tool` reads of a function: parameters, types and descriptions."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, SimpleNamespace
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from harness_actors.errors import ConfigError
from harness_actors.pickling import unpickled_with_defaults
from harness_actors.ports import ToolContext
from harness_actors.tools.annotations import names_in
from harness_actors.tools.argument_model import Argument
from harness_actors.tools.arguments import Arguments
from harness_actors.tools.resources import Resource


@unpickled_with_defaults
@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What was read of a function.

    Attributes:
        description: For the model.
        arguments: What the model gives.
        contexts: Names of the parameters that get the `ToolContext`.
        resources: Names of the parameters that get what a resource opens, each with that.
    """

    description: str
    arguments: Arguments
    contexts: tuple[str, ...]
    resources: tuple[tuple[str, Resource[Any]], ...] = ()


def check_parameters(function: Callable[..., Any], name: str) -> list[str]:
    """The names of the parameters, all of which a model can give by name."""
    try:
        parameters = inspect.signature(function).parameters
    except ValueError as error:
        raise ConfigError(f"tool {name!r}", f"has no signature to read: {error}") from None
    for place, parameter in enumerate(parameters.values()):
        if place == 0 and parameter.name in ("self", "cls"):
            problem = "is a method of no object; make the tool of a bound one: tool(client.method)"
            raise ConfigError(f"tool {name!r}", problem)
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            problem = f"parameter {parameter} cannot be given by name; write out what it takes"
            raise ConfigError(f"tool {name!r}", problem)
        if _is_field(parameter.default):
            problem = (
                f"parameter {parameter.name!r} has a field as its default, which a function does "
                "not resolve; write Annotated[int, Field(ge=1)] = 3 in place of "
                "int = Field(3, ge=1), and a default in place of a factory"
            )
            raise ConfigError(f"tool {name!r}", problem)
    return list(parameters)


def _is_field(default: object) -> bool:
    # By name: pydantic is not loaded for this.
    return isinstance(default, dataclasses.Field) or type(default).__name__ == "FieldInfo"


def read_signature(
    function: Callable[..., Any], name: str, local_names: Mapping[str, Any] | None
) -> Signature:
    """Read a function.

    Args:
        function: A function or a bound method.
        name: The tool's name, for messages.
        local_names: What its annotations can name besides the globals of its module.

    Raises:
        ConfigError: An annotation cannot be resolved.
    """
    hints = _parameter_types(function, name, local_names)
    description, about = _read_docstring(inspect.getdoc(function) or "")
    contexts = [parameter for parameter, hint in hints.items() if _is_context(hint)]
    resources = {
        parameter: resource
        for parameter, hint in hints.items()
        if (resource := _resource_of(hint, parameter, name)) is not None
    }
    arguments = tuple(
        Argument(
            name=parameter.name,
            type=_with_default(hints.get(parameter.name, Any), parameter.default),
            default=parameter.default,
            description=about.get(parameter.name, ""),
        )
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in contexts and parameter.name not in resources
    )
    return Signature(
        description=description,
        arguments=Arguments(name, arguments, names_in(item.type for item in arguments)),
        contexts=tuple(contexts),
        resources=tuple(resources.items()),
    )


def _parameter_types(
    function: Callable[..., Any], name: str, local_names: Mapping[str, Any] | None
) -> dict[str, Any]:
    # The returned type is left alone: it says nothing to a model, and modules that
    # import it for type checkers only are in their right.
    annotations = {
        parameter: hint
        for parameter, hint in getattr(function, "__annotations__", {}).items()
        if parameter != "return"
    }
    known = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        return get_type_hints(
            SimpleNamespace(__annotations__=annotations), known, local_names, include_extras=True
        )
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        problem = f"an annotation cannot be resolved: {error}; import its type at run time"
        raise ConfigError(f"tool {name!r}", problem) from None


def _with_default(hint: Any, default: Any) -> Any:
    """A type that takes null, too, where that is the default."""
    joins = hint is not Any and NoneType not in get_args(hint) and hasattr(hint, "__or__")
    return hint | None if default is None and joins else hint


def _resource_of(hint: Any, parameter: str, name: str) -> Resource[Any] | None:
    found = [fact for fact in getattr(hint, "__metadata__", ()) if isinstance(fact, Resource)]
    if len(found) > 1:
        raise ConfigError(f"tool {name!r}", f"parameter {parameter!r} names {len(found)} resources")
    return found[0] if found else None


def _is_context(hint: Any) -> bool:
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return bare is ToolContext or ToolContext in get_args(bare)


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The description of a function, and those of its parameters by name."""
    from docstring_parser import DocstringStyle, ParseError, parse

    try:
        parsed = parse(text, style=DocstringStyle.GOOGLE)
    except ParseError:
        return text, {}
    parts = [part.strip() for part in (parsed.short_description, parsed.long_description) if part]
    about = {
        param.arg_name: " ".join(param.description.split())
        for param in parsed.params
        if param.description
    }
    return "\n\n".join(parts), about
