"""A replay takes all from its journal: it reaches no model and opens no connection."""

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import pytest
from typer.testing import CliRunner

from harness_actors.agents import ChatAgent, Program
from harness_actors.cli.app import app
from harness_actors.models import OpenAIModel
from harness_actors.testing import LoopbackServer, Reply
from tests.replay.recorded_runs import TOOLS, Session, done

NETWORK = (socket.AF_INET, socket.AF_INET6)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Nobody gets through to another machine or port; what was tried is listed."""
    tried: list[Any] = []

    def refuse(*what: Any, **_: Any) -> NoReturn:
        tried.append(what)
        raise ConnectionRefusedError(f"no network in this test: {what}")

    def connect(self: socket.socket, address: Any) -> None:
        if self.family in NETWORK:
            refuse(address)
        connected(self, address)

    connected = socket.socket.connect
    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket.socket, "connect_ex", connect)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", refuse)
    monkeypatch.setattr(asyncio.BaseEventLoop, "sock_connect", refuse)
    return tried


def _answer(body: Mapping[str, Any]) -> Reply:
    replies = [Reply.call("write", {"text": "one"}), Reply.text("I think so"), done("written")]
    spoken: int = sum(message["role"] == "assistant" for message in body["messages"])
    return replies[spoken]


async def _recorded_over_http(store: Path) -> str:
    """A run whose model is at an address that is gone when it is replayed."""
    async with LoopbackServer(_answer) as server:
        model = OpenAIModel("gpt-4.1", base_url=server.base_url)
        agent = ChatAgent(model=model, tools=TOOLS)
        session = Session(store, Program.of(agent), task="write one")
        ended = await session.to_its_end()
    assert ended.status == "done"
    return session.run_id


def test_a_replay_needs_neither_a_key_nor_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setenv("HARNESS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    store = tmp_path / "runs.db"
    run_id = asyncio.run(_recorded_over_http(store))
    monkeypatch.delenv("OPENAI_API_KEY")
    tried: list[Any] = request.getfixturevalue("tried")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", 9))
    tried.clear()

    replayed = CliRunner().invoke(
        app, ["replay", run_id, "--store", str(store)], catch_exceptions=False
    )

    assert replayed.exit_code == 0, replayed.output
    assert "the same log: all 7 messages, byte for byte, and the same end" in replayed.stdout
    assert tried == []
