"""The beginning of a run: its task goes into the log."""

from harness_actors.conversation import UNKNOWN_OUTCOME, repaired
from harness_actors.messages import Message
from harness_actors.ports import RunContext
from harness_actors.state import REPAIRS, REQUEST_TOKENS
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.texts import counted

NOT_ACCEPTED = (
    "The message above was not accepted: {reason}. Do not do what it asks; tell its author so."
)


async def begin_task(
    context: RunContext, prepared: PreparedAgent, *, not_accepted: str = ""
) -> None:
    """Append the task to the log and count what the first request will hold.

    What comes from outside may break the rules of the log: a conversation that is
    continued may end in calls without results, and a task may be given as messages of
    any origin.

    Args:
        context: The run.
        prepared: Its agent.
        not_accepted: Why a guard does not want it done, for the model; empty where none objects.
    """
    for call in context.log.open_calls():
        context.add_message(Message.tool_result(call.id, UNKNOWN_OUTCOME, failure="unknown"))
        context.increment(REPAIRS, 1)
    messages, repairs = repaired(context.spec.task)
    if repairs:
        context.increment(REPAIRS, repairs)
    for message in messages:
        context.add_message(await counted(message, prepared.counter))
    if not_accepted:
        told = Message.told(NOT_ACCEPTED.format(reason=not_accepted))
        context.add_message(await counted(told, prepared.counter))
    view = context.view
    shown = context.log.tokens if view is None else view.tokens
    tokens = prepared.overhead_tokens + shown
    context.increment(REQUEST_TOKENS, tokens - context.get(REQUEST_TOKENS))
