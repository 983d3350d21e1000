"""The worker processes of the host of an agent turn: what they get, and how they say things."""

import os
from functools import partial
from typing import TYPE_CHECKING

from harness_actors.actors.joining.withheld import is_key
from harness_actors.actors.packing import pack_tool
from harness_actors.ports import ToolProcesses
from harness_actors.turn.one_call import error_text
from harness_actors.turn.texts import shortened
from harness_actors.turn.tracebacks import user_traceback

if TYPE_CHECKING:
    from harness_actors.tools.workers.pool import WorkerPool


def tool_workers(processes: ToolProcesses) -> "WorkerPool":
    """The pool of a host, which starts no process before it is asked for one."""
    from harness_actors.tools.workers.pool import WorkerPool
    from harness_actors.tools.workers.texts import MOST_TEXT_CHARS, WorkerTexts

    texts = WorkerTexts(describe=describe, shorten=partial(shortened, limit=MOST_TEXT_CHARS))
    return WorkerPool(processes, environment=without_keys, pack=pack_tool, texts=texts)


def without_keys() -> dict[str, str]:
    """The environment of this process, but for keys, which others of its user could read."""
    return {name: value for name, value in os.environ.items() if not is_key(name)}


def describe(error: BaseException, inline_chars: int | None) -> tuple[str, str]:
    """What the model is told of an exception, and where it came about in a user's code."""
    return error_text(error, inline_chars), user_traceback(error)
