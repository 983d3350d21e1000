"""The hostile modes: runs that would stop their neighbours, by name.

A mode is one entry of `MODES`; `tests.attack.neighbours` tries it beside six good runs.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Protocol

from harness_actors.testing import LoopbackProcess
from tests.attack.hostile_answers import BOMBS, Make, absurd_usage, calls
from tests.attack.hostile_server import Bytes, HostileServer


class Server(Protocol):
    """A model's server that is up."""

    base_url: str


@dataclass(frozen=True, slots=True)
class Mode:
    """A run that would stop its neighbours.

    Attributes:
        what: What it does, one sentence.
        server: Opens the server of its model.
        ends: How the run must end, as the summary of a batch counts it: ``"done(completed)"``
            or ``"failed(model_error)"``.
        tools: Names of its tools.
        harness: Settings of the harness for it, as an agent file has them.
        task: Further fields of its task, such as a check.
        prepare: Fills the folder that its workspace is a copy of.
        within_s: By when it must have ended, in seconds.
        quick: Whether the tests try it, too, and not `make attack` alone.
    """

    what: str
    server: Callable[[], AbstractContextManager[Server]]
    ends: str
    tools: tuple[str, ...] = ("read_file", "write_file", "edit_file", "find_files", "grep_files")
    harness: Mapping[str, Any] = field(default_factory=dict)
    task: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[Path], None] | None = None
    within_s: float = 120.0
    quick: bool = True


def scripted(function: str, **options: Any) -> Callable[[], LoopbackProcess]:
    """The server of a script in `tests.attack.hostile_models`."""
    return partial(LoopbackProcess, f"tests.attack.hostile_models:{function}", **options)


def answering(make: Make) -> Callable[[], HostileServer]:
    """A server that answers with bytes of `tests.attack.hostile_answers`."""
    return lambda: HostileServer(lambda _body, _key: make(Random(0)))


WRITE = '{"path":"a","content":"b"}'


def _long_texts(folder: Path) -> None:
    (folder / "letters.txt").write_text("a" * 2_000_000)
    (folder / "lines.txt").write_text("\n" * 20_000_000)


MODES: Mapping[str, Mode] = {
    "long_glob": Mode(
        "find_files and grep_files with a glob of 32 KB and one of 25,000 brackets",
        scripted("asks_for_long_globs", latency_s=1.0),
        ends="done(completed)",
    ),
    "repeated_ids": Mode(
        "15,000 calls of one id in one answer, which is more than one may have",
        answering(lambda _: Bytes((calls(["same"] * 15_000),))),
        ends="failed(model_error)",
    ),
    "repeated_ids_allowed": Mode(
        "the same where so many are allowed, of which ten may run",
        answering(lambda _: Bytes((calls(["same"] * 15_000),))),
        ends="limit(tool_calls)",
        harness={"limits": {"calls_per_message": 15_000, "tool_calls": 10}},
        quick=False,
    ),
    "many_fenced_calls": Mode(
        "2,000 calls in one answer that are not idempotent",
        answering(lambda _: Bytes((calls([""] * 2000, "write_file", WRITE),))),
        ends="limit(model_calls)",
        harness={"limits": {"calls_per_message": 2000, "model_calls": 1}},
        quick=False,
    ),
    **{
        name: Mode(
            f"an answer that is a {name.replace('_', ' ')}",
            answering(BOMBS[name]),
            ends="failed(model_error)",
            quick=name == "packed_bomb",
        )
        for name in ("text_flood", "packed_bomb", "many_members", "list_flood")
    },
    "absurd_usage": Mode(
        "a usage of 1e308 and beyond",
        answering(absurd_usage),
        ends="done(unverified)",
    ),
    "nested_answer": Mode(
        "an answer nested 500 levels deep",
        answering(lambda _: Bytes((b'{"choices":' + b"[" * 500 + b"]" * 500 + b"}",))),
        ends="failed(model_error)",
    ),
    "long_text": Mode(
        "edits of texts that overlap themselves, 20 million lines, an endless expression",
        scripted("asks_for_long_texts", latency_s=1.0),
        ends="done(completed)",
        prepare=_long_texts,
        quick=False,
    ),
}
