"""The hostile modes: runs that would stop their neighbours, by name.

A mode is one entry of `MODES`; `tests.attack.neighbours` tries it beside six good runs.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from harness_actors.testing import LoopbackProcess


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


MODES: Mapping[str, Mode] = {
    "long_glob": Mode(
        "find_files and grep_files with a glob of 10 MB and one of 25,000 brackets",
        scripted("asks_for_long_globs", latency_s=1.0),
        ends="done(completed)",
    ),
}
