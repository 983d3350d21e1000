"""Whatever stands in a turn does, each call gets its one answer, and the turn ends."""

import asyncio
import os
import time
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest

from harness_actors.events import HookFailed
from harness_actors.policies import Deny, Hook, Hooks, MiddlewareChain, ToolInvocation
from harness_actors.policies.middleware import NextTool
from harness_actors.ports import ToolContext, ToolSpec
from harness_actors.tools import tool
from tests.executors.driver import SimpleTool, calls, finishes
from tests.turn.test_gates import a_driver, ended, texts, tool_of

pytestmark = pytest.mark.timeout(60)


class Panic(BaseException):
    """What a library in Rust raises: no `Exception`."""


async def hangs(_event: Any) -> None:
    await asyncio.Event().wait()


async def hangs_on(_event: Any) -> None:
    """Swallow every cancellation, for an hour."""
    await stubbornly(3_600.0)


async def stubbornly(seconds: float) -> None:
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + seconds
    while (left := ends_at - loop.time()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(left)


def raises(error: BaseException) -> Callable[[Any], Awaitable[None]]:
    async def hook(_event: Any) -> None:
        raise error

    return hook


def answers(value: Any) -> Callable[[Any], Awaitable[Any]]:
    async def hook(_event: Any) -> Any:
        return value

    return hook


BAD_HOOKS = {
    "hangs": hangs,
    "hangs_on": hangs_on,
    "object": answers(object()),
    "class": answers(Deny),
    "no_words": answers(Deny(5)),  # type: ignore[arg-type]
    "exit": raises(SystemExit(3)),
    "keys": raises(KeyboardInterrupt("its own")),
    "cancelled": raises(asyncio.CancelledError()),
    "generator": raises(GeneratorExit()),
    "panic": raises(Panic()),
}
KINDS = (
    "session_start",
    "input_guard",
    "pre_model",
    "post_model",
    "pre_tool",
    "post_tool",
    "agent_stop",
    "output_guard",
)


@pytest.mark.virtual_time
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", BAD_HOOKS)
async def test_a_bad_hook_of_any_kind_is_told_of_and_only_denies_calls(kind: str, how: str) -> None:
    hook = Hook(BAD_HOOKS[how], timeout_s=3)
    driver = a_driver(Hooks(**{kind: hook}))

    end = await ended(driver)

    assert (end.status, end.reason.kind) == ("done", "completed")
    assert {event.kind for event in driver.happened(HookFailed)} == {kind}
    denied = kind == "pre_tool"
    assert driver.results()[0].disposition == ("denied" if denied else "done")
    assert len(tool_of(driver).calls) == (0 if denied else 1)


async def cyclic(call: ToolInvocation, next: NextTool) -> str:
    return await CYCLE.call_tool(call, next)


CYCLE = MiddlewareChain((cyclic,))


async def recursive(call: ToolInvocation, next: NextTool) -> str:
    return await recursive(call, next)


async def nothing(call: ToolInvocation, next: NextTool) -> Any:
    return None


async def a_task(call: ToolInvocation, next: NextTool) -> Any:
    return asyncio.get_running_loop().create_future()


async def other_call(call: ToolInvocation, next: NextTool) -> str:
    return await next("the call")  # type: ignore[arg-type]


async def no_json(call: ToolInvocation, next: NextTool) -> str:
    return await next(call.with_arguments({"n": object()}))


async def waits(call: ToolInvocation, next: NextTool) -> str:
    await asyncio.Event().wait()
    return "never"


def raising(error: BaseException) -> Callable[[ToolInvocation, NextTool], Awaitable[str]]:
    async def middleware(call: ToolInvocation, next: NextTool) -> str:
        raise error

    return middleware


BAD_MIDDLEWARE = {
    "cyclic": (cyclic, "RecursionError"),
    "recursive": (recursive, "RecursionError"),
    "nothing": (nothing, "middleware nothing failed: it returned NoneType, not text"),
    "a future": (a_task, "middleware a_task failed: it returned Future, not text"),
    "another call": (other_call, "called next with str, not a ToolInvocation"),
    "no json": (no_json, "not JSON serializable"),
    "waits": (waits, "it took longer than 10 s"),
    "exit": (raising(SystemExit(3)), "SystemExit: 3"),
    "keys": (raising(KeyboardInterrupt("its own")), "KeyboardInterrupt: its own"),
    "generator": (raising(GeneratorExit("its own")), "GeneratorExit: its own"),
    "cancelled": (raising(asyncio.CancelledError("its own")), "CancelledError: its own"),
    "panic": (raising(Panic("native")), "Panic: native"),
}


@pytest.mark.virtual_time
@pytest.mark.parametrize("how", BAD_MIDDLEWARE)
async def test_bad_middleware_fails_the_call_that_it_stands_around(how: str) -> None:
    middleware, told = BAD_MIDDLEWARE[how]
    driver = a_driver(middleware=(middleware,))

    end = await ended(driver)

    assert end.status == "done"
    assert driver.results()[0].disposition == "failed"
    assert told in texts(driver)[0]
    assert tool_of(driver).calls == []


@dataclass
class Locking:
    """A tool that only reads and takes locks of its own, one after the other."""

    name: str
    locks: tuple[asyncio.Lock, asyncio.Lock]
    keys: tuple[str, ...] = ()

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.name,
            description="Looks.",
            parameters={"type": "object"},
            effect="read_only",
            resource_keys=self.keys,
            timeout_s=5.0,
        )

    async def run(self, _arguments: str, _context: ToolContext) -> str:
        first, second = self.locks
        async with first:
            await asyncio.sleep(1.0)
            async with second:
                return self.name


@pytest.mark.virtual_time
@pytest.mark.parametrize("declared", [True, False])
async def test_tools_that_lock_the_same_in_opposite_order_hold_up_nobody(declared: bool) -> None:
    a, b = asyncio.Lock(), asyncio.Lock()
    there = Locking("there", (a, b), ("a", "b") if declared else ())
    back = Locking("back", (b, a), ("b", "a") if declared else ())
    driver = a_driver(
        tools=[there, back],
        script=[calls(("c1", "there"), ("c2", "back")), calls(("c3", "back")), finishes()],
    )
    began = asyncio.get_running_loop().time()

    end = await ended(driver)

    assert end.status == "done"
    became = [message.disposition for message in driver.results()]
    if declared:
        # Calls with a key in common come after each other: nothing is locked by two at once.
        assert became == ["done", "done", "done", "done"]
    else:
        # What nobody has declared ends at its deadlines, and leaves no lock behind.
        assert became == ["timed_out", "timed_out", "done", "done"]
    assert asyncio.get_running_loop().time() - began < 7.0


@tool(effect="read_only")
def forks() -> int:
    """Fork, and come back twice."""
    return _fork()


@tool(effect="read_only")
async def forks_async() -> int:
    return _fork()


@tool(effect="read_only")
def forks_and_yields() -> Any:
    yield _fork()


@tool(effect="read_only")
async def forks_and_yields_async() -> Any:
    yield _fork()


@tool(effect="read_only")
def forks_and_raises() -> None:
    raise LookupError(f"{_fork()}")


def _fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


FORKS = (forks, forks_async, forks_and_yields, forks_and_yields_async, forks_and_raises)


@pytest.mark.parametrize("forking", FORKS, ids=lambda function: function.options.name)
async def test_a_fork_that_comes_back_from_a_function_ends_there(forking: Any) -> None:
    name = forking.spec.name
    driver = a_driver(tools=[forking], script=[calls(("c1", name)), finishes()])

    end = await ended(driver)

    assert end.status == "done"
    (told, _) = texts(driver)
    assert _exit_code(int(told.rpartition(" ")[2])) == 0


def _exit_code(pid: int) -> int:
    for _ in range(1_000):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    raise AssertionError(f"the fork {pid} goes on")


@pytest.mark.virtual_time
async def test_a_result_that_comes_after_the_deadline_changes_nothing() -> None:
    """Left alone at its deadline, it comes with a result while the next call is at work."""
    told: list[bool] = []

    async def late(_arguments: str, context: ToolContext) -> str:
        await stubbornly(10.0)
        told.append(context.emit("late"))
        return "too late"

    async def waits_for_it(_arguments: str, _context: ToolContext) -> str:
        await asyncio.sleep(60.0)
        return "waited"

    driver = a_driver(
        tools=[SimpleTool("late", late, timeout_s=1.0), SimpleTool("wait", waits_for_it)],
        script=[calls(("c1", "late"), ("c2", "wait")), calls(("c3", "wait")), finishes()],
    )

    end = await ended(driver)

    assert end.status == "done"
    assert told == [False]
    assert [message.disposition for message in driver.results()] == [
        "timed_out",
        "done",
        "done",
        "done",
    ]
    assert not any("too late" in message.text for message in driver.state.log)
