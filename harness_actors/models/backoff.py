"""How long to wait before a provider is asked again."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

MOST_ASKED_S = 366 * 24 * 3600.0
"""What a provider is understood to ask for at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The waits between the attempts of one model call.

    Attributes:
        first_s: Longest wait before the first retry, in seconds; it doubles each time.
        longest_s: Longest wait that the doubling may reach.
        longest_asked_s: The most that is waited because a provider asks for it.
    """

    first_s: float = 0.5
    longest_s: float = 8.0
    longest_asked_s: float = 60.0

    def delay_s(self, retries: int, asked_s: float | None) -> float:
        """How long to wait, in seconds.

        Args:
            retries: Retries that were made already, 0 before the first.
            asked_s: What the provider asked for; None where it did not.
        """
        if asked_s is not None:
            # Never earlier than asked; the rest keeps calls that were refused together
            # from coming back together.
            asked_s = min(max(asked_s, 0.0), self.longest_asked_s)
            return asked_s + random.uniform(0.0, min(self.first_s, asked_s))
        return random.uniform(0.0, min(self.longest_s, self.first_s * 2.0**retries))


def asked_delay_s(headers: Mapping[str, str]) -> float | None:
    """The wait that a provider asks for, in seconds; None where it asks for none.

    Args:
        headers: Of the answer, their names in lower case.

    Source: RFC 9110, 10.2.3 (seconds or a date); ``retry-after-ms`` is OpenAI's own.

    >>> asked_delay_s({"retry-after": "3"})
    3.0
    >>> asked_delay_s({"retry-after": "3", "retry-after-ms": "250"})
    0.25
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            asked_s = float(headers[name]) * unit_s
        except (KeyError, ValueError):
            continue
        if math.isfinite(asked_s):
            return min(max(0.0, asked_s), MOST_ASKED_S)
    return _seconds_until(headers.get("retry-after", ""))


def _seconds_until(date: str) -> float | None:
    try:
        then = parsedate_to_datetime(date)
        if then.tzinfo is None:
            then = then.replace(tzinfo=UTC)
        asked_s = (then - datetime.now(UTC)).total_seconds()
    except (ValueError, OverflowError):  # also a year or a zone that no date has
        return None
    return min(max(0.0, asked_s), MOST_ASKED_S)
