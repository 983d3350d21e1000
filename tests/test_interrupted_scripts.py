"""Ctrl-C in a script of the user's own: a real process, and a signal to its whole group."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness_actors.events import RunParked, ToolReturned
from harness_actors.stores import JournalReader
from tests.interrupted_script import ROUNDS, RUNS, WAYS

END_WITHIN_S = 90.0
INTERRUPTED = (-signal.SIGINT, 1)
"""How Python ends then; with Ray's handler of exceptions, by the latter."""


class Script:
    """`tests.interrupted_script` at work, in a process group of its own as under a shell."""

    def __init__(
        self,
        folder: Path,
        way: str,
        runtime: str,
        *more: str,
        variables: Mapping[str, str] = os.environ,
    ) -> None:
        self.folder = folder
        self.in_flight = RUNS if way in ("gathered", "run_batch") else 1
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.interrupted_script", way, runtime, str(folder), *more],
            env={**variables, "HARNESS_HOME": str(folder / "home")},
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
            time.sleep(0.01)

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


ON_RAY = (pytest.mark.ray, pytest.mark.timeout(240))


def each_way(on_ray: str, *, long: str) -> list[Any]:
    """All of them without Ray. How a script waits is the same there, so one run and several are
    enough on it; of these, `long` is left to when there is time."""
    return [
        *((way, "local") for way in WAYS),
        pytest.param(on_ray, "ray", marks=ON_RAY),
        pytest.param(long, "ray", marks=[*ON_RAY, pytest.mark.long]),
    ]


@pytest.mark.parametrize(("way", "runtime"), each_way("run_batch", long="run"))
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


@pytest.mark.parametrize(("way", "runtime"), each_way("run", long="run_batch"))
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
