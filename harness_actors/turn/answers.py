"""Asking the model: one request, and its answer as a message of the log."""

import asyncio
import re
from collections.abc import Sequence

from harness_actors.conversation import unique_ids
from harness_actors.errors import ContextOverflowError, ModelError, error_facts
from harness_actors.messages import Message, ToolCall
from harness_actors.ports import Model, ModelRequest, ModelResponse
from harness_actors.signals import TurnComplete
from harness_actors.turn.bounds import Due, is_cancelled_from_outside
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.texts import counted, well_formed

NAME_CHARS = 64


async def ask(
    prepared: PreparedAgent, log: Sequence[Message], due: Due
) -> ModelResponse | TurnComplete:
    """Make one model call.

    Returns:
        The answer; or how the turn ends where there is none, its text left empty.
    """
    # A copy: a model may keep its request, and the log goes on growing.
    request = ModelRequest(messages=(*prepared.head, *log), tools=prepared.tools)
    scope = asyncio.timeout(due.seconds)
    try:
        async with scope:
            response = await _answer_of(prepared.agent.model, request)
    except ContextOverflowError:
        return TurnComplete(ending="limit", limit="context")
    except ModelError as error:
        return _failed("model_error", error)
    except (KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    # A model may be the user's own code, and its faults end the run like any other answer.
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and is_cancelled_from_outside():
            raise
        if isinstance(error, TimeoutError) and scope.expired():
            return TurnComplete(ending="limit", limit=due.kind)
        return _failed("agent_error", error)
    if not isinstance(response, ModelResponse):
        wrong = TypeError(f"the model answered {type(response).__name__}, not a ModelResponse")
        return _failed("agent_error", wrong)
    return response


async def _answer_of(model: Model, request: ModelRequest) -> object:
    # Any object: a model may be the user's own class, whose types nobody has checked.
    return await model.complete(request)


async def as_message(response: ModelResponse, prepared: PreparedAgent) -> Message:
    """The answer as a message that providers take back in the next request.

    Ids given twice or left empty are made unique within the message, names are brought
    into the form that providers insist on, and what is not valid Unicode is replaced.
    """
    calls = unique_ids(
        [
            ToolCall(well_formed(call.id), _name(call.name), well_formed(call.arguments))
            for call in response.tool_calls
        ]
    )
    text = None if response.text is None else well_formed(response.text)
    return await counted(Message.assistant(text, calls), prepared.counter)


def _name(given: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", given)[:NAME_CHARS] or "unnamed"


def _failed(reason: str, error: BaseException) -> TurnComplete:
    return TurnComplete(ending="error", error={"reason": reason, **error_facts(error)})
