"""`LocalModel`: a small model inside the program, without a key or a network."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any

from harness_actors.errors import ConfigError
from harness_actors.messages import encode_json
from harness_actors.models.backoff import Backoff
from harness_actors.models.body import RequestBody
from harness_actors.models.local_calls import (
    ANSWER_SCHEMA,
    calls_schema,
    must_answer,
    prompt_messages,
    read_call,
)
from harness_actors.models.local_server import MODEL_NAME, shared_server
from harness_actors.models.openai import OpenAIModel
from harness_actors.models.prices import FREE
from harness_actors.models.wire import RequestEncoder
from harness_actors.ports import ModelRequest, ModelResponse

QUEUE_TIMEOUT_S = 3600.0
RESTART_RETRIES = 30
"""A server that died is there again in seconds, on a machine at work in a minute."""
LONGEST_WAIT_S = 4.0

MAX_RESPONSE_FORMATS = 64
"""Sets of tools whose schemas are kept; an agent has one."""


class LocalModel:
    """SmolLM2-135M-Instruct, embedded.

    It shows that everything runs and costs nothing; it is too small to do real work. Its
    window is 4,096 tokens. An answer to a request with tools is one call; see
    `local_calls`. Until `connect` it starts a server in its own process when first asked.

    Args:
        max_tokens: Longest answer, in tokens; about 60 are written in a second.
        settings: Further fields of each request, such as ``{"temperature": 0.7}``.

    Attributes:
        name: Name of the model.
        needs_local_host: A cell is to have one process with a `LocalServer`, and to tell
            the others by `connect` where it is.
        key_names: None are needed.
    """

    costs_known = True
    name = MODEL_NAME
    needs_local_host = True
    key_names: tuple[str, ...] = ()

    def __init__(self, *, max_tokens: int = 256, settings: Mapping[str, Any] | None = None) -> None:
        if max_tokens < 1:
            raise ConfigError("model.max_tokens", f"must be at least 1, not {max_tokens}")
        self.settings: dict[str, Any] = {
            "max_tokens": max_tokens,
            "temperature": 0.2,
            **(settings or {}),
        }
        self._plain = RequestEncoder(self.name, self.settings)
        self._forget_process()

    def __repr__(self) -> str:
        return f"LocalModel({self.settings!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {"settings": self.settings, "_plain": self._plain}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget_process()

    def _forget_process(self) -> None:
        self._wire: OpenAIModel | None = None
        self._schemas: dict[bytes, Mapping[str, Any]] = {}

    def connect(self, base_url: str) -> None:
        """Ask a `LocalServer` of another process from now on."""
        # A key in the environment is not for this server. Requests queue on it, so the
        # time limit is that of a long queue.
        self._wire = OpenAIModel(
            self.name,
            base_url=base_url,
            api_key="local",
            price=FREE,
            timeout_s=QUEUE_TIMEOUT_S,
            max_retries=RESTART_RETRIES,
            backoff=Backoff(longest_s=LONGEST_WAIT_S),
        )

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request.

        Raises:
            ContextOverflowError: The request is larger than the model's window.
            ModelSetupError: The model is not installed; says how to get it.
            ModelBusyError: Its server broke off.
        """
        wire = await self._connected()
        if not request.tools.specs:
            return await wire.answer(self._plain.encode(request))
        response = await wire.answer(self._body_with_schema(request))
        return read_call(response, f"call_{len(request.messages)}_0")

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        """Answer one request, its text in pieces; with tools in the request, in one piece."""
        if request.tools.specs:
            response = await self.complete(request)
            if response.text:
                yield response.text
            yield response
            return
        wire = await self._connected()
        body = self._plain.encode(request, stream=True)
        async with aclosing(wire.stream_answer(body)) as pieces:
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        """Close the connections to the server; the server stays for the next model."""
        if self._wire is not None:
            await self._wire.close()

    async def _connected(self) -> OpenAIModel:
        if self._wire is None:
            base_url = await asyncio.to_thread(shared_server().start)
            if self._wire is None:
                self.connect(base_url)
        assert self._wire is not None
        return self._wire

    def _body_with_schema(self, request: ModelRequest) -> RequestBody:
        fields = {"model": self.name, **self.settings, "response_format": self._format_of(request)}
        head = encode_json(fields)[:-1] + b',"messages":['
        messages = prompt_messages(request.messages, request.tools.specs)
        return RequestBody(head, messages, b"]}")

    def _format_of(self, request: ModelRequest) -> Mapping[str, Any]:
        if must_answer(request.messages, request.tools.specs):
            return _format(ANSWER_SCHEMA)
        known = self._schemas.get(request.tools.encoded)
        if known is None:
            if len(self._schemas) >= MAX_RESPONSE_FORMATS:
                self._schemas.clear()
            known = _format(calls_schema(request.tools.specs))
            self._schemas[request.tools.encoded] = known
        return known


def _format(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "call", "schema": schema}}
