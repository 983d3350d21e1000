"""Calls that ask the user of their run, or need approval: put together, waited for, answered."""

from collections.abc import Sequence

from harness_actors.errors import ToolError
from harness_actors.policies.decisions import Decision, Refuse, decision_in
from harness_actors.ports import AskedQuestion, AskingTool, RunContext
from harness_actors.signals import TurnComplete, Waiting
from harness_actors.state import (
    ANSWERS,
    QUESTIONS,
    QUESTIONS_ASKED,
    STANDING,
    Question,
    QuestionKind,
    Questions,
)
from harness_actors.turn.approvals import (
    NOBODY_THERE as NOBODY_TO_APPROVE,
)
from harness_actors.turn.approvals import (
    decided,
    denied,
    shown_call,
    standing_answer,
    standing_of,
)
from harness_actors.turn.one_call import PlannedCall
from harness_actors.turn.outcomes import (
    ToolDenied,
    ToolExecutionResult,
    ToolFailure,
    ToolOutcome,
)

NOBODY_THERE = (
    "Not asked: nobody is there to answer in this run. Decide by yourself what is most likely "
    "wanted, and say in the end what you have assumed."
)
NOT_BEGUN = "The call was not made: the run ended while it waited for its user."
ASKED = "QuestionAsked"
"""The type of the error by which a turn ends that must not ask."""
MUST_NOT_ASK = "the model asked its user ({question!r}), and on_question is 'fail'"
MUST_NOT_WAIT = "a person must approve of a call of {tool!r}, and on_question is 'fail'"
MAY_IT = "May {tool} be called?"


class Asking:
    """The questions of one turn of one run.

    All of a message are put at once, and may be answered in any order; what stands in it after
    the first of them does not begin before all of them are answered.
    """

    def __init__(self, context: RunContext) -> None:
        self._context = context

    @property
    def held(self) -> frozenset[str]:
        """Ids of the calls that have not begun, because of a question before them."""
        questions = self._context.get(QUESTIONS)
        return frozenset(() if questions is None else questions.held)

    def hold(self, plans: Sequence[PlannedCall]) -> None:
        """Calls of a message whose others are about to begin wait with the first that asks.

        Should the process die before that asks, they have not begun, and are not lost.
        """
        known = self._context.get(QUESTIONS)
        # What was asked before has its answers still, perhaps of calls that are held once more.
        asked = () if known is None else known.asked
        self._context.set(QUESTIONS, Questions(asked=asked, held=_to_begin(plans)))

    @property
    def has_asked(self) -> bool:
        """Whether the questions of the message were put, and so are answered by now."""
        questions = self._context.get(QUESTIONS)
        return questions is not None and bool(questions.asked)

    def settled(self, plan: PlannedCall) -> PlannedCall:
        """What becomes of a call, as far as it is decided: by its own answer, by one that stands
        for such calls, or because nobody is there. Else its `approval` is still to be had."""
        if plan.approval is None:
            # For a call that was refused others of its tree may have taken the last that was left.
            said = self._decision(plan) if plan.refusal and not plan.denied else None
            return decided(plan, said) if isinstance(said, Refuse) else plan
        decision, standing = self._decision(plan), self._context.get(STANDING)
        if decision is None:
            decision = standing_of(plan, standing or ())
        if decision is not None:
            return decided(plan, decision)
        if self._context.spec.config.on_question == "deny":
            return denied(plan, NOBODY_TO_APPROVE)
        return plan

    def keep_standing(self, plans: Sequence[PlannedCall]) -> None:
        """Note what was decided for later calls, too.

        Args:
            plans: The calls of a message that waited, as they were before that.
        """
        for plan in plans:
            decision = None if plan.approval is None else self._decision(plan)
            standing = None if decision is None else standing_answer(plan, decision)
            if standing is not None:
                self._context.append(STANDING, standing)

    def release(self, waiting: Sequence[PlannedCall]) -> bool:
        """What was waited for is there: what was held begins, and may be lost from here on.

        Args:
            waiting: The calls that wait for something else now.

        Returns:
            Whether any call begins.
        """
        questions, held = self._context.get(QUESTIONS), _to_begin(waiting)
        if questions is None or questions.held == held:
            return False
        self._context.set(QUESTIONS, Questions(asked=questions.asked, held=held))
        return True

    def forget(self) -> None:
        """All calls of the message have results."""
        if self._context.get(QUESTIONS) is not None:
            self._context.set(QUESTIONS, None)

    def answered(self, plan: PlannedCall) -> ToolOutcome | None:
        """The result of a call that asks; None where its user must be waited for."""
        if (answer := self._answer(plan, "question")) is not None:
            return ToolExecutionResult(text=answer)
        try:
            _question(plan)
        except ToolError as error:
            return ToolFailure(text=error.text)
        denies = self._context.spec.config.on_question == "deny"
        return ToolDenied(text=NOBODY_THERE, how="denied") if denies else None

    def must_not(self, plans: Sequence[PlannedCall]) -> TurnComplete | None:
        """How a turn ends that must not ask; None where it may.

        Args:
            plans: The calls of its message that have no result yet, the first of which asks.
        """
        if self._context.spec.config.on_question != "fail":
            return None
        call, error = plans[0].call, {"reason": "agent_error"}
        if plans[0].approval is None:
            question = _question(plans[0]).text
            words = MUST_NOT_ASK.format(question=question)
            # Which call it was, and what it would have asked: the log does not say it.
            error |= {"type": ASKED, "message": words, "call_id": call.id, "question": question}
        else:
            words = MUST_NOT_WAIT.format(tool=call.name)
            error |= {"type": "ApprovalAsked", "message": words}
        return TurnComplete(ending="error", error=error)

    def ask(self, plans: Sequence[PlannedCall]) -> Waiting:
        """Put the questions of a message.

        Args:
            plans: Its calls that have no result yet, the first of which asks.
        """
        asked: list[Question] = []
        number = self._context.get(QUESTIONS_ASKED)
        for plan in plans:
            if not asks(plan):
                continue
            try:
                question = _put(plan, f"q{number + 1}")
            except ToolError:
                continue  # told to the model when its turn comes
            number += 1
            asked.append(question)
        self._context.increment(QUESTIONS_ASKED, len(asked))
        self._context.set(QUESTIONS, Questions(asked=tuple(asked), held=_to_begin(plans)))
        return Waiting()

    def _answer(self, plan: PlannedCall, kind: QuestionKind) -> str | None:
        """What was said of a call when it was asked so; None where nothing was."""
        questions = self._context.get(QUESTIONS)
        asked = () if questions is None else questions.asked
        answers = self._context.get(ANSWERS)
        for question in asked:
            is_this = question.call_id == plan.call.id and question.kind == kind
            if is_this and question.id in answers:
                return answers[question.id]
        return None

    def _decision(self, plan: PlannedCall) -> Decision | None:
        answer = self._answer(plan, "approval")
        return None if answer is None else decision_in(answer)


def asks(plan: PlannedCall) -> bool:
    """Whether a call waits for the user of the run, who answers it or is to approve of it."""
    return plan.approval is not None or isinstance(plan.tool, AskingTool)


def _to_begin(plans: Sequence[PlannedCall]) -> tuple[str, ...]:
    # What was refused once stays so, though a crash has taken from the books why.
    return tuple(plan.call.id for plan in plans if not plan.refusal)


def _put(plan: PlannedCall, number: str) -> Question:
    if plan.approval is not None:
        return Question(
            id=number,
            call_id=plan.call.id,
            text=MAY_IT.format(tool=plan.call.name),
            why=plan.approval.why,
            call=shown_call(plan),
        )
    asked = _question(plan)
    return Question(
        id=number, call_id=plan.call.id, text=asked.text, options=asked.options, why=asked.why
    )


def _question(plan: PlannedCall) -> AskedQuestion:
    assert isinstance(plan.tool, AskingTool), "only such calls come here"
    return plan.tool.question(plan.given)
