"""The calls of one message: which may run, and what comes of each."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from typing import Literal

import orjson

from harness_actors.errors import ToolError
from harness_actors.messages import ToolCall
from harness_actors.outputs import OutputCodeError
from harness_actors.outputs.words import NOT_CHECKED
from harness_actors.policies import CallDeniedError
from harness_actors.policies.approvals import ApprovalNeed
from harness_actors.ports import (
    AskingTool,
    LargeResult,
    Tool,
    ToolContext,
    ToolOutput,
)
from harness_actors.ports.deadlines import TIME_IS_UP
from harness_actors.ports.origins import ORIGIN
from harness_actors.results import LimitKind
from harness_actors.turn.around import AroundTools
from harness_actors.turn.bounds import Due
from harness_actors.turn.deadline import Allowance, Raised, TimedOut, run_within
from harness_actors.turn.interruption import is_ctrl_c
from harness_actors.turn.outcomes import (
    ToolDenied,
    ToolExecutionResult,
    ToolFailure,
    ToolOutcome,
    ToolTimeout,
)
from harness_actors.turn.outputs import facts_of
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.texts import ERROR_CHARS, shortened, well_formed
from harness_actors.turn.tracebacks import user_traceback

CUT_SHORT = "length"
"""The reason of a model that stopped because its answer reached its length limit."""
CUT_ARGUMENTS = (
    "The call was not made: your answer reached its length limit in the middle of the arguments. "
    "Call again with shorter arguments, or do it in several smaller steps."
)
CUT = "its run was stopped"
COMPARED = 100
"""Names that another one is compared with, at most: a message may hold many such calls."""
NEAR = " Did you mean"
NEAREST = 2
"""Names that are told where there is no tool of a name, at most."""
NO_CALLS_LEFT = "The call was not made: the run has used all of its tool calls."
NO_CALLS_LEFT_IN_TURN = (
    "The call was not made: as many tool calls as may be made at a stretch have been made. "
    "Call again what is still needed."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """A call of a message, and what is known of it before it runs.

    Attributes:
        call: The call.
        tool: What it calls; None where it must not run.
        refusal: Why it must not run, for the model; empty where it may.
        limit: The bound of the run that forbids it; None where none does.
        alone: No other call of the message may run beside it, whatever it does: it asks the
            user, waits for approval, or ends the run.
        denied: A gate does not want it; `refusal` says why.
        arguments: What it is made with, where a gate has changed that; None for what the model
            wrote.
        around: What stands around its tool; None for nothing.
        approval: A person must approve of it first; None where nobody must, or somebody has.
        answer: What a person has said in the place of its tool; None where nobody has.
    """

    call: ToolCall
    tool: Tool | None = None
    refusal: str = ""
    limit: LimitKind | None = None
    alone: bool = False
    denied: bool = False
    arguments: str | None = None
    around: AroundTools | None = None
    approval: ApprovalNeed | None = None
    answer: str | None = None

    @property
    def given(self) -> ToolCall:
        """The call as it is made."""
        return self.call if self.arguments is None else replace(self.call, arguments=self.arguments)

    @property
    def idempotent(self) -> bool:
        """Whether it may run twice. What does not run at all may be refused twice."""
        if self.tool is None or self.answer is not None:
            return True
        spec = self.tool.spec
        return spec.idempotent or spec.effect == "read_only"


RunCall = Callable[[PlannedCall, ToolContext, Due], Awaitable[ToolOutcome]]
"""As `run_call`."""


def plan_calls(
    calls: Sequence[ToolCall],
    prepared: PreparedAgent,
    *,
    finish_reason: str,
    calls_left: int | None,
    of_turn: int | None = None,
) -> list[PlannedCall]:
    """Say of each call whether it may run.

    Args:
        calls: Calls of one message, in its order.
        prepared: The agent with its tools.
        finish_reason: Why the model stopped there, as its provider says it.
        calls_left: Tool calls that the run may still make; None for no bound. The
            completion tool is free: a run that is done must be able to say so.
        of_turn: The same of its turn.
    """
    planned = []
    for call in calls:
        tool = prepared.by_name.get(call.name)
        if tool is None:
            plan = PlannedCall(call=call, refusal=_no_such(call.name, sorted(prepared.by_name)))
        elif finish_reason == CUT_SHORT and not _is_json(call.arguments):
            plan = PlannedCall(call=call, refusal=CUT_ARGUMENTS)
        elif tool is not prepared.completion and calls_left == 0:
            plan = PlannedCall(call=call, refusal=NO_CALLS_LEFT, limit="tool_calls")
        elif tool is not prepared.completion and of_turn == 0:
            plan = PlannedCall(call=call, refusal=NO_CALLS_LEFT_IN_TURN)
        else:
            alone = tool is prepared.completion or isinstance(tool, AskingTool)
            around = None if alone else prepared.around
            plan = PlannedCall(call=call, tool=tool, alone=alone, around=around)
            if calls_left is not None and tool is not prepared.completion:
                calls_left -= 1
            if of_turn is not None and tool is not prepared.completion:
                of_turn -= 1
        planned.append(plan)
    return planned


def _no_such(name: str, known: Sequence[str]) -> str:
    told = f"There is no tool {name!r}. Tools: {', '.join(known) or 'none'}."
    near = get_close_matches(name, known[:COMPARED], NEAREST)
    return f"{told}{NEAR} {' or '.join(map(repr, near))}?" if near else told


async def run_call(planned: PlannedCall, context: ToolContext, due: Due) -> ToolOutcome:
    """Run one call, unless it must not or its time is up.

    Every failure comes back as a result; only a cancellation of the turn is raised.
    """
    if planned.tool is None:
        how: Literal["denied", "refused"] = "denied" if planned.denied else "refused"
        return ToolDenied(text=planned.refusal, how=how, by=planned.limit)
    if due.over:
        return not_begun(due)
    within = time_of(planned, due)
    outcome = await run_within(
        Allowance(within),
        f"a call of tool {planned.call.name!r}",
        partial(_begin, planned.tool, planned, context),
        stopping=lambda late: context.deadline.cancel(_why(late)),
    )
    match outcome:
        case TimedOut():
            return _late(planned, outcome, by_run=within is due)
        case Raised(CallDeniedError(reason=reason)):
            return ToolDenied(text=shortened(well_formed(reason), ERROR_CHARS), how="denied")
        case Raised(OutputCodeError() as failed):
            facts = facts_of(failed)
            return ToolFailure(text=NOT_CHECKED, traceback=facts.get("traceback", ""), ends=facts)
        case Raised(error):
            # Everything else is an answer to the model, also what is no `Exception`: `sys.exit`
            # in a tool, or the panic of a library in Rust, would end the process of all its
            # neighbours.
            if is_ctrl_c(error):
                raise error
            text = error_text(error, _inline_chars(context))
            return ToolFailure(text=text, traceback=user_traceback(error))
        case returned:
            # Any object: a tool may be the user's own class, whose types nobody has checked.
            return _returned(planned, returned.value, context)


def not_begun(due: Due) -> ToolDenied:
    """The result of a call that had to begin before `due`, and did not."""
    return ToolDenied(text=_time_is_up(due, "began"), by=due.kind)


def time_of(planned: PlannedCall, due: Due) -> Due:
    """When a call must end: `due` itself where that bound of its run is first."""
    own = None if planned.tool is None else planned.tool.spec.timeout_s
    by_run = own is None or (due.seconds is not None and due.seconds <= own)
    return due if by_run else Due(own)


def _why(late: Due) -> str:
    return CUT if late.seconds is None else TIME_IS_UP


def _begin(tool: Tool, planned: PlannedCall, context: ToolContext) -> Awaitable[str]:
    # In a task of its own, so that it need not be taken back.
    ORIGIN.set(planned.call.name)
    if planned.around is not None:
        return planned.around.run(tool, planned.given, context)
    return tool.run(planned.given.arguments, context)


def _returned(planned: PlannedCall, value: object, context: ToolContext) -> ToolOutcome:
    if isinstance(value, str):
        known = value.besides if isinstance(value, LargeResult) else value
        output = known if isinstance(known, ToolOutput) else None
        return ToolExecutionResult(text=_as_taken(value, _inline_chars(context)), output=output)
    wrong = f"{planned.call.name!r} returned {type(value).__name__}, not text"
    return ToolFailure(text=wrong)


def _inline_chars(context: ToolContext) -> int | None:
    return None if context.artifacts is None else context.artifacts.inline_chars


def _as_taken(text: str, inline_chars: int | None) -> str:
    """What a tool said. Where long results are kept they stay whole, and are not copied."""
    if inline_chars is not None and len(text) > inline_chars:
        return text
    # Shortened first: what is left out need not be looked at.
    return well_formed(shortened(text))


def _followed(text: str, notes: str) -> str:
    if not notes:
        return text
    return text.followed_by(notes) if isinstance(text, LargeResult) else text + notes


def _late(planned: PlannedCall, late: TimedOut, *, by_run: bool) -> ToolTimeout:
    if late.last is not None and is_ctrl_c(late.last):
        raise late.last
    limit = late.due.kind if by_run else None
    sentences = [_time_is_up(late.due, "finished")]
    if planned.tool is not None and not by_run:
        own = planned.tool.spec.timeout_s
        sentences = [f"{planned.call.name!r} was stopped: it ran past its limit of {own:g} s."]
    sentences += getattr(late.last, "__notes__", ())
    if late.left:
        sentences.append("It does not end and was left alone: what it began may still happen.")
    text = shortened(well_formed(" ".join(sentences)), ERROR_CHARS)
    return ToolTimeout(text=text, by=limit)


def _time_is_up(due: Due, verb: str) -> str:
    whose = "turn" if due.kind is None else "run"
    return f"The {whose}'s time was up before this call {verb}."


def error_text(error: BaseException, inline_chars: int | None = None) -> str:
    """What the model is told of an exception, with the notes that were added to it.

    Args:
        error: The exception.
        inline_chars: Words of a `ToolError` that are longer stay whole, for they are kept; None
            cuts them.
    """
    notes = "".join(f"\n{well_formed(note)}" for note in getattr(error, "__notes__", ()))
    if isinstance(error, ToolError):
        return _as_taken(_followed(error.text, notes), inline_chars)
    name, text = type(error).__name__, _words(error)
    return shortened((f"{name}: {text}" if text else name) + notes, ERROR_CHARS)


def _words(error: BaseException) -> str:
    try:
        return well_formed(str(error)).strip()
    except Exception as broken:  # noqa: BLE001 - an error that cannot say what it is
        return f"(its text cannot be read: {type(broken).__name__})"


def _is_json(text: str) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
