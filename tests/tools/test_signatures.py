"""Signatures of all kinds: what a type says as JSON fits its schema and comes back as it was."""

import asyncio
import dataclasses
import enum
import json
import typing
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional
from uuid import UUID

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, create_model
from pydantic.dataclasses import dataclass as checked_dataclass
from typing_extensions import TypedDict

from harness_actors.errors import ConfigError
from harness_actors.ports import ToolContext
from harness_actors.tools import tool
from harness_actors.tools.argument_model import Argument
from harness_actors.tools.arguments import Arguments
from harness_actors.tools.rendering import render_result


class Colour(enum.Enum):
    RED = "red"
    TWO = 2


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    y: float = 0.5
    tags: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Tree:
    name: str
    _: KW_ONLY
    at: Point = field(default_factory=lambda: Point(1))
    parts: "tuple[Tree, ...]" = ()


@checked_dataclass
class Checked:
    count: int
    day: date | None = None


class Pair(NamedTuple):
    left: int
    right: "Pair | None" = None


class Options(typing.TypedDict):
    depth: int
    since: NotRequired[date]
    inner: NotRequired["Options"]


class Extended(TypedDict, total=False):
    point: Point
    names: list[str]


class Order(BaseModel):
    number: int
    lines: list[Point] = Field(default_factory=list)
    next: Optional["Order"] = None


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=8)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
POINTS = st.builds(Point, st.integers(), FLOATS, st.lists(TEXTS, max_size=2))
TREES = st.recursive(
    st.builds(Tree, TEXTS, at=POINTS),
    lambda parts: st.builds(Tree, TEXTS, at=POINTS, parts=st.lists(parts, max_size=2).map(tuple)),
    max_leaves=4,
)
PAIRS = st.recursive(st.builds(Pair, st.integers()), lambda p: st.builds(Pair, st.integers(), p))
OPTIONS = st.recursive(
    st.fixed_dictionaries({"depth": st.integers()}, optional={"since": st.dates()}),
    lambda inner: st.fixed_dictionaries({"depth": st.integers(), "inner": inner}),
    max_leaves=3,
)
EXTENDED = st.fixed_dictionaries({}, optional={"point": POINTS, "names": st.lists(TEXTS)})
ORDERS = st.recursive(
    st.builds(Order, number=st.integers(), lines=st.lists(POINTS, max_size=2), next=st.none()),
    lambda inner: st.builds(Order, number=st.integers(), next=inner),
    max_leaves=3,
)

Kind = tuple[Any, st.SearchStrategy[Any]]
"""A type, and values of it."""

SCALARS: list[Kind] = [
    (int, st.integers()),
    (float, FLOATS),
    (bool, st.booleans()),
    (str, TEXTS),
    (bytes, TEXTS.map(str.encode)),
    (Path, st.lists(st.sampled_from("abc"), min_size=1).map(lambda parts: Path(*parts))),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False, places=3)),
    (date, st.dates()),
    (datetime, st.datetimes(timezones=st.just(UTC))),
    (time, st.times()),
    (timedelta, st.timedeltas(timedelta(0), timedelta(days=99))),
    (UUID, st.uuids()),
    (Colour, st.sampled_from(Colour)),
    (Level, st.sampled_from(Level)),
    (Literal["a", "b", 3], st.sampled_from(["a", "b", 3])),
    (Annotated[int, Field(ge=0, description="not below 0")], st.integers(min_value=0)),
]
CLASSES: list[Kind] = [
    (Point, POINTS),
    (Tree, TREES),
    (Checked, st.builds(Checked, st.integers(), st.none() | st.dates())),
    (Pair, PAIRS),
    (Options, OPTIONS),
    (Extended, EXTENDED),
    (Order, ORDERS),
]
KEYS: list[Kind] = [(str, TEXTS), (int, st.integers()), (date, st.dates()), (UUID, st.uuids())]


def of(origin: Any, *parts: Any) -> Any:
    """A generic type of parts that only a run knows."""
    return origin[parts if len(parts) > 1 else parts[0]]


def made_of(parts: st.SearchStrategy[Kind]) -> st.SearchStrategy[Kind]:
    """Types that are made of others."""

    def lists(part: Kind) -> Kind:
        return of(list, part[0]), st.lists(part[1], max_size=3)

    def optional(part: Kind) -> Kind:
        return part[0] | None, st.none() | part[1]

    def mapping(both: tuple[Kind, Kind]) -> Kind:
        (key, keys), (value, values) = both
        return of(dict, key, value), st.dictionaries(keys, values, max_size=3)

    def pair(both: tuple[Kind, Kind]) -> Kind:
        (one, ones), (other, others) = both
        return of(tuple, one, other), st.tuples(ones, others)

    def row(part: Kind) -> Kind:
        return of(tuple, part[0], ...), st.lists(part[1], max_size=3).map(tuple)

    def record(both: tuple[Kind, Kind]) -> Kind:
        (one, ones), (other, others) = both
        default = field(default_factory=lambda: None)
        made = dataclasses.make_dataclass("Made", [("one", one), ("other", other | None, default)])
        return made, st.builds(made, ones, others)

    def model(part: Kind) -> Kind:
        made = create_model("Model", part=(part[0], ...))
        return made, part[1].map(lambda value: made(part=value))

    def fits_a_class(part: Kind) -> bool:
        # Before Python 3.12 pydantic reads no `typing.TypedDict` there.
        return "Options" not in repr(part[0])

    pairs, fitting = st.tuples(parts, parts), parts.filter(fits_a_class)
    return st.one_of(
        parts.map(lists),
        parts.map(optional),
        st.tuples(st.sampled_from(KEYS), parts).map(mapping),
        pairs.map(pair),
        parts.map(row),
        st.tuples(fitting, fitting).map(record),
        fitting.map(model),
    )


KINDS = st.recursive(st.sampled_from(SCALARS + CLASSES), made_of, max_leaves=3)


def function_of(annotations: dict[str, Any], defaults: dict[str, Any]) -> Callable[..., Any]:
    """A function with these parameters, each given by keyword or place, that returns them."""
    names = sorted(annotations, key=lambda name: name in defaults)
    told = ", ".join(f"{n}=defaults[{n!r}]" if n in defaults else n for n in names)
    text = f"def function({told}): return [{', '.join(names)}]"
    scope: dict[str, Any] = {"defaults": defaults}
    exec(text, scope)
    function: Callable[..., Any] = scope["function"]
    function.__annotations__ = dict(annotations)
    return function


CONTEXT = ToolContext(run_id="r", call_id="c", workspace=None, in_thread=asyncio.to_thread)


@settings(deadline=None)
@given(data=st.data(), kinds=st.lists(KINDS, min_size=1, max_size=3))
def test_arguments_of_any_type_come_back_as_they_were_said(
    data: st.DataObject, kinds: list[Kind]
) -> None:
    types = {f"p{number}": kind for number, (kind, _) in enumerate(kinds)}
    values = {f"p{number}": data.draw(drawn) for number, (_, drawn) in enumerate(kinds)}
    optional = {name: values[name] for name in types if data.draw(st.booleans())}
    made = tool(function_of(types, optional))

    schema = made.spec.parameters
    text = render_result(values, "t")

    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert set(schema.get("required", ())) == types.keys() - optional.keys()
    jsonschema.validate(json.loads(text), schema, jsonschema.Draft202012Validator)
    arguments = Arguments("t", tuple(Argument(name=n, type=t) for n, t in types.items()))
    assert arguments.parse(text) == values
    assert {n: type(v) for n, v in arguments.parse(text).items()} == {
        n: type(v) for n, v in values.items()
    }
    left_out = {name: value for name, value in values.items() if name not in optional}
    order = sorted(types, key=lambda name: name in optional)
    said = asyncio.run(made.run(render_result(left_out, "t"), CONTEXT))
    # The keys of a `TypedDict` come back in the order of the type.
    expected = render_result([values[name] for name in order], "t")
    assert json.loads(said) == json.loads(expected)


def all_arrays(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [found for part in schema for found in all_arrays(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if schema.get("type") == "array" else []
    return own + [found for part in schema.values() for found in all_arrays(part)]


@settings(deadline=None)
@given(kind=KINDS)
def test_every_array_says_what_its_items_are(kind: Kind) -> None:
    arguments = Arguments("t", (Argument(name="a", type=kind[0]),))

    assert all(isinstance(array["items"], dict) for array in all_arrays(arguments.schema))


async def test_sets_unions_and_keyword_only_parameters(context: ToolContext) -> None:
    @tool
    def take(
        some: set[int],
        frozen: frozenset[Pair],
        one: int | list[str] | Point | None,
        *,
        other: "dict[str, Tree] | None" = None,
        size: Annotated[int, Field(default=3)],
    ) -> str:
        return f"{some!r} {frozen!r} {one!r} {other!r} {size!r}"

    said = '{"some": [1, 1], "frozen": [[1], [1]], "one": {"x": 1}}'

    assert sorted(take.spec.parameters["required"]) == ["frozen", "one", "some"]
    assert await take.run(said, context) == (f"{{1}} {frozenset({Pair(1)})!r} {Point(1)!r} None 3")


async def test_factories_in_annotations_are_called_for_each_call(context: ToolContext) -> None:
    @tool
    def grow(to: Annotated[list[int], Field(default_factory=list)]) -> list[int]:
        to.append(1)
        return to

    assert [await grow.run("", context) for _ in range(2)] == ["[1]", "[1]"]


class Opaque: ...


@dataclass
class Holder:
    opaque: Opaque


@pytest.mark.parametrize(
    ("hint", "why"),
    [
        (Opaque, "Opaque"),
        (list[Opaque], "Opaque"),
        (Holder, "Opaque"),
        (Callable[[int], int], "Callable"),
        (type[int], "is a class"),
        (dict[Point, int], "keys of Point"),
        (list[dict[tuple[int, int], str]], r"keys of tuple\[int, int\]"),
        (dict[int | Pair, int], "JSON's are texts"),
        (set[Point], "no hash"),
        (frozenset[list[int]], "no hash"),
        (dataclasses.InitVar[int], "InitVar"),
    ],
    ids=repr,
)
def test_a_type_that_json_cannot_say_is_refused_with_its_parameter(hint: Any, why: str) -> None:
    made = tool(function_of({"fine": int, "odd": hint}, {}))

    with pytest.raises(ConfigError, match=f"'function'.*parameter 'odd' has no JSON schema.*{why}"):
        made.spec  # noqa: B018


@pytest.mark.parametrize("default", [Field(3, ge=1), field(default=3), Field(default_factory=int)])
def test_a_field_as_a_default_is_refused_for_the_function_would_get_it(default: Any) -> None:
    with pytest.raises(ConfigError, match=r"'x' has a field as its default.*write Annotated"):
        tool(function_of({"x": int}, {"x": default}))


def takes_many(*numbers: int) -> None: ...
def takes_any(**options: int) -> None: ...
def takes_first(first: int, /) -> None: ...


@pytest.mark.parametrize(
    ("function", "name"),
    [(takes_many, r"\*numbers"), (takes_any, r"\*\*options"), (takes_first, "first")],
)
def test_a_parameter_that_has_no_name_is_refused(function: Any, name: str) -> None:
    with pytest.raises(ConfigError, match=f"parameter {name}: int cannot be given by name"):
        tool(function)
