"""How workers put into words what happened; the words are those of the turn, and handed in."""

from collections.abc import Callable
from dataclasses import dataclass

MOST_TEXT_CHARS = 99_000
"""A longer result goes to a file, or is shortened in the worker, so that the actor never holds it;
with the note of that it is below what the actor shortens itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTexts:
    """How results and failures are told; importable by name, for it travels to the workers.

    Attributes:
        describe: Of an exception, and `Job.inline_chars`: what the model is told, and the
            traceback for the user.
        shorten: Of a long result: what is kept of it.
    """

    describe: Callable[[BaseException, int | None], tuple[str, str]]
    shorten: Callable[[str], str]
