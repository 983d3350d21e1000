"""Resource keys of a call, and the call while it holds them."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harness_actors.errors import ToolError
from harness_actors.messages import ToolCall
from harness_actors.ports import ToolSpec
from harness_actors.records import WorkspaceSpec
from harness_actors.tools import tool
from harness_actors.turn.bounds import Due
from harness_actors.turn.keys import LONG_ARGUMENTS, HeldKeys, keys_touched
from harness_actors.turn.one_call import PlannedCall
from harness_actors.turn.outcomes import ToolDenied, ToolExecutionResult, ToolFailure, ToolOutcome

DONE = ToolExecutionResult(text="done")


@tool(resource_keys=["file:{path}", "dir:{folder}"])
async def store(path: str, folder: str = "top") -> str:
    """Store something."""
    return path


@tool(effect="read_only", resource_keys=["file:{path}"])
async def load(path: str) -> str:
    """Load something."""
    return path


class Locks:
    """Tells what is held, and is free at once, never, or broken."""

    def __init__(self, fails: Callable[[], Awaitable[None]] | None = None) -> None:
        self.held_now: list[tuple[str, set[str], bool]] = []
        self.asked: list[tuple[str, set[str], bool]] = []
        self._fails = fails

    def held(
        self, root: str, keys: Collection[str], *, reads: bool
    ) -> AbstractAsyncContextManager[None]:
        return self._held((root, set(keys), reads))

    @asynccontextmanager
    async def _held(self, what: tuple[str, set[str], bool]) -> Any:
        self.asked.append(what)
        if self._fails is not None:
            await self._fails()
        self.held_now.append(what)
        try:
            yield
        finally:
            self.held_now.remove(what)


async def in_thread(function: Callable[..., Any], *args: Any) -> Any:
    return await asyncio.to_thread(function, *args)


def a_plan(of: Any, **arguments: Any) -> PlannedCall:
    return PlannedCall(call=ToolCall("c", of.spec.name, json.dumps(arguments)), tool=of)


async def made(
    locks: Locks, plan: PlannedCall, make: Callable[[], Awaitable[ToolOutcome]], due: Due
) -> ToolOutcome:
    return await HeldKeys(locks, "tree", in_thread).make(plan, due, make)


async def test_the_same_path_in_a_copy_is_another_file() -> None:
    async def keys_in(workspace: WorkspaceSpec | None) -> set[str]:
        locks = Locks()

        async def make() -> ToolOutcome:
            return DONE

        held = HeldKeys(locks, "tree", in_thread, workspace)
        await held.make(a_plan(store, path="a", folder="b"), Due(None), make)
        return locks.asked[0][1]

    shared = WorkspaceSpec(path="/w")
    assert await keys_in(None) == {"file:a", "dir:b"}
    assert await keys_in(shared) == {"file:/w/a", "dir:b"}
    copy = WorkspaceSpec(path="/copies/fix-1/work", base="/copies/fix-1/base")
    assert await keys_in(copy) == {"file:/copies/fix-1/work/a", "dir:b"}


@pytest.mark.parametrize(
    ("arguments", "keys"),
    [
        ('{"path": "a", "folder": "b"}', {"file:a", "dir:b"}),
        ('{"path": "a"}', {"file:a", "dir:top"}),
        ('{"path": "./b/../a", "folder": "./b"}', {"file:a", "dir:./b"}),
        # Its tool refuses what it needs and is not given, and what is no object.
        ("{}", {"dir:top"}),
        ('["a"]', set()),
        ('{"path": ', set()),
        ("", set()),
    ],
)
def test_a_call_touches_what_its_arguments_say_and_their_defaults(
    arguments: str, keys: set[str]
) -> None:
    assert keys_touched(store.spec, arguments) == keys


def test_a_schema_of_any_kind_has_no_defaults_at_worst() -> None:
    for schema in ({}, {"properties": {"path": True}}, {"properties": {"path": {"default": 1}}}):
        spec = ToolSpec(name="t", description="", parameters=schema, resource_keys=("k:{path}",))
        assert keys_touched(spec, '{"path": "x"}') == {"k:x"}


@pytest.mark.parametrize(("of", "reads"), [(store, False), (load, True)])
async def test_keys_are_held_while_the_call_is_made_and_not_after_it(of: Any, reads: bool) -> None:
    locks, plan = Locks(), a_plan(of, path="a", folder="b")
    keys = keys_touched(of.spec, plan.call.arguments)

    async def make() -> ToolOutcome:
        assert locks.held_now == [("tree", set(keys), reads)]
        return DONE

    async def fail() -> ToolOutcome:
        await make()
        raise asyncio.CancelledError

    assert await made(locks, plan, make, Due(None)) is DONE
    with pytest.raises(asyncio.CancelledError):
        await made(locks, plan, fail, Due(1.0))
    assert locks.held_now == []
    assert len(locks.asked) == 2


async def test_keys_of_long_arguments_are_held_too() -> None:
    locks = Locks()

    async def make() -> ToolOutcome:
        return DONE

    plan = a_plan(load, path="a", content="x" * LONG_ARGUMENTS)
    assert await made(locks, plan, make, Due(None)) is DONE
    assert locks.asked == [("tree", {"file:a"}, True)]


async def test_a_call_that_a_gate_has_changed_holds_what_it_touches_then() -> None:
    locks = Locks()

    async def make() -> ToolOutcome:
        return DONE

    call = ToolCall("c", "load", '{"path": "a"}')
    await made(locks, PlannedCall(call=call, tool=load, arguments='{"path": "b"}'), make, Due(None))
    assert locks.asked == [("tree", {"file:b"}, True)]


async def test_a_call_whose_keys_are_not_free_in_time_is_not_made() -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    async def make() -> ToolOutcome:
        raise AssertionError("it was made")

    outcome = await made(Locks(never), a_plan(load, path="a"), make, Due(0.01, "working_time"))
    assert isinstance(outcome, ToolDenied)
    assert outcome.text == "The run's time was up before this call began."
    assert outcome.by == "working_time"


async def test_a_call_that_is_cancelled_while_it_waits_is_not_made() -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    async def make() -> ToolOutcome:
        raise AssertionError("it was made")

    waiting = asyncio.ensure_future(made(Locks(never), a_plan(load, path="a"), make, Due(60.0)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_keys_that_cannot_be_locked_are_the_result_of_the_call() -> None:
    async def broken() -> None:
        raise ToolError("its keys cannot be locked: the disk is full")

    async def make() -> ToolOutcome:
        raise AssertionError("it was made")

    outcome = await made(Locks(broken), a_plan(load, path="a"), make, Due(None))
    assert isinstance(outcome, ToolFailure)
    told = "The call was not made: its keys cannot be locked: the disk is full."
    assert outcome.text == told


async def test_a_file_has_one_key_by_whatever_way_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "folder").symlink_to(".")
    locks = Locks()

    async def make() -> ToolOutcome:
        return DONE

    held = HeldKeys(locks, "tree", in_thread, WorkspaceSpec(path=str(tmp_path)))
    for path in ("a", "./a", str(tmp_path / "a"), "link", "folder/a", "\0"):
        await held.make(a_plan(load, path=path), Due(None), make)
    *same, odd = [keys for _, keys, _ in locks.asked]
    assert same == [{f"file:{tmp_path / 'a'}"}] * 5
    assert odd == {"file:\0"}
