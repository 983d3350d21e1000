"""Calls that ask the user of their run: put together, waited for, and answered."""

from collections.abc import Sequence

from harness_actors.errors import ToolError
from harness_actors.ports import AskedQuestion, AskingTool, RunContext
from harness_actors.signals import TurnComplete, Waiting
from harness_actors.state import ANSWERS, QUESTIONS, QUESTIONS_ASKED, Question, Questions
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
MUST_NOT_ASK = "the model asked its user ({question!r}), and on_question is 'fail'"


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

    def release(self) -> None:
        """The answers are there: what was held begins, and may be lost from here on."""
        questions = self._context.get(QUESTIONS)
        if questions is not None and questions.held:
            self._context.set(QUESTIONS, Questions(asked=questions.asked))

    def forget(self) -> None:
        """All calls of the message have results."""
        if self._context.get(QUESTIONS) is not None:
            self._context.set(QUESTIONS, None)

    def answered(self, plan: PlannedCall) -> ToolOutcome | None:
        """The result of a call that asks; None where its user must be waited for."""
        questions = self._context.get(QUESTIONS)
        asked = () if questions is None else questions.asked
        answers = self._context.get(ANSWERS)
        for question in asked:
            if question.call_id == plan.call.id and question.id in answers:
                return ToolExecutionResult(text=answers[question.id])
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
        words = MUST_NOT_ASK.format(question=_question(plans[0]).text)
        error = {"reason": "agent_error", "type": "QuestionAsked", "message": words}
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
                question = _question(plan)
            except ToolError:
                continue  # told to the model when its turn comes
            number += 1
            asked.append(
                Question(
                    id=f"q{number}",
                    call_id=plan.call.id,
                    text=question.text,
                    options=question.options,
                    why=question.why,
                )
            )
        self._context.increment(QUESTIONS_ASKED, len(asked))
        held = tuple(plan.call.id for plan in plans)
        self._context.set(QUESTIONS, Questions(asked=tuple(asked), held=held))
        return Waiting()


def asks(plan: PlannedCall) -> bool:
    """Whether a call is answered by the user of the run."""
    return isinstance(plan.tool, AskingTool)


def _question(plan: PlannedCall) -> AskedQuestion:
    assert isinstance(plan.tool, AskingTool), "only such calls come here"
    return plan.tool.question(plan.given)
