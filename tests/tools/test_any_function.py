"""What a tool may be, and may return: generators, models, images, and what is too much."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from harness_actors.errors import ToolError
from harness_actors.messages import Message, ToolCall
from harness_actors.ports import ToolContext, ToolOutput
from harness_actors.tools import Image, tool
from harness_actors.tools.images import MOST_BYTES, MOST_IMAGES, size_of
from harness_actors.turn.bounds import Due
from harness_actors.turn.one_call import PlannedCall, run_call
from tests.tools.worker_tools import PIXEL


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def context(context: ToolContext, told: list[str]) -> ToolContext:
    def tell(text: str) -> bool:
        told.append(text)
        return True

    return replace(context, tell=tell)


async def outcome_of(function: Any, context: ToolContext, arguments: str = "{}") -> Any:
    """What a turn makes of a call."""
    call = ToolCall("c", function.spec.name, arguments)
    return await run_call(PlannedCall(call=call, tool=function), context, Due(None))


@tool
def counts(to: int) -> Iterator[int]:
    yield from range(1, to + 1)


@tool
async def counts_async(to: int) -> AsyncIterator[int]:
    for number in range(1, to + 1):
        yield number


@pytest.mark.parametrize("counting", [counts, counts_async])
async def test_each_value_is_told_and_the_last_is_the_result(
    counting: Any, context: ToolContext, told: list[str]
) -> None:
    assert await counting.run('{"to": 3}', context) == "3"
    assert told == ["1", "2", "3"]
    assert await counting.run('{"to": 0}', context) == ""


async def test_what_a_generator_returns_is_its_result(
    context: ToolContext, told: list[str]
) -> None:
    @tool
    def search() -> Generator[str, None, dict[str, int]]:
        yield "looking"
        yield "nearly there"
        return {"found": 2}

    assert await search.run("", context) == '{"found":2}'
    assert told == ["looking", "nearly there"]


async def test_a_generator_that_a_function_returns_is_run_to_its_end(
    context: ToolContext,
) -> None:
    @tool
    def early(to: int) -> Iterator[int]:
        return counts.function(to)

    @tool
    async def late(to: int) -> Iterator[int]:
        return counts.function(to)

    assert await early.run('{"to": 2}', context) == "2"
    assert await late.run('{"to": 2}', context) == "2"


async def test_what_a_generator_raises_is_what_the_call_raises(
    context: ToolContext, told: list[str]
) -> None:
    @tool
    def breaks() -> Iterator[str]:
        yield "begun"
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        await breaks.run("", context)
    assert told == ["begun"]


async def test_a_value_that_cannot_be_said_is_only_told_if_it_is_the_last(
    context: ToolContext, told: list[str]
) -> None:
    @tool
    def odd(last: bool) -> Iterator[object]:
        yield object()
        if not last:
            yield "fine"

    assert await odd.run('{"last": false}', context) == "fine"
    with pytest.raises(ToolError, match="cannot be written as JSON"):
        await odd.run('{"last": true}', context)
    assert told == ["fine"]


async def test_a_generator_without_end_is_closed_at_its_deadline(context: ToolContext) -> None:
    closed, over = threading.Event(), threading.Event()

    @tool(timeout_s=0.2)
    def endless() -> Iterator[int]:
        try:
            while not over.is_set():
                yield 1
        finally:
            closed.set()

    outcome = await outcome_of(endless, context)
    was_closed = await asyncio.to_thread(closed.wait, 10)
    # Else a thread that nobody has stopped would keep the tests from ending.
    over.set()

    assert outcome.failure == "timed_out"
    assert was_closed


async def test_an_async_generator_without_end_is_closed_at_its_deadline(
    context: ToolContext,
) -> None:
    closed = asyncio.Event()

    @tool(timeout_s=0.2)
    async def endless() -> AsyncIterator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.set()

    outcome = await outcome_of(endless, context)

    assert outcome.failure == "timed_out"
    assert closed.is_set()


class Order(BaseModel):
    number: int
    price: float = 1.5


@dataclass
class Stock:
    orders: list[Order]
    left: float


async def test_models_and_dataclasses_are_results(context: ToolContext) -> None:
    @tool
    def book(order: Order) -> Stock:
        return Stock(orders=[order], left=float("nan"))

    result = await book.run('{"order": {"number": 7}}', context)

    assert result == '{"orders":[{"number":7,"price":1.5}],"left":"NaN"}'


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (lambda: b"\xff", "1 bytes that are not UTF-8 text"),
        (lambda: bytes(64 * 1024 * 1024 + 1), "67108865 bytes; 67108864 are allowed"),
        (lambda: [0] * 600_000, "too large to be written as JSON"),
        (lambda: {"a": ["x" * 1024 * 1024] * 70}, "too large to be written as JSON"),
        (lambda: endless_list(), "cannot be written as JSON"),
        (lambda: threading.Lock(), "cannot be written as JSON"),
    ],
)
async def test_what_is_no_result_is_said_to_be_none(
    value: Callable[[], Any], problem: str, context: ToolContext
) -> None:
    @tool
    async def broken() -> Any:
        return value()

    @tool
    def blocking() -> Any:
        return value()

    for function in (broken, blocking):
        with pytest.raises(ToolError, match=problem):
            await function.run("", context)


def endless_list() -> list[Any]:
    values: list[Any] = []
    values += [values, values]
    return values


async def test_of_a_very_long_text_head_and_tail_are_kept(context: ToolContext) -> None:
    @tool
    def long() -> str:
        return "x" * 100_000_000 + "\udcff"

    outcome = await outcome_of(long, context)

    assert len(outcome.text) < 101_000
    assert outcome.text.endswith("x?")


# Images


async def test_an_image_goes_to_the_model_as_one_and_is_named_to_people(
    context: ToolContext,
) -> None:
    @tool
    def draw() -> Image:
        return Image(PIXEL)

    outcome = await outcome_of(draw, context)
    message = Message.tool_result("c", outcome.text, images=outcome.images)

    assert message.text == "[image/png, 1 × 1, 70 bytes]"
    assert message.body["content"][0] == {"type": "text", "text": message.text}
    assert message.body["content"][1]["type"] == "image_url"
    assert message.images == (Image(PIXEL).url,)
    assert outcome.image_tokens == 255


async def test_images_and_texts_are_one_result(context: ToolContext, tmp_path: Path) -> None:
    (tmp_path / "pixel.png").write_bytes(PIXEL)

    @tool
    def draw() -> list[Any]:
        return ["before", Image(tmp_path / "pixel.png"), {"after": 1}]

    output = await draw.run("", context)

    assert isinstance(output, ToolOutput)
    assert output == 'before\n[image/png, 1 × 1, 70 bytes]\n{"after":1}'
    assert len(output.images) == 1


def jpeg(wide: int, high: int) -> bytes:
    frame = bytes([0xFF, 0xC0, 0, 11, 8]) + high.to_bytes(2, "big") + wide.to_bytes(2, "big")
    return b"\xff\xd8\xff\xe0\x00\x04ab" + frame + b"\x01\x01\x11\x00"


def gif(wide: int, high: int) -> bytes:
    return b"GIF89a" + wide.to_bytes(2, "little") + high.to_bytes(2, "little")


def webp(wide: int, high: int) -> bytes:
    size = (wide - 1).to_bytes(3, "little") + (high - 1).to_bytes(3, "little")
    return b"RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00" + size


@pytest.mark.parametrize(
    ("data", "media_type", "size", "tokens"),
    [
        (jpeg(1024, 1024), "image/jpeg", (1024, 1024), 85 + 4 * 170),
        (gif(512, 512), "image/gif", (512, 512), 85 + 170),
        (webp(4096, 8192), "image/webp", (4096, 8192), 85 + 6 * 170),
        (b"\x89PNG\r\n\x1a\n", "image/png", None, 85 + 8 * 170),
        (b"\xff\xd8\xff", "image/jpeg", None, 85 + 8 * 170),
    ],
)
def test_an_image_counts_by_its_size(
    data: bytes, media_type: str, size: tuple[int, int] | None, tokens: int
) -> None:
    image = Image(data)

    assert (image.media_type, size_of(data), image.tokens) == (media_type, size, tokens)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Image(b"text"), "not unknown"),
        (lambda: Image(PIXEL, "image/tiff"), "not image/tiff"),
        (lambda: Image(PIXEL + bytes(MOST_BYTES)), "5000000 are allowed"),
        (lambda: Image("/nowhere/pixel.png"), "'pixel.png' cannot be read"),
    ],
)
def test_what_no_model_reads_is_no_image(make: Callable[[], Image], problem: str) -> None:
    with pytest.raises(ToolError, match=problem):
        make()


async def test_too_many_images_are_refused(context: ToolContext) -> None:
    @tool
    def draw() -> list[Image]:
        return [Image(PIXEL)] * (MOST_IMAGES + 1)

    with pytest.raises(ToolError, match="returned 9 images; 8 are allowed"):
        await draw.run("", context)
