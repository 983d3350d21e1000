"""What a contract wants to know of the user of its run: asked before the model begins."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness_actors.messages import Message
from harness_actors.ports import RunContext
from harness_actors.signals import TurnComplete, Waiting
from harness_actors.state import ANSWERS, QUESTIONS, REQUEST_TOKENS, Question, Questions
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.questions import MUST_NOT_ASK, NOBODY_THERE
from harness_actors.turn.texts import counted

TOLD = "Your user was asked before you began, and has answered:"
NOT_TOLD = "These questions were to be asked before you began:"
_WHY = "needed for {outputs}"


async def ask_first(context: RunContext, prepared: PreparedAgent) -> Waiting | TurnComplete | None:
    """Put the open questions of a contract to the user, all at once.

    They are asked where more of them are open than may stay so.

    Args:
        context: A run that begins.
        prepared: Its agent.

    Returns:
        That the run waits, or that it ends, for it must not ask; None where it goes on.
    """
    asked = asked_first(context.spec.config.contract)
    if not asked:
        return None
    match context.spec.config.on_question:
        case "fail":
            words = MUST_NOT_ASK.format(question=asked[0].text).replace("the model", "the contract")
            error = {"reason": "agent_error", "type": "QuestionAsked", "message": words}
            return TurnComplete(ending="error", error=error)
        case "deny":
            points = [f"- {question.text}" for question in asked]
            await _tell(context, prepared, "\n".join((NOT_TOLD, *points, NOBODY_THERE)))
            return None
    context.set(QUESTIONS, Questions(asked=asked))
    return Waiting()


def asked_first(contract: Mapping[str, Any] | None) -> tuple[Question, ...]:
    """What a user is asked before the model begins: all that is open, where that is more than may
    stay so.

    Args:
        contract: As plain values; None for none.
    """
    if contract is None:
        return ()
    asked = tuple(_open(contract))
    may_stay_open = contract.get("acceptability", {}).get("max_known_unknowns", 0)
    return asked if len(asked) > may_stay_open else ()


async def tell_answers(context: RunContext, prepared: PreparedAgent) -> None:
    """Tell the model what its user has answered, if that is what the run has waited for."""
    questions, answers = context.get(QUESTIONS), context.get(ANSWERS)
    asked = () if questions is None else questions.asked
    if not asked or asked[0].call_id:
        return
    points = [f"- {one.text}\n  {answers[one.id]}" for one in asked if one.id in answers]
    context.set(QUESTIONS, None)
    await _tell(context, prepared, "\n".join((TOLD, *points)))


def with_answers(contract: Mapping[str, Any], answers: Mapping[str, str]) -> Mapping[str, Any]:
    """A contract, as plain values, with what its user has answered in its run.

    Args:
        contract: As it was given.
        answers: All of the run, by the id of the question.
    """
    if not answers or not contract.get("questions"):
        return contract
    # A contract holds no NUL, and an answer is what somebody has typed.
    questions = [
        {**question, "asked": True, "answer": answers[number].replace("\0", "\ufffd")}
        if question.get("answer") is None and number in answers
        else question
        for number, question in _numbered(contract)
    ]
    return {**contract, "questions": questions}


def _open(contract: Mapping[str, Any]) -> Iterator[Question]:
    for number, question in _numbered(contract):
        if question.get("answer") is None:
            outputs = ", ".join(question.get("required_for", ()))
            why = _WHY.format(outputs=outputs) if outputs else ""
            # Asked by no call: that is how it is known.
            yield Question(id=number, call_id="", text=question["question"], why=why)


def _numbered(contract: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Its questions, by ids that none which the model asks has."""
    for place, question in enumerate(contract.get("questions", ()), 1):
        yield f"c{place}", question


async def _tell(context: RunContext, prepared: PreparedAgent, text: str) -> None:
    message = await counted(Message.told(text), prepared.counter)
    context.add_message(message)
    context.increment(REQUEST_TOKENS, message.tokens)
