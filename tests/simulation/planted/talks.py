"""Faults in conversations that several runs share: who goes on, and after which words."""

import sqlite3

from harness_actors.actors.coordinator.admission import Admission
from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.run_changes import RunChanges
from harness_actors.messages import Message
from harness_actors.signals import RunEnd
from harness_actors.stores import queries, taking_up
from harness_actors.stores.readable import ReadableJournal, reading
from harness_actors.stores.schema import PLACES
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import GIVEN_BACK, OWN_WORDS, REFUSED, TALK_ALONE


def _whoever_ends_frees_the_conversation() -> Patches:
    def patched(
        self: RunChanges, run: ActiveRun, effects: Effects, end: RunEnd | None = None
    ) -> None:
        self._dispatch.forget(run, effects, end)
        self._runs.pop(run.spec.run_id, None)
        self._conversations.pop(run.spec.conversation_id, None)

    return [(RunChanges, "_forget", patched)]


def _conversations_are_not_freed() -> Patches:
    def patched(
        self: RunChanges, run: ActiveRun, effects: Effects, end: RunEnd | None = None
    ) -> None:
        self._dispatch.forget(run, effects, end)
        self._runs.pop(run.spec.run_id, None)

    return [(RunChanges, "_forget", patched)]


def _conversations_take_anybody() -> Patches:
    def patched(self: RunChanges, run: ActiveRun) -> None:
        self._conversations.pop(run.spec.conversation_id, None)
        begin(self, run)

    begin = RunChanges.begin
    return [(RunChanges, "begin", patched), (Admission, "_check_free", lambda self, spec: None)]


def _conversations_are_loaded_run_by_run() -> Patches:
    def patched(connection: sqlite3.Connection, conversation_id: str) -> list[Message]:
        found = connection.execute(
            "SELECT role, encoded, tokens, is_error FROM runs "
            "JOIN records ON records.run = runs.id AND version IS NOT NULL "
            "JOIN messages ON messages.id >= position * ?1 AND messages.id < (position + 1) * ?1 "
            "WHERE conversation_id = ?2 ORDER BY runs.id, messages.id",
            (PLACES, conversation_id),
        )
        return [queries._message(row) for row in found]

    return [
        (queries, "load_conversation", patched),
        (ReadableJournal, "load_conversation", reading(patched)),
    ]


def _nobody_looks_who_spoke_since() -> Patches:
    return [(taking_up, "_goes_on_in_the_middle", lambda run: False)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "ending a run frees the conversation of another",
        _whoever_ends_frees_the_conversation,
        frozenset({TALK_ALONE}),
    ),
    PlantedBug(
        "conversations are never free again", _conversations_are_not_freed, frozenset({REFUSED})
    ),
    PlantedBug(
        "conversations take two runs at once", _conversations_take_anybody, frozenset({TALK_ALONE})
    ),
    PlantedBug(
        "a conversation is loaded run by run",
        _conversations_are_loaded_run_by_run,
        frozenset({GIVEN_BACK}),
        "disk",
    ),
    PlantedBug(
        "cut runs go on after what another one said",
        _nobody_looks_who_spoke_since,
        frozenset({OWN_WORDS}),
    ),
)
