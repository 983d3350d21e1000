"""A real `harness batch` on Ray, whose processes a test may kill by their role."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from harness_actors.actors.processes import is_alive
from harness_actors.records import ProcessMark
from harness_actors.stores import SqliteJournal

HERE = Path(__file__).parent
END_WITHIN_S = 120.0


class KillableBatch:
    """A folder with tasks, and the command that works on them.

    Args:
        folder: Where everything goes.
        base_url: The model's server.
        tasks: How many.
        rounds: Notes that each run takes.
        seconds: How long each note takes.
        at_once: How many of them at once; all by default.
        variables: More environment variables of the command.
        address: Which Ray.
    """

    def __init__(
        self,
        folder: Path,
        base_url: str,
        *,
        tasks: int,
        rounds: int,
        seconds: float,
        at_once: int | None = None,
        variables: Mapping[str, str] | None = None,
        address: str = "local",
    ) -> None:
        self.tasks, self.rounds = tasks, rounds
        self.run_dir = folder / "run"
        self._log = folder / "notes.log"
        self._said = folder / "said.txt"
        self._base_url = base_url
        task = json.dumps({"path": str(self._log), "rounds": rounds, "seconds": seconds})
        lines = [json.dumps({"id": f"t{number}", "task": task}) for number in range(tasks)]
        self._file = folder / "tasks.jsonl"
        self._file.write_text("\n".join(lines) + "\n")
        self._at_once = at_once or tasks
        self._variables = {**os.environ, **(variables or {})}
        self._address = address
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the command; the same each time."""
        command = [
            *(sys.executable, "-m", "harness_actors", "batch", str(self._file)),
            *("--run-dir", str(self.run_dir), "--agent", str(HERE / "agent.yaml")),
            *("--model-base-url", self._base_url, "-n", str(self._at_once)),
            *("--address", self._address),
        ]
        with self._said.open("ab") as said:
            self.process = subprocess.Popen(command, stdout=said, stderr=said, env=self._variables)

    async def finish(self) -> int:
        """Wait for the command to end; returns its exit status."""
        assert self.process is not None
        async with asyncio.timeout(END_WITHIN_S):
            return await asyncio.to_thread(self.process.wait)

    def notes(self) -> list[str]:
        """The lines of the tool's own log: one per execution, with run and call."""
        return self._log.read_text().splitlines() if self._log.exists() else []

    async def noted(self, count: int) -> None:
        """Return when so many tools have started."""
        assert self.process is not None
        async with asyncio.timeout(END_WITHIN_S):
            while len(self.notes()) < count:
                assert self.process.poll() is None, self._said.read_text()
                await asyncio.sleep(0.02)

    async def ended(self, count: int) -> None:
        """Return when so many tasks have their line in the results."""
        assert self.process is not None
        path = self.run_dir / "results.jsonl"
        async with asyncio.timeout(END_WITHIN_S):
            while not path.exists() or path.read_bytes().count(b"\n") < count:
                assert self.process.poll() is None, self._said.read_text()
                await asyncio.sleep(0.02)

    def process_of(self, role: str) -> ProcessMark:
        """The living process of an actor, as the journal knows it."""
        journal = SqliteJournal(self.run_dir / "runs.db")
        try:
            marks = [mark for mark in journal.load_processes() if mark.role == role]
        finally:
            journal.close()
        return next(mark for mark in reversed(marks) if is_alive(mark))

    @staticmethod
    def is_alive(mark: ProcessMark) -> bool:
        return is_alive(mark)

    def kill(self, role: str) -> None:
        """SIGKILL an actor's process, or the driver's."""
        assert self.process is not None
        pid = self.process.pid if role == "driver" else self.process_of(role).pid
        os.kill(pid, signal.SIGKILL)

    def interrupt(self) -> None:
        """Press Ctrl-C once."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)

    def results(self) -> list[dict[str, object]]:
        text = (self.run_dir / "results.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def check_nothing_lost_or_doubled(self) -> None:
        """One result line per task, all done, and no call that was started twice."""
        said = self._said.read_text()
        results = self.results()
        assert sorted(str(r["id"]) for r in results) == sorted(
            f"t{number}" for number in range(self.tasks)
        ), said
        assert {r["status"] for r in results} == {"done"}, said
        notes = self.notes()
        assert len(notes) == len(set(notes)), said
        # A call that was announced may not have come to start before the kill.
        assert self.tasks * (self.rounds - 1) <= len(notes) <= self.tasks * self.rounds, said
        self._check_every_call_answered_once()

    def _check_every_call_answered_once(self) -> None:
        journal = SqliteJournal(self.run_dir / "runs.db")
        try:
            for heading in journal.headings():
                log = journal.load_conversation(heading.conversation_id)
                for at, message in enumerate(log):
                    calls = [call.id for call in message.tool_calls]
                    answers = [m.tool_call_id for m in log[at + 1 : at + 1 + len(calls)]]
                    assert sorted(calls) == sorted(str(answer) for answer in answers)
        except sqlite3.Error as error:
            raise AssertionError(f"the journal cannot be read: {error}") from error
        finally:
            journal.close()
