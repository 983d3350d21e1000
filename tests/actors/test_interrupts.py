"""Ctrl-C while work is in progress, and where it is left to Python."""

import asyncio
import os
import signal
import threading

import pytest

from harness_actors.actors.driver.interrupts import Interruptible


async def _never() -> None:
    raise AssertionError("nothing is parked")


def test_a_program_that_takes_the_signal_itself_keeps_it() -> None:
    async def program() -> None:
        taken = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, taken.set)
        with Interruptible(_never):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.wait_for(taken.wait(), 10)

    asyncio.run(program())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_after_the_work_ctrl_c_is_that_of_python_again() -> None:
    async def program(*, work: bool) -> None:
        before = signal.getsignal(signal.SIGINT)
        if work:
            with Interruptible(_never), Interruptible(_never):
                assert signal.getsignal(signal.SIGINT) is not before
        assert signal.getsignal(signal.SIGINT) is before
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    for work in (True, False):
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(program(work=work))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_work_that_begins_after_ctrl_c_is_put_aside_like_the_rest() -> None:
    asked = {name: asyncio.Event() for name in ("first", "second")}

    async def work(name: str) -> None:
        async def park() -> None:
            asked[name].set()

        if name == "second":
            await asked["first"].wait()
        with Interruptible(park) as working:
            if name == "first":
                os.kill(os.getpid(), signal.SIGINT)
            async with asyncio.timeout(10):
                await asked["second"].wait()
        await working.passed_on()

    async def program() -> None:
        await asyncio.gather(*map(work, asked))

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(program())
    assert all(event.is_set() for event in asked.values())


def test_where_nobody_can_finish_a_round_ctrl_c_is_heeded_at_once() -> None:
    async def park() -> None:
        raise OSError("what serves it is gone")

    async def program() -> None:
        with Interruptible(park):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(program())


def test_in_a_thread_nothing_is_taken() -> None:
    found: list[object] = []

    async def program() -> None:
        with Interruptible(_never):
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=asyncio.run, args=(program(),))
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]
