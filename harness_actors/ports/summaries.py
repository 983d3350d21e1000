"""What the harness expects of whoever puts a part of a conversation into few words."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness_actors.messages import Message, ToolCall
from harness_actors.plan import Shown, Summary
from harness_actors.results import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """A part of a conversation that is to be put into few words.

    Attributes:
        messages: Its messages, oldest first, each with its position in the conversation and, of a
            result, the call that it answers. A call and its results are never divided.
        shown: What the results of tools are worth; `shown.policy(call)` says it.
        facts: What must stay, word for word.
        keep: What whoever asked for it wants to be kept, in their words; empty for nothing of its
            own.
    """

    messages: Sequence[tuple[int, Message, ToolCall | None]]
    shown: Shown
    facts: tuple[str, ...] = ()
    keep: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeSummary:
    """What a summarizer answers.

    Attributes:
        summary: The part in few words.
        usage: What was used for it.
    """

    summary: Summary
    usage: Usage = field(default_factory=Usage)


class Summarizer(Protocol):
    """Whatever puts a part of a conversation into few words. It is pickled with its agent."""

    @property
    def name(self) -> str:
        """Another one where it would answer otherwise: summaries are stored by it."""

    @property
    def most_tokens(self) -> int:
        """How large the messages of one request may be, in tokens, as we count them."""

    async def summarize(self, request: SummaryRequest) -> MadeSummary:
        """Put a part of a conversation into few words.

        Raises:
            SummaryError: It cannot be done; the conversation stays as it is shown.
            ModelError: A model that it asks does not answer.
        """
