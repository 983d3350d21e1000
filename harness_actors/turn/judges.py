"""The judge of a run's contract: a model that is asked what it thinks of the work of another."""

from collections.abc import Awaitable, Callable
from functools import partial

from harness_actors.config import HarnessConfig
from harness_actors.errors import ToolError
from harness_actors.messages import Message
from harness_actors.models.waits import metered
from harness_actors.ports import Agent, Model, ModelRequest, ModelResponse, ToolSet
from harness_actors.ports.origins import ORIGIN
from harness_actors.results import LimitKind, Usage
from harness_actors.turn.acceptance import fault_of
from harness_actors.turn.bounds import Due, words_of
from harness_actors.turn.deadline import Allowance, Raised, TimedOut, run_within
from harness_actors.turn.interruption import is_ctrl_c
from harness_actors.turn.preparation import PreparedAgent

SAID_CHARS = 500
"""Of an answer, on record."""
MOST_SAID = 16
"""Answers of one verification, on record; those of more judges are in what was found."""


def judge_named(agent: Agent, name: str | None) -> Model | None:
    """The model that judges under a name.

    Args:
        agent: It has judges as its `judges`, by name.
        name: None for the agent's own model.

    Returns:
        None where there is no such judge.
    """
    judges = getattr(agent, "judges", None) or {}
    if name in judges:
        found: Model = judges[name]
        return found
    return agent.model if name is None or name == agent.model.name else None


class RunJudge:
    """Answers the port `Judge` for one verification of a run.

    Each question is a conversation of its own: a judge knows nothing of the run but what it is
    shown, and no tool. What stands around the model calls of the agent stands around its own.

    Args:
        prepared: The agent.
        config: The settings of the run.
        reached: The bound of the run that forbids another model call, given what judges have used;
            None where none does.

    Attributes:
        usage: What was used.
        said: Names of models with what they answered, shortened, in their order.
    """

    def __init__(
        self,
        prepared: PreparedAgent,
        config: HarnessConfig,
        reached: Callable[[Usage], LimitKind | None],
    ) -> None:
        self._prepared = prepared
        self._config = config
        self._reached = reached
        self.usage = Usage()
        self.said: list[tuple[str, str]] = []

    async def ask(self, text: str, *, model: str | None) -> str:
        judge = judge_named(self._prepared.agent, model)
        if judge is None:
            raise ToolError(f"there is no judge {model!r}; name it in the agent's `judges`")
        if (kind := self._reached(self.usage)) is not None:
            raise ToolError(f"it was not asked: {words_of(kind, self._config)}")
        # Before it: also one that is cut short was made.
        self.usage += Usage(model_calls=1)
        with metered():
            outcome = await run_within(
                Allowance(Due(None)), f"the judge {judge.name!r}", partial(self._begin, judge, text)
            )
        match outcome:
            case TimedOut():
                raise ToolError("it took too long")
            case Raised(error):
                if isinstance(error, Exception) or is_ctrl_c(error):
                    raise error
                raise ToolError(f"{type(error).__name__}: {error}")
            case returned:
                return self._answer(judge, returned.value)

    def _begin(self, judge: Model, text: str) -> Awaitable[object]:
        # In a task of its own, so that it need not be taken back.
        ORIGIN.set(f"model {judge.name}")
        request = ModelRequest(messages=(Message.user(text),), tools=ToolSet.of(()))
        chain = self._prepared.middleware
        return chain.call_model(request, judge.complete) if chain else judge.complete(request)

    def _answer(self, judge: Model, value: object) -> str:
        # Any object: a model may be the user's own class, whose types nobody has checked.
        if not isinstance(value, ModelResponse):
            raise ToolError(f"it answered {type(value).__name__}, not a ModelResponse")
        if fault := fault_of(value, self._config.limits):
            raise ToolError(fault)
        used = value.usage
        self.usage += Usage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cached_tokens=used.cached_tokens,
            cost_usd=used.cost_usd,
        )
        text = value.text or ""
        if len(self.said) < MOST_SAID:
            self.said.append((judge.name, text[:SAID_CHARS]))
        return text
