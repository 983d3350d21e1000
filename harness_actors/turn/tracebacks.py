"""The traceback of an exception in a user's code, cut to what its author can work with."""

import asyncio
import concurrent.futures
import importlib
import sysconfig
import threading
from functools import cache
from pathlib import Path
from traceback import FrameSummary, StackSummary, TracebackException

from harness_actors.errors import AgentCodeError, HarnessError
from harness_actors.models.failures import without_keys
from harness_actors.tools.workers.failure import WorkerToolError
from harness_actors.turn.texts import shortened, well_formed

TRACEBACK_CHARS = 8_000
"""Longest traceback, in characters; of a longer one, head and tail are kept."""
FRAMES = 100
"""Most frames of each exception; of more, the first and the last are kept."""
MOST_ERRORS = 50
"""Exceptions of a chain or group that are looked at, each with its frames."""


def user_traceback(error: BaseException) -> str:
    """How an exception came about in the code of a user, with what caused it.

    Frames of this package, of Ray, and of what calls functions in threads and event loops
    are left out. Values of variables are never part of it, and what looks like a key is
    taken out as from the words of providers.

    Args:
        error: As it was caught.

    Returns:
        Python's own form of it, at most `TRACEBACK_CHARS`; empty where no code of a user
        had a part in it, as where a provider cannot be reached.
    """
    if isinstance(error, WorkerToolError):
        return error.traceback
    try:
        told = TracebackException.from_exception(error, lookup_lines=False, compact=True)
        _cut(told, [MOST_ERRORS])
        if not _concerns_user(error, told):
            return ""
        text = "".join(told.format())
    except Exception as broken:  # noqa: BLE001 - classes of users, which may raise anywhere
        return f"(its traceback cannot be read: {type(broken).__name__})"
    # Cut before it is searched, for an exception may say megabytes; and after that, to measure.
    searched = without_keys(shortened(well_formed(text), 4 * TRACEBACK_CHARS))
    return shortened(searched.strip(), TRACEBACK_CHARS)


def _concerns_user(error: BaseException, told: TracebackException) -> bool:
    if told.stack:
        return True
    if isinstance(error, HarnessError) and not isinstance(error, AgentCodeError):
        # Its sentence says all there is; below it are the provider's client and sockets.
        return False
    parts = (told.__cause__, told.__context__, *(told.exceptions or ()))
    return any(part is not None and part.stack for part in parts)


def _cut(told: TracebackException, left: list[int]) -> None:
    """Leave out what is not the user's, in an exception and in all that it came from."""
    left[0] -= 1
    told.stack = _users_frames(told.stack)
    if not told.stack:
        # Else an empty one is announced, as "most recent call last".
        told.stack = None  # type: ignore[assignment]
    parts = [told.__cause__, told.__context__, *(told.exceptions or ())]
    for part in parts:
        if part is not None and left[0] > 0:
            _cut(part, left)


def _users_frames(stack: StackSummary | None) -> StackSummary:
    frames = [frame for frame in stack or () if not frame.filename.startswith(_ours())]
    users = [place for place, f in enumerate(frames) if not f.filename.startswith(_callers())]
    # After the user's last frame comes what it called: `wait_for`, say, which timed out.
    last = users[-1] if users else len(frames)
    kept = [frames[place] for place in users] + frames[last + 1 :]
    if len(kept) > FRAMES:
        gap = FrameSummary(f"[… {len(kept) - FRAMES} frames left out …]", 0, "…", line="")
        kept = [*kept[: FRAMES // 4], gap, *kept[FRAMES // 4 - FRAMES :]]
    return StackSummary.from_list(kept)


@cache
def _ours() -> tuple[str, ...]:
    """Where the code of this package and of Ray is."""
    root = Path(__file__).resolve().parents[1]
    installed = sysconfig.get_paths()
    rays = (f"{Path(installed[kind]) / 'ray'}/" for kind in ("purelib", "platlib"))
    return (f"{root}/", *rays)


@cache
def _callers() -> tuple[str, ...]:
    """Where the code is that runs functions for others."""
    rooms = (asyncio, concurrent.futures, importlib)
    folders = (f"{Path(str(room.__file__)).parent}/" for room in rooms)
    return (*folders, str(threading.__file__), "<frozen importlib")
