"""What a model is told whose answer is no answer: cut off, or empty."""

from collections.abc import Sequence

from harness_actors.config import Completion
from harness_actors.messages import Message
from harness_actors.ports import ModelResponse
from harness_actors.turn.one_call import CUT_SHORT

CUT_TEXT = (
    "Your answer reached its length limit and was cut off, so it does not count. Say it in fewer "
    "words, or do what is left in several smaller steps."
)
CUT_AGAIN = "your answer reached its length limit and was cut off; say it in far fewer words"
EMPTY = "your answer was empty; say in words what came of the task"


def told_of_cut(response: ModelResponse, log: Sequence[Message]) -> str | None:
    """What to tell a model whose text was cut off, so that it goes on in the same turn.

    Args:
        response: Its answer, which is the newest message of the log.
        log: The conversation.

    Returns:
        None where nothing was cut off, and where it was told so just before: the turn is then
        over, and its end is judged.
    """
    if response.finish_reason != CUT_SHORT or response.tool_calls:
        return None
    return None if _was_told(log) else CUT_TEXT


def findings_of(response: ModelResponse, completion: Completion) -> tuple[str, ...]:
    """Why a text without calls is not accepted as the end of a run; empty where it may be.

    A run that does not end by a text is told to go on in any case.
    """
    if response.finish_reason == CUT_SHORT:
        return (CUT_AGAIN,)
    if completion == "answer" and not (response.text or "").strip():
        return (EMPTY,)
    return ()


def _was_told(log: Sequence[Message]) -> bool:
    before = log[len(log) - 2] if len(log) > 1 else None
    return before is not None and before.role == "user" and before.text == CUT_TEXT
