"""What models cost."""

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from harness_actors.errors import ConfigError

log = logging.getLogger(__name__)

TOKENS_PER_PRICE = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """List prices in US dollars per million tokens.

    Attributes:
        input: Tokens of the request.
        cached_input: The part of them that the provider read from its cache; None where
            it makes no difference.
        output: Tokens of the answer, reasoning included.

    Raises:
        ConfigError: One is below 0, or no number.
    """

    input: float
    cached_input: float | None
    output: float

    def __post_init__(self) -> None:
        for name in ("input", "cached_input", "output"):
            price = getattr(self, name)
            if price is None and name == "cached_input":
                continue
            if not isinstance(price, int | float) or not 0 <= price < math.inf:
                problem = f"must be US dollars per million tokens, at least 0, not {price!r}"
                raise ConfigError(f"price.{name}", problem)

    def cost_usd(self, *, input_tokens: int, cached_tokens: int, output_tokens: int) -> float:
        """The cost of one call, `cached_tokens` being a part of `input_tokens`.

        >>> Price(2.0, 0.5, 8.0).cost_usd(
        ...     input_tokens=1_000_000, cached_tokens=500_000, output_tokens=0)
        1.25
        """
        cached = self.input if self.cached_input is None else self.cached_input
        fresh_tokens = max(0, input_tokens - cached_tokens)
        total = fresh_tokens * self.input + cached_tokens * cached + output_tokens * self.output
        return total / TOKENS_PER_PRICE


FREE = Price(0.0, None, 0.0)

# Source: the list prices on OpenAI's pricing page, standard tier. Where they have changed,
# give `OpenAIModel` a `price`.
PRICES: Mapping[str, Price] = {
    "gpt-5": Price(1.25, 0.125, 10.0),
    "gpt-5-mini": Price(0.25, 0.025, 2.0),
    "gpt-5-nano": Price(0.05, 0.005, 0.4),
    "gpt-5-pro": Price(15.0, None, 120.0),
    "gpt-5-chat-latest": Price(1.25, 0.125, 10.0),
    "gpt-5.1": Price(1.25, 0.125, 10.0),
    "gpt-4.1": Price(2.0, 0.5, 8.0),
    "gpt-4.1-mini": Price(0.4, 0.1, 1.6),
    "gpt-4.1-nano": Price(0.1, 0.025, 0.4),
    "gpt-4o": Price(2.5, 1.25, 10.0),
    "gpt-4o-2024-05-13": Price(5.0, None, 15.0),
    "gpt-4o-mini": Price(0.15, 0.075, 0.6),
    "o1": Price(15.0, 7.5, 60.0),
    "o1-mini": Price(1.1, 0.55, 4.4),
    "o3": Price(2.0, 0.5, 8.0),
    "o3-mini": Price(1.1, 0.55, 4.4),
    "o4-mini": Price(1.1, 0.275, 4.4),
    "gpt-4-turbo": Price(10.0, None, 30.0),
    "gpt-4": Price(30.0, None, 60.0),
    "gpt-3.5-turbo": Price(0.5, None, 1.5),
    "gpt-3.5-turbo-1106": Price(1.0, None, 2.0),
}


def price_of(model: str, extra: Mapping[str, Price] | None = None) -> Price | None:
    """The price of a model.

    Args:
        model: Name as its provider knows it, dated ones included.
        extra: Prices to look in first, by name.

    Returns:
        The price under the longest known name that `model` is a version of; None for an
        unknown model.

    >>> price_of("gpt-4.1-mini-2025-04-14") == PRICES["gpt-4.1-mini"]
    True
    >>> price_of("gpt-4.1-imaginary") is None
    True
    """
    for table in (extra or {}, PRICES):
        known = [name for name in table if is_version_of(model, name)]
        if known:
            return table[max(known, key=len)]
    return None


def check_cost_bounds(model: object, bounds: Mapping[str, float | None]) -> None:
    """Refuse bounds on what a model may cost where it is not known what it costs.

    Args:
        model: The model. One that says ``costs_known = True`` tells in `usage.cost_usd` of each
            answer what that has cost.
        bounds: In US dollars, by the names of the settings; None where none is set.

    Raises:
        ConfigError: One is set, and would bound nothing; says how to state a price.
    """
    if (name := unbounding(model, bounds)) is not None:
        raise ConfigError(name, f"{fault_of(model)}; {_remedy(model)}, or bound limits.tokens")


def unbounding(model: object, bounds: Mapping[str, float | None]) -> str | None:
    """The name of the first bound that is set and would bound nothing; None where none is."""
    if _unpriced(model) is None:
        return None
    return next((name for name, bound in bounds.items() if bound is not None), None)


def fault_of(model: object) -> str:
    """What is wrong with a bound on the cost of a model."""
    model = _unpriced(model)
    name = getattr(model, "name", type(model).__name__)
    return f"no price is known for {name!r}, so this would bound nothing"


def _unpriced(model: object) -> object:
    """The first model of a chain, or the model itself, of which nobody knows what it costs."""
    for one in getattr(model, "models", (model,)):
        if not getattr(one, "costs_known", False):
            return one
    return None


def _remedy(model: object) -> str:
    model = _unpriced(model)
    if hasattr(model, "costs_known"):
        return (
            "give the model one, price=Price(input, cached_input, output) in US dollars per "
            "million tokens"
        )
    return (
        "have its answers say what they cost in usage.cost_usd, and the model that they do: "
        "costs_known = True"
    )


def is_version_of(model: str, name: str) -> bool:
    """Whether a model is the one of a name, or a dated version of it."""
    # Only a date may follow: "gpt-4.1-mini" is another model than "gpt-4.1", and one that
    # appears later must not be billed at the price of its larger sibling.
    rest = model.removeprefix(name)
    return model.startswith(name) and (
        not rest or rest == "-latest" or (rest[0] == "-" and rest[1:].replace("-", "").isdigit())
    )


@cache
def note_unknown(model: str) -> None:
    """Note in the log, once per name, that the calls of a model count as free of charge."""
    log.info("no price is known for model %r: its calls count as free of charge", model)
