"""What the types of a tool's parameters are made of: the classes of its user, and their names.

A class of the user travels to the actors by value, without its module. What its annotations
name, as texts, is looked up while the module is still there and travels along.
"""

import ast
import builtins
import dataclasses
import sys
import typing
from collections.abc import Iterable, Iterator, Mapping, Set
from types import ModuleType, UnionType
from typing import (
    Annotated,
    Any,
    ForwardRef,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

_IN_KEYS = (list, dict, set, tuple, type(None))
"""What JSON has no key for: its keys are texts."""


def names_in(types: Iterable[Any]) -> dict[str, Any]:
    """What the texts in the annotations of classes name, by name; only what is there."""
    names: dict[str, Any] = {}
    for found in _reached(types, {}):
        if not isinstance(found, type) or found.__module__ not in sys.modules:
            continue
        known = vars(sys.modules[found.__module__])
        for hint in vars(found).get("__annotations__", {}).values():
            names |= {
                name: known[name]
                for name in _texts_in(hint)
                if name in known and not hasattr(builtins, name) and _travels(known[name])
            }
    return names


def _travels(named: object) -> bool:
    # A module of the user's is not where the class goes.
    return not isinstance(named, ModuleType) or (
        named.__name__.partition(".")[0] in sys.stdlib_module_names
    )


def fault_of(hint: Any, names: Mapping[str, Any]) -> str | None:
    """Why no JSON could be read as a type; None where nothing is known against it."""
    for found in _reached([hint], names):
        origin, args = get_origin(found) or found, get_args(found)
        if origin is type:
            return f"{_shown(found)} is a class, which JSON cannot say"
        if not args or not isinstance(origin, type):
            continue
        members = _members(args[0])
        if issubclass(origin, Mapping) and any(map(_is_made_of_parts, members)):
            return f"{_shown(found)} has keys of {_shown(args[0])}; JSON's are texts"
        if issubclass(origin, Set) and not all(map(_is_hashable, members)):
            return f"{_shown(found)} is a set of what has no hash"
    return None


def with_typed_dicts(hint: Any, names: Mapping[str, Any], made: dict[Any, Any]) -> Any:
    """The type with each `typing.TypedDict` replaced by one that pydantic takes.

    Args:
        hint: The type.
        names: What texts in annotations name.
        made: Those that were replaced already; filled.
    """
    if typing.is_typeddict(hint):
        return made[hint] if hint in made else _retyped(hint, names, made)
    args = get_args(hint)
    if not args or not any(map(typing.is_typeddict, _reached([hint], names))):
        return hint
    if get_origin(hint) is Annotated:
        return Annotated[(with_typed_dicts(args[0], names, made), *hint.__metadata__)]
    parts = tuple(with_typed_dicts(part, names, made) for part in args)
    if (origin := get_origin(hint)) in (list, dict, set, frozenset, tuple):
        return origin[parts]
    return hint.copy_with(parts) if hasattr(hint, "copy_with") else _united(parts)


def _retyped(hint: Any, names: Mapping[str, Any], made: dict[Any, Any]) -> Any:
    from typing_extensions import TypedDict

    # First without its fields, for one of them may be of the same type.
    made[hint] = again = TypedDict(hint.__name__, {})  # type: ignore[operator]
    again.__module__, again.__doc__ = hint.__module__, hint.__doc__
    hints = get_type_hints(hint, localns=dict(names), include_extras=True)
    # Where annotations are texts, the class itself does not know which keys may be missing.
    optional = {name for name, field in hints.items() if get_origin(field) is NotRequired}
    required = {name for name, field in hints.items() if get_origin(field) is Required}
    again.__optional_keys__ = frozenset((hint.__optional_keys__ | optional) - required)
    again.__required_keys__ = frozenset(hints) - again.__optional_keys__
    again.__annotations__ = {
        name: with_typed_dicts(_bare(field), names, made) for name, field in hints.items()
    }
    return again


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) in (NotRequired, Required) else hint


def _united(parts: tuple[Any, ...]) -> Any:
    united = parts[0]
    for part in parts[1:]:
        united = united | part
    return united


def _reached(types: Iterable[Any], names: Mapping[str, Any]) -> Iterator[Any]:
    """All types that others are made of, themselves included, each once."""
    left, seen = list(types), list[Any]()
    while left:
        hint = left.pop()
        if any(hint is known for known in seen):
            continue
        seen.append(hint)
        yield hint
        if get_origin(hint) is not None:
            left.extend(part for part in get_args(hint) if _is_type(part))
        elif _has_fields(hint):
            left.extend(_fields_of(hint, names))


def _is_type(part: Any) -> bool:
    return isinstance(part, type) or get_origin(part) is not None


def _has_fields(hint: Any) -> bool:
    return isinstance(hint, type) and (
        dataclasses.is_dataclass(hint)
        or issubclass(hint, tuple)
        or hasattr(hint, "__required_keys__")
    )


def _fields_of(hint: type, names: Mapping[str, Any]) -> list[Any]:
    try:
        return list(get_type_hints(hint, localns=dict(names), include_extras=True).values())
    except (NameError, TypeError, AttributeError):
        # Whoever builds the schema says what cannot be found.
        return []


def _texts_in(hint: Any) -> Iterator[str]:
    """The names in those parts of an annotation that are texts."""
    if isinstance(hint, ForwardRef):
        hint = hint.__forward_arg__
    if isinstance(hint, str):
        try:
            tree = ast.parse(hint, mode="eval")
        except SyntaxError:
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield from _texts_in(node.value)
        return
    for part in get_args(hint):
        yield from _texts_in(part)


def _members(hint: Any) -> list[Any]:
    """The types of a union, or the one type."""
    if get_origin(hint) is Annotated:
        return _members(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        return [member for part in get_args(hint) for member in _members(part)]
    return [hint]


def _is_made_of_parts(hint: Any) -> bool:
    kind = get_origin(hint) or hint
    return isinstance(kind, type) and (
        issubclass(kind, _IN_KEYS) or _has_fields(kind) or hasattr(kind, "model_fields")
    )


def _is_hashable(hint: Any) -> bool:
    kind = get_origin(hint) or hint
    return not isinstance(kind, type) or kind.__hash__ is not None


def _shown(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else repr(hint)
