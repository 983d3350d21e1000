"""The tools by which a model looks at what agents have changed in copies, and brings that in."""

import posixpath
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from harness_actors.errors import ToolError
from harness_actors.ports import ChildCopy, ToolContext
from harness_actors.tools import tool
from harness_actors.tools.changes import Change
from harness_actors.tools.child_copy import open_copy
from harness_actors.tools.merging import Merging, Outcome, Record
from harness_actors.tools.patches import patch_of
from harness_actors.tools.paths import check_writable, open_root
from harness_actors.tools.tree_files import Tree

MOST_PATHS = 1_000
NAMED = 50
"""Files that a call with another name is told of."""
Handle = Annotated[str, Field(min_length=1, max_length=100)]
SomePath = Annotated[str, Field(min_length=1, max_length=4_096)]
_NOTHING = "{handle} has changed no file in its copy of the workspace."
_HEADINGS = {
    "applied": "Taken as they are in the copy:",
    "merged": "Merged with what your workspace has:",
    "same": "There already:",
    "conflict": "In conflict, and left as they are:",
}
_SETTLE = (
    "See what was changed there with agent_changes and the path, and bring it in by an edit of "
    "your own."
)


@tool(effect="read_only", volatile=True, polled=False)
def agent_changes(agent: Handle, context: ToolContext, path: SomePath | None = None) -> str:
    """See what an agent has changed in its copy of the workspace, as a unified diff.

    Args:
        agent: Its handle, such as repair-1.
        path: A file or folder, to see that alone.
    """
    copy = _find(agent, context)
    with open_copy(copy) as (base, work, changes):
        if not changes:
            return _NOTHING.format(handle=agent)
        shown = changes if path is None else _chosen(copy, changes, [path], context.workspace)
        files = "1 file" if len(shown) == 1 else f"{len(shown):,} files"
        return f"{agent} has changed {files}.\n\n" + "\n".join(patch_of(shown, base, work))


@tool(effect="local_write", idempotent=True, volatile=True, polled=False, needs=["filesystem"])
def agent_apply(
    agent: Handle,
    context: ToolContext,
    paths: Annotated[list[SomePath], Field(min_length=1, max_length=MOST_PATHS)] | None = None,
) -> str:
    """Bring what an agent has changed in its copy into your workspace. Files that you have changed
    since are merged; what cannot be merged is told, and stays as you have it.

    Args:
        agent: Its handle, such as repair-1.
        paths: Files or folders, to bring in those alone.
    """
    copy = _find(agent, context)
    with open_root(context) as root, open_copy(copy) as (base, work, changes):
        check_writable(root)
        if not changes:
            return _NOTHING.format(handle=agent)
        chosen = changes if paths is None else _chosen(copy, changes, paths, context.workspace)
        try:
            merging = Merging(base, work, Tree(root.handle), Record(copy.record))
            return _told(merging.bring_in(chosen))
        except OSError as error:
            problem = error.strerror or str(error)
            raise ToolError(f"not all could be brought in, call again: {problem}") from None


def _find(handle: str, context: ToolContext) -> ChildCopy:
    if context.copies is None:
        raise ToolError(f"no agent works in a copy for you, and so there is no {handle!r}")
    return context.copies.find(handle)


def _chosen(
    copy: ChildCopy, changes: Sequence[Change], paths: Sequence[str], workspace: Path | None
) -> list[Change]:
    """The changes at some paths, and below them.

    A path may be absolute, in the copy or in the workspace, or as it was shown.
    """
    chosen: dict[str, Change] = {}
    folders = [f"{folder}/" for folder in (copy.work, workspace) if folder is not None]
    by_shown = {_shown(one.path): one.path for one in changes}
    for given in paths:
        path = by_shown.get(given) or posixpath.normpath(given)
        for folder in folders:
            path = path.removeprefix(folder)
        found = [
            one
            for one in changes
            if path == "." or one.path == path or one.path.startswith(f"{path}/")
        ]
        if not found:
            names = ", ".join(_shown(one.path) for one in changes[:NAMED])
            more = f" and {len(changes) - NAMED:,} more" if len(changes) > NAMED else ""
            problem = f"{copy.handle} has not changed {given!r:.200}; it has changed {names}{more}"
            raise ToolError(problem)
        chosen |= {one.path: one for one in found}
    return sorted(chosen.values(), key=lambda one: one.path)


def _told(outcomes: Sequence[Outcome]) -> str:
    by_kind = defaultdict[str, list[str]](list)
    for one in outcomes:
        by_kind[one.how].append(_shown(one.path) + (f": {one.why}" if one.why else ""))
    parts = [
        "\n".join((heading, *(f"- {line}" for line in by_kind[how])))
        for how, heading in _HEADINGS.items()
        if how in by_kind
    ]
    return "\n".join((*parts, *([_SETTLE] if "conflict" in by_kind else ())))


def _shown(path: str) -> str:
    return path if path.isprintable() else ascii(path)
