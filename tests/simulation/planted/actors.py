"""Faults in the actors: what they post, await, commit and forget."""

from dataclasses import replace
from typing import Any

from harness_actors.actors import liveness as doubt
from harness_actors.actors.coordinator import host
from harness_actors.actors.coordinator import roster as seats
from harness_actors.actors.coordinator.admission import Admission
from harness_actors.actors.coordinator.cell_programs import Programs
from harness_actors.actors.coordinator.earlier_costs import EarlierCosts
from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.actors.coordinator.journal_reads import Readings
from harness_actors.actors.coordinator.journal_writer import JournalWriter
from harness_actors.actors.mailbox import Outbox, SeenEnvelopes, UnreachableError
from harness_actors.coordination.active import Effects
from harness_actors.records import ProcessMark
from harness_actors.stores.commit import Committer
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import (
    ACKNOWLEDGED,
    ALONE,
    ENDS,
    HANGING,
    KEYS,
    LAST_HOST,
    LEFT,
    OLDER_COMMIT,
    OLDER_EFFECT,
    PENDING,
    SERVED,
    SIDE_GONE,
    SPENT,
    STARTS_ONCE,
    STATE,
    TOLD,
    TOOLS_GONE,
)


def _posts_before_commit() -> Patches:
    def patched(self: CoordinatorHost, effects: Effects) -> None:
        if self._broken is None and (effects.entries or effects.posts):
            for post in effects.posts:
                self._send(post)
            self._writer.write(
                effects.entries,
                lambda positions: self._bulletin.publish(effects.entries, positions),
            )

    return [(CoordinatorHost, "_perform", patched)]


def _tells_before_commit() -> Patches:
    write = JournalWriter.write

    def patched(self: JournalWriter, entries: Any, then: Any) -> None:
        write(self, entries, lambda positions: None if entries else then(positions))
        if entries:
            then(range(1, len(entries) + 1))

    return [(JournalWriter, "write", patched)]


def _journal_ignores_terms() -> Patches:
    return [(Committer, "_check_term", lambda self, term: None)]


def _goes_on_beside_the_living() -> Patches:
    async def patched(*arguments: Any, **settings: Any) -> doubt.Death:
        peer, _marks, signs, _processes = arguments
        silent = await doubt.until_dead(peer, signs)
        if silent:
            peer.kill()
        return doubt.Death(silent)

    return [(seats, "until_gone", patched)]


def _hanging_companions_are_let_be() -> Patches:
    async def patched(
        peer: Any, marks: Any, signs: Any, processes: Any, *, suspect_s: float = doubt.SUSPECT_S
    ) -> doubt.Death:
        silent = await doubt.until_dead(peer, signs, suspect_s=suspect_s)
        if silent:
            peer.kill()
            processes.kill(marks[0])
        for mark in marks:
            if not await processes.gone(mark, timeout_s=doubt.GONE_DEADLINE_S):
                return doubt.Death(silent, left=mark)
        return doubt.Death(silent)

    return [(seats, "until_gone", patched)]


def _what_dead_hosts_left_lives_on() -> Patches:
    return [(host, "left_by", lambda _runs, _slot: [])]


def _earlier_terms_live_on() -> Patches:
    return [(CoordinatorHost, "_await_earlier_terms", lambda self, processes: None)]


def _unmarked_hosts() -> Patches:
    async def patched(self: CoordinatorHost, mark: Any) -> bool:
        return True

    return [(CoordinatorHost, "_mark_on_disk", patched)]


def _coordinators_start_unmarked() -> Patches:
    async def patched(self: CoordinatorHost, mark: ProcessMark) -> bool:
        if mark == self._process:
            self.processes.append(mark)
            self._perform(Effects(entries=[mark]))
            return True
        return await mark_on_disk(self, mark)

    mark_on_disk = CoordinatorHost._mark_on_disk
    return [(CoordinatorHost, "_mark_on_disk", patched)]


def _receiver_without_memory() -> Patches:
    return [(SeenEnvelopes, "is_new", lambda self, envelope: True)]


def _receiver_forgets_at_once() -> Patches:
    return [(SeenEnvelopes, "forget", lambda self, run_id: self._newest.pop(run_id, None))]


def _sender_gives_up() -> Patches:
    async def patched(self: Outbox, peer: Any, batch: Any) -> None:
        try:
            await peer.receive(batch)
        except UnreachableError:
            return

    return [(Outbox, "_deliver", patched)]


def _cancel_is_in_memory() -> Patches:
    async def patched(self: CoordinatorHost) -> None:
        return

    return [(CoordinatorHost, "_on_disk", patched)]


def _news_are_skipped() -> Patches:
    async def patched(self: Readings, cursor: int, *, messages: bool) -> Any:
        happened = await after(self, cursor, messages=messages)
        return replace(happened, cursor=happened.cursor + 1)

    after = Readings.after
    return [(Readings, "after", patched)]


def _commit_failures_are_overlooked() -> Patches:
    return [(JournalWriter, "_stop", lambda self, error: self._queue.clear())]


def _stopped_hosts_are_waited_for() -> Patches:
    async def patched(peer: Any, signs: Any, **settings: Any) -> bool:
        await doubt._watched(peer, signs)
        return False

    return [(doubt, "until_dead", patched)]


def _budget_of_each_command() -> Patches:
    async def patched(self: EarlierCosts) -> float:
        return 0.0

    return [(EarlierCosts, "ended_usd", patched)]


def _held_runs_are_forgotten() -> Patches:
    async def patched(self: Admission) -> None:
        self._held.clear()

    return [(Admission, "take_up_held", patched)]


def _runs_do_not_wait_for_keys() -> Patches:
    return [(Programs, "has_keys", lambda self, names: True)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug(
        "messages leave before their commit", _posts_before_commit, frozenset({SERVED, PENDING})
    ),
    PlantedBug(
        "whoever waits for a commit is told before it",
        _tells_before_commit,
        frozenset({TOLD, ACKNOWLEDGED, PENDING}),
    ),
    PlantedBug(
        "the journal does not check terms",
        _journal_ignores_terms,
        frozenset({OLDER_COMMIT}),
        "disk",
    ),
    PlantedBug(
        "runs go on beside the old process",
        _goes_on_beside_the_living,
        frozenset({LAST_HOST, TOOLS_GONE}),
    ),
    PlantedBug(
        "supervisors that hang are not killed",
        _hanging_companions_are_let_be,
        frozenset({HANGING}),
    ),
    PlantedBug(
        "between two turns a run keeps what a dead host left",
        _what_dead_hosts_left_lives_on,
        frozenset({TOOLS_GONE}),
    ),
    PlantedBug(
        "processes of earlier terms live on",
        _earlier_terms_live_on,
        frozenset({LAST_HOST, TOOLS_GONE, OLDER_EFFECT}),
    ),
    PlantedBug(
        "hosts work before they are marked",
        _unmarked_hosts,
        frozenset({LAST_HOST, TOOLS_GONE, OLDER_EFFECT}),
    ),
    PlantedBug(
        "coordinators start others before they are marked",
        _coordinators_start_unmarked,
        frozenset({SIDE_GONE}),
    ),
    PlantedBug(
        "receivers have no memory", _receiver_without_memory, frozenset({ALONE, STATE, STARTS_ONCE})
    ),
    PlantedBug(
        "receivers forget what is over at once", _receiver_forgets_at_once, frozenset({LEFT})
    ),
    PlantedBug("senders try once", _sender_gives_up, frozenset({ENDS})),
    PlantedBug(
        "requests are acknowledged before they are on disk",
        _cancel_is_in_memory,
        frozenset({ACKNOWLEDGED}),
    ),
    PlantedBug("who follows is told of less", _news_are_skipped, frozenset({TOLD})),
    PlantedBug(
        "a commit that fails is overlooked",
        _commit_failures_are_overlooked,
        frozenset({STATE, TOLD, ACKNOWLEDGED, ENDS}),
    ),
    PlantedBug("stopped hosts are waited for", _stopped_hosts_are_waited_for, frozenset({ENDS})),
    PlantedBug("each command has a budget of its own", _budget_of_each_command, frozenset({SPENT})),
    PlantedBug("runs that are held are forgotten", _held_runs_are_forgotten, frozenset({ENDS})),
    PlantedBug("runs do not wait for their keys", _runs_do_not_wait_for_keys, frozenset({KEYS})),
)
