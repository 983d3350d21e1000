"""The fallback models of one turn: who is asked, and what of that is on record."""

from typing import Any

from harness_actors.config import Limits
from harness_actors.events import ModelFellBack
from harness_actors.models.chain import ModelChain, Say
from harness_actors.models.tries import CallTries
from harness_actors.ports import Model, ModelRequest, ModelResponse, RunContext
from harness_actors.ports.origins import ORIGIN
from harness_actors.state import TURN_COUNT
from harness_actors.turn.acceptance import taken


class TurnChain:
    """A chain as one turn asks it.

    Whoever has answered is asked first for the rest of the turn: its prompt cache is warm, and a
    provider that is down is not waited for in each round. The next turn begins with the first
    model again, and so does one that goes on after a death or a pause: that costs the retries of
    one call, and so it is no part of the state.

    Args:
        chain: The chain.
        limits: Those of the run, by which answers are taken.
    """

    def __init__(self, chain: ModelChain, limits: Limits) -> None:
        self._chain = chain
        self._limits = limits
        self._first = 0

    @classmethod
    def of(cls, model: Model, limits: Limits) -> "TurnChain | None":
        """That of a turn; None where its agent has one model."""
        return cls(model, limits) if isinstance(model, ModelChain) else None

    async def ask(self, say: Say, request: ModelRequest) -> Any:
        """Ask until one answers.

        Args:
            say: Asks one model, and tells its text as it comes. What was said by one that then
                failed is void when the next begins.
            request: The request.

        Returns:
            The answer.

        Raises:
            Exception: As `ModelChain.walk`, and what a model of the user's own raises.
        """
        limits = self._limits

        async def said(model: Model, request: ModelRequest) -> Any:
            ORIGIN.set(f"model {model.name}")
            answer = await say(model, request)
            # What is no answer at all is left to the turn.
            return taken(model, answer, limits) if isinstance(answer, ModelResponse) else answer

        answer, self._first = await self._chain.walk(request, said, self._first)
        return answer


def fell_back(tries: CallTries, context: RunContext, round: int) -> ModelFellBack | None:
    """What is told of a call; None where the first model of a chain answered, or there is none."""
    if not tries.model and not tries.failed:
        return None
    turn = context.get(TURN_COUNT)
    return ModelFellBack(turn=turn, round=round, model=tries.model, failed=tries.failed)
