"""What is taken of a model: an answer that a run, its journal and its neighbours can bear."""

from harness_actors.config import Limits
from harness_actors.errors import ModelAnswerError, ModelRefusedError
from harness_actors.models.failures import CONTENT_FILTER
from harness_actors.models.tries import tell_spent
from harness_actors.ports import Model, ModelResponse
from harness_actors.results import Usage

MOST_ARGUMENT_CHARS = 1024 * 1024
"""Arguments of one call, at most. Hostile ones of this size take a tenth of a second to read."""
MOST_SPOKEN_CHARS = 8 * 1024 * 1024
"""Text and calls of one answer together, at most."""
MOST_TOKENS = 10**9
MOST_USD = 1e9
MOST_WAITED_S = 1e9
"""Numbers that no call comes to. Sums of those of all runs stay far below 64 bits."""

LARGE_CALLS = 32
LARGE_CHARS = 32 * 1024


def fault_of(response: ModelResponse, limits: Limits) -> str:
    """What is wrong with an answer; empty where it can be taken.

    It may come from a model of the user's own, or from whoever that asks.
    """
    calls = response.tool_calls
    if len(calls) > limits.calls_per_message:
        return (
            f"the answer asks for {len(calls):,} tool calls at once; "
            f"limits.calls_per_message allows {limits.calls_per_message:,}"
        )
    for call in calls:
        if len(call.arguments) > MOST_ARGUMENT_CHARS:
            return (
                f"the arguments of a call of {call.name[:64]!r} have {len(call.arguments):,} "
                f"characters; {MOST_ARGUMENT_CHARS:,} are allowed"
            )
    if (spoken := _spoken_chars(response)) > MOST_SPOKEN_CHARS:
        return f"the answer has {spoken:,} characters; {MOST_SPOKEN_CHARS:,} are allowed"
    return _impossible_number(response.usage, response.waited_s)


def taken(model: Model, response: ModelResponse, limits: Limits) -> ModelResponse:
    """An answer that can be taken.

    Raises:
        ModelAnswerError: A run cannot bear it.
        ModelRefusedError: A content filter stopped it: what there is of it is no answer.
    """
    if fault := fault_of(response, limits):
        raise ModelAnswerError(model.name, fault)
    if response.finish_reason == CONTENT_FILTER:
        tell_spent(response.usage)
        raise ModelRefusedError(model.name, "a content filter stopped the answer")
    return response


def is_large(response: ModelResponse) -> bool:
    """Whether taking it in is work that could end a process."""
    return len(response.tool_calls) > LARGE_CALLS or _spoken_chars(response) > LARGE_CHARS


def _spoken_chars(response: ModelResponse) -> int:
    chars = len(response.text or "")
    for call in response.tool_calls:
        chars += len(call.id) + len(call.name) + len(call.arguments)
    return chars


def _impossible_number(usage: Usage, waited_s: float) -> str:
    # Each comparison is false of what is not a number.
    if (
        0 <= usage.input_tokens <= MOST_TOKENS
        and 0 <= usage.output_tokens <= MOST_TOKENS
        and 0 <= usage.cached_tokens <= MOST_TOKENS
        and 0 <= usage.cost_usd <= MOST_USD
        and 0 <= waited_s <= MOST_WAITED_S
    ):
        return ""
    told = {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost_usd": usage.cost_usd,
        "waited_s": waited_s,
    }
    most = {"cost_usd": MOST_USD, "waited_s": MOST_WAITED_S}
    wrong = ", ".join(
        f"{name} is {_shown(value)}"
        for name, value in told.items()
        if not 0 <= value <= most.get(name, MOST_TOKENS)
    )
    return f"the answer reports numbers that no call has: {wrong}"


def _shown(value: float) -> str:
    return repr(value) if abs(value) < MOST_USD else f"{float(value):g}"
