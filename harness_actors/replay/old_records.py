"""What journals of earlier versions say in words alone, or otherwise.

Results did not say what became of their calls, nor answers why they ended; and the agent's tools
are not on record where its run was begun without them. The words are those of that time: they
must stay as they are here, whatever is said today. Nothing of this is asked where data says it.
"""

from collections.abc import Iterable, Sequence

from harness_actors.events import QuestionAnswered
from harness_actors.messages import Failure, Message
from harness_actors.state import ANSWERS, StateDelta
from harness_actors.turn.one_call import NEAR

CUT_ARGUMENTS = (
    "The call was not made: your answer reached its length limit in the middle of the arguments. "
    "Call again with shorter arguments, or do it in several smaller steps."
)
NOT_BEGUN = "The run's time was up before this call began"
NOT_FINISHED = "The run's time was up before this call finished"


def failure_in_words(result: Message) -> Failure:
    """What became of a call that was made, or that its run's time did not let begin, and failed."""
    if result.text.startswith(NOT_BEGUN):
        return "refused"
    return "timed_out" if result.text.startswith(NOT_FINISHED) else "failed"


def is_out_of_time(result: Message) -> bool:
    """Whether the run's time was up before a call began, or while it ran."""
    return result.text.startswith((NOT_BEGUN, NOT_FINISHED))


def was_cut_short(results: Sequence[Message]) -> bool:
    """Whether an answer reached its length limit, by the results of its calls."""
    return any(is_old(result) and result.text == CUT_ARGUMENTS for result in results)


def is_old(result: Message) -> bool:
    """Whether an earlier version recorded it, which did not say what became of its call."""
    return result.is_error and result.failure is None


def as_told_then(refusal: str, told: str | None) -> str:
    """Why a call was refused, as an earlier version said it, which named no tools that are like
    one that there is not.

    Args:
        refusal: What is said now.
        told: What the journal has; None for nothing.
    """
    shorter = refusal.partition(NEAR)[0]
    return shorter if told == shorter else refusal


def tools_told(messages: Iterable[Message]) -> set[str] | None:
    """The tools that a model was told of when it asked for one that there is not; None where it
    never did."""
    asked: dict[str, str] = {}
    for message in messages:
        asked.update((call.id, call.name) for call in message.tool_calls)
        name = asked.get(message.tool_call_id or "")
        opening = f"There is no tool {name!r}. Tools: "
        if message.role == "tool" and message.is_error and message.text.startswith(opening):
            told = message.text.removeprefix(opening).partition(NEAR)[0].removesuffix(".")
            return set() if told == "none" else set(told.split(", "))
    return None


def answers_in(delta: StateDelta) -> dict[str, str]:
    """What a change answers, by the id of the question: all answers of the run were written with
    each of them."""
    given: dict[str, str] = {}
    for write in delta.writes:
        if write.key == ANSWERS.name:
            given.update([write.value] if write.change == "put" else write.value)
    told = [event.question_id for event in delta.events if isinstance(event, QuestionAnswered)]
    return {question_id: given[question_id] for question_id in told if question_id in given}
