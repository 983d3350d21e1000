"""The tasks file: never held; read for its faults, for what is left of it, then task by task."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from harness_actors.batch.naming import Names, epochs_of
from harness_actors.batch.tasks import BadTask, Task, bad_task, parse_task
from harness_actors.errors import AND_MORE, BadInputError, HarnessError
from harness_actors.exact_json import once

MAX_FAULTS = 20
MAX_LINE_BYTES = 2_000_000
"""A line is taken apart in memory: of small values, it takes up to a hundred times its size."""
BOM = b"\xef\xbb\xbf"

LoadAgent = Callable[[Path], object]
"""Loads an agent file, or raises a `HarnessError` that says what is wrong with it."""


class TaskFile:
    """A file with a task a line, all of it found good.

    Iterating reads it again and yields the tasks as they are needed.

    Attributes:
        path: The file.
        count: How many tasks an iteration yields.
        needs_agent: Some of its tasks name no agent of their own.
        has_contracts: Some of its tasks have a contract of their own.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        load_agent: LoadAgent | None = None,
        limit: int | None = None,
        epochs: int = 1,
    ) -> None:
        """Read the file and check every line.

        Args:
            path: The file, UTF-8, a JSON object a line; empty lines are left out.
            load_agent: Checks the agent files that tasks name; None leaves them unread.
            limit: Yield only the first so many tasks; all are checked.
            epochs: How often each task is to be run, under names that no other may have.

        Raises:
            BadInputError: It cannot be read, or lines are at fault: the first 20.
        """
        self.path = path = Path(path)
        self._limit = limit
        self._epochs = epochs
        self.needs_agent = self.has_contracts = False
        if path.is_fifo():
            # The second reading would wait for a writer for ever, deaf to Ctrl-C.
            problem = "is a pipe, and the tasks are read twice; save them to a file first"
            raise BadInputError(str(path), (problem,))
        count = self._check(load_agent)
        self.count = count if limit is None else min(count, limit)

    def __iter__(self) -> Iterator[Task | BadTask]:
        # A fault here means that the file was changed since: an outcome, not an error.
        return islice((parsed for _, parsed in _read(self.path)), self._limit)

    def refuse(self, faults_of: Callable[[Task], Iterable[str]]) -> None:
        """Refuse the file for what is wrong with its tasks that no line shows.

        Args:
            faults_of: What is wrong with a task.

        Raises:
            BadInputError: Something is; names the lines, and the first 20 faults.
        """
        faults = _Faults(self.path)
        for number, parsed in _read(self.path):
            if isinstance(parsed, Task):
                faults.add(number, *faults_of(parsed))
        faults.raise_any()

    def _check(self, load_agent: LoadAgent | None) -> int:
        faults = _Faults(self.path)
        names = Names(self._epochs)
        agents: dict[str, str | None] = {}
        count = 0
        for number, parsed in _read(self.path):
            count += 1
            if isinstance(parsed, BadTask):
                faults.add(number, *parsed.faults)
                continue
            faults.add(number, *self._clashes(parsed, number, names))
            self.needs_agent |= parsed.agent is None
            self.has_contracts |= bool(parsed.contract)
            if parsed.agent is not None and load_agent is not None:
                if parsed.agent not in agents:
                    agents[parsed.agent] = _agent_fault(parsed.agent, load_agent)
                if problem := agents[parsed.agent]:
                    faults.add(number, f"agent: {problem}")
        faults.raise_any()
        if count == 0:
            raise BadInputError(str(self.path), ("there is no task in it",))
        return count

    def _clashes(self, task: Task, number: int, names: Names) -> Iterator[str]:
        """What is wrong with the id of a task, and with the names of its further epochs."""
        wanted = [task.id, *epochs_of(task.id, self._epochs)]
        for name, named in zip(wanted, names.of(task, number), strict=False):
            if not isinstance(named, BadTask):
                continue
            first = names.places[name]
            if name != task.id:
                yield f"with --epochs it is run as {name!r}, too, which is the id of line {first}"
            elif names.places.get(name.rpartition("@")[0]) == first:
                yield f"the id {name!r} is what --epochs names a further run of line {first}"
            else:
                yield f"the id {name!r} is that of line {first}, too"


class _Faults:
    """The faults of a file; raises itself when there are too many to be read by people."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._faults: list[str] = []

    def add(self, number: int, *faults: str) -> None:
        self._faults.extend(f"line {number}: {fault}" for fault in faults)
        if len(self._faults) > MAX_FAULTS:
            self._faults[MAX_FAULTS:] = [AND_MORE]
            self.raise_any()

    def raise_any(self) -> None:
        if self._faults:
            raise BadInputError(str(self._path), tuple(self._faults))


def _read(path: Path) -> Iterator[tuple[int, Task | BadTask]]:
    base = path.resolve().parent
    for number, line in _lines(path):
        if isinstance(line, BadTask):
            yield number, line
            continue
        try:
            content: Any = orjson.loads(line)
            # Which it does not look for: of two values of one name, one would be lost in silence.
            json.loads(line, object_pairs_hook=once)
        except orjson.JSONDecodeError as error:
            yield number, bad_task(line, (_json_fault(line, error),))
        except RecursionError:
            yield number, bad_task(line, ("it is nested too deep",))
        except ValueError as error:
            yield number, bad_task(line, (f"{error}",))
        else:
            yield number, parse_task(content, base=base)


def _lines(path: Path) -> Iterator[tuple[int, bytes | BadTask]]:
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(line) > MAX_LINE_BYTES:
                    yield number, _pass_by(line, file)
                    continue
                content = line.removeprefix(BOM) if number == 1 else line
                if stripped := content.strip():
                    yield number, stripped
    except OSError as error:
        raise BadInputError(str(path), (error.strerror or str(error),)) from error


def _pass_by(line: bytes, file: BinaryIO) -> BadTask:
    """What is said of a line that is too long, of which this is the beginning."""
    seen, size = hashlib.sha256(line), len(line)
    while not line.endswith(b"\n") and (line := file.readline(MAX_LINE_BYTES)):
        seen.update(line)
        size += len(line)
    fault = (
        f"it has {size:,} bytes, and may have {MAX_LINE_BYTES:,}; "
        "put what is long into a file of its workspace"
    )
    name = seen.hexdigest()[:16]
    return BadTask(id=name, task_hash=name, faults=(fault,))


def _json_fault(line: bytes, error: orjson.JSONDecodeError) -> str:
    try:
        line.decode()
    except UnicodeDecodeError as broken:
        return f"not UTF-8 (byte {broken.start + 1}); save the file as UTF-8"
    return f"not JSON: {error}"


def _agent_fault(path: str, load_agent: LoadAgent) -> str | None:
    try:
        load_agent(Path(path))
    except HarnessError as error:
        return str(error).replace("\n", "; ")
    return None
