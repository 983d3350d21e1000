"""What the harness expects of whoever says which messages make room first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness_actors.messages import Message, ToolCall
from harness_actors.plan import Action, Shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Messages that stay together, and may be shown otherwise: one alone, or one with calls and all
    their results.

    Attributes:
        start: Position of the first in the conversation.
        tokens: What they take as they are shown now.
        action: What has become of them before; None where they are shown as they are.
        messages: They themselves as they are in the conversation, each with its position and, of a
            result, the call that it answers.
        shown: What the results of tools are worth; `shown.policy(call)` says it.
    """

    start: int
    tokens: int
    action: Action | None
    messages: tuple[tuple[int, Message, ToolCall | None], ...]
    shown: Shown

    @property
    def tools(self) -> tuple[str, ...]:
        """Names of the tools that are called in it, each once, in their order."""
        calls = (call.name for _, message, _ in self.messages for call in message.tool_calls)
        return tuple(dict.fromkeys(calls))


class Strategy(Protocol):
    """Whatever says which messages make room, and in which order. It is pickled with its agent."""

    @property
    def name(self) -> str:
        """By which settings name it; none of those that are shipped."""

    @property
    def action(self) -> str:
        """What becomes of what it names: ``"clear"``, ``"externalize"`` or ``"drop"``; see
        `Action`. The milder ones have their turn first."""

    def choose(self, candidates: Sequence[Candidate]) -> Iterable[Candidate]:
        """Name those that may be shown so, in the order in which that is done until there is room.

        It is asked in the middle of a run, and must answer at once, always the same.

        Args:
            candidates: All that may be taken, oldest first. System prompts, the user's own words
                and the newest messages are not among them.
        """
