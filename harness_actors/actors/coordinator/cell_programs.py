"""The code and the keys that a cell has for its hosts."""

import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

from harness_actors.actors.coordinator.roster import Seats
from harness_actors.actors.joining.withheld import is_key
from harness_actors.coordination.protocol import Slot
from harness_actors.ports import Journal
from harness_actors.records import CodeStored, RunSpec

logger = logging.getLogger(__name__)


KEPT_BLOBS = 16
"""Blobs that are held in memory; the journal has all."""


class Programs:
    """Blobs by hash, and secrets by name. Secrets are in memory only.

    Args:
        journal: Has the blobs of earlier commands.
        in_use: Whether a run that is being served has this code.
    """

    def __init__(self, journal: Journal, in_use: Callable[[str], bool]) -> None:
        self._journal = journal
        self._in_use = in_use
        self._blobs: OrderedDict[str, bytes] = OrderedDict()
        self._secrets: dict[str, str] = {}

    def add(self, code: Mapping[str, bytes]) -> list[CodeStored]:
        """Take blobs in; returns those that the journal is to keep."""
        fresh = {name: blob for name, blob in code.items() if name not in self._blobs}
        for name, blob in fresh.items():
            self._hold(name, blob)
        return [CodeStored(code=name, blob=blob) for name, blob in fresh.items()]

    def forget(self) -> None:
        """Take all blobs for new ones: the journal may have dropped those that no run names."""
        self._blobs.clear()

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
        if not seats.gets_programs(slot):
            return
        # Those that were kept out of the environment of its process are for its tools, too.
        names = {*spec.keys, *filter(is_key, self._secrets)}
        keys = {name: key for name in names if (key := self.key(name)) is not None}
        if seats.knows(slot, spec.code, keys):
            return
        blob = self._blob(spec.code)
        if blob is None:
            logger.error("the journal has no code %s", spec.code)
            return
        seats.teach(slot, spec.code, blob, keys)
        seats.tidy(slot, self._in_use)

    def _blob(self, code: str) -> bytes | None:
        blob = self._blobs.get(code)
        if blob is None:
            # Of a run taken up from the journal; rare, and once per code, so it may block.
            blob = self._journal.load_code(code)
            if blob is not None:
                self._hold(code, blob)
        return blob

    def _hold(self, code: str, blob: bytes) -> None:
        self._blobs[code] = blob
        while len(self._blobs) > KEPT_BLOBS:
            self._blobs.popitem(last=False)
