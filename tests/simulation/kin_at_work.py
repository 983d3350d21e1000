"""Trees of runs while they are served: who waits where, beside whom, and in which order."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from harness_actors.events import RunParked
from harness_actors.messages import ToolCall
from harness_actors.records import Entry, RunAdded, RunChanged, RunSpec
from harness_actors.state import (
    ANSWERS,
    ASKED_BELOW,
    AWAITED,
    BESIDE,
    BUDGET,
    CHILD_RESULTS,
    CHILD_WAITS,
    CHILDREN_USAGE,
    MAIL,
    OPEN_CALLS,
    PARKING,
    USAGE,
    WAITED_S,
    WAITING_SINCE,
    is_waiting,
)
from tests.simulation.held import spec_at
from tests.simulation.kin import Kin
from tests.simulation.ledger import Happening, Ledger
from tests.simulation.places import run_at
from tests.simulation.serving import Serving
from tests.simulation.trees import delegated_in
from tests.simulation.waits import Waits

NOWHERE = "a run that waits for its children is at no host and does nothing"
APART = "no run of a tree is served or parks apart from its root"
IN_ORDER = "nothing after a delegated call begins before its neighbours' children have ended"
AT_ONCE = "no more children of a run are served at once than may be"
NO_DEADLOCK = "whoever waits for children needs no host of theirs"

NOT_ON_DISK = 20
"""Model calls that a run and those below it may have made of which nothing is on disk, at most."""
PATIENCE_S = 60.0
"""Longer than the rounds of all that are to park with one."""
_MEANWHILE = frozenset(
    key.name
    for key in (
        ANSWERS,
        ASKED_BELOW,
        AWAITED,
        BESIDE,
        BUDGET,
        CHILD_RESULTS,
        CHILD_WAITS,
        CHILDREN_USAGE,
        MAIL,
        OPEN_CALLS,
        PARKING,
        WAITED_S,
        WAITING_SINCE,
    )
)
"""What changes of a run while it waits."""


@dataclass
class AtWork:
    """Watches how trees are served.

    Args:
        ledger: Where it is written down.
        kin: Knows whose children they are.
        serving: Knows who has its seat.
        questions: Knows what stands before a call in its message.
    """

    ledger: Ledger
    kin: Kin
    serving: Serving
    questions: Waits
    waited: dict[str, int] = field(default_factory=dict)
    """How often each run has begun to wait for children."""
    _waiting: set[str] = field(default_factory=set)
    _aside: dict[str, int] = field(default_factory=dict)
    """Runs that are parked, with a number for each time."""
    _served: set[str] = field(default_factory=set)
    """Children that the newest coordinator has sent to a host, and that have not left service."""
    _term: int = 0
    _parks: int = 0

    def waits(self, run_id: str) -> bool:
        """Whether a run waits for children, by what is on disk."""
        return run_id in self._waiting

    # ---- on disk ----------------------------------------------------------------------

    def added(self, entry: RunAdded) -> None:
        """A run begins to be served, is taken up, or belongs to no command any more."""
        run_id = entry.spec.run_id
        if entry.command:
            self._aside.pop(run_id, None)
            root = entry.spec.root
            values = self.ledger.disk.runs[root].values.values if root != run_id else {}
            if entry.again and values.get(PARKING.name):
                text = f"{run_id} is served again, and {root} at its top is to park"
                self.ledger.broken(APART, text)
        else:
            self._served.discard(run_id)

    def changed(self, change: RunChanged) -> None:
        """A change is on disk."""
        run_id, run = change.run_id, self.ledger.disk.runs[change.run_id]
        waits = bool(run.values.values.get(AWAITED.name))
        if run_id in self._waiting and change.end is None:
            self._check_still(change)
            left = [one for one in self.kin.of(run_id) if self._is_awaited(one)]
            if left and not waits:
                self.ledger.broken(NOWHERE, f"{run_id} goes on while {left} are not over")
        elif waits and run_id not in self._waiting:
            self.waited[run_id] = self.waited.get(run_id, 0) + 1
        (self._waiting.add if waits and change.end is None else self._waiting.discard)(run_id)
        if change.end is not None:
            self._aside.pop(run_id, None)
            self._served.discard(run_id)
        elif any(isinstance(event, RunParked) for event in change.delta.events):
            self._parks += 1
            self._aside[run_id] = self._parks
            self._served.discard(run_id)
            # One that waits with those below it for their user does not hold up the others.
            if run.spec.parent is not None and not is_waiting(run.values.values):
                self._look_later(run_id, self._parks)

    def _is_awaited(self, child: str) -> bool:
        beside = self.kin.kids[child].is_beside
        return not beside and self.ledger.disk.runs[child].end is None

    def _check_still(self, change: RunChanged) -> None:
        """It waits: it is told of ends, may be put aside, and does nothing."""
        others = {write.key for write in change.delta.writes} - _MEANWHILE
        if change.hop is not None or change.delta.messages or others:
            text = f"{change.run_id} goes on to {change.hop} with {sorted(others)}"
            self.ledger.broken(NOWHERE, text)

    def committed(self, entries: Sequence[Entry]) -> None:
        """Entries are on disk, all at once: a tree is put aside as one."""
        for entry in entries:
            if isinstance(entry, RunChanged) and entry.run_id in self._aside:
                self._check_below(entry.run_id)

    def _check_below(self, run_id: str) -> None:
        host = self.ledger.coordinator
        for child in self.kin.of(run_id):
            if self.ledger.disk.runs[child].end is not None:
                continue
            # One that nobody has taken up since its coordinator died is served by nobody.
            served = host is not None and child in host._coordinator.runs
            if child not in self._aside and served and run_id not in host._coordinator.runs:  # type: ignore[union-attr]
                self.ledger.broken(APART, f"{run_id} is parked, and {child} below it is not")

    def _look_later(self, run_id: str, number: int) -> None:
        loop, host = self.ledger.loop, self.ledger.coordinator
        process = self.ledger.coordinator_process

        def look() -> None:
            root = self.ledger.disk.runs[run_id].spec.root
            lives = process is not None and not process.gone and not process.stopped
            if (
                lives
                and process not in self.ledger.harmed
                and self.ledger.coordinator is host
                and host is not None
                and not host.is_broken
                and self._aside.get(run_id) == number
                and root not in self._aside
                and self.ledger.disk.runs[root].end is None
            ):
                self.ledger.broken(APART, f"{run_id} is parked, and {root} at its top is not")

        loop.call_later(PATIENCE_S, look, context=loop.world.context)

    # ---- at hosts ---------------------------------------------------------------------

    def served(self, step: Happening) -> None:
        """An executor begins with a run that the newest coordinator has sent it."""
        run_id, host = step.run_id, self.ledger.coordinator
        self._check_nowhere(step)
        kid = self.kin.kids.get(run_id)
        if kid is None or host is None or run_at(host, step.process, run_id) is None:
            return
        link, runs = kid.spec.parent, host._coordinator.runs
        assert link is not None, "it is a child"
        if link.run_id not in runs or link.root not in runs:
            self.ledger.broken(APART, f"{run_id} is served, and not all above it")
        if self._term != self.ledger.term:
            self._term = self.ledger.term
            self._served.clear()
        self._served.add(run_id)
        beside = [one for one in self.kin.of(link.run_id) if one in self._served]
        settings = self.ledger.disk.runs[link.run_id].spec.config.sub_agents
        if settings is None or len(beside) > settings.max_parallel:
            self.ledger.broken(AT_ONCE, f"{link.run_id} has {beside} served at once")

    def asked(self, call: Happening) -> None:
        """A model is asked."""
        if self.serving.is_served_by(call.process):
            self._check_nowhere(call)

    def called(self, call: Happening) -> None:
        """A tool is called."""
        if self.serving.is_served_by(call.process):
            self._check_nowhere(call)
        for before in self.questions.calls_before(call):
            child = self.kin.child_of(before)
            if child is not None and self._is_awaited(child):
                self.ledger.broken(IN_ORDER, f"{call.what} of {call.key} begins before {child}")
            elif child is None and self._should_have(call.run_id, before):
                name = delegated_in(before)
                self.ledger.broken(IN_ORDER, f"{call.what} of {call.key} begins before {name}")

    def _should_have(self, run_id: str, call: ToolCall) -> bool:
        """Whether a call that has no child should have had one, for certain."""
        if not delegated_in(call):
            return False
        run = self.ledger.disk.runs[run_id]
        spec, values = run.spec, run.values.values
        depth = 0 if spec.parent is None else spec.parent.depth
        settings, limits = spec.config.sub_agents, spec.config.limits
        bounds = (limits.tool_calls, limits.tokens, limits.cost_usd, limits.time_s)
        used = [values.get(key.name) or {} for key in (USAGE, CHILDREN_USAGE)]
        made = sum(one.get("model_calls", 0) for one in used)
        # What is not on disk yet was used, too.
        left = limits.model_calls >= 60 and made < limits.model_calls - NOT_ON_DISK
        free = left and limits.working_s is None and not any(bounds)
        deep = settings is None or depth >= settings.max_depth
        return free and not deep and self._has_place(spec, call.name)

    def _has_place(self, spec: RunSpec, agent: str) -> bool:
        """Whether a run has the workspace of which the agent would have a copy, or needs none."""
        path = agent if spec.parent is None else f"{spec.parent.agent}/{agent}"
        return spec.workspace is not None or spec_at(self.kin.agents, path).workspace != "copy"

    def _check_nowhere(self, what: Happening) -> None:
        if what.run_id in self._waiting:
            text = f"{what.what} {what.key} begins at {what.process!r} with {what.run_id}"
            self.ledger.broken(NOWHERE, f"{text}, which waits")
