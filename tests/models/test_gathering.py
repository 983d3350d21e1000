"""An answer that trickles wakes its reader some times in a second, and comes whole."""

import asyncio
from collections.abc import Mapping
from contextlib import aclosing
from itertools import pairwise
from typing import Any

from harness_actors.models import OpenAIModel
from harness_actors.models.client import WireClient
from harness_actors.models.failures import Endpoint
from harness_actors.models.gathering import AT_ONCE, GATHER_S
from harness_actors.models.wire import RequestEncoder
from harness_actors.ports import ModelResponse
from harness_actors.testing import LoopbackServer, Reply
from tests.models.requests import a_request

TOKENS = 200
PIECE_S = 0.005


def says_much(_: Mapping[str, Any]) -> Reply:
    return Reply.text("token " * TOKENS)


async def test_the_first_pieces_come_at_once_and_the_others_together() -> None:
    loop = asyncio.get_running_loop()
    async with LoopbackServer(says_much, piece_s=PIECE_S) as server:
        endpoint = Endpoint(model="any", base_url=server.base_url, key_name="KEY", key="none")
        client = WireClient(endpoint, timeout_s=30.0, max_connections=1)
        body = RequestEncoder("any", {}).encode(a_request(), stream=True)
        async with client.stream(body) as streamed:
            pieces = [(loop.time(), piece) async for piece in streamed.pieces]
        async with client.stream(body) as streamed:
            again = [piece async for piece in streamed.pieces]
        await client.close()

    whole = b"".join(piece for _, piece in pieces)
    assert whole.count(b'"token "') == TOKENS
    assert whole.endswith(b"data: [DONE]\n\n")
    assert b"".join(again).count(b'"token "') == TOKENS
    gaps = [later - at for (at, _), (later, _) in pairwise(pieces)]
    assert min(gaps[AT_ONCE - 1 :]) >= GATHER_S * 0.9
    assert min(gaps[: AT_ONCE - 1]) < GATHER_S


async def test_the_reader_may_leave_in_the_middle() -> None:
    async with LoopbackServer(says_much, piece_s=PIECE_S) as server:
        model = OpenAIModel("any", base_url=server.base_url, api_key="none")
        parts = model.stream_answer(RequestEncoder("any", {}).encode(a_request(), stream=True))
        async with aclosing(parts):
            heard = [await anext(parts) for _ in range(20)]

        assert all(part == "token " for part in heard)
        *_, response = [part async for part in model.stream(a_request())]
        assert isinstance(response, ModelResponse)
        assert response.text == "token " * TOKENS
        await model.close()
