"""Faults where a journal is taken away under its cell."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.actors.simulated import cell
from harness_actors.errors import HarnessError
from harness_actors.stores import SqliteJournal
from harness_actors.stores.standing import StandingFiles
from harness_actors.stores.transactions import transaction
from tests.simulation.moving import AT_ITS_PATH, NAMED, NOT_ANSWERED, NOTICED
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import ENDS


def _nobody_watches() -> Patches:
    async def patched(journal: Any, host: Any) -> bool:
        return False

    return [(cell, "watch_journal", patched)]


def _who_attaches_does_not_look() -> Patches:
    async def patched(journal: Any, host: Any) -> bool:
        return True

    return [(cell, "is_standing", patched)]


def _commits_do_not_look_twice() -> Patches:
    @contextmanager
    def patched(self: SqliteJournal) -> Iterator[None]:
        with self._write_lock, self._faults():
            self._files.check_main()
            yield

    return [(SqliteJournal, "_writing", patched)]


def _readers_do_not_look() -> Patches:
    def patched(self: SqliteJournal, read: Any) -> Any:
        with self._read_lock, transaction(self._reader, "DEFERRED"):
            return read(self._reader)

    return [(SqliteJournal, "_read", patched)]


def _another_incarnation_takes_what_is_there() -> Patches:
    begin = SqliteJournal.__init__

    def patched(self: SqliteJournal, path: Any, *, file: Any = None) -> None:
        begin(self, path)

    return [(SqliteJournal, "__init__", patched)]


def _any_file_will_do() -> Patches:
    size = StandingFiles._size

    def patched(self: StandingFiles, name: str, known: Any) -> int:
        try:
            return size(self, name, known)
        except HarnessError as error:
            if "was put in" in str(error):
                return 0
            raise

    return [(StandingFiles, "_size", patched)]


def _followers_are_not_woken() -> Patches:
    def patched(self: CoordinatorHost, error: HarnessError) -> None:
        if self._broken is None:
            self._broken = error
            self._alarm.set(None)
            self._seats.close()

    return [(CoordinatorHost, "give_up", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug("nobody watches a journal", _nobody_watches, frozenset({NOTICED}), "moved"),
    PlantedBug(
        "who attaches does not look for the journal",
        _who_attaches_does_not_look,
        frozenset({NOT_ANSWERED}),
        "moved",
    ),
    PlantedBug(
        "commits do not look again when they are written",
        _commits_do_not_look_twice,
        frozenset({AT_ITS_PATH}),
        "moved",
    ),
    PlantedBug(
        "readers do not look for the journal",
        _readers_do_not_look,
        frozenset({NOT_ANSWERED}),
        "moved",
    ),
    PlantedBug(
        "another incarnation takes what is there",
        _another_incarnation_takes_what_is_there,
        frozenset({AT_ITS_PATH}),
        "moved",
    ),
    PlantedBug(
        "any file at the path will do",
        _any_file_will_do,
        frozenset({NOTICED, AT_ITS_PATH, NOT_ANSWERED}),
        "moved",
    ),
    PlantedBug(
        "who follows is not woken when a cell stops",
        _followers_are_not_woken,
        frozenset({NAMED, ENDS}),
        "moved",
    ),
)
