"""What hooks and middleware may answer, and how a verdict is kept on record."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness_actors.exact_json import values_text

REASON_CHARS = 2_000
"""Longest reason, in characters; the rest is left out."""
CHANGED_BYTES = 48 * 1024
"""Largest arguments that a hook may change to, as a text within JSON: so they are kept with the
verdict."""


@dataclass(frozen=True, slots=True)
class Allow:
    """Go on. A hook that returns None says the same."""


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not do that; the model is told why.

    Of `pre_tool`: the call is not made. Of `agent_stop` and `output_guard`: the run is not over.
    Of `input_guard`: the model is told beside the message. Of middleware around a tool: this is
    the result.

    Attributes:
        reason: For the model, in a sentence.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class EndRun:
    """Of a guard: the run ends as `failed(agent_error)`.

    Attributes:
        reason: For whoever reads the result.
    """

    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """Of `pre_tool`: make the call with other arguments. The log keeps the model's own.

    Attributes:
        arguments: All of them, plain JSON values by name.
    """

    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ask:
    """Of `pre_tool`: a person is to decide.

    Attributes:
        why: What for.
    """

    why: str = ""


@dataclass(frozen=True, slots=True)
class Replace:
    """Of `post_tool`: what the model sees in place of the result.

    Attributes:
        text: All of it. Whether the call failed stays as it was.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Novel:
    """Of `stall`: the round came to something, whatever the rules of the harness say."""


@dataclass(frozen=True, slots=True)
class Circling:
    """Of `stall`: the run goes in circles, whatever the rules of the harness say.

    Attributes:
        what: For the model, after "You go in circles:": what it does again and again.
    """

    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallVerdict:
    """What all `pre_tool` hooks together say of one call.

    Attributes:
        denied: Why it must not be made; None where it may.
        asks: Why a person is to decide; None where nobody need be asked.
        arguments: What it is made with, as JSON; None for what the model wrote.
    """

    denied: str | None = None
    asks: str | None = None
    arguments: str | None = None

    def as_plain(self) -> dict[str, str]:
        """For the record; `from_plain` reads it back. Empty where it only allows."""
        told = {"denied": self.denied, "asks": self.asks, "arguments": self.arguments}
        return {name: text for name, text in told.items() if text is not None}

    @classmethod
    def from_plain(cls, plain: Mapping[str, str]) -> "CallVerdict":
        return cls(**plain)


def shortened_reason(text: object) -> str:
    """A reason as it is told: valid Unicode, bounded, never empty."""
    words = str(text).strip().encode("utf-8", "replace").decode()[:REASON_CHARS]
    return words or "no reason was given"


def encoded_arguments(arguments: object) -> str:
    """Changed arguments as the tool gets them.

    Raises:
        ValueError: They are no plain JSON object, or too large.
    """
    try:
        return arguments_text(arguments)
    except ValueError as error:
        raise ValueError(f"changed the arguments to {error}") from None


def arguments_text(arguments: object) -> str:
    """Arguments in place of the model's own, as JSON.

    Raises:
        ValueError: They are no plain JSON object, or too large: what they are instead, as it
            stands after "the arguments are".
    """
    if not isinstance(arguments, Mapping) or not all(isinstance(name, str) for name in arguments):
        raise ValueError("what is no JSON object")
    try:
        text = values_text(dict(arguments))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"what is no plain JSON: {error}") from None
    if (size := len(json.dumps(text))) > CHANGED_BYTES:
        raise ValueError(f"{size:,} bytes; {CHANGED_BYTES:,} are allowed")
    return text
