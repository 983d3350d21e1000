"""What a tool can be, in a whole run: in worker processes, with resources, with progress and
images; in every runtime."""

import asyncio
import json
import os
import select
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import pytest

from harness_actors import AgentHarness, ChatAgent, tool
from harness_actors.events import ToolCalled, ToolProgress, ToolReturned
from harness_actors.messages import Message
from harness_actors.ports import Tool
from harness_actors.replay import load_recording, replay
from harness_actors.results import HarnessResult
from harness_actors.stores import JournalReader
from harness_actors.stores.logs import log_of
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import Image, resource
from harness_actors.tools.processes import read_process

PIXEL = (
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)

runtimes = pytest.mark.parametrize(
    "runtime", ["local", pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.timeout(240)])]
)


@resource
def connection() -> Iterator[str]:
    """Says in a file when it is opened and closed, and by which process."""
    journal = Path.home() / "journal"
    with journal.open("a") as file:
        file.write(f"open {os.getpid()}\n")
    yield f"connection of {os.getpid()}"
    with journal.open("a") as file:
        file.write(f"close {os.getpid()}\n")


@tool(worker=True)
def crunch(number: int) -> dict[str, int]:
    """Work hard in a process of its own."""
    print("crunching")
    return {"result": number * number, "pid": os.getpid()}


@tool(worker=True)
def keys() -> list[str]:
    return [value for name, value in os.environ.items() if name.endswith("API_KEY")]


@tool(worker=True, timeout_s=3)
def spin(path: str) -> None:
    """Never end, and hold on to the interpreter."""
    Path(path).write_text(str(os.getpid()))
    while True:
        sum(range(10_000_000))


@tool(worker=True)
def crash() -> None:
    os.abort()


@tool
def ask(db: Annotated[str, connection]) -> str:
    return db


@tool(worker=True)
def ask_elsewhere(db: Annotated[str, connection]) -> str:
    return db


@tool
def draw() -> Image:
    return Image(bytes.fromhex(PIXEL))


@tool
async def steps(count: int) -> AsyncIterator[str]:
    for step in range(count):
        yield f"step {step}"
        await asyncio.sleep(0.01)


TOOLS: list[Tool] = [crunch, keys, spin, crash, ask, ask_elsewhere, draw, steps]


def agent(*calls: tuple[str, dict[str, Any]]) -> ChatAgent:
    """Makes one call a message, then says that it is done."""

    def script(messages: Sequence[Message]) -> Reply:
        said = sum(message.role == "assistant" for message in messages)
        if said == len(calls):
            return Reply.call("work_complete", {"summary": "done"})
        return Reply.call(*calls[said])

    return ChatAgent(model=ScriptedModel(script), tools=TOOLS)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `connection` has its file."""
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def results_in(result: HarnessResult) -> list[str]:
    """What the calls of tools came to."""
    told = [event.event for event in result.transcript]
    return [event.text for event in told if isinstance(event, ToolReturned)]


async def one_run(runtime: str, store: Path, *calls: tuple[str, dict[str, Any]]) -> HarnessResult:
    async with AgentHarness(agent(*calls), runtime=runtime, store=store) as harness:  # type: ignore[arg-type]
        return await harness.run("go")


def is_gone(pid: int, within_s: float) -> bool:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    watched = select.poll()
    watched.register(handle, select.POLLIN)
    watched.poll(1000 * within_s)
    os.close(handle)
    return read_process(pid) is None


@runtimes
async def test_a_run_works_in_worker_processes_that_end_with_it(
    runtime: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE_API_KEY", "sk-secret")
    store = tmp_path / "runs.db"

    result = await one_run(runtime, store, ("crunch", {"number": 7}), ("keys", {}), ("crash", {}))

    assert result.status == "done"
    first, keys_there, crashed, _ = results_in(result)
    assert json.loads(first)["result"] == 49
    assert json.loads(first)["pid"] != os.getpid()
    assert keys_there == "[]"
    assert crashed.startswith("'crash' was cut off: its worker process was ended by SIGABRT.")
    if runtime == "local":
        assert is_gone(json.loads(first)["pid"], 5.0)
    assert "[crunch] crunching" in log_of(store, result.run_id).read_text()


@runtimes
async def test_a_call_past_its_deadline_takes_its_process_with_it(
    runtime: str, tmp_path: Path
) -> None:
    path = tmp_path / "pid"

    # The first call starts the process, which may take its time.
    calls = ("crunch", {"number": 1}), ("spin", {"path": str(path)})
    result = await one_run(runtime, tmp_path / "runs.db", *calls)

    assert result.status == "done"
    assert results_in(result)[1] == (
        "'spin' was stopped: it ran past its limit of 3 s. "
        "Its process was killed with all that it had started."
    )
    assert is_gone(int(path.read_text()), 1.0)


async def test_resources_are_open_once_per_process_and_closed_with_the_harness(
    tmp_path: Path,
) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [("ask", {}), ("ask_elsewhere", {})] * 2

    result = await one_run("local", tmp_path / "runs.db", *calls)

    here, there, *again, _ = results_in(result)
    assert again == [here, there]
    assert here == f"connection of {os.getpid()}"
    opened = [f"{what} {text.rpartition(' ')[2]}" for text in (here, there) for what in ("open",)]
    closed = [line.replace("open", "close") for line in opened]
    lines = (tmp_path / "journal").read_text().splitlines()
    assert lines[:2] == opened
    assert sorted(lines[2:]) == sorted(closed)


async def test_what_a_call_tells_is_read_along_and_not_stored(tmp_path: Path) -> None:
    heard: list[object] = []
    store = tmp_path / "runs.db"
    async with AgentHarness(
        agent(("steps", {"count": 3})), runtime="local", store=store
    ) as harness:
        async for item in harness.run_stream("go"):
            if not isinstance(item, HarnessResult):
                heard.append(getattr(item, "event", item))
        run_id = harness.run_id

    assert run_id is not None
    told = [event for event in heard if isinstance(event, ToolProgress)]
    assert [event.text for event in told] == ["step 0", "step 1", "step 2"]
    called, returned = (
        next(at for at, event in enumerate(heard) if isinstance(event, kind))
        for kind in (ToolCalled, ToolReturned)
    )
    assert all(called < heard.index(event) < returned for event in told)
    stored = [event.event for event in JournalReader(store).load_events(0, run_id=run_id)]
    assert not [event for event in stored if isinstance(event, ToolProgress)]


async def test_an_image_is_in_the_conversation_and_a_rerun_gives_the_same(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"

    result = await one_run("local", store, ("draw", {}), ("crunch", {"number": 2}))

    assert results_in(result)[0] == "[image/png, 1 × 1, 70 bytes]"
    recording = load_recording(JournalReader(store), result.run_id)
    replayed = await replay(recording)
    (drawn,) = [message for message in recording.messages if message.images]
    assert drawn.images[0].startswith("data:image/png;base64,")
    assert drawn.tokens > 255
    assert replayed.same, replayed.differences
