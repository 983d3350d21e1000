"""What a provider's refusal means: the one place that knows their words and codes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import orjson

from harness_actors.errors import (
    ContextOverflowError,
    ModelBusyError,
    ModelError,
    ModelRefusedError,
    ModelSetupError,
)
from harness_actors.messages import ToolCall
from harness_actors.models.backoff import asked_delay_s
from harness_actors.models.keys import NO_KEY
from harness_actors.ports import ModelResponse

PROBLEM_CHARS = 500
READ_CHARS = 8 * PROBLEM_CHARS
KEY_MARK = "[key]"
"""Stands where a key was."""
SECRET_CHARS = 16
"""Keys of providers have at least so many characters."""

# Source: the answers of OpenAI, Azure, vLLM, llama.cpp, Mistral, Anthropic, Gemini, Groq,
# Together and LM Studio to a request that is too long.
_OVERFLOW_CODES = (
    "context_length_exceeded",
    "exceed_context_size_error",
    "string_above_max_length",
    "request_too_large",
)
_OVERFLOW_WORDS = re.compile(
    r"maximum context length|context window|context length|context size|context_length"
    r"|prompt is too long|input is too long|prompt too long|too many (input )?tokens"
    r"|input token count|maximum number of tokens|tokens exceeds? the"
    r"|reduce the length of the messages|too large for model with|request too large"
    r"|input is too large to process|trying to keep the first",
    re.IGNORECASE,
)
_REFUSED_CODES = ("content_filter", "content_policy_violation", "responsibleaipolicyviolation")
CONTENT_FILTER = "content_filter"
"""The finish reason of an answer that was stopped by one."""
_NO_MONEY_CODES = ("insufficient_quota", "billing_hard_limit_reached", "billing_not_active")
_BUSY_STATUSES = (408, 409, 425, 429)

_KEY_SHAPES = re.compile(r"\b(?:sk|rk|gsk|xai)[-_][\w*.\-]{6,}|\bAIza[\w\-]{10,}|\bBearer\s+\S+")


class AttemptFailedError(Exception):
    """One attempt at a model call failed. Never leaves this room.

    Attributes:
        error: What the caller is told if this was the last attempt.
        unreachable: No connection came about, as with an endpoint that is not there.
    """

    def __init__(self, error: ModelError, unreachable: bool = False) -> None:
        super().__init__(error, unreachable)
        self.error = error
        self.unreachable = unreachable


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Who was asked, as errors name it.

    Attributes:
        model: Name of the model.
        base_url: Where it is asked for.
        key_name: Name of its key; never the value.
        key: The value, only to be taken out of what the provider says.
    """

    model: str
    base_url: str
    key_name: str
    key: str

    @property
    def shown_url(self) -> str:
        """The address without a user or password in it."""
        parts = urlsplit(self.base_url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))

    def clean(self, text: str) -> str:
        """A provider's words on one line, shortened, with whatever looks like a key gone."""
        if len(self.key) >= 6:
            text = text.replace(self.key, KEY_MARK)
        # After the key, of which else half would be left; before what takes long in a long text.
        text = text[:READ_CHARS]
        return without_keys(" ".join(text.split()))[:PROBLEM_CHARS]

    @property
    def secret(self) -> str:
        """The key where it is to be taken out of answers, too; empty where it is none.

        For a server of the user's own the key is often a plain word, which answers may contain.
        """
        return self.key if len(self.key) >= SECRET_CHARS else ""


class KeyFilter:
    """Takes a key out of a text that comes in pieces.

    Args:
        key: At least one character.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._held = ""

    def feed(self, piece: str) -> str:
        """What may be told of the text so far; what could begin a key is held back."""
        text = self._held + piece
        if self._key in text:
            text = text.replace(self._key, KEY_MARK)
        longest = min(len(self._key) - 1, len(text))
        size = next((n for n in range(longest, 0, -1) if text.endswith(self._key[:n])), 0)
        cut = len(text) - size
        self._held = text[cut:]
        return text[:cut]

    def rest(self) -> str:
        """What was held back, where nothing follows."""
        return self._held


def without_key(key: str, response: ModelResponse) -> ModelResponse:
    """The response without a key in it, which a provider may echo; an empty one is none."""
    calls, reason = response.tool_calls, response.finish_reason
    spoken = [response.text or "", reason]
    for call in calls:
        spoken += _texts(call)
    # Not in one that is joined of two: no key has a line feed.
    if not key or key not in "\n".join(spoken):
        return response
    return replace(
        response,
        text=None if response.text is None else response.text.replace(key, KEY_MARK),
        tool_calls=tuple(
            ToolCall(*(text.replace(key, KEY_MARK) for text in _texts(call))) for call in calls
        ),
        finish_reason=reason.replace(key, KEY_MARK),
    )


def _texts(call: ToolCall) -> tuple[str, str, str]:
    return call.id, call.name, call.arguments


def without_keys(text: str) -> str:
    """A text with whatever looks like a key gone."""
    return _KEY_SHAPES.sub(KEY_MARK, text)


def status_failure(
    endpoint: Endpoint, status: int, headers: Mapping[str, str], body: bytes
) -> ModelError:
    """The error for an answer with an HTTP status of 400 or above.

    Args:
        endpoint: Who was asked.
        status: The HTTP status.
        headers: Of the answer, their names in lower case.
        body: Of the answer, of any form.
    """
    code, words = read_error(body)
    problem = endpoint.clean(words) or "the provider gave no reason"
    return _classified(endpoint, status, code, problem, asked_delay_s(headers))


def reported_failure(endpoint: Endpoint, error: Any) -> ModelError:
    """The error for one that a provider reports under status 200, as in mid-stream."""
    code, words = _read_fields(error)
    number = str(error.get("code", "")) if isinstance(error, dict) else ""
    status = int(number) if re.fullmatch("[45][0-9][0-9]", number) else 500
    return _classified(endpoint, status, code, endpoint.clean(words), None)


def _classified(
    endpoint: Endpoint, status: int, code: str, problem: str, asked_s: float | None
) -> ModelError:
    model = endpoint.model
    if any(known in code for known in _REFUSED_CODES):
        return ModelRefusedError(model, problem, status)
    too_large = any(known in code for known in _OVERFLOW_CODES) or status == 413
    if too_large or (status in (400, 422, 429, 500) and _OVERFLOW_WORDS.search(problem)):
        return ContextOverflowError(model, problem, status)
    if any(known in code for known in _NO_MONEY_CODES):
        problem = f"{problem}; check the plan and billing of the account of {endpoint.key_name}"
        return ModelSetupError(model, problem, status)
    if status in _BUSY_STATUSES or status >= 500:
        return ModelBusyError(model, problem, status, asked_s)
    return ModelSetupError(model, _advice(endpoint, status, problem), status)


def _advice(endpoint: Endpoint, status: int, problem: str) -> str:
    match status:
        case 401 if endpoint.key == NO_KEY:
            return (
                f"{endpoint.shown_url} wants a key ({problem}); set {endpoint.key_name} in the "
                "environment"
            )
        case 401 | 403:
            return (
                f"{endpoint.shown_url} does not accept the key {endpoint.key_name} ({problem}); "
                f"check its value, and that it may use this model"
            )
        case 404:
            return (
                f"{endpoint.shown_url} has no model {endpoint.model!r} or no Chat Completions "
                f"({problem}); check the model's name and base_url (OPENAI_BASE_URL)"
            )
        case _:
            return f"{endpoint.shown_url} does not accept the request: {problem}"


def read_error(body: bytes) -> tuple[str, str]:
    """The code and the words of an error's body; the body itself where it has no form."""
    try:
        plain = orjson.loads(body)
        if isinstance(plain, list) and plain:
            plain = plain[0]
        if isinstance(plain, dict):
            return _read_fields(plain.get("error", plain))
        return "", str(plain)
    except (orjson.JSONDecodeError, RecursionError):
        return "", body.decode("utf-8", "replace")


def _read_fields(error: Any) -> tuple[str, str]:
    if not isinstance(error, dict):
        return "", str(error)
    inner = error.get("innererror")
    codes = [error.get("code"), error.get("type")]
    if isinstance(inner, dict):
        codes.append(inner.get("code"))
    code = " ".join(str(c) for c in codes if c not in (None, "")).lower()
    words = error.get("message") or error.get("detail") or error.get("msg")
    return code, str(words or error)


def unreachable_failure(endpoint: Endpoint, reason: str, *, attempts: int) -> ModelSetupError:
    """The error for an endpoint that never once took a connection."""
    return ModelSetupError(
        endpoint.model,
        f"cannot connect to {endpoint.shown_url} after {attempts} attempts "
        f"({endpoint.clean(reason)}); check that it runs there, and base_url (OPENAI_BASE_URL)",
    )
