"""Copies of workspaces in which runs work for others: a folder beside the journal, one in it for
each run that has begun such, named by a hash of its id.

What nothing names goes with its run; see `expiry`.
"""

import os
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from harness_actors.ports.child_copies import copies_name
from harness_actors.stores.private import opened_folder

_FOLDER_NAME = re.compile(r"[0-9a-f]{32}")


def copies_of(store: Path) -> Path:
    """The folder with the copies of a journal; there is none where none was made."""
    store = store.resolve()
    return store.with_name(f"{store.name}.copies")


def remove_copies(store: Path, *, but: Iterable[str]) -> None:
    """Remove the copies of runs that a journal does not have, as far as can be.

    Args:
        store: The journal, on which nobody works.
        but: The ids of the runs that it has.
    """
    root = copies_of(store)
    # Most journals have none, and there may be many runs.
    if not root.is_dir():
        return
    kept = {copies_name(run_id) for run_id in but}
    with suppress(OSError), opened_folder(root) as folder:
        for name in os.listdir(folder):
            if _FOLDER_NAME.fullmatch(name) and name not in kept:
                # What an agent has made may be deeper than can be removed in this way.
                with suppress(RecursionError):
                    shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
