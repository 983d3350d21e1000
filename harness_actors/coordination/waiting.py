"""Runs that wait for their user: at no host, in no memory, until they are answered."""

from collections.abc import Mapping
from typing import Any

from harness_actors.coordination.active import ActiveRun, Effects
from harness_actors.coordination.asked_below import (
    answers_from_above,
    asks_nothing,
    put_above,
    taken_back,
)
from harness_actors.coordination.run_changes import RunChanges, entry
from harness_actors.errors import AnswerError, WorkflowError
from harness_actors.events import Event, InputAwaited, QuestionAnswered, RunParked
from harness_actors.policies import Approve, Refuse, Respond
from harness_actors.policies.approval_rules import parsed_arguments
from harness_actors.policies.decisions import Decision, decision_in
from harness_actors.policies.shown_arguments import taken_from_shown
from harness_actors.ports import Clock
from harness_actors.results import HarnessResult
from harness_actors.state import (
    ANSWERS,
    WAITED_S,
    WAITING_SINCE,
    StateDelta,
    Write,
    expired,
    is_waiting,
    told_of,
    turns_of,
    unanswered,
)

DECISION = '{"decision":'
MOST_ANSWER_CHARS = 100_000
"""Length of one answer, at most: a model reads it as the result of a call."""


class Waits:
    """Puts runs aside that have asked, takes answers, and lets runs go on with them.

    Args:
        runs: The runs in service, by id; the coordinator's own mapping.
        changes: Writes down what becomes of them.
        clock: Tells for how long they have waited.
    """

    def __init__(self, runs: Mapping[str, ActiveRun], changes: RunChanges, clock: Clock) -> None:
        self._runs = runs
        self._changes = changes
        self._clock = clock

    def begin(self, run: ActiveRun, delta: StateDelta, effects: Effects) -> None:
        """A run has asked, and leaves service until somebody takes it up with the answers.

        Raises:
            WorkflowError: It has asked nothing.
        """
        self._changes.change(run, delta, effects)
        if not unanswered(run.state.values):
            raise WorkflowError(run.hop.to, "waits for answers, but has asked nothing")
        if run.spec.parent is not None:
            top = self._runs[run.spec.root]
            self._changes.change(top, StateDelta((put_above(run),)), effects)
        self._leave(run, _asks(run), effects)

    def begin_with_those_below(self, run: ActiveRun, effects: Effects) -> None:
        """A run waits for others, and nobody below it goes on before their user has answered."""
        if run.spec.parent is None:
            self._leave(run, _asks(run), effects)
        else:
            self.begin_below(run, effects)

    def begin_below(self, run: ActiveRun, effects: Effects) -> None:
        """The same of one that is not at the top of its tree, where their user is asked."""
        self._leave(run, RunParked(turn=turns_of(run.state.values)), effects)

    def _leave(self, run: ActiveRun, event: Event, effects: Effects) -> None:
        since = entry(WAITING_SINCE, self._clock.now())
        self._changes.leave_service(run, since, event, effects)

    def ask_again(self, run: ActiveRun, effects: Effects) -> None:
        """A run was asked for that still waits: whoever did is told what for."""
        self._changes.change(run, StateDelta(events=(_asks(run),)), effects)

    def answer(
        self,
        run: ActiveRun,
        answers: Mapping[str, str],
        effects: Effects,
        *,
        end: HarnessResult | None = None,
        is_served: bool = False,
    ) -> None:
        """Take answers to a run that waits. They are committed before it goes on.

        What was answered before in the same words changes nothing.

        Args:
            run: The run.
            answers: By the id of the question: all of them are taken, or none.
            effects: What is to be done.
            end: How it has ended; None where it has not.
            is_served: It goes on while others below it have asked.

        Raises:
            AnswerError: The run does not wait; has no such question, or an answer to it; or
                the answer is none.
        """
        values, run_id = run.state.values, run.spec.run_id
        new = new_answers(values, answers)
        if answers and not new:
            return
        if end is not None:
            raise AnswerError(run_id, f"it is over: {end.status}")
        if is_served and asks_nothing(values):
            raise AnswerError(run_id, "it is in progress, and waits for no answer")
        if not is_waiting(values) and asks_nothing(values):
            raise AnswerError(run_id, "it waits for no answer")
        open_questions = {question["id"]: question for question in unanswered(values)}
        given = values.get(ANSWERS.name) or {}
        late = expired(values, self._clock.now())
        for question_id, text in new.items():
            problem = _too_late(question_id) if question_id in late else ""
            if problem := problem or _problem(question_id, text, open_questions, given):
                raise AnswerError(run_id, problem)
        self._take(run, new, effects)

    def expire(self, run: ActiveRun, effects: Effects) -> None:
        """A run that waits is asked for: what nobody has approved of in time is answered."""
        if answers := expired(run.state.values, self._clock.now()):
            self._take(run, answers, effects)

    def take_from_above(self, run: ActiveRun, effects: Effects) -> None:
        """A run below others waits, and is to go on: it gets what it was answered, if it was."""
        top = self._runs[run.spec.root]
        self.expire(top, effects)
        if answers := answers_from_above(run, top.state.values):
            self._take(run, answers, effects)
            done = taken_back(run.spec, top.state.values)
            self._changes.change(top, StateDelta(done), effects)

    def _take(self, run: ActiveRun, answers: Mapping[str, str], effects: Effects) -> None:
        calls = {one["id"] for one in unanswered(run.state.values) if one.get("call") is not None}
        told = tuple(
            QuestionAnswered(question_id=number, decision=_kind_of(text) if number in calls else "")
            for number, text in answers.items()
        )
        writes = tuple(Write(ANSWERS.name, "put", list(answer)) for answer in answers.items())
        self._changes.change(run, StateDelta(writes, events=told), effects)

    def end(self, run: ActiveRun, effects: Effects) -> None:
        """A run that was answered is served again: its time goes on."""
        waited = Write(WAITED_S.name, "increment", run.waiting_s(self._clock.now()))
        delta = StateDelta((*entry(WAITING_SINCE, None).writes, waited))
        self._changes.change(run, delta, effects)


def new_answers(values: Mapping[str, Any], answers: Mapping[str, str]) -> dict[str, str]:
    """Those of the answers that a run does not have in these words, by its state's entries."""
    given = values.get(ANSWERS.name) or {}
    return {number: text for number, text in answers.items() if given.get(number) != text}


def _asks(run: ActiveRun) -> InputAwaited:
    values = run.state.values
    questions = tuple(told_of(question) for question in unanswered(values))
    return InputAwaited(turn=turns_of(values), questions=questions)


def _kind_of(decision: str) -> str:
    match decision_in(decision):
        case Approve():
            return "approve"
        case Refuse():
            return "deny"
        case Respond():
            return "respond"


def _too_late(question_id: str) -> str:
    return (
        f"the time to decide about {question_id!r} is over: it has expired, and what was set for "
        "that case counts once the run goes on"
    )


def _problem(
    question_id: str, text: object, questions: Mapping[str, Any], given: Mapping[str, str]
) -> str:
    """What is wrong with an answer; empty where nothing is."""
    if question_id in given:
        return f"question {question_id!r} was answered before; the first answer counts"
    if question_id not in questions:
        known = ", ".join(questions) or "none"
        return f"it has no question {question_id!r}; open are {known}"
    if not isinstance(text, str) or not text.strip():
        return f"the answer to {question_id!r} is empty"
    if len(text) > MOST_ANSWER_CHARS:
        return (
            f"the answer to {question_id!r} has {len(text)} characters, and may have "
            f"{MOST_ANSWER_CHARS}; put what is long into a file, and name that"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        return f"the answer to {question_id!r} is not valid Unicode"
    options = questions[question_id]["options"]
    if options and text not in options:
        return f"the answer to {question_id!r} must be one of {', '.join(map(repr, options))}"
    call = questions[question_id].get("call")
    if call is None:
        return _decides_nothing(question_id) if _is_decision(text) else ""
    try:
        return _cut_argument(question_id, call, decision_in(text))
    except ValueError as error:
        return f"the answer to {question_id!r} cannot be taken: {error}"


def _cut_argument(question_id: str, call: Mapping[str, Any], decision: Decision) -> str:
    """What is wrong with arguments that were edited from those that are shown."""
    if not isinstance(decision, Approve) or decision.arguments is None:
        return ""
    name = taken_from_shown(parsed_arguments(call["arguments"]), decision.arguments)
    if name is None:
        return ""
    return (
        f"the argument {name!r} for {question_id!r} was taken from what is shown, which is not all "
        "of it; give it whole, or approve the call as it is"
    )


def _is_decision(text: str) -> bool:
    """Whether a program has decided, where a text is wanted: a word such as yes is one."""
    if not text.startswith(DECISION):
        return False
    try:
        decision_in(text)
    except ValueError:
        return False
    return True


def _decides_nothing(question_id: str) -> str:
    return f"{question_id!r} is a question, and no call to decide about; answer it with a text"
