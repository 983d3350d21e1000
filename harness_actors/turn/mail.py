"""What a run is told of others before its next model call."""

from typing import Self

from harness_actors.messages import Message
from harness_actors.ports import RunContext
from harness_actors.state import MAIL, REQUEST_TOKENS
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.services import AgentTurnServices
from harness_actors.turn.texts import counted


class IncomingMail:
    """Tells a model once what has come for its run: in the delta of the round that sees it."""

    def __init__(
        self, context: RunContext, prepared: PreparedAgent, services: AgentTurnServices
    ) -> None:
        self._context, self._prepared, self._services = context, prepared, services

    @classmethod
    def of(
        cls, context: RunContext, prepared: PreparedAgent, services: AgentTurnServices
    ) -> Self | None:
        """None for a run to which nothing can come: it has begun no others, and no other it."""
        if context.spec.parent is None and not prepared.delegates:
            return None
        return cls(context, prepared, services)

    async def read(self) -> None:
        """Tell what has come since the last time, in one message."""
        waiting = self._context.get(MAIL)
        letters = waiting and waiting[: self._services.letters_due(len(waiting))]
        if not letters:
            return
        # Here, for few runs are told anything.
        from harness_actors.subagents.letters import words_of

        text = words_of(letters)
        message = await counted(Message.told(text), self._prepared.counter)
        self._context.add_message(message)
        self._context.increment(REQUEST_TOKENS, message.tokens)
        self._context.drop(MAIL, len(letters))
