"""Faults in what becomes of calls that a person must approve."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from harness_actors.coordination import waiting
from harness_actors.policies import Approvals, Approve, Refuse, Respond
from harness_actors.policies.approvals import ApprovalNeed, Ruled
from harness_actors.policies.decisions import Decision, decision_in, decision_text
from harness_actors.ports import Tool
from harness_actors.state import StandingAnswer
from harness_actors.turn import approvals, questions
from harness_actors.turn.one_call import PlannedCall
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.questions import Asking
from tests.simulation.approving import (
    AS_DECIDED,
    EXPIRES,
    KNOWN,
    NOT_BEFORE,
    ONCE_ASKED,
    RULED_OUT,
)
from tests.simulation.planted.bug import Patches, PlantedBug

_decided = approvals.decided


def _decided_otherwise(change: Callable[[Decision], Decision]) -> Patches:
    def patched(plan: PlannedCall, decision: Decision) -> PlannedCall:
        return _decided(plan, change(decision))

    return [(questions, "decided", patched)]


def _nobody_is_asked() -> Patches:
    def patched(self: Asking, plan: PlannedCall) -> PlannedCall:
        return replace(plan, approval=None, alone=False)

    return [(Asking, "settled", patched)]


def _refused_is_made() -> Patches:
    return _decided_otherwise(lambda one: Approve() if isinstance(one, Refuse) else one)


def _answered_is_made() -> Patches:
    return _decided_otherwise(lambda one: Approve() if isinstance(one, Respond) else one)


def _edits_are_lost() -> Patches:
    return _decided_otherwise(lambda one: Approve() if isinstance(one, Approve) else one)


def _notes_are_lost() -> Patches:
    return _decided_otherwise(lambda one: Refuse() if isinstance(one, Refuse) else one)


def _late_decisions_count() -> Patches:
    return [(waiting, "expired", lambda values, now: {})]


def _what_expires_is_approved() -> Patches:
    return [(Approvals, "default", property(lambda self: decision_text(Approve())))]


def _a_standing_answer_is_of_all_tools() -> Patches:
    def patched(plan: PlannedCall, standing: Sequence[StandingAnswer]) -> Decision | None:
        return decision_in(standing[-1].answer) if standing else None

    return [(questions, "standing_of", patched)]


def _nothing_stands() -> Patches:
    return [(Asking, "keep_standing", lambda self, plans: None)]


def _what_is_ruled_out_is_asked_about() -> Patches:
    def patched(plan: PlannedCall, said: Ruled, need: ApprovalNeed) -> PlannedCall:
        asked = replace(said, decide="ask") if said.decide == "deny" else said
        return as_ruled(plan, asked, need)

    as_ruled = approvals._as_ruled
    return [(approvals, "_as_ruled", patched)]


def _what_is_refused_is_not_ruled() -> Patches:
    def patched(plan: PlannedCall, prepared: PreparedAgent) -> Tool | None:
        return None if plan.refusal else decided_about(plan, prepared)

    decided_about = approvals._decided_about
    return [(approvals, "_decided_about", patched)]


def _nothing_is_held() -> Patches:
    def patched(self: Asking, plans: Sequence[Any]) -> None:
        """Leave the calls that wait to whoever comes after a death."""

    return [(Asking, "hold", patched)]


BUGS = (
    PlantedBug("nobody is asked to approve", _nobody_is_asked, frozenset({NOT_BEFORE})),
    PlantedBug("what a person refuses is made", _refused_is_made, frozenset({NOT_BEFORE})),
    PlantedBug(
        "what a person answers is made all the same", _answered_is_made, frozenset({NOT_BEFORE})
    ),
    PlantedBug("what a person edits is lost", _edits_are_lost, frozenset({AS_DECIDED})),
    PlantedBug("why a person refuses is lost", _notes_are_lost, frozenset({AS_DECIDED})),
    PlantedBug("late decisions count", _late_decisions_count, frozenset({EXPIRES})),
    PlantedBug("what expires is approved", _what_expires_is_approved, frozenset({EXPIRES})),
    PlantedBug(
        "a standing answer is of all tools",
        _a_standing_answer_is_of_all_tools,
        frozenset({NOT_BEFORE}),
    ),
    PlantedBug("no answer stands", _nothing_stands, frozenset({ONCE_ASKED})),
    PlantedBug(
        "what is ruled out is asked about",
        _what_is_ruled_out_is_asked_about,
        frozenset({RULED_OUT}),
    ),
    PlantedBug(
        "no policy rules about what is refused",
        _what_is_refused_is_not_ruled,
        frozenset({NOT_BEFORE}),
    ),
    PlantedBug(
        "what waits for approval is lost with its process", _nothing_is_held, frozenset({KNOWN})
    ),
)
