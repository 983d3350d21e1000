"""Tests that run once per edit, each time in a fork of a process that has collected them."""

import gc
import os
import pickle
import select
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType, FunctionType

import pytest

from tests.sweep.edits import Edit, edited

PATIENCE = 3.0
"""How many times as long as without the edit its tests may take before they count as hanging."""
LEAST_S = 20.0
MOST_BYTES = 1000

FOUND, SURVIVED, HANGS, UNTOUCHED = "found", "SURVIVED", "hangs", "untouched"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an edit.

    Attributes:
        path: The module's.
        edit: The edit.
        verdict: `FOUND`, or `SURVIVED`: all tests that come by it pass; `HANGS`; or `UNTOUCHED`:
            no test comes by it in this process.
        by: The test that failed; empty where none did.
        tests: How many tests come by it.
    """

    path: Path
    edit: Edit
    verdict: str
    by: str = ""
    tests: int = 0

    def __str__(self) -> str:
        end = f": {self.by}" if self.by else f" ({self.tests} tests)"
        return f"{self.verdict:9} {self.path}:{self.edit.line} {self.edit.what}{end}"


_Touched = defaultdict[tuple[str, str], set[str]]
"""By file and function: the tests that called it."""
_Baseline = tuple[dict[str, float], _Touched, int]
"""Seconds of each test that passes, what they come by, and how many fail."""


class Forks:
    """A pytest plugin that tries edits in the place of the loop that runs the tests.

    Args:
        root: The project's folder.
        work: Edits with the modules that they are of, in the order in which they are tried.
        tell: Is told of each outcome.
        seconds: How long that may take.
    """

    def __init__(
        self,
        root: Path,
        work: Iterable[tuple[Path, Edit]],
        tell: Callable[[Outcome], None],
        seconds: float,
    ) -> None:
        self._root = root
        self._work = work
        self._tell = tell
        self._seconds = seconds
        self._took_s: dict[str, float] = {}
        self._touched: _Touched = defaultdict(set)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._took_s, self._touched, failed = _in_a_fork(partial(self._run_once, session))
        items = {item.nodeid: item for item in session.items if item.nodeid in self._took_s}
        took_s = sum(self._took_s.values())
        print(f"{len(items)} tests in {took_s:.0f} s; {failed} that fail are left out", flush=True)
        end = time.monotonic() + self._seconds
        for path, edit in self._work:
            if time.monotonic() > end:
                break
            # Else whoever imports it late would have it as it is.
            import_module(_name_of(path))
            names = set().union(
                *(self._touched[str(self._root / path), name] for name in edit.functions)
            )
            # The quickest first: most edits are found by many.
            chosen = sorted(names & items.keys(), key=self._took_s.__getitem__)
            self._tell(self._tried(session, path, edit, [items[name] for name in chosen]))
        return True

    def _run_once(self, session: pytest.Session) -> "_Baseline":
        """Run all without an edit, and note what each comes by."""
        ours = str(self._root / "harness_actors")
        touched: _Touched = defaultdict(set)
        took_s: dict[str, float] = {}
        now = ""

        def note(frame: FrameType, event: str, _value: object) -> None:
            code = frame.f_code
            if event == "call" and code.co_filename.startswith(ours):
                touched[code.co_filename, code.co_qualname].add(now)

        for item in session.items:
            now = item.nodeid
            began, failed = time.monotonic(), session.testsfailed
            threading.setprofile(note)
            sys.setprofile(note)
            _run(item)
            sys.setprofile(None)
            threading.setprofile(None)
            if session.testsfailed == failed:
                took_s[item.nodeid] = time.monotonic() - began
        return took_s, touched, session.testsfailed

    def _tried(
        self, session: pytest.Session, path: Path, edit: Edit, items: Sequence[pytest.Item]
    ) -> Outcome:
        if not items:
            return Outcome(path, edit, UNTOUCHED)
        expected_s = sum(self._took_s[item.nodeid] for item in items)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _say_what_finds(self._root / path, edit, session, items, writing)
        os.close(writing)
        ready, _, _ = select.select([reading], [], [], max(LEAST_S, PATIENCE * expected_s))
        # A child that died said nothing: whatever killed it has noticed the edit.
        said = os.read(reading, MOST_BYTES).decode() if ready else HANGS
        os.close(reading)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        if said in (HANGS, SURVIVED):
            return Outcome(path, edit, said, tests=len(items))
        return Outcome(path, edit, FOUND, said or "its process died", len(items))


def _name_of(path: Path) -> str:
    """Under which name the module with a path below the root is imported."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _in_a_fork(run: Callable[[], _Baseline]) -> _Baseline:
    """What a function returns, run in a child: threads that tests start are in no later fork."""
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            try:
                silence = os.open(os.devnull, os.O_WRONLY)
                os.dup2(silence, 1)
                pickle.dump(run(), answer)
                answer.flush()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        answer.seek(0)
        found: _Baseline = pickle.load(answer)
        return found


def _run(item: pytest.Item) -> None:
    # Without a next one: what it shares with others is torn down, too.
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)


def _say_what_finds(
    path: Path, edit: Edit, session: pytest.Session, items: Sequence[pytest.Item], writing: int
) -> None:
    """Run the tests in a child of its own group, until one fails; does not return."""
    try:
        os.setsid()
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        put_in(path, edit)
        said = SURVIVED
        for item in items:
            failed = session.testsfailed
            _run(item)
            if session.testsfailed > failed:
                said = item.nodeid
                break
        os.write(writing, said.encode()[:MOST_BYTES])
    finally:
        os._exit(0)


def put_in(path: Path, edit: Edit) -> None:
    """Edit the functions of a module where they are, whoever has imported them by now."""
    module = compile(edited(path.read_text(), edit.number), str(path), "exec", dont_inherit=True)
    codes = {code.co_qualname: code for code in _codes(module)}
    outermost = edit.functions[0]
    for function in gc.get_objects():
        if type(function) is not FunctionType or function.__code__.co_filename != str(path):
            continue
        name = function.__code__.co_qualname
        if name == outermost and len(codes[name].co_freevars) == len(function.__code__.co_freevars):
            function.__code__ = codes[name]


def _codes(code: CodeType) -> Iterable[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
