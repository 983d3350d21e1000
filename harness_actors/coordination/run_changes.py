"""The changes of the runs in service: what is committed of each, and when it is over."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.budget import Budget
from harness_actors.coordination.deadlines import Deadlines
from harness_actors.coordination.dispatch import Dispatch
from harness_actors.coordination.endings import last_words, result_of
from harness_actors.errors import ConversationBusyError
from harness_actors.events import Event, RunParked
from harness_actors.ports import Clock
from harness_actors.records import RunAdded, RunChanged, SnapshotTaken
from harness_actors.results import HarnessResult
from harness_actors.signals import RunEnd
from harness_actors.state import (
    AGENT_TURN,
    CHILD_RESULTS,
    OPEN_CALLS,
    PARKING,
    USAGE,
    StateDelta,
    StateKey,
    Write,
    turns_of,
)

CHANGES_PER_SNAPSHOT = 64
LONG_INDEX = 64


def entry(key: StateKey[Any], value: bool | float | None) -> StateDelta:
    """A change of one of the coordinator's own entries."""
    return StateDelta((Write(key.name, "set", value),))


def _is_long(values: Mapping[str, Any]) -> bool:
    """Whether a snapshot must wait: it would hold the index of a long message again, or what many
    children have come to."""
    return any(len(values.get(key.name) or ()) > LONG_INDEX for key in (OPEN_CALLS, CHILD_RESULTS))


class Kin(Protocol):
    """Whoever knows which runs have begun which others."""

    def changed(self, run: ActiveRun, delta: StateDelta) -> None:
        """A run made a change."""

    def put_aside(self, run: ActiveRun, effects: Effects) -> None:
        """A run is served no longer, and not over."""

    def before_end(self, run: ActiveRun, effects: Effects) -> None:
        """A run is about to end: so are all below it."""

    def over(self, run: ActiveRun, result: HarnessResult, effects: Effects) -> None:
        """A run is over."""


@dataclass(eq=False)
class RunChanges:
    """Writes what becomes of runs into the effects of what happened to them.

    Args:
        runs: The runs in service, by id; the coordinator's own mapping, as is the next.
        conversations: Which of them continues each conversation.
        dispatch: Where their hosts are told.
        deadlines: Told of each run that begins to be served.
        budget: Told what runs cost.
        clock: Dates what is committed.
    """

    _runs: dict[str, ActiveRun]
    _conversations: dict[str, str]
    _dispatch: Dispatch
    _deadlines: Deadlines
    _budget: Budget
    _clock: Clock
    departures: int = field(default=0, init=False)
    """How many runs have left service, or have ended that nobody served."""
    leaves_service: Callable[[ActiveRun, Effects], None] = field(
        default=lambda _run, _effects: None, init=False
    )
    """Told of each that does."""
    kin: Kin = field(init=False)
    """Told of what becomes of runs that may have children, or be some."""

    def begin(self, run: ActiveRun) -> None:
        """A run is served from here on.

        Raises:
            ConversationBusyError: Another run of its conversation is.
        """
        run_id, conversation = run.spec.run_id, run.spec.conversation_id
        if conversation in self._conversations:
            raise ConversationBusyError(conversation)
        self._conversations[conversation] = run_id
        self._runs[run_id] = run
        self._deadlines.watch(run)
        self._budget.take_up(run_id, run.state.values.get(USAGE.name, {}).get("cost_usd", 0.0))

    def serves(self, run: ActiveRun) -> bool:
        """Whether a run is in service."""
        return self._runs.get(run.spec.run_id) is run

    def change(
        self,
        run: ActiveRun,
        delta: StateDelta,
        effects: Effects,
        *,
        moved: bool = False,
        end: HarnessResult | None = None,
    ) -> None:
        """Apply a change to a run's state, and list it among what is to be committed.

        Args:
            run: The run.
            delta: What changed.
            effects: What is to be done.
            moved: The run goes on elsewhere, at its `hop`.
            end: How it ended; None while it goes on.

        Raises:
            WorkflowError: The delta changes an entry in a way that its value does not
                allow; nothing was done.
        """
        run.state.apply(delta)
        self._budget.charge(run.spec.run_id, delta)
        self.kin.changed(run, delta)
        # Only results of tools: those that repair makes up for lost calls are no progress.
        if run.slot is not None and run.slot.executor == AGENT_TURN:
            if "tool" in [message.role for message in delta.messages]:
                run.losses = 0
                if not run.slot.code:
                    run.busy_since = None
            for write in delta.writes:
                if write.key == OPEN_CALLS.name and not run.slot.code:
                    # Announced, in this hop: what an earlier one left open does not run.
                    run.busy_since = None
                    if run.state.values[OPEN_CALLS.name]:
                        self.busy(run)
        replica = None if run.slot is None else run.replicas.get(run.slot)
        if replica is not None:
            replica.messages = len(run.state.log)
        run.changed_at = now = self._clock.now()
        effects.entries.append(
            RunChanged(
                run_id=run.spec.run_id,
                version=run.state.version,
                delta=delta,
                hop=run.hop if moved else None,
                losses=run.losses,
                end=end,
                at=now,
            )
        )
        run.snapshot_due |= run.state.version % CHANGES_PER_SNAPSHOT == 0
        if run.snapshot_due and end is None and not _is_long(run.state.values):
            run.snapshot_due = False
            effects.entries.append(
                SnapshotTaken(
                    run_id=run.spec.run_id,
                    version=run.state.version,
                    values=dict(run.state.values),
                )
            )

    def tools_started(self, run: ActiveRun, tools: tuple[str, ...], *, after: int) -> None:
        """A host says that tools begin which no change announces.

        Args:
            run: The run.
            tools: Which.
            after: Number of what the host said before it, which may come later than this. What
                came after it says more.
        """
        if after >= max(run.received, run.started_after):
            run.started_after = after
            self.busy(run, tools)

    def busy(self, run: ActiveRun, tools: tuple[str, ...] = ()) -> None:
        """Tools of a run, or an executor of its user's own, begin to run.

        Args:
            run: The run.
            tools: Which, where the index of its open calls does not have them.
        """
        run.busy_since, run.announced = self._clock.now(), tools
        self._deadlines.watch(run)

    def put_aside(
        self, run: ActiveRun, delta: StateDelta, effects: Effects, *, moved: bool = False
    ) -> None:
        """A run is parked, with a last change."""
        parked = RunParked(turn=turns_of(run.state.values))
        self.leave_service(run, delta, parked, effects, moved=moved)

    def leave_service(
        self,
        run: ActiveRun,
        delta: StateDelta,
        event: Event,
        effects: Effects,
        *,
        moved: bool = False,
    ) -> None:
        """A run is served no longer, and not over; an event says why."""
        asked = run.state.values.get(PARKING.name)
        writes = (*delta.writes, *(entry(PARKING, False).writes if asked else ()))
        last = replace(delta, writes=writes, events=(*delta.events, event))
        # Whoever lists what waits reads the state of each such run, perhaps for weeks.
        run.snapshot_due = True
        self.change(run, last, effects, moved=moved)
        # No command's any more: the next incarnation must not go on with it unasked.
        effects.entries.append(
            RunAdded(spec=run.spec, command="", at=self._clock.now(), again=True)
        )
        self._forget(run, effects)
        self.kin.put_aside(run, effects)

    def end(
        self,
        run: ActiveRun,
        delta: StateDelta,
        end: RunEnd,
        effects: Effects,
        *,
        shared: bool = False,
    ) -> None:
        """A run is over, with a last change before its end. It need not be in service.

        Args:
            run: The run.
            delta: What changed before.
            end: How it ended.
            effects: What is to be done.
            shared: The calls that are open in its conversation are another run's, which is not
                in service.
        """
        self.kin.before_end(run, effects)
        if delta:
            self.change(run, delta, effects)
        result = result_of(run, end, now=self._clock.now())
        # If another run continues its conversation, that one has answered its open calls.
        owner = self._conversations.get(run.spec.conversation_id, run.spec.run_id)
        words = last_words(run.state, end, shared=shared or owner != run.spec.run_id)
        self.change(run, words, effects, end=result)
        self._budget.end(run.spec.run_id)
        self._forget(run, effects, end)
        self.kin.over(run, result, effects)

    def _forget(self, run: ActiveRun, effects: Effects, end: RunEnd | None = None) -> None:
        self.leaves_service(run, effects)
        self._dispatch.forget(run, effects, end)
        # One that was not in service has claimed nothing.
        if self._runs.pop(run.spec.run_id, None) is not None:
            self._deadlines.forget(run.spec.run_id)
            del self._conversations[run.spec.conversation_id]
        self.departures += 1
