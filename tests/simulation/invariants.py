"""What must hold when a schedule is over."""

from collections.abc import Sequence
from traceback import walk_tb
from typing import TYPE_CHECKING

from harness_actors.actors.simulated.cell import EPOCH
from harness_actors.conversation import repaired
from harness_actors.coordination.graph import ENTRY
from harness_actors.errors import HarnessError
from harness_actors.events import DERIVED_EVENTS, RunCompleted, TurnCompleted
from harness_actors.results import HarnessResult
from harness_actors.state import AGENT_TURN, SIDE_USAGE
from tests.simulation import driver, guarding, passing, user, valuing
from tests.simulation.agents import REFUSED
from tests.simulation.disk import DiskRun, MemoryJournal
from tests.simulation.executors import FLAW
from tests.simulation.journals import view_of_run
from tests.simulation.ledger import Happening
from tests.simulation.paths import check_path
from tests.simulation.promptness import INVARIANT, WITHIN_S
from tests.simulation.waves import check_repeats
from tests.simulation.workflows import JUDGED

if TYPE_CHECKING:
    from tests.simulation.schedule import Schedule

DRIVERS = frozenset((driver.__file__, user.__file__))
ROUNDS_LOST = 2
"""What one interruption may cost: a finished round that was not on disk, and the one in
progress."""
MOST_CALLS = 3
"""In one message of a planned model."""
MOST_TOKENS = 3_000
"""Of one request and its answer."""


NOT_STARTED = "could be started"
"""In the end of a run whose pool has no process."""
NOT_ACCEPTED = "not accepted"
"""What the end of a run begins with that its gates did not let end."""
MUST_NOT_WAIT = "the model asked its user", "a person must approve of a call"
"""In the end of a run that must not wait for anybody."""


def check_end(schedule: "Schedule") -> None:
    """Check what a schedule leaves behind; what is broken is in its ledger."""
    for run_id in schedule.workload.runs:
        run = schedule.disk.runs.get(run_id)
        if run is None or run.end is None:
            schedule.ledger.broken("every run ends", f"{run_id} does not")
            continue
        _check_run(schedule, run, run.end)
    for run_id in schedule.oracle.kin.kids:
        _check_child(schedule, schedule.disk.runs[run_id])
    _check_logs(schedule)
    _check_replay(schedule)
    check_repeats(schedule)
    schedule.oracle.summarizing.check_end()
    schedule.oracle.kin.check_end()
    schedule.oracle.keeping.check_end(schedule.disk.runs)
    schedule.oracle.copying.check_end()
    _check_told(schedule)
    _check_stops(schedule)
    for error in schedule.loop.unseen_failures():
        if _was_told_to_a_driver(error):
            continue  # which was killed before it could look
        schedule.ledger.broken("nothing fails unseen", f"{type(error).__name__}: {error}")


def _was_told_to_a_driver(error: BaseException) -> bool:
    # Anywhere: a broken cell raises the same error for all who ask.
    frames = {frame.f_code.co_filename for frame, _ in walk_tb(error.__traceback__)}
    return isinstance(error, HarnessError) and not frames.isdisjoint(DRIVERS)


def _check_run(schedule: "Schedule", run: DiskRun, end: HarnessResult) -> None:
    run_id, broken = run.spec.run_id, schedule.ledger.broken
    completed = [e for _, c in run.changes for e in c.delta.events if isinstance(e, RunCompleted)]
    if len(completed) != 1 or run.changes[-1][1].end is None:
        broken("a run ends once", f"{run_id} has {len(completed)} ends")
    ending = f"{end.status}({end.reason.kind})"
    _check_own_end(schedule, run, end)
    check_path(schedule, run)
    if end.reason.kind == "executor_lost":
        _check_losses(schedule, run_id, run.spec.custom)
    asked = {request.what for request in schedule.ledger.requests if request.run_id == run_id}
    if end.status == "cancelled" and "cancel" not in asked:
        broken("runs end as planned", f"{run_id}: {ending}, and nobody asked for it")
    if end.status == "limit" and not _has_limit(schedule, run, end.reason.kind):
        broken("runs end as planned", f"{run_id}: {ending}, which it does not have")
    _check_budget(schedule, run, end)
    _check_turns(schedule, run, end)


def _check_child(schedule: "Schedule", run: DiskRun) -> None:
    """A child ends as its model, its bounds, its users and those above it will."""
    run_id, end, broken = run.spec.run_id, run.end, schedule.ledger.broken
    if end is None:
        return
    ending, kind = f"{end.status}({end.reason.kind})", end.reason.kind
    asked = {one.what for one in schedule.ledger.requests_of(run_id)}
    check_path(schedule, run)
    if kind == "executor_lost" and NOT_STARTED not in end.reason.message:
        _check_losses(schedule, run_id, run.spec.custom)
    if kind == "user" and "cancel" not in asked:
        broken("runs end as planned", f"{run_id}: {ending}, and nobody asked for it")
    if end.status == "limit" and not _has_limit(schedule, run, kind):
        broken("runs end as planned", f"{run_id}: {ending}, which it does not have")
    refused = REFUSED in end.reason.message or _is_by_gates(schedule, end.reason.message)
    fails = _must_not_wait(run, end.reason.message)
    if end.status == "failed" and kind != "executor_lost" and not refused | fails:
        broken("runs end as planned", f"{run_id}: {ending}: {end.reason.message}")
    _check_budget(schedule, run, end)


def _check_turns(schedule: "Schedule", run: DiskRun, end: HarnessResult) -> None:
    """A run has all of its turns, whatever befalls it in the last one."""
    made = sum(isinstance(e, TurnCompleted) for _, c in run.changes for e in c.delta.events)
    most = run.spec.config.max_turns
    if end.reason.kind == "max_turns" and AGENT_TURN not in run.spec.custom and made < most:
        text = f"{run.spec.run_id} ends after {made} of its {most} turns"
        schedule.ledger.broken("runs end as planned", text)


def _check_own_end(schedule: "Schedule", run: DiskRun, end: HarnessResult) -> None:
    """What only an executor of the user's own does to a run, one of its workflow does."""
    workflow = schedule.workload.workflows.get(schedule.workload.runs[run.spec.run_id].program, ())
    kinds = {executor.kind for executor in workflow}
    reason = end.reason
    flawed = reason.kind == "agent_error" and FLAW in reason.message and "flaw" in kinds
    judged = reason == JUDGED.reason and "judge" in kinds
    fails = _must_not_wait(run, reason.message)
    refused = reason.kind == "agent_error" and _is_by_gates(schedule, reason.message)
    wanted = flawed | fails | refused
    if (end.status == "failed" and reason.kind != "executor_lost" and not wanted) or (
        reason.kind == JUDGED.reason.kind
        and not judged
        and not reason.message.startswith(NOT_ACCEPTED)
    ):
        text = f"{run.spec.run_id}: {end.status}({reason.kind}): {reason.message}"
        schedule.ledger.broken("runs end as planned", text)


def _must_not_wait(run: DiskRun, message: str) -> bool:
    return run.spec.config.on_question == "fail" and any(
        words in message for words in MUST_NOT_WAIT
    )


def _is_by_gates(schedule: "Schedule", message: str) -> bool:
    guarded = schedule.workload.guarded and guarding.WORDS in message
    held = any(one.output_type is not None for one in schedule.workload.sub_agents)
    typed = (schedule.workload.typed or held) and any(w in message for w in valuing.WORDS)
    return guarded or typed or (schedule.workload.passed and passing.WORDS in message)


def _has_limit(schedule: "Schedule", run: DiskRun, kind: str) -> bool:
    if kind == "budget":
        return schedule.oracle.spending.is_spent
    config = run.spec.config
    name = {"time": "time_s", "working_time": "working_s", "cost": "cost_usd"}.get(kind, kind)
    if name == "max_turns" or (name == "context" and schedule.workload.pressed):
        return True
    return getattr(config.limits, name, None) is not None


def _check_losses(schedule: "Schedule", run_id: str, custom: Sequence[str]) -> None:
    steps = [step for step in schedule.ledger.steps if step.run_id == run_id]
    killed: list[object] = [
        step
        for at, step in enumerate(steps)
        if step.what == AGENT_TURN
        and step.process.gone
        and (step.ended_at is None or _is_unheard(steps[at + 1 :]))
    ]
    # Of a user's executor, every death counts for the runs that are there or on their way.
    theirs = [p for p in schedule.machine.processes if p.mark.role in custom]
    killed += [p for p in theirs if p.gone and p not in schedule.ours]
    if len(killed) < 3:
        text = f"{run_id} ends failed(executor_lost) after {len(killed)} deaths"
        schedule.ledger.broken("one poisonous run does not take its neighbours with it", text)


def _is_unheard(following: Sequence[Happening]) -> bool:
    """Whether what a turn came to may have died with its process before anybody else knew it."""
    return not following or following[0].what == ENTRY


def _check_budget(schedule: "Schedule", run: DiskRun, end: HarnessResult) -> None:
    run_id, limits, used = run.spec.run_id, run.spec.config.limits, end.usage
    ledger, broken = schedule.ledger, schedule.ledger.broken
    begun = sum(step.run_id == run_id and step.what == AGENT_TURN for step in ledger.steps)
    told = [event for _, c in run.changes for event in c.delta.events]
    interrupted = begun - sum(isinstance(event, TurnCompleted) for event in told)
    interrupted -= schedule.oracle.waits.of(run_id).waits
    interrupted -= schedule.oracle.at_work.waited.get(run_id, 0)
    asked = sum(call.run_id == run_id for call in ledger.models)
    called = sum(call.run_id == run_id for call in ledger.tools)
    called -= schedule.oracle.passing.again[run_id]
    name = "budgets are not overdrawn"
    if end.turn_count > run.spec.config.max_turns:
        broken(name, f"{run_id} had {end.turn_count} of {run.spec.config.max_turns} turns")
    if used.model_calls > limits.model_calls:
        broken(name, f"{run_id} used {used.model_calls} of {limits.model_calls} model calls")
    if limits.tool_calls is not None and used.tool_calls > limits.tool_calls:
        broken(name, f"{run_id} used {used.tool_calls} of {limits.tool_calls} tool calls")
    if limits.tokens is not None and used.tokens > limits.tokens + MOST_TOKENS:
        broken(name, f"{run_id} used {used.tokens} of {limits.tokens} tokens")
    aside = run.values.values.get(SIDE_USAGE.name, {}).get("cost_usd", 0.0)
    if limits.cost_usd is not None and used.cost_usd - aside > limits.cost_usd + 0.0101:
        broken(name, f"{run_id} used {used.cost_usd} of {limits.cost_usd} USD")
    if ledger.prompt and limits.working_s is not None:
        over_s = used.working_s - limits.working_s
        if over_s > WITHIN_S + ledger.slow_s:
            broken(INVARIANT, f"{run_id} worked {over_s:.3f} s longer than it may")
    if not used.model_calls <= asked <= used.model_calls + ROUNDS_LOST * interrupted:
        text = f"{run_id}: {used.model_calls} model calls are counted, {asked} were made"
        broken("what is used is counted", f"{text}, with {interrupted} interruptions")
    planned = schedule.oracle.rounds_of(run_id)
    most_calls = max([MOST_CALLS, *(len(planned_round.calls) for planned_round in planned)])
    if called > used.tool_calls + ROUNDS_LOST * most_calls * interrupted:
        text = f"{run_id}: {used.tool_calls} tool calls are counted, {called} were made"
        broken("what is used is counted", f"{text}, with {interrupted} interruptions")


def _check_logs(schedule: "Schedule") -> None:
    for conversation_id, log in schedule.disk.logs.items():
        if repaired(log)[1]:
            texts = [f"{m.role}:{m.tool_call_id or [c.id for c in m.tool_calls]}" for m in log]
            schedule.ledger.broken(
                "every call of the log has exactly one result", f"{conversation_id}: {texts}"
            )


def _check_replay(schedule: "Schedule") -> None:
    """What the journal gives back is what its changes add up to."""
    journal, reopened = MemoryJournal(schedule.disk), schedule.reopened()
    for run_id, run in schedule.disk.runs.items():
        loaded = journal.load_run(run_id)
        if loaded is not None and loaded.state.values != run.values.values:
            text = f"{run_id}: {loaded.state.values} is not {run.values.values}"
            schedule.ledger.broken("the state equals the replay of the journal", text)
        if reopened is not None and view_of_run(reopened.load_run(run_id)) != view_of_run(loaded):
            schedule.ledger.broken("the journal gives back what was committed", run_id)


def _check_told(schedule: "Schedule") -> None:
    """Whoever follows the runs was told everything, once, in order."""
    told = schedule.ledger.told
    journal = MemoryJournal(schedule.disk)
    expected = [
        event
        for event in journal.load_events(0, limit=1_000_000)
        if not isinstance(event.event, DERIVED_EVENTS)
    ]
    last = told[-1].position if told else 0
    expected = [event for event in expected if event.position <= last]
    if told != expected[len(expected) - len(told) :] or len(told) < len(expected):
        text = f"{len(told)} events were told, {len(expected)} are on disk up to there"
        schedule.ledger.broken("who follows misses nothing", text)


def _check_stops(schedule: "Schedule") -> None:
    """A run that was cancelled, and did not end before, is cancelled."""
    for request in schedule.ledger.requests:
        if request.what == "cancel" and request.done_at is not None:
            ended_at = schedule.disk.runs[request.run_id].changes[-1][1].at - EPOCH
            if ended_at > request.done_at:
                text = f"cancel of {request.run_id}"
                schedule.ledger.broken("what was acknowledged is on disk", text)
