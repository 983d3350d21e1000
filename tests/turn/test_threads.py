"""Blocking tools in threads: some return, some do not."""

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

import pytest

from harness_actors.errors import ToolError
from harness_actors.turn.threads import ToolThreads


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Set at the test's end, so that no thread stays behind."""
    event = threading.Event()
    yield event
    event.set()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - another thread fulfils it
            await asyncio.sleep(0.005)


async def stopped(threads: ToolThreads, release: threading.Event) -> None:
    """A call that is stopped while its function runs, and whose thread does not return."""
    began = threading.Event()

    def block() -> None:
        began.set()
        release.wait()

    call = asyncio.ensure_future(threads.run(block))
    await until(began.is_set)
    call.cancel()
    await asyncio.wait((call,))
    assert call.cancelled()


async def test_a_function_runs_in_a_thread_with_its_arguments() -> None:
    def where(a: int, *, b: int) -> tuple[int, str]:
        return a + b, threading.current_thread().name

    total, name = await ToolThreads(2).run(where, 1, b=2)
    assert total == 3
    assert name.startswith("tool-")


@pytest.mark.parametrize("error", [ValueError("x"), ToolError("y")])
async def test_what_it_raises_is_raised(error: Exception) -> None:
    def fails() -> None:
        raise error

    with pytest.raises(type(error)):
        await ToolThreads(1).run(fails)


@pytest.mark.parametrize("error", [StopIteration(1), SystemExit(2), KeyboardInterrupt()])
async def test_what_a_future_cannot_hold_is_an_error_too(error: BaseException) -> None:
    def fails() -> None:
        raise error

    with pytest.raises(RuntimeError, match=type(error).__name__):
        await ToolThreads(1).run(fails)


async def test_no_more_threads_are_started_than_are_needed_or_allowed() -> None:
    threads, names, most = ToolThreads(3), set[str](), [0, 0]
    lock = threading.Lock()

    def work() -> None:
        with lock:
            names.add(threading.current_thread().name)
            most[0] += 1
            most[1] = max(most)
        threading.Event().wait(0.01)
        with lock:
            most[0] -= 1

    for _ in range(3):
        await threads.run(work)
    assert len(names) == 1
    await asyncio.gather(*(threads.run(work) for _ in range(20)))
    assert most[1] <= 3
    assert len(names) <= 3


async def test_a_call_that_is_stopped_leaves_its_thread_taken_until_it_returns(
    release: threading.Event,
) -> None:
    threads = ToolThreads(2)
    await stopped(threads, release)
    assert threads.held == 1
    assert await threads.run(lambda: "others go on") == "others go on"
    release.set()
    await until(lambda: threads.held == 0)
    assert await asyncio.gather(*(threads.run(lambda: 1) for _ in range(5))) == [1] * 5


async def test_a_thread_that_returns_late_is_free_for_the_next_call(
    release: threading.Event,
) -> None:
    threads = ToolThreads(1)
    await stopped(threads, release)
    release.set()
    async with asyncio.timeout(10):
        assert await threads.run(lambda: "next") == "next"
    assert threads.held == 0


async def test_where_all_threads_are_held_a_call_waits_and_its_end_says_why(
    release: threading.Event,
) -> None:
    threads = ToolThreads(2)
    await stopped(threads, release)
    await stopped(threads, release)
    begun: list[int] = []
    call = asyncio.ensure_future(threads.run(begun.append, 1))
    done, _ = await asyncio.wait((call,), timeout=0.05)
    assert not done
    call.cancel()
    with pytest.raises(asyncio.CancelledError) as ended:
        await call
    assert ended.value.__notes__ == [
        "It has not begun: all 2 threads for blocking tools are taken, "
        "2 of them held by calls that were stopped and do not return."
    ]
    release.set()
    await until(lambda: threads.held == 0)
    assert not begun, "a call that was stopped in the queue is not made"


async def test_a_call_without_a_limit_does_not_wait_for_ever(release: threading.Event) -> None:
    threads = ToolThreads(1, longest_wait_s=0.05)
    await stopped(threads, release)
    with pytest.raises(ToolError, match="1 of them held by calls that were stopped"):
        await threads.run(lambda: None)


async def test_behind_threads_that_are_only_busy_a_call_waits_its_turn() -> None:
    threads, go_on = ToolThreads(1, longest_wait_s=0.02), threading.Event()
    busy = asyncio.ensure_future(threads.run(go_on.wait))
    waiting = asyncio.ensure_future(threads.run(lambda: "next"))
    done, _ = await asyncio.wait((waiting,), timeout=0.1)
    assert not done
    go_on.set()
    assert await busy
    assert await waiting == "next"


async def test_behind_a_busy_thread_a_call_waits_though_another_is_held(
    release: threading.Event,
) -> None:
    threads, go_on = ToolThreads(2, longest_wait_s=0.02), threading.Event()
    await stopped(threads, release)
    busy = asyncio.ensure_future(threads.run(go_on.wait))
    waiting = asyncio.ensure_future(threads.run(lambda: "next"))
    done, _ = await asyncio.wait((waiting,), timeout=0.1)
    assert not done
    go_on.set()
    assert await busy
    assert await waiting == "next"


async def test_a_call_that_returns_as_it_is_stopped_holds_no_thread() -> None:
    threads = ToolThreads(1)
    tell = threads._done

    def told_and_stopped(*told: Any) -> None:
        tell(*told)
        call.cancel()

    threads._done = told_and_stopped  # type: ignore[method-assign, assignment]
    call = asyncio.ensure_future(threads.run(lambda: "done"))
    await asyncio.wait((call,))
    assert call.cancelled()
    assert threads.held == 0


async def test_its_threads_end_with_it() -> None:
    threads = ToolThreads(3)
    names = set(await asyncio.gather(*(threads.run(_name_slowly) for _ in range(3))))
    del threads
    gc.collect()
    await until(lambda: names.isdisjoint(thread.name for thread in threading.enumerate()))


def _name_slowly() -> str:
    threading.Event().wait(0.02)
    return threading.current_thread().name


class Large:
    """What a tool holds as it fails."""


@pytest.fixture
def no_collector() -> Iterator[None]:
    """The collector of garbage looks at nothing: what stays is what circles hold."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
async def test_nothing_is_kept_of_a_call_that_failed() -> None:
    held: list[ref[Large]] = []

    def fails() -> None:
        large = Large()
        held.append(ref(large))
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken") as raised:
        await ToolThreads(1).run(fails)
    assert held[0]() is not None, "the error shows where it was raised"
    del raised
    await until(lambda: held[0]() is None)


def test_a_thread_that_never_returns_keeps_no_process_from_ending() -> None:
    code = (
        "import asyncio, threading\n"
        "from harness_actors.turn.threads import ToolThreads\n"
        "async def main():\n"
        "    call = asyncio.ensure_future(ToolThreads(1).run(threading.Event().wait))\n"
        "    await asyncio.wait((call,), timeout=0.1)\n"
        "    call.cancel()\n"
        "    print('ended')\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=20, check=True)
    assert done.stdout == b"ended\n"
