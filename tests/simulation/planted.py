"""Faults that were made on purpose: the simulator must find each of them."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from harness_actors.actors import doubt, seats
from harness_actors.actors.coordinator_host import CoordinatorHost
from harness_actors.actors.mailbox import Outbox, SeenEnvelopes
from harness_actors.actors.readings import Readings
from harness_actors.actors.writer import JournalWriter
from harness_actors.coordination import books
from harness_actors.coordination.active import ActiveRun, Step
from harness_actors.coordination.books import RunBooks
from harness_actors.coordination.coordinator import Coordinator
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.endings import last_words
from harness_actors.coordination.protocol import Changed, Deliver, Envelope, Slot
from harness_actors.executors.context import DeltaContext
from harness_actors.records import SnapshotTaken
from harness_actors.state import OPEN_CALLS, USAGE, SharedState, StateDelta
from harness_actors.stores.commit import Committer
from harness_actors.turn import tool_calls
from harness_actors.turn.books import TurnBooks
from harness_actors.turn.loop import TurnLoop
from harness_actors.turn.tool_calls import ToolCalls
from tests.simulation.schedule import Mode

Patches = Sequence[tuple[Any, str, Any]]
"""What is put in whose place: owner, name, value."""


@dataclass(frozen=True)
class PlantedBug:
    """A fault.

    Attributes:
        name: What is wrong.
        patches: Makes it so.
        mode: With which journal it shows.
    """

    name: str
    patches: Callable[[], Patches]
    mode: Mode = "protocol"

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Have it for as long as this is open."""
        before = []
        try:
            for owner, name, value in self.patches():
                before.append((owner, name, owner.__dict__[name]))
                setattr(owner, name, value)
            yield
        finally:
            for owner, name, value in reversed(before):
                setattr(owner, name, value)


def _no_step_check() -> Patches:
    received = Coordinator.received

    def patched(self: Coordinator, slot: Slot, envelope: Envelope) -> Step:
        run = self.runs.get(envelope.run_id)
        if run is not None and envelope.step < run.step and slot == run.slot:
            envelope = replace(envelope, step=run.step, seq=run.received + 1)
        return received(self, slot, envelope)

    return [(Coordinator, "received", patched)]


def _answers_twice() -> Patches:
    received = Coordinator.received

    def patched(self: Coordinator, slot: Slot, envelope: Envelope) -> Step:
        run = self.runs.get(envelope.run_id)
        if run is not None and isinstance(envelope.body, Changed):
            run.received = min(run.received, envelope.seq - 1)
        return received(self, slot, envelope)

    return [(Coordinator, "received", patched)]


def _posts_before_commit() -> Patches:
    def patched(self: CoordinatorHost, step: Step) -> None:
        if self._broken is None and (step.entries or step.posts):
            for post in step.posts:
                self._send(post)
            self._writer.write(
                step.entries, lambda positions: self._bulletin.publish(step.entries, positions)
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


def _earlier_terms_live_on() -> Patches:
    return [(CoordinatorHost, "_await_earlier_terms", lambda self, processes: None)]


def _unmarked_hosts() -> Patches:
    async def patched(self: CoordinatorHost, mark: Any) -> None:
        return

    return [(CoordinatorHost, "_mark_on_disk", patched)]


def _record_without_message() -> Patches:
    take = DeltaContext.take

    def patched(self: DeltaContext) -> StateDelta:
        delta = take(self)
        opened = any(write.key == OPEN_CALLS.name and write.value for write in delta.writes)
        if opened and delta.messages and delta.messages[-1].role == "assistant":
            self._messages = [delta.messages[-1]]
            return StateDelta(delta.writes, delta.messages[:-1], delta.events)
        return delta

    return [(DeltaContext, "take", patched)]


def _no_pending_record() -> Patches:
    return [(ToolCalls, "_index", lambda self, plans: ())]


def _effects_before_commit() -> Patches:
    def patched(self: DeltaContext) -> Any:
        delta = self.take()
        if delta:
            self._send(delta)
        return asyncio.sleep(0)

    return [(DeltaContext, "flush", patched)]


def _receiver_without_memory() -> Patches:
    return [(SeenEnvelopes, "is_new", lambda self, envelope: True)]


def _receiver_forgets_at_once() -> Patches:
    return [(SeenEnvelopes, "forget", lambda self, run_id: self._newest.pop(run_id, None))]


def _sender_gives_up() -> Patches:
    async def patched(self: Outbox, peer: Any, batch: Any) -> None:
        from harness_actors.actors.mailbox import UnreachableError

        try:
            await peer.receive(batch)
        except UnreachableError:
            return

    return [(Outbox, "_deliver", patched)]


def _repair_runs_everything_again() -> Patches:
    index = ToolCalls._index

    def patched(self: ToolCalls, plans: Any) -> Any:
        return tuple(replace(call, idempotent=True) for call in index(self, plans))

    return [
        (ToolCalls, "_index", patched),
        (tool_calls, "_still_refused", lambda plan: plan),
    ]


def _refused_calls_run_after_a_crash() -> Patches:
    return [(tool_calls, "_still_refused", lambda plan: plan)]


def _snapshot_misses_an_entry() -> Patches:
    change = RunBooks.change

    def patched(self: RunBooks, run: ActiveRun, delta: Any, step: Step, **facts: Any) -> None:
        change(self, run, delta, step, **facts)
        for place, entry in enumerate(step.entries):
            if isinstance(entry, SnapshotTaken):
                values = {k: v for k, v in entry.values.items() if k != USAGE.name}
                step.entries[place] = replace(entry, values=values)

    return [(RunBooks, "change", patched)]


def _losses_are_not_counted() -> Patches:
    lost = Coordinator._lost

    def patched(self: Coordinator, run: ActiveRun, *facts: Any) -> None:
        run.losses = 0
        lost(self, run, *facts)

    return [(Coordinator, "_lost", patched)]


def _losses_count_for_all() -> Patches:
    lost = Coordinator._lost

    def patched(self: Coordinator, run: ActiveRun, *facts: Any) -> None:
        run.losses += 2
        lost(self, run, *facts)

    return [(Coordinator, "_lost", patched)]


def _budget_from_zero() -> Patches:
    adopt = Coordinator.adopt

    def patched(self: Coordinator, stored: Any, **facts: Any) -> Step:
        stored.state.values.pop(USAGE.name, None)
        return adopt(self, stored, **facts)

    return [(Coordinator, "adopt", patched)]


def _bounds_are_not_looked_at() -> Patches:
    from harness_actors.turn.bounds import Bounds

    return [(Bounds, "reached", lambda self, usage: None)]


def _rounds_are_not_counted() -> Patches:
    def patched(self: TurnBooks) -> None:
        from harness_actors.results import Usage

        self._pending = Usage()
        write(self)

    write = TurnBooks.write
    return [(TurnBooks, "write", patched)]


def _another_runs_log() -> Patches:
    deliver = Dispatch.deliver

    def patched(self: Dispatch, run: ActiveRun, step: Step) -> None:
        others = [other for other in self._runs.values() if other is not run]
        deliver(self, run, step)
        for place, post in enumerate(step.posts):
            body = post.envelope.body
            if isinstance(body, Deliver) and body.log and others and body.log_from:
                log = tuple(others[0].state.log[body.log_from :])
                envelope = replace(post.envelope, body=replace(body, log=log))
                step.posts[place] = replace(post, envelope=envelope)

    return [(Dispatch, "deliver", patched)]


def _ends_with_open_calls() -> Patches:
    def patched(state: SharedState, end: Any, **facts: Any) -> StateDelta:
        words = last_words(state, end, **facts)
        return StateDelta(words.writes, (), words.events)

    return [(books, "last_words", patched)]


def _everything_is_current() -> Patches:
    return [(Coordinator, "is_current", lambda self, envelope: True)]


def _park_is_forgotten() -> Patches:
    return [(Coordinator, "_ask_to_park", lambda self, run, step: None)]


def _cancel_is_in_memory() -> Patches:
    async def patched(self: CoordinatorHost) -> None:
        return

    return [(CoordinatorHost, "_on_disk", patched)]


def _parked_runs_keep_their_command() -> Patches:
    put_aside = RunBooks.put_aside

    def patched(self: RunBooks, run: ActiveRun, delta: Any, step: Step, **facts: Any) -> None:
        put_aside(self, run, delta, step, **facts)
        step.entries.pop()

    return [(RunBooks, "put_aside", patched)]


def _cut_is_not_told() -> Patches:
    def patched(self: Coordinator, run: ActiveRun, step: Step) -> None:
        self._dispatch.leave(run, step)

    return [(Coordinator, "_cut", patched)]


def _news_are_skipped() -> Patches:
    async def patched(self: Readings, cursor: int, *, messages: bool) -> Any:
        happened = await behind(self, cursor, messages=messages)
        return replace(happened, cursor=happened.cursor + 1)

    behind = Readings.behind
    return [(Readings, "behind", patched)]


def _rounds_ahead() -> Patches:
    def patched(self: TurnLoop) -> None:
        end_round(self)
        self._awaited = None

    end_round = TurnLoop._end_round
    return [(TurnLoop, "_end_round", patched)]


def _commit_failures_are_overlooked() -> Patches:
    return [(JournalWriter, "_stop", lambda self, error: self._queue.clear())]


def _stopped_hosts_are_waited_for() -> Patches:
    async def patched(peer: Any, signs: Any, **settings: Any) -> bool:
        await doubt._watched(peer, signs)
        return False

    return [(doubt, "until_dead", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug("results of an older step are accepted", _no_step_check),
    PlantedBug("what a host says twice is taken twice", _answers_twice),
    PlantedBug("messages leave before their commit", _posts_before_commit),
    PlantedBug("whoever waits for a commit is told before it", _tells_before_commit),
    PlantedBug("the journal does not check terms", _journal_ignores_terms, "disk"),
    PlantedBug("runs go on beside the old process", _goes_on_beside_the_living),
    PlantedBug("processes of earlier terms live on", _earlier_terms_live_on),
    PlantedBug("hosts work before they are marked", _unmarked_hosts),
    PlantedBug("the pending record lacks the assistant message", _record_without_message),
    PlantedBug("there is no pending record", _no_pending_record),
    PlantedBug("effects begin before their record is on disk", _effects_before_commit),
    PlantedBug("receivers have no memory", _receiver_without_memory),
    PlantedBug("receivers forget what is over at once", _receiver_forgets_at_once),
    PlantedBug("senders try once", _sender_gives_up),
    PlantedBug("everything that was open runs again", _repair_runs_everything_again),
    PlantedBug("calls that were refused run after a crash", _refused_calls_run_after_a_crash),
    PlantedBug("a snapshot misses an entry", _snapshot_misses_an_entry),
    PlantedBug("losses are not counted", _losses_are_not_counted),
    PlantedBug("losses count for runs without a tool in flight", _losses_count_for_all),
    PlantedBug("the budget begins at zero after a resume", _budget_from_zero),
    PlantedBug("bounds are not looked at", _bounds_are_not_looked_at),
    PlantedBug("rounds are not counted", _rounds_are_not_counted),
    PlantedBug("a run is sent another run's log", _another_runs_log),
    PlantedBug("runs end with open calls", _ends_with_open_calls),
    PlantedBug("what is old is posted all the same", _everything_is_current),
    PlantedBug("a request to park is forgotten", _park_is_forgotten),
    PlantedBug("requests are acknowledged before they are on disk", _cancel_is_in_memory),
    PlantedBug("parked runs go on by themselves", _parked_runs_keep_their_command),
    PlantedBug("a step that was cut is not told", _cut_is_not_told),
    PlantedBug("who follows is told of less", _news_are_skipped),
    PlantedBug("turns run ahead of the disk", _rounds_ahead),
    PlantedBug("a commit that fails is overlooked", _commit_failures_are_overlooked),
    PlantedBug("stopped hosts are waited for", _stopped_hosts_are_waited_for),
)
