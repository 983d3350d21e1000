"""`@tool`: what becomes of a function's signature, docstring and options."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from harness_actors.errors import ConfigError, ToolError
from harness_actors.ports import ToolContext
from harness_actors.tools import FunctionTool, tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Order(BaseModel):
    """An order."""

    number: int
    title: str = ""


@tool(effect="read_only", resource_keys=["crm:{customer_id}"], timeout_s=5)
async def get_customer(customer_id: str, fields: list[str] | None = None) -> dict[str, Any]:
    """Look a customer up.

    Only customers of this year are found.

    Args:
        customer_id: As printed on the bill,
            without spaces.
        fields: What to return.

    Returns:
        The customer.
    """
    return {"id": customer_id, "fields": fields}


@tool
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


def test_the_schema_is_read_from_signature_and_docstring() -> None:
    assert get_customer.spec.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["customer_id"],
        "properties": {
            "customer_id": {
                "type": "string",
                "description": "As printed on the bill, without spaces.",
            },
            "fields": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "default": None,
                "description": "What to return.",
            },
        },
    }


def test_the_description_is_the_text_of_the_docstring_without_its_sections() -> None:
    expected = "Look a customer up.\n\nOnly customers of this year are found."
    assert get_customer.spec.description == expected


def test_options_reach_the_spec() -> None:
    spec = get_customer.spec
    assert (spec.name, spec.effect, spec.idempotent) == ("get_customer", "read_only", True)
    assert (spec.resource_keys, spec.timeout_s) == (("crm:{customer_id}",), 5)


def test_what_is_not_declared_is_a_local_write_and_not_idempotent() -> None:
    assert (add.spec.effect, add.spec.idempotent) == ("local_write", False)


def test_a_tool_is_still_the_function() -> None:
    assert add(1) == 3
    assert asyncio.run(get_customer("c-1")) == {"id": "c-1", "fields": None}
    assert add.__name__ == "add"
    assert add.__doc__ == "Add two numbers."
    assert list(inspect.signature(add).parameters) == ["a", "b"]


async def test_a_function_that_blocks_runs_in_a_thread_and_an_async_one_does_not(
    context: ToolContext,
) -> None:
    threaded: list[object] = []

    async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
        threaded.append(function)
        return await asyncio.to_thread(function, *args)

    watched = replace(context, in_thread=in_thread)

    assert await add.run('{"a": 1}', watched) == "3"
    assert len(threaded) == 1
    assert await get_customer.run('{"customer_id": "x"}', watched) == '{"id":"x","fields":null}'
    assert len(threaded) == 1


async def test_the_context_is_filled_in_and_not_shown(context: ToolContext) -> None:
    @tool
    def where(context: ToolContext, deep: bool = False) -> str:
        return f"{context.run_id} {deep}"

    assert list(where.spec.parameters["properties"]) == ["deep"]
    assert await where.run("", context) == "run-1 False"
    with pytest.raises(ToolError, match="no such argument"):
        await where.run('{"context": {}}', context)


async def test_types_of_the_user_are_checked_and_built(context: ToolContext) -> None:
    class Line(BaseModel):
        amount: int

    @tool
    def book(
        order: Order,
        lines: list[Line],
        colour: Colour,
        size: Literal["s", "m"],
        count: Annotated[int, Field(ge=1, description="How many.")] = 1,
    ) -> str:
        assert isinstance(lines[0], Line)
        return f"{order.number} {colour} {size} {count}"

    assert book.spec.parameters["properties"]["count"]["description"] == "How many."
    assert book.spec.parameters["$defs"]["Order"]["properties"]["title"]["type"] == "string"
    given = '{"order": {"number": 7}, "lines": [{"amount": 1}], "colour": "red", "size": "m"}'
    assert await book.run(given, context) == "7 Colour.RED m 1"
    with pytest.raises(ToolError, match=r"lines\.0\.amount: .*got 'x'"):
        await book.run(given.replace('"amount": 1', '"amount": "x"'), context)


async def test_names_that_pydantic_reserves_are_fine(context: ToolContext) -> None:
    @tool
    def odd(
        schema: int, _hidden: int, copy: int = 1, model_config: int = 2, title: str = "t"
    ) -> str:
        return f"{schema} {_hidden} {copy} {model_config} {title}"

    assert list(odd.spec.parameters["properties"]) == [
        "schema", "_hidden", "copy", "model_config", "title",
    ]  # fmt: skip
    assert await odd.run('{"schema": 1, "_hidden": 5}', context) == "1 5 1 2 t"


async def test_null_is_taken_where_none_is_the_default(context: ToolContext) -> None:
    @tool
    def find(limit: int = None) -> str:  # type: ignore[assignment]  # noqa: RUF013
        return str(limit)

    assert await find.run('{"limit": null}', context) == "None"


async def test_a_default_that_json_cannot_say_is_used_all_the_same(context: ToolContext) -> None:
    marker = object()

    @tool
    def find(limit: float = float("inf"), other: Any = marker) -> str:
        return f"{limit} {other is marker}"

    assert "default" not in find.spec.parameters["properties"]["limit"]
    assert await find.run("{}", context) == "inf True"


async def test_a_class_further_down_in_the_module_is_found() -> None:
    assert "Later" in uses_later.spec.parameters["$defs"]


@tool
def uses_later(thing: Later) -> str:
    return thing.name


class Later(BaseModel):
    name: str


def test_the_returned_type_need_not_be_importable() -> None:
    @tool
    def price() -> Decimal:
        raise NotImplementedError

    assert price.spec.parameters["properties"] == {}


def test_a_bound_method_can_be_a_tool() -> None:
    class Client:
        def refund(self, order: int) -> str:
            """Give money back."""
            return str(order)

    assert tool(Client().refund).spec.parameters["required"] == ["order"]


async def test_what_a_tool_raises_is_not_caught(context: ToolContext) -> None:
    @tool
    def broken() -> str:
        raise KeyError("gone")

    @tool
    async def refusing() -> str:
        raise ToolError("closed today")

    with pytest.raises(KeyError, match="gone"):
        await broken.run("", context)
    with pytest.raises(ToolError, match="closed today"):
        await refusing.run("", context)


@pytest.mark.parametrize("fault", [StopIteration("end"), SystemExit(3)])
async def test_what_would_hang_or_end_the_process_becomes_an_error(
    fault: BaseException, context: ToolContext
) -> None:
    @tool
    def blocking() -> str:
        raise fault

    @tool
    async def waiting() -> str:
        raise fault

    for broken in (blocking, waiting):
        with pytest.raises(RuntimeError, match=type(fault).__name__):
            await asyncio.wait_for(broken.run("", context), 10)


async def test_a_cancelled_tool_is_cancelled(context: ToolContext) -> None:
    started = asyncio.Event()

    @tool
    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(endless.run("", context))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def a_function(customer: str) -> str:
    return customer


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effect": "writes"}, "effect must be one of read_only, local_write"),
        ({"effect": "read_only", "idempotent": False}, "is idempotent"),
        ({"timeout_s": 0}, "timeout_s must be a number above 0"),
        ({"timeout_s": float("nan")}, "timeout_s must be a number above 0"),
        ({"name": "get customer"}, "1 to 64 letters"),
        ({"name": ""}, "1 to 64 letters"),
        ({"resource_keys": "crm:{customer}"}, "must be a list"),
        ({"resource_keys": ["crm:{client}"]}, "names no parameter 'client'"),
        ({"resource_keys": ["crm:{customer"]}, "is no template"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        tool(**options)(a_function)


def star(*args: int) -> None: ...
def stars(**kwargs: int) -> None: ...
def positional(a: int, /) -> None: ...
def method(self: object) -> None: ...


@pytest.mark.parametrize("function", [star, stars, positional, method, Order, 7])
def test_a_function_that_a_model_cannot_call_is_refused(function: Any) -> None:
    with pytest.raises(ConfigError):
        tool(function)


def test_an_annotation_that_cannot_be_resolved_is_named() -> None:
    @tool
    def price(amount: Decimal) -> str:
        return str(amount)

    with pytest.raises(ConfigError, match=r"'price'.*Decimal.*import its type at run time"):
        price.spec  # noqa: B018


def test_a_type_without_a_schema_is_named() -> None:
    class Opaque: ...

    @tool
    def use(thing: Opaque) -> str:
        return str(thing)

    with pytest.raises(ConfigError, match=r"'use'.*Opaque"):
        use.spec  # noqa: B018


def test_a_docstring_of_another_kind_is_the_description() -> None:
    @tool
    def plain(a: int) -> None:
        """Say it: in one line."""

    assert isinstance(plain, FunctionTool)
    assert plain.spec.description == "Say it: in one line."
