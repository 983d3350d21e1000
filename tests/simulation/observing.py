"""What executors of users observe: made once, on disk before what follows, and acted on."""

from itertools import count

from harness_actors.events import CustomEvent
from harness_actors.records import RunChanged
from harness_actors.state import AGENT_TURN, OBSERVED
from tests.simulation.disk import DiskRun
from tests.simulation.ledger import Ledger
from tests.simulation.workflows import visits_of

MADE_ONCE = "what is on disk of an observation is not made again"
ACTED_ON = "what is on disk of an observation is acted on"
OF_ITS_PLACE = "an observation is of its own place"
ON_DISK_BEFORE = "an observation is on disk no later than what follows from it"

Place = tuple[str, str, int, int]
"""An observation: its run, its executor, at which of that one's visits, and its number there.
Whoever observes counts by itself, whatever the harness counts."""


class Observing:
    """Watches the observations of a schedule."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._next = count(1)
        self._made: dict[Place, set[int]] = {}
        self._on_disk: dict[Place, int] = {}

    def make(self, place: Place) -> int:
        """Somebody looks; what is seen is another number each time."""
        if place in self._on_disk:
            self._ledger.broken(MADE_ONCE, f"{place} is {self._on_disk[place]} on disk")
        drawn = next(self._next)
        self._made.setdefault(place, set()).add(drawn)
        return drawn

    def acts(self, place: Place, seen: int) -> None:
        """An executor acts on what it was given."""
        if seen not in self._made.get(place, ()):
            self._ledger.broken(OF_ITS_PLACE, f"{seen} was not seen at {place}")
        self._check_value(place, seen)

    def changed(self, run: DiskRun, change: RunChanged) -> None:
        """A change of a run is on disk, and in its values."""
        counted = {write.key for write in change.delta.writes}
        for write in change.delta.writes:
            name = write.key.removeprefix(OBSERVED)
            if name in (write.key, AGENT_TURN) or write.change != "append":
                continue
            # A visit is counted with its answer.
            visits = visits_of(name)
            visit = run.values.values.get(visits, 0) + (visits not in counted)
            place = (change.run_id, name, visit, write.value["number"])
            if place in self._on_disk:
                self._ledger.broken(MADE_ONCE, f"{place} is on disk twice")
            self._on_disk[place] = write.value["answer"]
        for event in change.delta.events:
            if isinstance(event, CustomEvent) and "seen" in event.data:
                place = (change.run_id, event.name, event.data["visit"], event.data["number"])
                if place not in self._on_disk:
                    self._ledger.broken(ON_DISK_BEFORE, f"{place} is acted on, and not on disk")
                self._check_value(place, event.data["seen"])

    def _check_value(self, place: Place, seen: int) -> None:
        if self._on_disk.get(place, seen) != seen:
            text = f"{place} is {self._on_disk[place]} on disk, and {seen} is acted on"
            self._ledger.broken(ACTED_ON, text)
