"""The code and the keys that a cell has for its hosts."""

import logging
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor

from harness_actors.actors.seats import Seats
from harness_actors.coordination.protocol import Slot
from harness_actors.ports import Journal
from harness_actors.records import CodeStored, RunSpec
from harness_actors.state import AGENT_TURN

logger = logging.getLogger(__name__)


class Programs:
    """Blobs by hash, and secrets by name. Secrets are in memory only.

    Args:
        journal: Has the blobs of earlier commands.
        thread: Where the journal's calls block.
    """

    def __init__(self, journal: Journal, thread: Executor) -> None:
        self._journal = journal
        self._thread = thread
        self._blobs: dict[str, bytes] = {}
        self._secrets: dict[str, str] = {}

    def add(self, code: Mapping[str, bytes]) -> list[CodeStored]:
        """Take blobs in; returns those that the journal is to keep."""
        fresh = {name: blob for name, blob in code.items() if name not in self._blobs}
        self._blobs.update(fresh)
        return [CodeStored(code=name, blob=blob) for name, blob in fresh.items()]

    def add_secrets(self, secrets: Mapping[str, str]) -> None:
        """Take keys in; a newer value of a name replaces the older."""
        self._secrets.update(secrets)

    def key(self, name: str) -> str | None:
        """A secret: as it was handed over, else from this process's environment, or None."""
        return self._secrets.get(name) or os.environ.get(name)

    def has_keys(self, names: Iterable[str]) -> bool:
        """Whether all of these are at hand."""
        return all(self.key(name) is not None for name in names)

    def teach(self, seats: Seats, slot: Slot, spec: RunSpec) -> None:
        """Send a run's code ahead of it, to a host that needs it and has it not."""
        if slot.executor != AGENT_TURN and not slot.code:
            return
        keys = {name: key for name in spec.keys if (key := self.key(name)) is not None}
        if seats.knows(slot, spec.code, keys):
            return
        if spec.code not in self._blobs:
            # Of a run taken up from the journal; rare, and once per code.
            blob = self._thread.submit(self._journal.load_code, spec.code).result()
            if blob is None:
                logger.error("the journal has no code %s", spec.code)
                return
            self._blobs[spec.code] = blob
        seats.teach(slot, spec.code, self._blobs[spec.code], keys)
