"""The journal of one harness: where it is, which file that is, and the cell that serves it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from harness_actors.actors.cell_processes import is_served
from harness_actors.actors.driver.open_cells import close_cell, in_place, open_cell
from harness_actors.actors.runtime import Runtime, RuntimeKind
from harness_actors.errors import StoreError
from harness_actors.stores.standing import FileId


@dataclass(eq=False)
class PlacedStore:
    """Opens the journal of one harness when it is needed, in a place that it keeps.

    Args:
        path: The journal's file; None takes one in ``$HARNESS_HOME`` at its first use.
        kind: What its cell runs on.
        address: Which Ray.
        on_loss: As of `open_cell`.

    Attributes:
        path: The journal's file; None as long as none was needed.
    """

    path: Path | None
    _kind: RuntimeKind
    _address: str | None
    _on_loss: Callable[[str], None] | None
    _file: FileId | None = field(default=None, init=False)

    async def runtime(self) -> Runtime:
        """What serves it; of none, a new one."""
        if self.path is None:
            from harness_actors.stores.home import free_journal, home

            # One that a warm cell serves is of use only to those who may join its Ray.
            shares = self._kind == "ray" and self._address != "local"
            take = partial(free_journal, is_served, shares_cell=shares)
            found = await asyncio.to_thread(in_place, home(), take)
            self.path = found.resolve()
        runtime = await open_cell(self.path, self._kind, self._address, self._on_loss)
        self._file = FileId.of(self.path)
        return runtime

    async def runtime_of(self, run_id: str) -> Runtime:
        """What serves the journal of a run, wherever that is."""
        if self.path is None:
            from harness_actors.stores.home import home, journal_of

            found = await asyncio.to_thread(in_place, home(), partial(journal_of, run_id))
            self.path = found.resolve()
        return await self.runtime()

    async def check_continued(self, conversation_id: str) -> None:
        """Refuse to go on where a conversation so far was taken away with its journal.

        Raises:
            StoreError: The journal is not the file that it was, and does not have it.
        """
        assert self.path is not None, "the conversation is in it"
        assert self._file is not None, "as above"
        from harness_actors.stores.conversations import check_continued

        try:
            await asyncio.to_thread(check_continued, self.path, self._file, conversation_id)
        except StoreError:
            await self.close()
            raise

    async def close(self) -> None:
        """Give back store and cell; others with the same store lose them too."""
        if self.path is not None:
            await close_cell(self.path, self._kind)
