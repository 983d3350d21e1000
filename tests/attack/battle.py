"""Six good runs in one `harness batch`, and hostile ones beside them; what was seen of it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

from harness_actors.testing import LoopbackProcess
from tests.attack.good_model import ENOUGH_VARIABLE, LOG_VARIABLE, NOTES, note
from tests.attack.hostile_modes import Mode
from tests.attack.memory import MemoryWatch

GOOD = tuple(f"good-{number}" for number in range(6))
LATENCY_S = 0.1
"""Of the good runs' model."""
WARM_ROUNDS = 5
"""Of each run, which are not counted: code is loaded and connections are opened in them."""
START_WITHIN_S = 60.0
END_WITHIN_S = 60.0
AFTERWARDS_S = 1.0
"""How long good runs go on when the hostile ones have ended."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a batch.

    Attributes:
        rounds_s: Seconds of each round of the good runs, from one request to the next.
        peaks_mb: The most memory that processes of a role took, each by itself, in MB.
        endings: How tasks ended, by id, as the summary of a batch counts them.
        said: What the command printed.
    """

    rounds_s: Sequence[float]
    peaks_mb: Mapping[str, float]
    endings: Mapping[str, str]
    said: str


def fight(folder: Path, modes: Mapping[str, Mode], *, seconds: float, local: bool = False) -> Seen:
    """Run six good tasks and one of each mode in one batch.

    Args:
        folder: An empty one, for everything.
        modes: By name, which is their task's id.
        seconds: How long the good runs work at least; longer where a hostile one does.
        local: In one process without Ray.
    """
    battle = _Battle(folder, modes)
    with ExitStack() as open_now:
        tasks = battle.write_tasks(open_now)
        command = open_now.enter_context(battle.started(tasks, local=local))
        memory = open_now.enter_context(MemoryWatch(battle.mark))
        battle.wait(command, seconds)
    return Seen(battle.rounds_s(), memory.peaks_mb, battle.endings(), battle.said())


class _Battle:
    def __init__(self, folder: Path, modes: Mapping[str, Mode]) -> None:
        self._folder = folder
        self._modes = modes
        self._log = folder / "rounds.log"
        self._enough = folder / "enough"
        self._said = folder / "said.txt"
        self._results = folder / "run" / "results.jsonl"
        self.mark = {"ATTACK_BATTLE": uuid4().hex}

    def write_tasks(self, open_now: ExitStack) -> Path:
        """Write tasks and agents; their servers are up until `open_now` is left."""
        variables = {LOG_VARIABLE: str(self._log), ENOUGH_VARIABLE: str(self._enough)}
        with _environment(variables):
            server = open_now.enter_context(
                LoopbackProcess("tests.attack.good_model:works", latency_s=LATENCY_S)
            )
        template = self._folder / "good"
        template.mkdir()
        (template / NOTES).write_text(f"{note(0)}\n")
        limits = {"limits": {"model_calls": 1_000_000, "tool_calls": 1_000_000}}
        self._write_agent("good", server.base_url, ("read_file", "edit_file"), limits)
        lines = [self._task(name, "good") for name in GOOD]
        for name, mode in self._modes.items():
            hostile = open_now.enter_context(mode.server())
            self._write_agent(name, hostile.base_url, mode.tools, mode.harness)
            (self._folder / name).mkdir()
            if mode.prepare is not None:
                mode.prepare(self._folder / name)
            lines.append(self._task(name, name) | dict(mode.task))
        path = self._folder / "tasks.jsonl"
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        return path

    def _write_agent(
        self, name: str, base_url: str, tools: Sequence[str], harness: Mapping[str, Any]
    ) -> None:
        # JSON is YAML, too.
        content = {
            "model": {"id": "scripted", "base_url": base_url},
            "environment": {"tools": list(tools)},
            "harness": dict(harness),
        }
        (self._folder / f"{name}.yaml").write_text(json.dumps(content))

    def _task(self, name: str, agent: str) -> dict[str, Any]:
        return {"id": name, "task": name, "agent": f"{agent}.yaml", "workspace": agent}

    @contextmanager
    def started(self, tasks: Path, *, local: bool) -> Iterator["subprocess.Popen[bytes]"]:
        """The command at work; what is left of it is killed."""
        where = ("--runtime", "local") if local else ("--address", "local")
        arguments = ("batch", str(tasks), "--run-dir", str(self._folder / "run"), "-n", "100")
        with self._said.open("wb") as said:
            command = subprocess.Popen(
                [sys.executable, "-m", "harness_actors", *arguments, "--max-turns", "1000", *where],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**os.environ, "HARNESS_HOME": str(self._folder / "home"), **self.mark},
            )
        try:
            yield command
        finally:
            command.kill()
            command.wait()

    def wait(self, command: "subprocess.Popen[bytes]", seconds: float) -> None:
        """Let the good runs work, and return when the command has ended or is late."""
        begun = _until(command, self._log.exists, START_WITHIN_S)
        worked = begun + seconds
        hostile = self._modes.keys()
        within_s = max([seconds, *(mode.within_s for mode in self._modes.values())])
        _until(
            command,
            lambda: time.monotonic() > worked and hostile <= self.endings().keys(),
            within_s,
        )
        time.sleep(AFTERWARDS_S if hostile else 0.0)
        self._enough.touch()
        _until(command, lambda: False, END_WITHIN_S)

    def rounds_s(self) -> list[float]:
        """Seconds from one request of a good run to its next, those of all runs."""
        begun: dict[str, list[float]] = {}
        for line in self._log.read_text().splitlines() if self._log.exists() else ():
            task, second = line.split()
            begun.setdefault(task, []).append(float(second))
        return [
            later - earlier
            for seconds in begun.values()
            for earlier, later in pairwise(seconds[WARM_ROUNDS:])
        ]

    def endings(self) -> dict[str, str]:
        """How tasks have ended so far, by id."""
        if not self._results.exists():
            return {}
        lines = self._results.read_text().split("\n")[:-1]
        return {one["id"]: _ending(one) for one in map(json.loads, lines)}

    def said(self) -> str:
        return self._said.read_text(errors="replace")


def _ending(result: Mapping[str, Any]) -> str:
    """As the summary of a batch counts it: ``"done(completed)"``."""
    kind = (result["reason"] or {}).get("kind")
    return f"{result['status']}({kind})" if kind else str(result["status"])


def _until(command: "subprocess.Popen[bytes]", is_so: Callable[[], bool], within_s: float) -> float:
    """Wait for something, the end of the command or of the time; returns the time then."""
    late = time.monotonic() + within_s
    while command.poll() is None and not is_so() and time.monotonic() < late:
        time.sleep(0.1)
    return time.monotonic()


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Variables that processes started here get, too."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value
