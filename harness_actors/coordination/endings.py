"""How runs end: what the coordinator decides itself, and what every ending leaves behind."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness_actors.conversation import UNKNOWN_OUTCOME
from harness_actors.coordination.active import ActiveRun
from harness_actors.coordination.coverage import contract_result
from harness_actors.coordination.protocol import Slot
from harness_actors.events import RunCompleted
from harness_actors.messages import Failure, Message
from harness_actors.results import HarnessResult, LimitKind, Reason, Usage
from harness_actors.signals import RunEnd
from harness_actors.state import (
    CHILD_RESULTS,
    CHILDREN,
    CHILDREN_USAGE,
    QUESTIONS,
    USAGE,
    SharedState,
    StateDelta,
    turns_of,
)
from harness_actors.turn.bounds import words_of
from harness_actors.turn.questions import NOT_BEGUN

NOT_BEGUN_BEHIND = "The call was not made: the run ended while those before it were at work."
NAMED_TOOLS = 5
"""Most tools that are named in a sentence."""

CANCELLED = RunEnd(status="cancelled", reason=Reason(kind="user", message="cancelled by its user"))
ORPHANED = RunEnd(
    status="cancelled", reason=Reason(kind="parent", message="the run that waits for it is over")
)

NOT_WANTED = RunEnd(
    status="cancelled", reason=Reason(kind="parent", message="the run above it has cancelled it")
)


def agent_error(message: str) -> RunEnd:
    """A user's executor did what its workflow does not allow."""
    return RunEnd(status="failed", reason=Reason(kind="agent_error", message=message))


def executor_lost(slot: Slot, losses: int, tools: Sequence[str] = (), cause: str = "") -> RunEnd:
    """The run, and nothing else, keeps killing the process that serves it.

    Args:
        slot: Where it was served last.
        losses: How often.
        tools: Those that had been called the last time and had not answered; empty where an
            answer of the model was being taken in.
        cause: Why the process was killed the last time; empty where it died by itself.
    """
    if slot.code:
        at, whose = "it worked on this run", "the executor"
    elif not tools:
        at, whose = "it took in an answer of this run's model", "the answer"
    else:
        at, whose = f"{_named(tools)} of this run was running", "a tool" if cause else "the tool"
    fault = f"{whose} probably crashes its process or needs more memory than there is"
    if cause and not tools and not slot.code:
        fault = f"the last time {cause}"
    elif cause:
        remedy = (
            "have it do so in `asyncio.to_thread`"
            if slot.code
            else "declare it with `def`, not `async def`, and it runs in a thread"
        )
        fault = f"the last time {cause}; {whose} probably blocks the event loop: {remedy}"
    message = f"the process of {slot} died {losses} times while {at}; {fault}"
    return RunEnd(status="failed", reason=Reason(kind="executor_lost", message=message))


def executor_missing(slot: Slot, cause: str) -> RunEnd:
    """There is no process to serve the run, and none could be started.

    Args:
        slot: Where it would be.
        cause: Why.
    """
    message = f"no process of {slot} could be started: {cause}"
    return RunEnd(status="failed", reason=Reason(kind="executor_lost", message=message))


def _named(tools: Sequence[str]) -> str:
    if len(tools) == 1:
        return f"the tool {tools[0]!r}"
    more = ["…"] if len(tools) > NAMED_TOOLS else []
    return f"one of the tools {', '.join([*map(repr, tools[:NAMED_TOOLS]), *more])}"


def limit_reached(kind: LimitKind, run: ActiveRun) -> RunEnd:
    """A bound of the run was reached, and no executor has ended it."""
    return _limit(kind, words_of(kind, run.spec.config), run)


def out_of_budget(run: ActiveRun, budget_usd: float) -> RunEnd:
    """The runs of its command have spent what they may cost together."""
    message = f"the {budget_usd:g} USD that all runs together may cost were spent"
    return _limit("budget", message, run)


def _limit(kind: str, message: str, run: ActiveRun) -> RunEnd:
    details = {"turn": turns_of(run.state.values)}
    return RunEnd(status="limit", reason=Reason(kind=kind, message=message, details=details))


def last_words(state: SharedState, end: RunEnd, *, shared: bool = False) -> StateDelta:
    """The last change of a run: calls that are open get a result, and the end is told.

    Those that have begun runs get what these came to, which have ended before.

    Args:
        state: That of the run.
        end: How it ended.
        shared: They are another run's, which continues its conversation or waits in it.
    """
    asked = state.values.get(QUESTIONS.name) or {}
    came_to = {one["call_id"]: one for one in state.values.get(CHILD_RESULTS.name) or ()}
    not_begun = NOT_BEGUN if asked.get("asked") else NOT_BEGUN_BEHIND
    unanswered = tuple(
        _result_of_child(call.id, came_to[call.id])
        if call.id in came_to
        else Message.tool_result(call.id, not_begun, failure="refused")
        if call.id in asked.get("held", ())
        else Message.tool_result(call.id, UNKNOWN_OUTCOME, failure="unknown")
        for call in (() if shared else state.log.open_calls())
    )
    completed = RunCompleted(
        status=end.status,
        reason=end.reason.kind,
        message=end.reason.message,
        traceback=end.reason.traceback,
    )
    return StateDelta(messages=unanswered, events=(completed,))


def _result_of_child(call_id: str, came_to: Mapping[str, Any]) -> Message:
    failure: Failure | None = "timed_out" if came_to["status"] == "timed_out" else "failed"
    if came_to["status"] == "completed":
        failure = None
    return Message.tool_result(call_id, came_to["text"], failure=failure)


def result_of(run: ActiveRun, end: RunEnd, *, now: float) -> HarnessResult:
    """The result of a run that ends now, in seconds since the epoch."""
    values = run.state.values
    return HarnessResult(
        run_id=run.spec.run_id,
        status=end.status,
        reason=end.reason,
        turn_count=turns_of(values),
        output_text=end.output_text,
        completion_verified=end.completion_verified,
        usage=Usage(**values.get(USAGE.name, {})),
        wall_s=max(0.0, now - run.counts_from - run.waiting_s(now)),
        contract=contract_result(run.spec.config.contract, values),
        output=end.output,
        children_usage=Usage(**used) if (used := values.get(CHILDREN_USAGE.name)) else None,
        children=values.get(CHILDREN.name, 0),
    )
