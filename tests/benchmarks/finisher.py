"""A framework that finishes tasks without asking a model, as a test of the comparison needs it."""

import os
from pathlib import Path

from benchmarks.peers.checked import CheckedTask, NotDoneError


async def defaults(task: CheckedTask) -> None:
    """Claim what is not done."""
    print("a banner")


async def checked(task: CheckedTask) -> None:
    """Do all of it, until its own check is content."""
    said = task.gap()
    for name, texts in task.expected.items():
        assert name in (said or ""), said
        (Path(task.folder) / name).write_text(texts[0])
    if said := task.gap():
        raise AssertionError(said)


async def gives_up(task: CheckedTask) -> None:
    raise NotDoneError("no more")


async def dies(task: CheckedTask) -> None:
    os._exit(1)
