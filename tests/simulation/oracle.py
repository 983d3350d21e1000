"""Watches what happens in a schedule, and says at once what must not have happened."""

from collections.abc import Mapping, Sequence

from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.actors.simulated.processes import SimulatedMachine, current_process
from harness_actors.config import HarnessConfig
from harness_actors.conversation import Conversation
from harness_actors.events import RunParked
from harness_actors.messages import Message
from harness_actors.ports import RunContext, ToolContext
from harness_actors.records import Entry, RunAdded, RunChanged, SnapshotTaken, SummaryStored
from harness_actors.state import OPEN_CALLS, is_waiting
from tests.simulation.approving import Approving
from tests.simulation.artifacts import Keeping
from tests.simulation.asked_below import AskedBelow, is_answer
from tests.simulation.asking import Asking, shortly
from tests.simulation.circling import Circling
from tests.simulation.copying import Copying
from tests.simulation.effects import Effects
from tests.simulation.guarding import Guarding
from tests.simulation.judging import Judging
from tests.simulation.kin import Kin, is_by_kin
from tests.simulation.kin_at_work import AtWork
from tests.simulation.ledger import Happening, Ledger, root_of
from tests.simulation.observing import Observing
from tests.simulation.passing import Passing
from tests.simulation.pressing import Pressing
from tests.simulation.promptness import Promptness
from tests.simulation.sent_out import SentOut
from tests.simulation.serving import ServedStep, Serving
from tests.simulation.shelves import Shelves
from tests.simulation.spending import Spending
from tests.simulation.summarizing import Summarizing
from tests.simulation.talking import Talking
from tests.simulation.tree_bounds import TreeBounds
from tests.simulation.trying import Trying
from tests.simulation.valuing import Valuing
from tests.simulation.verifying import Verifying
from tests.simulation.waits import Waits
from tests.simulation.waves import REPEATED, AtOnce
from tests.simulation.working import Working
from tests.simulation.workload import PlannedRound, Workload


class Oracle:
    """Checks each happening against what is on disk.

    Args:
        ledger: Where it is written down.
        machine: Where it happens.
        workload: What is asked of the cell.
        seed: That of the schedule.
    """

    def __init__(
        self, ledger: Ledger, machine: SimulatedMachine, workload: Workload, seed: int
    ) -> None:
        self.ledger = ledger
        self.machine = machine
        self._runs = workload.runs
        self._typed = workload.typed
        self._disk = ledger.disk
        self._disk.written = self._written
        self.serving_rules = Serving(ledger, machine)
        self.waits = Waits(ledger)
        self.promptness = Promptness(ledger, self.waits.waited_s)
        self.spending = Spending(ledger, workload.budget_usd)
        self.talks = Talking(ledger)
        self.observing = Observing(ledger)
        self.judging = Judging(ledger, seed)
        self.approving = Approving(ledger, workload.approvals, replaces=workload.moody)
        self.guarding = Guarding(ledger, seed)
        self.passing = Passing(ledger, seed)
        self.verifying = Verifying(ledger, machine, seed)
        self.valuing = Valuing(ledger, machine, seed)
        self.working = Working(ledger, seed)
        self.trying = Trying(ledger, seed)
        self.at_once = AtOnce(ledger)
        self.shelves = Shelves(ledger)
        self.circling = Circling(ledger, seed)
        self.keeping = Keeping(ledger)
        self.pressing = Pressing(ledger, pressed=workload.pressed)
        self.summarizing = Summarizing(ledger, machine, seed, wished=workload.summarized)
        self.kin = Kin(ledger, workload.sub_agents)
        self.at_work = AtWork(ledger, self.kin, self.serving_rules, self.waits)
        self.sent_out = SentOut(ledger, self.kin)
        self.asked_below = AskedBelow(ledger, self.kin)
        agents, homeless = workload.sub_agents, workload.homeless
        self.copying = Copying(ledger, self.kin, agents, homeless, wished=workload.copying)
        self._tree_bounds = TreeBounds(ledger, self.kin)
        self._delegates = bool(workload.sub_agents)
        self._asking = Asking(ledger, self.serving_rules)
        self._effects = Effects(ledger, self.serving_rules)
        self._parked: set[str] = set()

    def rounds_of(self, run_id: str) -> Sequence[PlannedRound]:
        """What the model of a run is to answer."""
        kid = self.kin.kids.get(run_id)
        return self._runs[run_id].rounds if kid is None else self.kin.planned[kid.name].rounds

    # ---- what happens -----------------------------------------------------------------

    def serving(self, context: RunContext, executor: str) -> ServedStep:
        """A step of an executor, for as long as it is open."""
        return ServedStep(self, context, executor)

    def step_begins(self, context: RunContext, executor: str) -> Happening:
        step = self.serving_rules.begins(context, executor)
        self.spending.served(context, executor)
        if self.serving_rules.is_served_by(step.process):
            self.waits.served(step)
            self.at_work.served(step)
        return step

    def config_of(self, run_id: str) -> HarnessConfig:
        """The settings of a run that is on disk."""
        return self._disk.runs[run_id].spec.config

    def is_typed(self, run_id: str) -> bool:
        """Whether a run that is on disk is to come to a value."""
        link = self._disk.runs[run_id].spec.parent
        return self._typed if link is None else link.typed

    def asked(self, run_id: str, messages: Sequence[Message]) -> Happening:
        """A model is asked."""
        self.spending.asked(run_id)
        self.waits.asked(run_id, messages[1:])
        self.guarding.asked(run_id, messages)
        self.verifying.asked(run_id)
        self.kin.asked(run_id, messages)
        self.sent_out.asked(run_id, messages)
        call = self._asking.asked(run_id, messages)
        self.at_work.asked(call)
        return call

    def check_keys(self, run_id: str, needed: Sequence[str], given: Mapping[str, str]) -> None:
        """A model is asked that needs keys, and has these."""
        self._asking.check_keys(run_id, needed, given)

    def called(
        self, kind: str, key: str, context: ToolContext, *, idempotent: bool, shelf: str = ""
    ) -> Happening:
        """A tool is called; at a shelf that it has for itself, if any."""
        call = self._effects.called(kind, key, context, idempotent=idempotent)
        self.at_once.called(call, shelf)
        if kind not in REPEATED:
            # By the others' keys it is known where in their message they stand.
            self.waits.called(call)
            if self._delegates:
                self.at_work.called(call)
        return call

    def effect(self, key: str) -> None:
        """A tool that is not idempotent does what it is for."""
        self._effects.effect(key)

    # ---- the coordinator --------------------------------------------------------------

    def coordinator_began(self, host: CoordinatorHost) -> None:
        """A coordinator has its term, and those of earlier ones have no processes left."""
        self.ledger.coordinator, self.ledger.term = host, host.term
        self.ledger.coordinator_process = current_process()
        self.ledger.coordinator_since = self.ledger.loop.time()
        self.ledger.note(current_process(), f"serves term {host.term}")

    def committed(self, term: int, entries: Sequence[Entry]) -> None:
        """Entries are on disk, and their writer does not know it yet."""
        if term != self._disk.term:
            self.ledger.broken("no commit of an older term", f"term {term} < {self._disk.term}")
        if self._delegates:
            self.kin.committed(entries)
            self.at_work.committed(entries)
            self.asked_below.committed(entries)
        if self.ledger.trace is not None:
            self.ledger.note(current_process(), f"on disk: {', '.join(map(_brief, entries))}")

    def _written(self, entry: Entry) -> None:
        if isinstance(entry, RunChanged):
            self._changed(entry)
        elif isinstance(entry, RunAdded):
            self.talks.added(entry)
            self.waits.added(entry)
            self.kin.added(entry)
            self.at_work.added(entry)
            if entry.command:
                self._parked.discard(entry.spec.run_id)
                self.promptness.added(entry)
        elif isinstance(entry, SummaryStored):
            self.summarizing.stored(entry)
        elif isinstance(entry, SnapshotTaken):
            state = self._disk.runs[entry.run_id].values
            if (state.version, state.values) != (entry.version, entry.values):
                text = f"{entry.run_id} at {entry.version}: {dict(entry.values)}"
                self.ledger.broken(
                    "the state equals the replay of the journal",
                    f"snapshot of {text} is not {state.values}",
                )

    def _changed(self, change: RunChanged) -> None:
        run = self._disk.runs[change.run_id]
        if run.values.version != change.version:
            text = f"{change.run_id}: change {run.values.version} is numbered {change.version}"
            self.ledger.broken("the state equals the replay of the journal", text)
        if sum(c.end is not None for _, c in run.changes) > 1 or (
            run.end is not None and change.end is None
        ):
            self.ledger.broken("a run ends once", f"{change.run_id} goes on after its end")
        still = is_by_kin(change) or is_answer(change, run.values.values)
        still = still or self._is_cancelled(change.run_id)
        if change.run_id in self._parked and not still:
            text = f"{change.run_id} is parked, and changes"
            self.ledger.broken("a run that is stopped does nothing", text)
        parks = any(isinstance(event, RunParked) for event in change.delta.events)
        # One that waits for those below it is watched as all that wait for their user are.
        if parks and not is_waiting(run.values.values):
            self._parked.add(change.run_id)
        self.spending.changed(change)
        self.talks.changed(change)
        self.observing.changed(run, change)
        self.keeping.changed(run, change)
        self.waits.changed(change)
        log = self._disk.logs[run.spec.conversation_id]
        self.judging.changed(run, change, log)
        self.approving.changed(run, change, log)
        self.guarding.changed(run, change)
        self.passing.changed(run, change, log)
        self.circling.changed(run, change)
        self.summarizing.changed(change, self.pressing.plan_of(run))
        self.pressing.changed(run, change, log)
        self.verifying.changed(run, change)
        if self.is_typed(change.run_id):
            self.valuing.changed(run, change)
        if self._delegates:
            self.kin.changed(change, log)
            self.sent_out.changed(change, log)
            self.copying.changed(change, log)
            self.at_work.changed(change)
            self._tree_bounds.changed(run, change)
        for write in change.delta.writes:
            if write.key == OPEN_CALLS.name and write.change == "set" and write.value:
                open_ids = {call.id for call in Conversation(log).open_calls()}
                listed = {call["call_id"] for call in write.value}
                self._effects.pending |= {(change.run_id, call) for call in listed & open_ids}

    def _is_cancelled(self, run_id: str) -> bool:
        # Who waits for one that is cancelled is told so, and those below it end with it.
        tree = root_of(run_id)
        return any(root_of(r.run_id) == tree and r.what == "cancel" for r in self.ledger.requests)


def _brief(entry: Entry) -> str:
    match entry:
        case RunAdded():
            return f"{entry.spec.run_id} added for {entry.command[:8]!r}"
        case RunChanged():
            events = "+".join(event.type for event in entry.delta.events)
            messages = "+".join(shortly(message) for message in entry.delta.messages)
            hop = f" -> {entry.hop.to}" if entry.hop is not None else ""
            end = f" ENDS {entry.end.status}({entry.end.reason.kind})" if entry.end else ""
            return f"{entry.run_id} v{entry.version} [{events}] [{messages}]{hop}{end}"
        case SnapshotTaken():
            return f"snapshot of {entry.run_id}"
        case other:
            return type(other).__name__
