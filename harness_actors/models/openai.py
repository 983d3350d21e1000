"""`OpenAIModel`: any provider or server that speaks Chat Completions."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from copy import copy
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from harness_actors.errors import (
    ConfigError,
    ModelAnswerError,
    ModelBusyError,
    ModelRefusedError,
)
from harness_actors.models.backoff import Backoff
from harness_actors.models.body import RequestBody
from harness_actors.models.bounded import ANSWER_BYTES, OutOfBoundsError, read_at_most
from harness_actors.models.connection import Connection
from harness_actors.models.failures import (
    CONTENT_FILTER,
    AttemptFailedError,
    Endpoint,
    KeyFilter,
    reported_failure,
    unreachable_failure,
    without_key,
)
from harness_actors.models.holding import complete_held, stream_held
from harness_actors.models.keys import ProviderKey
from harness_actors.models.prices import FREE, Price, note_unknown, price_of
from harness_actors.models.streaming import StreamedAnswer, read_events
from harness_actors.models.tokens import encoding_of, load_encoding
from harness_actors.models.tries import tell_spent
from harness_actors.models.waits import waiting
from harness_actors.models.wire import (
    RequestEncoder,
    UnusableAnswerError,
    parse_object,
    read_completion,
)
from harness_actors.ports import ModelRequest, ModelResponse

logger = logging.getLogger(__name__)

DEFAULT_BASE_URL = "https://api.openai.com/v1"
DEFAULT_KEY_NAME = "OPENAI_API_KEY"
UNREACHABLE_RETRIES = 3
"""Retries of an endpoint that never answered: a dead one is told within seconds."""

TOLD_FROM_S = 5.0
"""A wait that seems like a hang to whoever looks on."""
SAID_CHARS = 80
"""What is shown of bytes that are no answer."""

FAILED = (AttemptFailedError, UnusableAnswerError, OutOfBoundsError)
"""What an attempt may end in, if not in an answer."""


class OpenAIModel:
    """A model behind an OpenAI-compatible endpoint.

    Args:
        name: The model, as the provider calls it.
        base_url: The endpoint; None takes `OPENAI_BASE_URL`, or else OpenAI's own.
        api_key: The key's value, if it is not in the environment. It stays in memory:
            pickling the model leaves it behind, and `use_keys` brings it to another process.
        key_name: The environment variable that holds the key; `OPENAI_API_KEY` if None,
            and then an endpoint of your own may do without.
        settings: Further fields of each request, such as ``{"temperature": 0.2}``.
        price: What tokens cost; None looks the name up in the table of list prices.
        prices: Prices by model name to look in before that table.
        max_retries: Retries of one call after rate limits, overload, broken connections
            and unusable answers, at least 0.
        timeout_s: Longest time of one attempt, in seconds.
        max_connections: Sockets at most, per process; calls beyond wait for one. None
            takes as many as the process may have files.
        max_answer_bytes: Largest answer, unpacked, at least 1; of a stream, the longest line
            and all that is kept. What is larger fails the run.
        backoff: The waits between attempts.
        structured_output: The provider can hold its model to a schema (`response_format` and
            ``"strict": true``), where an agent has an `output_type`; None says so of OpenAI's own
            endpoint alone. What it answers is looked at in any case, and one that refuses such a
            request is asked without.

    Attributes:
        name: As given.
        base_url: The endpoint in use.
        settings: As given.

    Raises:
        ConfigError: A setting is out of range.
    """

    # Of models in blobs from before there was such a thing.
    _structured: bool | None = None
    _refuses_forms = False

    def __init__(
        self,
        name: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        key_name: str | None = None,
        settings: Mapping[str, Any] | None = None,
        price: Price | None = None,
        prices: Mapping[str, Price] | None = None,
        max_retries: int = 5,
        timeout_s: float = 600.0,
        max_connections: int | None = None,
        max_answer_bytes: int = ANSWER_BYTES,
        backoff: Backoff | None = None,
        structured_output: bool | None = None,
    ) -> None:
        _check(name, max_retries=max_retries, timeout_s=timeout_s, max_connections=max_connections)
        if max_answer_bytes < 1:
            raise ConfigError(
                "model.max_answer_bytes", f"must be at least 1, not {max_answer_bytes}"
            )
        # The endpoint is settled here, where the user is: an actor's environment may differ.
        self.base_url = _checked_url(
            (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL).strip()
        )
        self.name = name
        self.settings = dict(settings or {})
        known = price or price_of(name, prices)
        if known is None:
            note_unknown(name)
        self._price = known or FREE
        self._costs_known = known is not None
        self._max_retries = max_retries
        self._backoff = backoff or Backoff()
        self._encoder = RequestEncoder(name, self.settings)
        self._key_name = key_name
        self._key = self._named_key(api_key)
        self._most_bytes = max_answer_bytes
        self._connection = Connection(
            timeout_s=timeout_s, max_connections=max_connections, most_bytes=max_answer_bytes
        )
        self._answered = False
        self._structured = structured_output

    def changed(
        self, *, base_url: str | None = None, settings: Mapping[str, Any] | None = None
    ) -> "OpenAIModel":
        """This model elsewhere or with further settings; price, retries and bounds stay.

        Args:
            base_url: The endpoint; None for the one in use.
            settings: Fields of each request, over those that it has.

        Raises:
            ConfigError: The endpoint is not an address.
        """
        other = copy(self)
        if base_url is not None:
            other.base_url = _checked_url(base_url.strip())
        other.settings = {**self.settings, **(settings or {})}
        other._encoder = RequestEncoder(other.name, other.settings)
        # A key that was given in code stays with the endpoint that it was given for.
        other._key = other._named_key(None) if base_url is not None else self._key
        other._connection = copy(self._connection)
        return other

    def _named_key(self, given: str | None) -> ProviderKey:
        own = self.base_url.rstrip("/") != DEFAULT_BASE_URL
        required = self._key_name is not None or not own
        return ProviderKey(self._key_name or DEFAULT_KEY_NAME, given=given, required=required)

    def __repr__(self) -> str:
        return f"OpenAIModel({self.name!r}, base_url={self.base_url!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_answered": False, "_refuses_forms": False}

    @property
    def structured_output(self) -> bool:
        """Whether its provider can hold it to a schema."""
        if self._structured is None:
            return self.base_url.rstrip("/") == DEFAULT_BASE_URL
        return self._structured

    @property
    def costs_known(self) -> bool:
        """Whether its price is known, if only as nothing, so that a bound on cost bounds it."""
        return self._costs_known

    @property
    def key_names(self) -> tuple[str, ...]:
        """Names of the keys that a process needs to run this model."""
        return (self._key.name,) if self._key.needed else ()

    @property
    def secrets(self) -> Mapping[str, str]:
        """Values of the keys that were given in code, by name, in the process where they were."""
        return self._key.secrets

    def use_keys(self, keys: Mapping[str, str]) -> None:
        """Take the values of keys in, by name, for the calls that this process makes."""
        self._key.use(keys)

    def preload(self) -> None:
        """Load what a first call needs: a second of CPU, for a thread that has time for it."""
        import_module("harness_actors.models.client")
        load_encoding(encoding_of(self.name))

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request.

        Raises:
            ModelBusyError: No usable answer came, after all retries.
            ContextOverflowError: The request is larger than the model's window.
            ModelRefusedError: The provider's content filter stopped it.
            ModelAnswerError: The answer is too large, or nested too deep.
            ModelSetupError: A wrong key, an unknown model, an endpoint that is not there,
                or a request that the provider does not accept.
        """
        if self._may_be_held(request):
            encode = partial(self._encoder.encode, request)
            return await complete_held(self.answer, encode, self._note_refused)
        return await self.answer(self._encoder.encode(request))

    async def answer(self, body: RequestBody) -> ModelResponse:
        """Answer a request that is encoded already; raises what `complete` raises."""
        retries, waited_s = 0, 0.0
        while True:
            client = await self._connection.client(self._endpoint())
            try:
                response = self._read(await client.post(body), len(body), client.endpoint)
            except FAILED as failed:
                waited_s += await self._wait(self._failure(failed), retries)
                retries += 1
            else:
                response = self._accepted(response, client.endpoint)
                return replace(response, waited_s=waited_s) if retries else response

    def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        """Answer one request, its text in pieces; the whole response comes last.

        A stream that breaks is asked for again only while nothing of it was yielded;
        later it ends in `ModelBusyError`, since the next answer would be another text.

        Raises:
            ModelError: As `complete`.
        """
        encode = partial(self._encoder.encode, request, stream=True)
        if self._may_be_held(request):
            return stream_held(self.stream_answer, encode, self._note_refused)
        return self.stream_answer(encode())

    def _may_be_held(self, request: ModelRequest) -> bool:
        return request.strict is not None and self.structured_output and not self._refuses_forms

    def _note_refused(self) -> None:
        """It has answered without the form; it is not asked with one again."""
        self._refuses_forms = True
        logger.warning(
            "%r at %s refuses requests that hold it to a schema; it is asked without. "
            "structured_output=False says so from the start",
            self.name,
            self._endpoint().shown_url,
        )

    async def stream_answer(self, body: RequestBody) -> AsyncGenerator[str | ModelResponse]:
        """Answer, in pieces, a request that is encoded with ``"stream": true`` already."""
        retries, waited_s, begun = 0, 0.0, False
        while True:
            try:
                async with aclosing(self._stream_once(body)) as pieces:
                    async for piece in pieces:
                        if isinstance(piece, ModelResponse):
                            yield replace(piece, waited_s=waited_s)
                            return
                        begun = True
                        yield piece
            except FAILED as failed:
                failure = self._failure(failed)
                if begun:
                    raise failure.error from None
                waited_s += await self._wait(failure, retries)
                retries += 1

    async def close(self) -> None:
        """Close the connections. The model can be used again: it opens new ones."""
        await self._connection.close()

    async def _stream_once(self, body: RequestBody) -> AsyncGenerator[str | ModelResponse]:
        client = await self._connection.client(self._endpoint())
        endpoint = client.endpoint
        async with client.stream(body) as streamed:
            if not streamed.is_events:
                whole = await read_at_most(streamed.pieces, self._most_bytes)
                response = self._accepted(self._read(whole, len(body), endpoint), endpoint)
                if response.text:
                    yield response.text
                yield response
                return
            answer = StreamedAnswer(len(body), self._price, self._most_bytes)
            cleaner = KeyFilter(endpoint.secret) if endpoint.secret else None
            async for text in read_events(streamed.pieces, answer, endpoint):
                if cleaner is not None:
                    text = cleaner.feed(text)
                if text:
                    yield text
            if cleaner is not None and (rest := cleaner.rest()):
                yield rest
            yield self._accepted(answer.response(), endpoint)

    def _read(self, body: bytes, sent_bytes: int, endpoint: Endpoint) -> ModelResponse:
        answer = parse_object(body, self._most_bytes)
        if error := answer.get("error"):
            raise AttemptFailedError(reported_failure(endpoint, error))
        return read_completion(answer, sent_bytes=sent_bytes, price=self._price)

    def _accepted(self, response: ModelResponse, endpoint: Endpoint) -> ModelResponse:
        self._answered = True
        if response.finish_reason == CONTENT_FILTER:
            tell_spent(response.usage)
            raise ModelRefusedError(self.name, "the provider's content filter stopped the answer")
        return without_key(endpoint.secret, response)

    def _failure(
        self, failed: AttemptFailedError | UnusableAnswerError | OutOfBoundsError
    ) -> AttemptFailedError:
        match failed:
            case AttemptFailedError():
                return failed
            case OutOfBoundsError():
                return AttemptFailedError(ModelAnswerError(self.name, str(failed)))
        problem = failed.problem
        if failed.said:
            problem = f"{problem}: {self._endpoint().clean(failed.said)[:SAID_CHARS]!r}"
        return AttemptFailedError(ModelBusyError(self.name, problem))

    async def _wait(self, failed: AttemptFailedError, retries: int) -> float:
        """Wait before the next attempt.

        Returns:
            Seconds waited.

        Raises:
            ModelError: There is to be none.
        """
        error = failed.error
        self._answered = self._answered or not failed.unreachable
        if not isinstance(error, ModelBusyError):
            raise error from None
        # An endpoint that has answered this process may be restarting, which takes longer.
        never_there = failed.unreachable and not self._answered
        limit = min(self._max_retries, UNREACHABLE_RETRIES) if never_there else self._max_retries
        if retries >= limit:
            if never_there:
                raise unreachable_failure(
                    self._endpoint(), error.problem, attempts=retries + 1
                ) from None
            problem = f"{error.problem} (attempt {retries + 1}, the last)"
            raise ModelBusyError(error.model, problem, error.status, error.retry_after_s) from None
        delay_s = self._backoff.delay_s(retries, error.retry_after_s)
        if delay_s >= TOLD_FROM_S:
            logger.warning("%s; it is asked again in %.0f s", error, delay_s)
        with waiting():
            await asyncio.sleep(delay_s)
        return delay_s

    def _endpoint(self) -> Endpoint:
        key = self._key.value(model=self.name, base_url=self.base_url)
        return Endpoint(model=self.name, base_url=self.base_url, key_name=self._key.name, key=key)


def _check(name: str, *, max_retries: int, timeout_s: float, max_connections: int | None) -> None:
    if not name:
        raise ConfigError("model.name", "must not be empty")
    if max_retries < 0:
        raise ConfigError("model.max_retries", f"must be at least 0, not {max_retries}")
    if not timeout_s > 0:
        raise ConfigError("model.timeout_s", f"must be above 0, not {timeout_s}")
    if max_connections is not None and max_connections < 1:
        raise ConfigError("model.max_connections", f"must be at least 1, not {max_connections}")


def _checked_url(url: str) -> str:
    parts = None
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # the port is not a number
        usable = False
    if parts is None or not usable:
        raise ConfigError("base_url", f"must be like http://127.0.0.1:8000/v1, not {url!r}")
    if "@" in parts.netloc:
        # Not shown: it holds a password.
        problem = f"must have no login before {parts.hostname!r}; a key goes by its name (key_name)"
        raise ConfigError("base_url", problem)
    return url
