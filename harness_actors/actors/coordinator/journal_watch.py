"""A cell without anything to commit notices all the same that its journal is gone."""

import asyncio

from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.errors import StoreError
from harness_actors.stores import SqliteJournal

LOOK_EVERY_S = 1.0


async def watch_journal(
    journal: SqliteJournal, host: CoordinatorHost, *, every_s: float = LOOK_EVERY_S
) -> bool:
    """Stop a cell when its journal is no longer at its path; each commit looks for itself.

    Args:
        journal: Its journal.
        host: Who serves it.
        every_s: How often to look, in seconds.

    Returns:
        Whether that is why it stopped; False where it did for another reason, or is closed.
    """
    while not host.is_broken:
        await asyncio.sleep(every_s)
        if not await is_standing(journal, host):
            return True
    return False


async def is_standing(journal: SqliteJournal, host: CoordinatorHost) -> bool:
    """Whether a journal is where it was opened; its cell is stopped where it is not."""
    if host.is_broken:
        return True
    try:
        await asyncio.to_thread(journal.check_standing)
    except StoreError as error:
        host.give_up(error)
        return False
    return True
