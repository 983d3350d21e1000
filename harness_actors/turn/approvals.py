"""Calls that a person must approve: which these are, and what becomes of one that was decided."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any

from harness_actors.policies import Approvals, Approve, Refuse, Respond
from harness_actors.policies.approval_rules import parsed_arguments
from harness_actors.policies.approvals import NO_OBJECT, ApprovalNeed, Ruled
from harness_actors.policies.decisions import Decision, decision_in, decision_text
from harness_actors.policies.shown_arguments import shown_arguments
from harness_actors.policies.verdicts import encoded_arguments
from harness_actors.ports import AskingTool, RunContext, Tool
from harness_actors.state import AskedCall, StandingAnswer
from harness_actors.turn.hook_calls import size_on_record
from harness_actors.turn.one_call import PlannedCall
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.services import AgentTurnServices
from harness_actors.turn.texts import well_formed

APPROVALS = "approvals"
"""What an agent turn observes where its agent has some."""
NOT_MADE = "The call was not made: {reason}"
NOT_APPROVED = "The call was not made: its user did not approve of it"
NOBODY_THERE = (
    "The call was not made: a person would have to approve of it, and nobody is there to be asked "
    "in this run. Do without it, and say in the end what is left to be done."
)
TOO_MUCH = "too many calls of this message are asked about or denied; call fewer at once"
MOST_RULED_BYTES = 48 * 1024
"""What is kept of what the policy says about the calls of one message, at most."""
LONG_ARGUMENTS = 10_000
"""Characters above which arguments are looked at in a thread: patterns take their time."""


async def ruled(
    context: RunContext,
    prepared: PreparedAgent,
    plans: Sequence[PlannedCall],
    message: int,
    services: AgentTurnServices,
) -> list[PlannedCall]:
    """What the approvals of an agent make of the calls of a message.

    Args:
        context: The run; what is decided is on its record, and nothing is decided again.
        prepared: The agent, which has approvals.
        plans: The calls that have no result yet, with what hooks have changed.
        message: Where in the log their message stands.
        services: Those of the process.
    """
    approvals = prepared.approvals
    assert approvals is not None, "it has some"
    # Also those for which no calls are left: what a crash takes from the books may leave some.
    ours = [(plan, tool) for plan in plans if (tool := _decided_about(plan, prepared)) is not None]

    async def make() -> Mapping[str, Any]:
        return await _decided(approvals, ours, services)

    on_record = await context.observe(APPROVALS, message, make)
    found = {call_id: Ruled(*said) for call_id, said in on_record["calls"].items()}
    need = ApprovalNeed(
        why="", expires_at=on_record.get("expires_at"), default=on_record.get("default")
    )
    known = {plan.call.id for plan, _ in ours if not plan.refusal}
    return [
        _as_ruled(plan, found.get(plan.call.id, Ruled("auto")), need)
        if plan.call.id in known
        else plan
        for plan in plans
    ]


def _decided_about(plan: PlannedCall, prepared: PreparedAgent) -> Tool | None:
    """The tool of a call that approvals decide about; None for all others."""
    tool = None if plan.denied else prepared.by_name.get(plan.call.name)
    return None if tool is prepared.completion or isinstance(tool, AskingTool) else tool


async def _decided(
    approvals: Approvals,
    plans: Sequence[tuple[PlannedCall, Tool]],
    services: AgentTurnServices,
) -> dict[str, Any]:
    calls: dict[str, list[str]] = {}
    asks = False
    for plan, tool in plans:
        spec, arguments = tool.spec, plan.given.arguments
        said = (
            approvals.ruled(spec, arguments)
            if len(arguments) <= LONG_ARGUMENTS
            else await services.in_thread(approvals.ruled, spec, arguments)
        )
        if said.decide != "auto":
            calls[plan.call.id] = [said.decide, said.why]
        asks |= said.decide == "ask" or plan.approval is not None
    if size_on_record(calls) > MOST_RULED_BYTES:
        calls = {call_id: ["deny", ""] for call_id in calls}
    until: dict[str, Any] = {}
    if asks and approvals.expires_s is not None:
        until["expires_at"] = services.clock.now() + approvals.expires_s
        until["default"] = approvals.default
    return {"calls": calls, **until}


def _as_ruled(plan: PlannedCall, said: Ruled, need: ApprovalNeed) -> PlannedCall:
    if said.decide == "deny":
        return denied(plan, NOT_MADE.format(reason=said.why or TOO_MUCH))
    if said.decide == "ask" or plan.approval is not None:
        # What a hook says is about this call, and a rule about many.
        why = said.why if plan.approval is None else plan.approval.why
        return asked_about(plan, replace(need, why=why))
    return plan


def asked_about(plan: PlannedCall, need: ApprovalNeed) -> PlannedCall:
    """A call about which a person is to be asked; one that asks itself is left as it is."""
    if isinstance(plan.tool, AskingTool):
        return plan
    if parsed_arguments(plan.given.arguments) is None:
        return denied(plan, NOT_MADE.format(reason=NO_OBJECT))
    return replace(plan, approval=need, alone=True)


def denied(plan: PlannedCall, words: str) -> PlannedCall:
    """A call that is not made, and what its model is told."""
    return PlannedCall(call=plan.call, refusal=words, denied=True)


def first_to_approve(plans: Sequence[PlannedCall]) -> int | None:
    """Where the first call stands that needs approval, with which all after it wait; None where
    none does."""
    for place, plan in enumerate(plans):
        if plan.approval is not None:
            return place
    return None


def decided(plan: PlannedCall, decision: Decision) -> PlannedCall:
    """What becomes of a call that waited for approval."""
    made = replace(plan, approval=None, alone=False)
    match decision:
        case Approve(arguments=None):
            return made
        case Approve(arguments=changed):
            return replace(made, arguments=encoded_arguments(changed))
        case Refuse(note):
            said = well_formed(note).strip()
            return denied(plan, f"{NOT_APPROVED}: {said}" if said else f"{NOT_APPROVED}.")
        case Respond(text):
            # By itself: nothing of it can run beside others.
            return replace(made, answer=well_formed(text), alone=True)


def shown_call(plan: PlannedCall) -> AskedCall:
    """A call as it is shown to whoever decides about it."""
    need = plan.approval
    assert need is not None, "nobody decides about others"
    return AskedCall(
        tool=plan.call.name,
        arguments=shown_arguments(plan.given.arguments),
        expires_at=need.expires_at,
        default=need.default,
    )


def standing_answer(plan: PlannedCall, decision: Decision) -> StandingAnswer | None:
    """What a decision says of later calls; None where it is of this one alone."""
    if isinstance(decision, Respond) or not decision.standing:
        return None
    later: Decision = Refuse(decision.note) if isinstance(decision, Refuse) else Approve()
    arguments = same_arguments(plan) if decision.standing == "arguments" else ""
    return StandingAnswer(tool=plan.call.name, answer=decision_text(later), arguments=arguments)


def standing_of(plan: PlannedCall, standing: Sequence[StandingAnswer]) -> Decision | None:
    """What was decided before of calls such as this; None where nothing was.

    What was said of just these arguments comes before what was said of the tool, and the newest
    of each before older ones.
    """
    of_tool = [one for one in standing if one.tool == plan.call.name]
    for arguments in (same_arguments(plan), "") if of_tool else ():
        for one in reversed(of_tool):
            if one.arguments == arguments:
                return decision_in(one.answer)
    return None


def same_arguments(plan: PlannedCall) -> str:
    """A text that is the same for equal arguments, whatever their order and spaces."""
    values = json.dumps(parsed_arguments(plan.given.arguments), sort_keys=True)
    return blake2b(values.encode(), digest_size=16).hexdigest()
