"""What can go wrong with a provider: the faults that a `LoopbackServer` makes on demand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Refuse:
    """An HTTP status with a provider's error body."""

    status: int
    code: str = ""
    message: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Slow:
    """The answer, but only after a while."""

    seconds: float


@dataclass(frozen=True, slots=True)
class NeverAnswer:
    """The request is taken and nothing comes back."""


@dataclass(frozen=True, slots=True)
class BreakOff:
    """The connection is closed: before any header, or in the middle of the body or stream."""

    where: Literal["before_headers", "in_body"]


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes in place of an answer, with status 200."""

    body: bytes
    media_type: str = "application/json"


Fault = Refuse | Slow | NeverAnswer | BreakOff | Raw

Faults = Callable[[int, dict[str, Any]], Fault | None]
"""Which fault a request meets, by its number (the first is 1) and its body; None for none."""


def rate_limited(retry_after_s: float | None = None) -> Refuse:
    """Status 429, with a ``Retry-After`` where a wait is given."""
    headers = {} if retry_after_s is None else {"Retry-After": f"{retry_after_s:g}"}
    return Refuse(429, "rate_limit_exceeded", "Rate limit reached", headers)


SERVER_ERROR = Refuse(500, "server_error", "The server had an error")
OVERLOADED = Refuse(503, "overloaded", "The server is overloaded")
WRONG_KEY = Refuse(401, "invalid_api_key", "Incorrect API key provided: sk-wrong**********0000")
UNKNOWN_MODEL = Refuse(404, "model_not_found", "The model does not exist")
OUT_OF_QUOTA = Refuse(429, "insufficient_quota", "You exceeded your current quota")
CONTEXT_OVERFLOW = Refuse(
    400, "context_length_exceeded", "This model's maximum context length is 8192 tokens"
)
CONTENT_FILTERED = Refuse(400, "content_filter", "The prompt was filtered")
EMPTY_CHOICES = Raw(b'{"id":"x","object":"chat.completion","choices":[]}')
NOT_JSON = Raw(b"<html>502 Bad Gateway</html>", "text/html")


def first(requests: int, fault: Fault) -> Faults:
    """A fault for the first requests and none after."""
    return lambda number, _: fault if number <= requests else None


def always(fault: Fault) -> Faults:
    """A fault for every request."""
    return lambda number, body: fault
