"""One client for a model in a process: made once, and another one where its key is another."""

import asyncio
from dataclasses import replace

from harness_actors.models.connection import Connection
from harness_actors.models.failures import Endpoint

ENDPOINT = Endpoint(
    model="m", base_url="http://127.0.0.1:9/v1", key_name="KEY", key="sk-first-0123456789"
)


def a_connection() -> Connection:
    return Connection(timeout_s=5.0, max_connections=1, most_bytes=1000)


async def test_calls_that_begin_together_share_one_client() -> None:
    connection = a_connection()

    clients = await asyncio.gather(*(connection.client(ENDPOINT) for _ in range(5)))

    assert all(client is clients[0] for client in clients)
    assert await connection.client(ENDPOINT) is clients[0]
    await connection.close()


async def test_another_key_has_another_client_and_the_first_is_closed() -> None:
    connection = a_connection()
    first = await connection.client(ENDPOINT)

    second = await connection.client(replace(ENDPOINT, key="sk-second-0123456789"))

    assert second is not first
    async with asyncio.timeout(5.0):
        while not first._client.is_closed():  # noqa: ASYNC110 - nobody tells it
            await asyncio.sleep(0)
    assert not second._client.is_closed()
    await connection.close()
    assert second._client.is_closed()


async def test_after_it_was_closed_another_client_is_opened() -> None:
    connection = a_connection()
    first = await connection.client(ENDPOINT)
    await connection.close()

    second = await connection.client(ENDPOINT)

    assert second is not first
    assert not second._client.is_closed()
    await connection.close()
