"""Where an agent works that is run by itself."""

import shutil
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from harness_actors.cli.event_lines import EventLines

if TYPE_CHECKING:
    from harness_actors.batch.agent_file import LoadedAgent


def fresh_workspace(loaded: "LoadedAgent", lines: EventLines) -> str | None:
    """A folder for an agent with tools that was given none: a copy of its own, or empty."""
    if loaded.workspace is None and not loaded.innermost.tools:
        return None
    folder = mkdtemp(prefix="harness-run-")
    if loaded.workspace is not None:
        shutil.copytree(loaded.workspace, folder, symlinks=True, dirs_exist_ok=True)
    lines.note(f"workspace {folder}")
    return folder
