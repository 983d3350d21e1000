"""Asking the model: one request, and its answer as a message of the log."""

import re
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from harness_actors.config import Limits
from harness_actors.conversation import unique_ids
from harness_actors.errors import (
    ContextOverflowError,
    ModelError,
    error_facts,
)
from harness_actors.messages import Message, MessageFacts, ToolCall
from harness_actors.models.chain import whole
from harness_actors.models.tries import CallTries, TriesTold
from harness_actors.models.waits import NotAskedAgainError, metered
from harness_actors.ports import Model, ModelRequest, ModelResponse, RunContext
from harness_actors.ports.origins import ORIGIN
from harness_actors.signals import Parked, TurnComplete
from harness_actors.turn.acceptance import taken
from harness_actors.turn.bounds import Bounds, Due
from harness_actors.turn.deadline import Allowance, Raised, TimedOut, run_within
from harness_actors.turn.fallback import TurnChain
from harness_actors.turn.one_call import CUT_SHORT
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.texts import tokens_of, well_formed
from harness_actors.turn.tracebacks import user_traceback
from harness_actors.turn.voice import Voice

NAME_CHARS = 64


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a model call.

    Attributes:
        response: The answer; or how the turn ends where there is none, its text left empty;
            or that the run is put aside, and the model was not asked again.
        waited_s: Seconds that were spent waiting for the provider to accept a retry.
        tries: What else is told of the call: models that were asked in vain, and what that cost.
    """

    response: ModelResponse | TurnComplete | Parked
    waited_s: float
    tries: CallTries


async def ask(
    prepared: PreparedAgent,
    context: RunContext,
    bounds: Bounds,
    working_s: float,
    voice: Voice | None = None,
    models: TurnChain | None = None,
) -> Answer:
    """Make one model call, within the time that is left of the run.

    Args:
        prepared: The agent.
        context: The run, with its conversation.
        bounds: Those of the run.
        working_s: Seconds of work on the run so far.
        voice: Tells the text as it comes; None where nobody reads it.
        models: The chain of the agent's models; None where it has one.
    """
    model = prepared.agent.model
    # A copy: a model may keep its request, and the log goes on growing.
    view = context.view
    messages = (*prepared.head, *(context.log if view is None else view.messages()))
    request = ModelRequest(messages=messages, tools=prepared.tools, strict=prepared.strict)
    with metered() as meter, TriesTold() as tries:
        allowance = Allowance(bounds.wall_due(), bounds.working_left(working_s), meter)
        context.when_parking(meter.give_up)
        try:
            outcome = await run_within(
                allowance,
                f"a call of model {model.name!r}",
                partial(_begin, prepared, request, voice, models),
            )
        finally:
            context.when_parking(None)
        match outcome:
            case TimedOut(due):
                response: ModelResponse | TurnComplete | Parked = _out_of_time(due, outcome.last)
            case Raised(NotAskedAgainError()):
                response = Parked()
            case Raised(error):
                response = _ended_by(error)
            case returned:
                response = _checked(returned.value, model, bounds.limits)
    told_s = response.waited_s if isinstance(response, ModelResponse) else 0.0
    return Answer(response, max(told_s, meter.waited_s), tries)


def _begin(
    prepared: PreparedAgent,
    request: ModelRequest,
    voice: Voice | None,
    models: TurnChain | None = None,
) -> Awaitable[object]:
    if models is not None:
        return _begin_chain(prepared, request, voice, models)
    model, chain = prepared.agent.model, prepared.middleware
    # In a task of its own, so that it need not be taken back.
    ORIGIN.set(f"model {model.name}")
    if voice is None:
        return chain.call_model(request, model.complete) if chain else model.complete(request)
    if not chain:
        return voice.speak(model, request)
    if chain.streams:
        speak = partial(voice.speak, model, filters=chain.text_filters)
        return chain.call_model(request, speak)
    return _told_whole(voice, chain.call_model(request, model.complete))


def _begin_chain(
    prepared: PreparedAgent, request: ModelRequest, voice: Voice | None, models: TurnChain
) -> Awaitable[object]:
    """The same with several models: within the middleware, as the retries of one of them are."""
    chain = prepared.middleware
    if voice is None or (chain and not chain.streams):
        answering = chain.call_model(request, partial(models.ask, whole))
        return answering if voice is None else _told_whole(voice, answering)
    filters: Any = chain.text_filters if chain else list
    return chain.call_model(request, partial(models.ask, partial(voice.speak, filters=filters)))


async def _told_whole(voice: Voice, answering: Awaitable[object]) -> object:
    response = await answering
    voice.tell(response)
    return response


def _out_of_time(due: Due, last: BaseException | None) -> TurnComplete:
    if isinstance(last, KeyboardInterrupt | SystemExit):
        raise last
    return TurnComplete(ending="limit", limit=due.kind)


def _ended_by(error: BaseException) -> TurnComplete:
    match error:
        case KeyboardInterrupt() | SystemExit():
            raise error
        case ContextOverflowError():
            return TurnComplete(ending="limit", limit="context")
        case ModelError():
            return _failed("model_error", error)
    # A model may be the user's own code, and its faults end the run like any other answer.
    return _failed("agent_error", error)


def _checked(value: object, model: Model, limits: Limits) -> ModelResponse | TurnComplete:
    # Any object: a model may be the user's own class, whose types nobody has checked.
    if isinstance(value, ModelResponse):
        try:
            return taken(model, value, limits)
        except ModelError as error:
            return _failed("model_error", error)
    wrong = TypeError(f"the model answered {type(value).__name__}, not a ModelResponse")
    return _failed("agent_error", wrong)


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
    spoken = [text or "", *(part for call in calls for part in (call.name, call.arguments))]
    tokens = await tokens_of(spoken, prepared.counter)
    message = Message.assistant(text, calls, tokens=tokens)
    if response.finish_reason == CUT_SHORT:
        # It decides what becomes of text and calls, and nothing else shows it.
        message = replace(message, facts=MessageFacts(finish_reason=CUT_SHORT))
    return message


def _name(given: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", given)[:NAME_CHARS] or "unnamed"


def _failed(reason: str, error: BaseException) -> TurnComplete:
    facts = {"reason": reason, **error_facts(error)}
    if traceback := user_traceback(error):
        facts["traceback"] = traceback
    return TurnComplete(ending="error", error=facts)
