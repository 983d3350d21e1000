"""Watches what happens in a schedule, and says at once what must not have happened."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness_actors.actors.simulated.processes import SimulatedProcess, current_process
from harness_actors.actors.simulated.runtime import EPOCH
from harness_actors.conversation import Conversation, repaired
from harness_actors.coordination.active import ActiveRun
from harness_actors.events import RunParked
from harness_actors.messages import Message
from harness_actors.ports import Executor, RunContext, ToolContext
from harness_actors.records import Entry, RunAdded, RunChanged, SnapshotTaken
from harness_actors.signals import Outcome, Signal
from harness_actors.state import OPEN_CALLS
from tests.simulation.ledger import PROMPT_S, Happening, Ledger
from tests.simulation.places import run_at, seated, seated_actors

if TYPE_CHECKING:
    from harness_actors.actors.coordinator_host import CoordinatorHost


class Oracle:
    """Checks each happening against what is on disk.

    Args:
        ledger: Where it is written down.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._disk = ledger.disk
        self._disk.written = self._written
        self._pending: set[tuple[str, str]] = set()
        """Call ids by run whose pending record is on disk, with the message that has them."""
        self._begun: set[str] = set()
        self._open_steps: dict[str, list[Happening]] = {}
        self._parked: set[str] = set()

    # ---- the coordinator --------------------------------------------------------------

    def serving(self, context: RunContext, executor: str) -> "_Serving":
        return _Serving(self, context, executor)

    def coordinator_began(self, host: "CoordinatorHost") -> None:
        """A coordinator has its term, and those of earlier ones have no processes left."""
        self.ledger.coordinator, self.ledger.term = host, host.term
        self.ledger.coordinator_process = current_process()
        self.ledger.note(current_process(), f"serves term {host.term}")

    def committed(self, term: int, entries: Sequence[Entry]) -> None:
        """Entries are on disk, and their writer does not know it yet."""
        if term != self._disk.term:
            self.ledger.broken("no commit of an older term", f"term {term} < {self._disk.term}")
        if self.ledger.trace is not None:
            self.ledger.note(current_process(), f"on disk: {', '.join(map(_brief, entries))}")

    def _written(self, entry: Entry) -> None:
        if isinstance(entry, RunChanged):
            self._changed(entry)
        elif isinstance(entry, RunAdded) and entry.command:
            self._parked.discard(entry.spec.run_id)
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
            self.ledger.broken("a run ends once", f"{change.run_id} goes on behind its end")
        if change.run_id in self._parked and not self._is_cancelled(change.run_id):
            text = f"{change.run_id} is parked, and changes"
            self.ledger.broken("a run that is stopped does nothing", text)
        if any(isinstance(event, RunParked) for event in change.delta.events):
            self._parked.add(change.run_id)
        log = self._disk.logs[run.spec.conversation_id]
        for write in change.delta.writes:
            if write.key == OPEN_CALLS.name and write.value:
                open_ids = {call.id for call in Conversation(log).open_calls()}
                listed = {call["call_id"] for call in write.value}
                self._pending |= {(change.run_id, call) for call in listed & open_ids}

    def _is_cancelled(self, run_id: str) -> bool:
        return any(r.run_id == run_id and r.what == "cancel" for r in self.ledger.requests)

    # ---- executors ----------------------------------------------------------------------

    def step_begins(self, context: RunContext, executor: str) -> Happening:
        run_id, process = context.spec.run_id, current_process()
        step = self.ledger.begin(self.ledger.steps, run_id, executor)
        self._check_predecessors(step)
        run = self._run_at(process, run_id)
        if run is None:
            self._check_place(step)
        else:
            step.number = run.step
        if run is not None and getattr(context, "_log", None) is not None:
            log, known = list(context.log), list(run.state.log)
            if log != known[: len(log)]:
                text = f"{executor} is given another log of {run_id} than the coordinator has"
                self.ledger.broken("the state equals the replay of the journal", text)
        return step

    def _check_predecessors(self, step: Happening) -> None:
        left = [s for s in self._open_steps.get(step.run_id, ()) if s.ended_at is None]
        for other in left:
            processes = (other.process, other.process.companion)
            alive = [p for p in processes if p is not None and not p.gone]
            if other.process is not step.process and alive and self._is_given_up(other.process):
                self.ledger.broken(
                    "no run goes on before its last host's process is gone",
                    f"{step.run_id} goes on at {step.process!r} while {alive} lives",
                )
        self._open_steps[step.run_id] = [*left, step]

    def _check_place(self, step: Happening) -> None:
        """It is at another host, or at none; it may only have been stopped meanwhile."""
        host, run_id = self.ledger.coordinator, step.run_id
        if host is None or not self._serves(step.process) or run_id not in host._coordinator.runs:
            return
        changes = self._disk.runs[run_id].changes
        if not any(isinstance(e, RunParked) for _, c in changes for e in c.delta.events):
            text = f"{run_id} is served at {step.process!r}, and is elsewhere"
            self.ledger.broken("a run is at one executor at a time", text)

    def _serves(self, process: SimulatedProcess) -> bool:
        """It has its seat, and the coordinator that gave it is alive."""
        coordinator = self.ledger.coordinator_process
        alive = coordinator is not None and not coordinator.gone and not coordinator.stopped
        actor = seated(self.ledger.coordinator, process)
        return alive and actor is not None and not actor.dead

    def check_idle(self) -> None:
        """Every run is over, and nobody may hold anything of them."""
        host, broken = self.ledger.coordinator, self.ledger.broken
        coordinator = self.ledger.coordinator_process
        if host is None or coordinator is None or coordinator.gone or coordinator.stopped:
            return
        if host._coordinator.runs:
            broken("nothing is left of runs that are over", f"{list(host._coordinator.runs)}")
        for actor in seated_actors(host):
            if actor.dead or actor.process.gone or actor.process.stopped:
                continue
            left = actor.now.instance.host
            if left._runs or left._tasks:
                text = f"{actor.process!r} has {list(left._runs)} and steps of {list(left._tasks)}"
                broken("nothing is left of runs that are over", text)

    def _is_given_up(self, process: SimulatedProcess) -> bool:
        """Its runs went on because it was thought dead."""
        return seated(self.ledger.coordinator, process) is None

    def _run_at(self, process: SimulatedProcess, run_id: str) -> ActiveRun | None:
        return run_at(self.ledger.coordinator, process, run_id)

    # ---- models -------------------------------------------------------------------------

    def asked(self, run_id: str, messages: Sequence[Message]) -> Happening:
        """A model is asked."""
        call = self.ledger.begin(self.ledger.models, run_id, "model")
        log = list(messages[1:])
        if repaired(log)[1]:
            text = f"{run_id} asks with {[_short(message) for message in log]}"
            self.ledger.broken("every call of the log has exactly one result", text)
        self._check_owner(run_id, log)
        run = self._run_at(call.process, run_id)
        steps = self._open_steps[run_id]
        if run is not None and any(step.number == run.step for step in steps):
            self._check_ahead(run_id, log)
        if self.ledger.prompt and self._serves(call.process):
            self._check_wanted(run_id)
        return call

    def _check_wanted(self, run_id: str) -> None:
        """A run that was stopped some time ago asks no model."""
        since, run = self.ledger.loop.time() - PROMPT_S, self._disk.runs[run_id]
        requests = [request for request in self.ledger.requests if request.run_id == run_id]
        resumes = [request for request in requests if request.what == "resume"]
        parked_at = _parked_at(run.changes)
        if run.end is not None and run.changes[-1][1].at - EPOCH < since:
            self.ledger.broken("a run that is stopped does nothing", f"{run_id} is over")
        elif 0 < parked_at < since and not any(r.is_open_at(parked_at) for r in resumes):
            self.ledger.broken("a run that is stopped does nothing", f"{run_id} is parked")
        stop = next((r for r in reversed(requests) if r.what != "resume"), None)
        if stop is None or stop.done_at is None or stop.done_at > since:
            return
        if not any(resume.is_open_at(stop.asked_at) for resume in resumes):
            text = f"{run_id} goes on after {stop.what!r} was acknowledged"
            self.ledger.broken("what was acknowledged is on disk", text)

    def _check_owner(self, run_id: str, log: Sequence[Message]) -> None:
        talk = run_id.split("-")[1]
        for message in log:
            text = message.text
            if message.role == "tool" and text.startswith("done "):
                text = text.removeprefix("done ")
            elif message.role == "user" and text.startswith("[run-"):
                text = text[1:]
            else:
                continue
            if text.split("-")[1] != talk:
                self.ledger.broken("no run sees another's state", f"{run_id} sees {text!r}")

    def _check_ahead(self, run_id: str, log: Sequence[Message]) -> None:
        disk = self._disk.logs[self._disk.runs[run_id].spec.conversation_id]
        if disk != log[: len(disk)]:
            text = f"{run_id} asks without what is on disk"
            self.ledger.broken("the state equals the replay of the journal", text)
        rounds = sum(message.role == "assistant" for message in log[len(disk) :])
        if rounds > 1:
            text = f"{run_id} is {rounds} rounds ahead of the disk"
            self.ledger.broken("at most one round is not on disk", text)

    # ---- tools --------------------------------------------------------------------------

    def called(self, kind: str, key: str, context: ToolContext, *, idempotent: bool) -> Happening:
        """A tool is called."""
        call = self.ledger.begin(self.ledger.tools, context.run_id, kind, key)
        if not key.startswith(f"{context.run_id}/"):
            self.ledger.broken("no run sees another's state", f"{context.run_id} calls {key}")
        if not idempotent:
            self._check_start(call, context.call_id)
        return call

    def _check_start(self, call: Happening, call_id: str) -> None:
        name = f"{call.key}:{call.what}"
        if name in self._begun:
            self.ledger.broken("a call that is not idempotent starts at most once", name)
        self._begun.add(name)
        if (call.run_id, call_id) not in self._pending:
            text = f"{name} starts before its pending record is on disk"
            self.ledger.broken("no effect before its pending record", text)
        self._check_term(call.process, name)

    def effect(self, key: str) -> None:
        """A tool that is not idempotent does what it is for."""
        process = current_process()
        self.ledger.effects.append(key)
        owner = process if process.companion is not None else process.parent
        self._check_term(owner or process, key)
        self.ledger.note(process, f"effect of {key}")

    def _check_term(self, process: SimulatedProcess, what: str) -> None:
        if process.term != self.ledger.term:
            text = f"{what} happens in term {process.term}, and {self.ledger.term} is served"
            self.ledger.broken("no effect of an older term", text)


class _Serving:
    """A step of an executor, from its beginning to its end."""

    def __init__(self, oracle: Oracle, context: RunContext, executor: str) -> None:
        self._oracle = oracle
        self._context = context
        self._executor = executor
        self._step: Happening | None = None

    def __enter__(self) -> None:
        self._step = self._oracle.step_begins(self._context, self._executor)

    def __exit__(self, kind: object, error: object, _trace: object) -> None:
        if self._step is not None:
            self._oracle.ledger.end(self._step, "answered" if kind is None else "was cut")


class WatchedExecutor:
    """One of our executors, with what it serves written down."""

    def __init__(self, executor: Executor, oracle: Oracle) -> None:
        self._executor = executor
        self._oracle = oracle
        self.name = executor.name
        self.reads = executor.reads
        self.reads_log = executor.reads_log

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        with self._oracle.serving(context, self.name):
            return await self._executor.handle(signal, context)


def _parked_at(changes: Sequence[tuple[int, RunChanged]]) -> float:
    """When a run was last put aside, in virtual seconds; 0 for never."""
    for _, change in reversed(changes):
        if any(isinstance(event, RunParked) for event in change.delta.events):
            return change.at - EPOCH
    return 0.0


def _short(message: Message) -> str:
    calls = ",".join(f"{call.id}:{call.name}" for call in message.tool_calls)
    return f"{message.role}:{message.tool_call_id or calls or message.text[:20]}"


def _brief(entry: Entry) -> str:
    match entry:
        case RunAdded():
            return f"{entry.spec.run_id} added for {entry.command[:8]!r}"
        case RunChanged():
            events = "+".join(event.type for event in entry.delta.events)
            messages = "+".join(_short(message) for message in entry.delta.messages)
            hop = f" -> {entry.hop.to}" if entry.hop is not None else ""
            end = f" ENDS {entry.end.status}({entry.end.reason.kind})" if entry.end else ""
            return f"{entry.run_id} v{entry.version} [{events}] [{messages}]{hop}{end}"
        case SnapshotTaken():
            return f"snapshot of {entry.run_id}"
        case other:
            return type(other).__name__
