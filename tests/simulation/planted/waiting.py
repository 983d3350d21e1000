"""Faults in how runs wait for their users: who has them, who answers them, and what time it is."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness_actors.actors.coordinator.admission import Admission
from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.coordination import taking_up, waiting
from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.deadlines import Deadlines
from harness_actors.coordination.waiting import Waits
from harness_actors.executors import repair
from harness_actors.records import RunAdded, RunSpec
from harness_actors.state import QUESTIONS_ASKED, StateDelta
from harness_actors.turn.call_scheduler import ToolCalls
from harness_actors.turn.one_call import PlannedCall
from harness_actors.turn.questions import Asking, asks
from tests.simulation.planted.bug import Patches, PlantedBug
from tests.simulation.planted.promises import (
    ACKNOWLEDGED,
    FIRST,
    GIVEN_ONCE,
    IN_ORDER,
    NOWHERE,
    OWN_CALLS,
    REFUSED,
    STANDS_STILL,
    STARTS_ONCE,
    STILL,
    TOGETHER,
)


def _it_stays_in_memory() -> Patches:
    def patched(self: Waits, run: ActiveRun, delta: StateDelta, effects: Effects) -> None:
        runs = dict(self._changes._runs)
        begin(self, run, delta, effects)
        self._changes._runs.update({run.spec.run_id: runs[run.spec.run_id]})

    begin = Waits.begin
    return [(Waits, "begin", patched)]


def _it_stays_at_its_hosts() -> Patches:
    def patched(self: Waits, run: ActiveRun, delta: StateDelta, effects: Effects) -> None:
        begin(self, run, delta, effects)
        effects.posts.clear()

    begin = Waits.begin
    return [(Waits, "begin", patched)]


def _it_stays_its_command_s() -> Patches:
    def patched(self: Waits, run: ActiveRun, delta: StateDelta, effects: Effects) -> None:
        begin(self, run, delta, effects)
        effects.entries[:] = [one for one in effects.entries if not isinstance(one, RunAdded)]

    begin = Waits.begin
    return [(Waits, "begin", patched)]


def _its_deadline_stays() -> Patches:
    return [(Deadlines, "forget", lambda self, run_id: None)]


def _its_time_goes_on() -> Patches:
    return [(ActiveRun, "waiting_s", lambda self, now: 0.0)]


def _it_goes_on_half_answered() -> Patches:
    return [(taking_up, "unanswered", lambda values: ())]


def _answers_are_told_before_they_are_on_disk() -> Patches:
    async def patched(self: CoordinatorHost, run_id: str, answers: Mapping[str, str]) -> None:
        self._check()
        await self._admission.answer(run_id, answers)

    return [(CoordinatorHost, "answer", patched)]


def _the_last_answer_counts() -> Patches:
    def patched(
        question_id: str, text: object, questions: Mapping[str, Any], given: Mapping[str, str]
    ) -> str:
        return "" if question_id in given else problem(question_id, text, questions, given)

    problem = waiting._problem
    return [(waiting, "_problem", patched)]


def _an_answer_that_comes_again_is_a_second_one() -> Patches:
    return [(waiting, "new_answers", lambda values, answers: dict(answers))]


def _nobody_looks_who_waits_beside() -> Patches:
    async def patched(self: Admission, spec: RunSpec) -> str:
        return ""

    return [(Admission, "_waits_beside", patched)]


def _repair_takes_what_waits_for_lost() -> Patches:
    return [(repair, "_held", lambda context: ())]


def _what_was_held_is_held_for_ever() -> Patches:
    return [(Asking, "release", lambda self, waiting: False)]


def _questions_come_last() -> Patches:
    def patched(self: ToolCalls, calls: Any, finish_reason: str) -> list[PlannedCall]:
        return sorted(plan(self, calls, finish_reason), key=asks)

    plan = ToolCalls._plan
    return [(ToolCalls, "_plan", patched)]


def _nobody_waits_for_the_second_question() -> Patches:
    def patched(self: Asking, plans: Sequence[PlannedCall]) -> Any:
        first = next(place for place, plan in enumerate(plans) if asks(plan))
        return ask(self, [one for at, one in enumerate(plans) if at == first or not asks(one)])

    ask = Asking.ask
    return [(Asking, "ask", patched)]


def _questions_are_not_forgotten() -> Patches:
    return [(Asking, "forget", lambda self: None)]


def _questions_are_numbered_anew() -> Patches:
    def patched(self: Asking, plans: Sequence[PlannedCall]) -> Any:
        if sum(map(asks, plans)) > 1:
            # Else the run would wait for nothing new, which ends it.
            values = self._context._values  # type: ignore[attr-defined]
            values.pop(QUESTIONS_ASKED.name, None)
        return ask(self, plans)

    ask = Asking.ask
    return [(Asking, "ask", patched)]


def _an_answer_takes_the_run_up() -> Patches:
    async def patched(self: CoordinatorHost, run_id: str, answers: Mapping[str, str]) -> None:
        await answer(self, run_id, answers)
        await self._admission.take_up([run_id], asked=True)
        await self._on_disk()

    answer = CoordinatorHost.answer
    return [(CoordinatorHost, "answer", patched)]


BUGS: tuple[PlantedBug, ...] = (
    PlantedBug("a run that waits stays in memory", _it_stays_in_memory, frozenset({NOWHERE})),
    PlantedBug("a run that waits stays at its hosts", _it_stays_at_its_hosts, frozenset({NOWHERE})),
    PlantedBug("a run that waits stays its command's", _it_stays_its_command_s, frozenset({STILL})),
    PlantedBug("a run that waits keeps its deadline", _its_deadline_stays, frozenset({NOWHERE})),
    PlantedBug("the time of waiting is a run's own", _its_time_goes_on, frozenset({STANDS_STILL})),
    PlantedBug(
        "a run goes on with the first of its answers",
        _it_goes_on_half_answered,
        frozenset({IN_ORDER}),
    ),
    PlantedBug(
        "answers are acknowledged before they are on disk",
        _answers_are_told_before_they_are_on_disk,
        frozenset({ACKNOWLEDGED}),
    ),
    PlantedBug("the last answer counts", _the_last_answer_counts, frozenset({FIRST})),
    PlantedBug(
        "an answer that comes again is refused",
        _an_answer_that_comes_again_is_a_second_one,
        frozenset({REFUSED}),
    ),
    PlantedBug(
        "others go on in a conversation whose run waits",
        _nobody_looks_who_waits_beside,
        frozenset({OWN_CALLS}),
    ),
    PlantedBug(
        "repair takes calls that wait for lost ones",
        _repair_takes_what_waits_for_lost,
        frozenset({OWN_CALLS}),
    ),
    PlantedBug(
        "calls that begin behind an answer are held still",
        _what_was_held_is_held_for_ever,
        frozenset({STARTS_ONCE}),
    ),
    PlantedBug("questions are asked last", _questions_come_last, frozenset({IN_ORDER})),
    PlantedBug(
        "of several questions the first is asked alone",
        _nobody_waits_for_the_second_question,
        frozenset({TOGETHER}),
    ),
    PlantedBug(
        "questions are kept behind their message",
        _questions_are_not_forgotten,
        frozenset({GIVEN_ONCE}),
    ),
    PlantedBug(
        # One whose number was answered before is taken for answered.
        "questions are numbered anew",
        _questions_are_numbered_anew,
        frozenset({GIVEN_ONCE, TOGETHER}),
    ),
    PlantedBug("an answer takes the run up", _an_answer_takes_the_run_up, frozenset({STILL})),
)
