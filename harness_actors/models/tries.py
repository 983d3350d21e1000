"""What a model call came to beside its answer: tries that failed, and what they used.

A model tells it from within, so that whoever asks it, and what stands between them, need not.
"""

from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from harness_actors.results import Usage

MOST = 10**9
"""Tokens of a call, or what it costs in US dollars, at most."""

Why = Literal["error", "refusal", "overflow"]


@dataclass(frozen=True, slots=True)
class FailedTry:
    """A model of a chain that was asked and did not answer.

    Attributes:
        model: What it is called among those of its chain.
        why: How it failed.
        problem: What it, or its provider, said.
        usage: What that used, as far as the provider told it.
    """

    model: str
    why: Why
    problem: str
    usage: Usage

    def as_plain(self) -> dict[str, Any]:
        """Plain JSON values, for the record."""
        return {
            "model": self.model,
            "why": self.why,
            "problem": self.problem,
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "cached_tokens": self.usage.cached_tokens,
            "cost_usd": self.usage.cost_usd,
        }


class CallTries:
    """The tries of one model call.

    Attributes:
        model: Who answered, where another was asked before, or is the first of the chain.
        failed: Those of the chain that were asked before, as plain values.
        told: What each try used that brought no answer.
    """

    def __init__(self) -> None:
        self.model = ""
        self.failed: tuple[dict[str, Any], ...] = ()
        self.told: list[Usage] = []

    @property
    def spent(self) -> Usage | None:
        """What tries used that brought no answer; None for nothing."""
        return sum_of(self.told) if self.told else None


_TRIES: ContextVar[CallTries | None] = ContextVar("call_tries", default=None)


class TriesTold:
    """Takes what is told of a model call that is begun inside, also in its tasks."""

    # Not a generator, which takes three times as long: it stands around every call.
    def __enter__(self) -> CallTries:
        tries = CallTries()
        self._token = _TRIES.set(tries)
        return tries

    def __exit__(self, *_: object) -> None:
        _TRIES.reset(self._token)


def current_tries() -> CallTries:
    """The tries of the model call in progress; where nobody takes them, ones to throw away."""
    return _TRIES.get() or CallTries()


def tell_spent(usage: Usage) -> None:
    """To be called by a model that was paid for and brings no answer, before it raises.

    Args:
        usage: What it used, `cost_usd` included.

    Raises:
        ValueError: No call uses that.
    """
    numbers = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cost_usd)
    # Each comparison is false of what is not a number.
    if not all(0 <= number <= MOST for number in numbers):
        raise ValueError(f"{usage!r} is not what a model call uses")
    current_tries().told.append(usage)


def sum_of(told: list[Usage]) -> Usage:
    """The usage of several tries; none of them is a model call of its own."""
    total = Usage()
    for usage in told:
        total += Usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            cost_usd=usage.cost_usd,
        )
    return total
