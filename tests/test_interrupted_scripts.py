"""Ctrl-C in a script of the user's own: a real process, and a signal to its whole group."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from harness_actors.actors.interrupts import Interruptible
from harness_actors.events import RunParked, ToolReturned
from harness_actors.stores import JournalReader
from tests.interrupted_script import ROUNDS, RUNS, WAYS

END_WITHIN_S = 90.0
INTERRUPTED = (-signal.SIGINT, 1)
"""How Python ends then; with Ray's handler of exceptions, by the latter."""


class Script:
    """`tests.interrupted_script` at work, in a process group of its own as under a shell."""

    def __init__(self, folder: Path, way: str, runtime: str, *more: str) -> None:
        self.folder = folder
        self.in_flight = RUNS if way in ("gathered", "run_batch") else 1
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.interrupted_script", way, runtime, str(folder), *more],
            env={**os.environ, "HARNESS_HOME": str(folder / "home")},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            # A shell that runs the tests in the background may have them ignore it.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )

    def held(self) -> int:
        log = self.folder / "log"
        return log.read_text().count("held") if log.exists() else 0

    def until_held(self) -> None:
        while self.held() < self.in_flight:
            assert self.process.poll() is None, self.process.communicate()

    def interrupt(self) -> None:
        """What a terminal does at Ctrl-C."""
        os.killpg(self.process.pid, signal.SIGINT)

    def until_said(self, text: str) -> None:
        assert self.process.stderr is not None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if text in line:
                return
        raise AssertionError(f"it ended without saying {text!r}: {said}")

    def release(self) -> None:
        (self.folder / "released").touch()

    def finish(self) -> tuple[int, str]:
        self.out, error = self.process.communicate(timeout=END_WITHIN_S)
        return self.process.returncode, error


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "run").mkdir()
    yield tmp_path
    (tmp_path / "released").touch()


def endings(folder: Path) -> list[tuple[bool, list[str]]]:
    """Of each run: whether it was put aside last, and the results of its calls."""
    journal = JournalReader(folder / "run" / "runs.db")
    found = []
    for heading in journal.headings():
        assert heading.end is None
        events = [told.event for told in journal.load_events(0, run_id=heading.run_id)]
        results = [event.text for event in events if isinstance(event, ToolReturned)]
        found.append((isinstance(events[-1], RunParked), results))
    return found


RUNTIMES = ["local", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.timeout(240)])]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("way", WAYS)
def test_one_ctrl_c_finishes_the_round_and_parks(folder: Path, way: str, runtime: str) -> None:
    script = Script(folder, way, runtime)
    script.until_held()
    script.interrupt()
    script.until_said("press Ctrl-C again to leave at once")
    script.release()
    status, error = script.finish()

    assert (status in INTERRUPTED, "KeyboardInterrupt" in error.splitlines()) == (True, True), error
    assert "exception was never retrieved" not in error
    parked, results = zip(*endings(folder), strict=True)
    assert parked == (True,) * script.in_flight
    # No round was cut, and none was begun when the request to stop was there.
    assert script.held() == sum(map(len, results))
    assert runtime == "ray" or script.held() == script.in_flight


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("way", WAYS)
def test_a_second_ctrl_c_cuts(folder: Path, way: str, runtime: str) -> None:
    script = Script(folder, way, runtime)
    script.until_held()
    script.interrupt()
    script.until_said("press Ctrl-C again to leave at once")
    script.interrupt()
    status, error = script.finish()

    assert (status in INTERRUPTED, "KeyboardInterrupt" in error.splitlines()) == (True, True), error
    assert [results for _, results in endings(folder)] == [[]] * script.in_flight
    if way == "run":
        (heading,) = JournalReader(folder / "run" / "runs.db").headings()
        assert script.out == f"{heading.run_id}\n", "the harness knows the run that was cut"


def test_a_run_that_was_parked_by_ctrl_c_is_resumed(folder: Path) -> None:
    script = Script(folder, "run", "local")
    script.until_held()
    script.interrupt()
    script.until_said("press Ctrl-C again")
    script.release()
    script.finish()
    (heading,) = JournalReader(folder / "run" / "runs.db").headings()

    again = Script(folder, "resume", "local", heading.run_id)

    assert again.process.communicate(timeout=END_WITHIN_S) == ("done\n", "")
    assert script.held() == ROUNDS


# ---- what is left alone ---------------------------------------------------------------


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


def test_behind_the_work_ctrl_c_is_that_of_python_again() -> None:
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


def test_work_that_begins_behind_ctrl_c_is_put_aside_like_the_rest() -> None:
    asked = {name: asyncio.Event() for name in ("first", "second")}

    async def work(name: str) -> None:
        async def park() -> None:
            asked[name].set()

        if name == "second":
            await asked["first"].wait()
        with Interruptible(park) as working:
            if name == "first":
                os.kill(os.getpid(), signal.SIGINT)
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
