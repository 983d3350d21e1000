"""Faults in what becomes of guards: of the task, and of the end of a run."""

from typing import Any

from harness_actors.executors import agent_turn, stop_decision
from harness_actors.executors.agent_turn import AgentTurn
from harness_actors.executors.stop_decision import StopDecision
from harness_actors.signals import TurnComplete
from harness_actors.state import TURN_COUNT
from harness_actors.turn.gates import Gates
from harness_actors.turn.hook_calls import Asked, HookCalls
from harness_actors.turn.session import begin_session
from tests.simulation.guarding import (
    ACCEPTED,
    GUARD_ENDS,
    GUARDED_ONCE,
    REFUSED_TASK,
    TOLD_WHY,
)
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.verifying import ONE_MESSAGE


def _ends_are_accepted() -> Patches:
    async def patched(self: Gates, ended: TurnComplete) -> TurnComplete:
        await at_end(self, ended)
        return ended

    at_end = Gates.at_end
    return [(Gates, "at_end", patched)]


def _only_the_first_guard_is_asked() -> Patches:
    async def patched(self: HookCalls, kind: Any, about: Any, event_of: Any) -> Asked:
        return Asked() if kind == "agent_stop" else await judge(self, kind, about, event_of)

    judge = HookCalls.judge
    return [(HookCalls, "judge", patched)]


def _ends_are_taken_for_denials() -> Patches:
    async def patched(self: HookCalls, kind: Any, about: Any, event_of: Any) -> Asked:
        asked = await judge(self, kind, about, event_of)
        if kind == "output_guard" and "ends" in asked.plain:
            asked.plain["denied"] = asked.plain.pop("ends")
        return asked

    judge = HookCalls.judge
    return [(HookCalls, "judge", patched)]


def _refused_tasks_go_on() -> Patches:
    async def patched(self: AgentTurn, context: Any, prepared: Any) -> None:
        await begin(self, context, prepared)

    begin = AgentTurn._begin
    return [(AgentTurn, "_begin", patched)]


def _denied_tasks_are_not_told() -> Patches:
    async def patched(context: Any, prepared: Any, *, not_accepted: str = "") -> None:
        await begin_task(context, prepared)

    begin_task = vars(agent_turn)["begin_task"]
    return [(agent_turn, "begin_task", patched)]


def _reasons_are_left_out() -> Patches:
    return [(stop_decision, "NOT_ACCEPTED", "Not accepted. {again}")]


def _findings_are_told_to_nobody() -> Patches:
    return [(StopDecision, "_not_accepted", lambda self, signal, context, count, nudges: None)]


def _guards_are_asked_in_each_turn() -> Patches:
    async def patched(self: AgentTurn, context: Any, prepared: Any) -> Any:
        if context.get(TURN_COUNT):
            await begin_session(context, prepared, self._services)
        return await begin(self, context, prepared)

    begin = AgentTurn._begin
    return [(AgentTurn, "_begin", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug("every end is accepted", _ends_are_accepted, frozenset({ACCEPTED, GUARD_ENDS})),
    PlantedBug(
        "only the first guard of an end is asked",
        _only_the_first_guard_is_asked,
        frozenset({ACCEPTED}),
    ),
    PlantedBug(
        "a guard that ends a run only denies", _ends_are_taken_for_denials, frozenset({GUARD_ENDS})
    ),
    PlantedBug("refused tasks go on", _refused_tasks_go_on, frozenset({REFUSED_TASK})),
    PlantedBug(
        "models are not told that their task is denied",
        _denied_tasks_are_not_told,
        frozenset({TOLD_WHY}),
    ),
    PlantedBug(
        "models are not told why", _reasons_are_left_out, frozenset({TOLD_WHY, ONE_MESSAGE})
    ),
    PlantedBug(
        "denied ends are told to nobody",
        _findings_are_told_to_nobody,
        frozenset({TOLD_WHY, ONE_MESSAGE}),
    ),
    PlantedBug(
        "guards are asked about a task in each turn",
        _guards_are_asked_in_each_turn,
        frozenset({GUARDED_ONCE}),
    ),
)
