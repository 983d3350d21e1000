"""What is kept of an exception in a user's code."""

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_actors.errors import AgentCodeError, ModelSetupError, ToolError
from harness_actors.turn.threads import ToolThreads
from harness_actors.turn.tracebacks import TRACEBACK_CHARS, user_traceback

LEDGER = """
def total(rows):
    secret = "hunter2-hunter2"
    return sum(amount(row) for row in rows)

def amount(row):
    return row["amount"]
"""
REFUND = """
from billing.ledger import total

class RefundError(Exception):
    pass

def refund(order):
    try:
        return total([{}])
    except KeyError as error:
        raise RefundError(f"no refund for {order}") from error
"""


@pytest.fixture
def billing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A package of a user, which raises deep in it."""
    (tmp_path / "billing").mkdir()
    (tmp_path / "billing" / "__init__.py").write_text("")
    (tmp_path / "billing" / "ledger.py").write_text(LEDGER)
    (tmp_path / "billing" / "refunds.py").write_text(REFUND)
    monkeypatch.syspath_prepend(str(tmp_path))
    from importlib import import_module

    yield import_module("billing.refunds")
    for name in [name for name in sys.modules if name.startswith("billing")]:
        del sys.modules[name]


def raised(call: Callable[[], object]) -> BaseException:
    try:
        call()
    except BaseException as error:  # noqa: BLE001 - handed to whoever asks
        return error
    raise AssertionError("nothing was raised")


def test_it_shows_the_users_frames_and_what_caused_it(billing: Any) -> None:
    text = user_traceback(raised(lambda: billing.refund(17)))

    lines = [line.strip() for line in text.splitlines()]
    assert lines[-1] == "billing.refunds.RefundError: no refund for 17"
    assert "KeyError: 'amount'" in lines
    assert "The above exception was the direct cause of the following exception:" in lines
    assert 'return row["amount"]' in lines
    assert "hunter2" not in text, "values of variables are never kept"


async def test_what_calls_functions_for_others_is_left_out(billing: Any) -> None:
    async def in_a_thread() -> None:
        await asyncio.wait_for(ToolThreads(1).run(billing.refund, 17), timeout=5)

    with pytest.raises(billing.RefundError) as caught:
        await asyncio.gather(in_a_thread())

    text = user_traceback(caught.value)
    assert "billing/refunds.py" in text
    for glue in ("asyncio/", "harness_actors/turn", "threading.py", "concurrent/"):
        assert glue not in text


async def test_what_the_user_called_in_the_standard_library_stays() -> None:
    text = user_traceback(raised(lambda: json.loads("{")))
    assert "json/decoder.py" in text

    with pytest.raises(TimeoutError) as caught:
        await asyncio.wait_for(asyncio.Event().wait(), timeout=0.001)
    assert "asyncio/tasks.py" in user_traceback(caught.value)


def test_an_error_of_ours_is_kept_only_where_the_user_raised_it() -> None:
    def of_a_tool() -> None:
        raise ToolError("the shop is closed")

    assert "of_a_tool" in user_traceback(raised(of_a_tool))
    assert user_traceback(ToolError("never raised")) == ""

    def of_a_client() -> None:
        raise ConnectionError("refused")

    unreachable = ModelSetupError("gpt", "cannot connect")
    unreachable.__cause__ = raised(of_a_client)
    assert user_traceback(unreachable) == "", "where a client's sockets are helps nobody"
    broken = AgentCodeError("the stored agent", "it cannot be read here")
    broken.__cause__ = raised(of_a_client)
    assert "of_a_client" in user_traceback(broken), "a user's module that cannot be imported"


def test_it_is_bounded_with_a_word() -> None:
    def deep(depth: int) -> None:
        if depth:
            deeper(depth - 1)
        raise ValueError("x" * 10_000_000)

    def deeper(depth: int) -> None:
        deep(depth)

    text = user_traceback(raised(lambda: deep(200)))

    assert len(text) < TRACEBACK_CHARS + 100
    assert "characters left out" in text
    frames = user_traceback(raised(lambda: json.loads("[" * 100_000)))
    assert len(frames) < TRACEBACK_CHARS + 100
    names = user_traceback(raised(lambda: nested(300)))
    assert "frames left out" in names
    assert names.endswith("ValueError: at the end")


def nested(depth: int) -> None:
    """Each call from another line, so that Python does not collapse them."""
    if depth == 0:
        raise ValueError("at the end")
    if depth % 2:
        nested(depth - 1)
    else:
        nested(depth - 1)


def test_what_looks_like_a_key_is_gone() -> None:
    def signs_in() -> None:
        raise PermissionError("refused sk-proj-abcdef123456 and Bearer abc.def.ghi")

    text = user_traceback(raised(signs_in))
    assert "abcdef" not in text
    assert "abc.def" not in text
    assert "PermissionError: refused [key] and [key]" in text


def test_every_part_of_a_group_is_shown() -> None:
    def first() -> None:
        raise KeyError("a")

    def second() -> None:
        raise IndexError("out")

    def many() -> None:
        raise BaseExceptionGroup("two", [raised(first), raised(second)])

    text = user_traceback(raised(many))
    assert "KeyError: 'a'" in text
    assert "IndexError" in text


def test_an_error_that_cannot_be_told_of_is_told_of_as_such() -> None:
    class UnspeakableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    def speak() -> None:
        raise UnspeakableError

    text = user_traceback(raised(speak))
    assert "in speak" in text
    assert "str() failed" in text
