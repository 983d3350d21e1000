"""No result is on record that a hook had to look at first and could not."""

import asyncio
from typing import Any

import pytest

from harness_actors.errors import ToolError
from harness_actors.events import HookFailed
from harness_actors.policies import AfterTool, Hook, Hooks, Replace
from harness_actors.policies.hooks import LATE_S
from harness_actors.ports import ToolContext, ToolOutput
from harness_actors.signals import RunEnd
from harness_actors.turn.call_gates import WITHHELD
from tests.executors.driver import Driver, SimpleTool, a_tool, calls, finishes
from tests.turn.test_gates import a_driver, ended, says, texts

SECRET = "sk-secret"
TIME_S = 60


def to_the_end_of_time(hooks: Any) -> Driver:
    """A run whose time is over when its tool has said a secret."""

    async def tells(_arguments: str, _context: ToolContext) -> str:
        driver.clock.advance(TIME_S)
        return ToolOutput(SECRET, images=("data:image/png;base64,AAAA",), image_tokens=7)

    driver = a_driver(
        Hooks(post_tool=hooks),
        tools=[SimpleTool("write", tells)],
        script=[calls(("c1", "write")), finishes()],
        limits={"time_s": TIME_S},
    )
    return driver


async def out_of_time(driver: Driver) -> tuple[RunEnd, float]:
    """How it ended, and after how many seconds in hooks."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    end = await ended(driver)
    assert (end.status, end.reason.kind) == ("limit", "time")
    return end, loop.time() - began


def takes(seconds: float) -> Any:
    async def looks(event: AfterTool) -> Replace:
        await asyncio.sleep(seconds)
        return Replace(event.text.replace(SECRET, "[redacted]"))

    return looks


async def hangs(_: AfterTool) -> None:
    await asyncio.Event().wait()


@pytest.mark.virtual_time
async def test_a_hook_may_finish_its_look_when_the_time_of_its_run_is_over() -> None:
    driver = to_the_end_of_time(takes(LATE_S - 1))

    _, late_s = await out_of_time(driver)

    assert texts(driver) == ["[redacted]"]
    assert late_s == pytest.approx(LATE_S - 1)
    assert not driver.happened(HookFailed)


@pytest.mark.virtual_time
@pytest.mark.parametrize("on_error", [None, "allow", "deny"])
async def test_what_a_hook_had_no_time_to_look_at_is_withheld_whatever_it_says_of_failures(
    on_error: Any,
) -> None:
    driver = to_the_end_of_time(Hook(hangs, timeout_s=100, on_error=on_error))

    _, late_s = await out_of_time(driver)

    (result,) = driver.results()
    assert (result.text, result.disposition) == (WITHHELD["cut"], "done")
    assert result.body["content"] == WITHHELD["cut"], "no image of it is left"
    assert late_s == pytest.approx(LATE_S)
    (failed,) = driver.happened(HookFailed)
    assert failed.problem == "the run's time was over, and 5 s more"
    assert SECRET not in repr(driver.deltas)


@pytest.mark.virtual_time
@pytest.mark.parametrize(("on_error", "text"), [(None, SECRET), ("deny", WITHHELD["failed"])])
async def test_a_smaller_deadline_of_its_own_counts_past_the_end_of_the_run(
    on_error: Any, text: str
) -> None:
    driver = to_the_end_of_time(Hook(hangs, timeout_s=2, on_error=on_error))

    _, late_s = await out_of_time(driver)

    assert texts(driver) == [text]
    assert late_s == pytest.approx(2)
    (failed,) = driver.happened(HookFailed)
    assert failed.problem == "it took longer than 2 s"


@pytest.mark.virtual_time
async def test_all_hooks_together_have_one_time_past_the_end_of_their_run() -> None:
    seen: list[str] = []

    async def slow(event: AfterTool) -> None:
        seen.append(event.call_id)
        driver.clock.advance(3)
        await asyncio.sleep(3)

    driver = to_the_end_of_time([slow, slow, slow])

    _, late_s = await out_of_time(driver)

    assert texts(driver) == [WITHHELD["cut"]]
    assert seen == ["c1", "c1"], "the third would have had no time at all"
    assert late_s == pytest.approx(LATE_S)


@pytest.mark.parametrize("answer", [ValueError("broken"), True, Replace(7)])  # type: ignore[arg-type]
async def test_a_hook_that_fails_withholds_where_it_was_told_to_deny(answer: Any) -> None:
    def a_run(on_error: Any) -> Driver:
        hook = Hook(says(answer), on_error=on_error)
        return a_driver(Hooks(post_tool=hook), tools=[a_tool("write", SECRET)])

    denying, allowing = a_run("deny"), a_run("allow")

    await ended(denying)
    await ended(allowing)

    assert texts(denying)[0] == WITHHELD["failed"]
    assert SECRET not in repr(denying.deltas)
    assert texts(allowing)[0] == SECRET
    for driver in (denying, allowing):
        assert driver.results()[0].disposition == "done"
        (failed,) = driver.happened(HookFailed)
        assert (failed.kind, failed.call_id) == ("post_tool", "c1")


async def test_hooks_after_one_that_withholds_hear_of_the_call_and_cannot_let_it_pass() -> None:
    heard: list[str] = []

    async def remembers(event: AfterTool) -> Replace:
        heard.append(event.text)
        return Replace(f"in fact {SECRET}")

    hooks = [Hook(says(ValueError("broken")), on_error="deny"), remembers]
    driver = a_driver(Hooks(post_tool=hooks), tools=[a_tool("write", SECRET)])

    await ended(driver)

    assert heard == [WITHHELD["failed"]]
    assert texts(driver)[0] == WITHHELD["failed"]


@pytest.mark.parametrize("error", [ValueError(SECRET), ToolError(SECRET)])
async def test_nothing_of_a_failure_that_is_withheld_is_on_record(error: Exception) -> None:
    hook = Hook(says(ValueError("broken")), on_error="deny")
    driver = a_driver(Hooks(post_tool=hook), tools=[a_tool("write", error)])

    await ended(driver)

    assert (texts(driver)[0], driver.results()[0].disposition) == (WITHHELD["failed"], "failed")
    assert SECRET not in repr(driver.deltas)
