"""Copies of a workspace in which others work for a run, and what is told of them."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from harness_actors.errors import ToolError
from harness_actors.ports import ChildCopy, RunContext
from harness_actors.ports.child_copies import copy_places
from harness_actors.state import CHANGED_FILES, CHILDREN, TURN_COUNT, ChangedFiles
from harness_actors.turn.services import AgentTurnServices

NAMED = 20
"""Files that whoever delegates is told of by name."""
NAME_CHARS = 200
_HANDLE = re.compile(r"[A-Za-z0-9_-]{1,100}")
_AT_WORK = (
    "{handle} is still at work, or you have not been told yet what it came to. Wait with "
    "agent_wait, and ask again in a message after that."
)
_UNKNOWN = "There is no agent {handle!r:.80} that has worked in a copy for you; there are {known}."


class CopiesOfRun:
    """Answers `ChildCopies` for one run.

    Args:
        folder: Where they are.
        background: Names of the agents that work beside the run.
        context: What it knows.
    """

    def __init__(self, folder: Path, background: Sequence[str], context: RunContext) -> None:
        self._folder, self._background, self._context = folder, background, context

    @classmethod
    def of(cls, context: RunContext, services: AgentTurnServices) -> Self | None:
        """None for a run for which nobody works in a copy."""
        specs: Sequence[Any] = getattr(context.agent, "sub_agents", None) or ()
        folder = services.copies_of(context.spec)
        if folder is None or not any(spec.workspace == "copy" for spec in specs):
            return None
        background = [spec.name for spec in specs if spec.background]
        return cls(folder, background, context)

    def find(self, handle: str) -> ChildCopy:
        place, (name, _, number) = self._folder / handle, handle.rpartition("-")
        is_begun = number.isdecimal() and 1 <= int(number) <= self._context.get(CHILDREN)
        if name in self._background and is_begun and not self._is_told_of(handle):
            raise ToolError(_AT_WORK.format(handle=handle))
        if not _HANDLE.fullmatch(handle) or place.is_symlink() or not place.is_dir():
            raise ToolError(_UNKNOWN.format(handle=handle, known=self._known()))
        work, base = copy_places(place)
        return ChildCopy(handle=handle, work=work, base=base, record=place / "applied.jsonl")

    def _known(self) -> str:
        try:
            found = sorted(one.name for one in self._folder.iterdir() if one.name[0] != ".")
        except OSError:
            return "none"
        return ", ".join(found[:NAMED]) or "none"

    def _is_told_of(self, handle: str) -> bool:
        """Whether the model knows that one has ended which works beside the run."""
        # Here, for few runs have such.
        from harness_actors.subagents.letters import tells_of

        for message in reversed(self._context.log):
            if message.role != "user":
                continue
            if not message.by_harness:
                # What an earlier run of the conversation was told is of others.
                return False
            if tells_of(message, handle):
                return True
        return False


async def note_changes(context: RunContext, services: AgentTurnServices) -> None:
    """Have on record what a run that works in a copy has changed there, when a turn of it ends."""
    workspace = context.spec.workspace
    if workspace is None or workspace.base is None:
        return

    async def make() -> Any:
        paths = await services.in_thread(services.changed_files, workspace)
        if paths is None:
            return None
        return {"count": len(paths), "paths": [_shown(path) for path in paths[:NAMED]]}

    found = await context.observe("changed_files", context.get(TURN_COUNT), make)
    changed = found and ChangedFiles(count=found["count"], paths=tuple(found["paths"]))
    if changed != context.get(CHANGED_FILES):
        context.set(CHANGED_FILES, changed)


def _shown(path: str) -> str:
    shown = path if path.isprintable() else ascii(path)
    return shown if len(shown) <= NAME_CHARS else f"{shown[:NAME_CHARS]}…"
