"""What a child is, made of the run that begins it and of what that says of it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness_actors.coordination.graph import DEFAULT_EDGES
from harness_actors.events import ChildrenStarted
from harness_actors.messages import Message
from harness_actors.ports.child_copies import copy_places
from harness_actors.records import (
    CHILD_MARK,
    ParentLink,
    RunSpec,
    WorkspaceSpec,
    child_handle,
)
from harness_actors.signals import ChildStart
from harness_actors.state import turns_of


def child_spec(
    parent: RunSpec, start: ChildStart, number: int, said: tuple[Message, ...]
) -> RunSpec:
    """A child of a run.

    Args:
        parent: The run.
        start: What it is to be.
        number: The how many-th child of that run it is, from 1.
        said: The conversation of that run before the message of the call; for a fork alone.
    """
    known = said if start.forked else ()
    run_id, above = f"{parent.run_id}{CHILD_MARK}{number}", parent.parent
    link = ParentLink(
        run_id=parent.run_id,
        root=parent.root,
        call_id=start.call_id,
        agent=start.agent if above is None else f"{above.agent}/{start.agent}",
        pool=start.pool,
        depth=1 if above is None else above.depth + 1,
        most_words=start.most_words,
        typed=start.typed,
        background=start.background,
        forked=len(known),
        forked_from=parent.conversation_id if known else "",
        copied=start.workspace == "copy",
    )
    made_with = parent.made_with
    return RunSpec(
        run_id=run_id,
        conversation_id=run_id,
        task=(*known, Message.user(start.task)),
        code=parent.code,
        config=start.config,
        edges=DEFAULT_EDGES,
        keys=parent.keys,
        workspace=_workspace(parent.workspace, start, child_handle(run_id, start.agent)),
        made_with=None
        if made_with is None
        else replace(made_with, agent=start.agent, model=start.model),
        late_hooks=parent.late_hooks,
        parent=link,
    )


def _workspace(
    parent: WorkspaceSpec | None, start: ChildStart, handle: str
) -> WorkspaceSpec | None:
    if parent is None:
        return None
    if start.workspace == "copy":
        work, base = copy_places(Path(start.copies, handle))
        return replace(parent, path=str(work), source=parent.path, base=str(base), read_only=False)
    # It is there: its parent works in it.
    read_only = parent.read_only or start.workspace == "read_only"
    return replace(parent, source=None, base=None, read_only=read_only)


def before_calls(log: Iterable[Message]) -> tuple[Message, ...]:
    """A conversation up to the last message that calls tools."""
    messages = tuple(log)
    last = max(at for at, message in enumerate(messages) if message.tool_calls)
    return messages[:last]


def started_event(
    values: Mapping[str, Any], starts: Sequence[ChildStart], specs: Sequence[RunSpec]
) -> ChildrenStarted:
    """What readers are told of runs that another one has begun."""
    told = tuple(
        {
            "run_id": spec.run_id,
            "agent": start.agent,
            "call_id": start.call_id,
            **({"background": True} if start.background else {}),
        }
        for spec, start in zip(specs, starts, strict=True)
    )
    return ChildrenStarted(turn=turns_of(values), children=told)
