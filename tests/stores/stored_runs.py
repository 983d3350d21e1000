"""Makes a journal with runs of every kind: those in `tests/data/journals` are such ones.

To store those of a version, before the next one is begun, and without the path of this file:
``python - tests/data/journals < tests/stores/stored_runs.py``
"""

import asyncio
import gzip
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness_actors.actors.local import LocalRuntime
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.events import (
    CustomEvent,
    Event,
    ExecutorLost,
    InputAwaited,
    RunParked,
    ToolCalled,
)
from harness_actors.messages import Message
from harness_actors.ports import RunContext
from harness_actors.records import RunSpec, WorkspaceSpec
from harness_actors.signals import Outcome, Signal
from harness_actors.state import StateKey
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import ask_user, tool

LONG_ROUNDS = 50
"""So many that a run has a snapshot, which it gets at 64 changes."""
DAY_S = 86_400.0
SHELVES: StateKey[int] = StateKey("warehouse.shelves", int, "shelves", "increment", 0)


@tool
async def reserve(item: str, count: int) -> str:
    """Reserve stock.

    Args:
        item: What.
        count: How many; none waits for more.
    """
    if not count:
        await asyncio.Event().wait()
    if count > 12:
        raise ValueError(f"only 12 of {item} are left")
    return f"reserved {count} of {item}; order 10{count}, warehouse north, shelf 4"


@tool(effect="read_only")
async def look_up(item: str) -> str:
    """Look up stock.

    Args:
        item: What.
    """
    return f"{item}: 12 in stock, 3 on order, next delivery on Tuesday"


class Shelves:
    """An executor of a user, which adds to the state, the log and the events."""

    name = "shelves"
    reads: tuple[StateKey[Any], ...] = (SHELVES,)
    reads_log = False

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        context.increment(SHELVES, 1)
        context.add_message(Message.user("Shelf 4 is closed."))
        context.emit(CustomEvent(name="shelves.checked", data={"closed": [4]}))
        return signal


def _answers(messages: Sequence[Message]) -> tuple[str, int]:
    """The newest task, and how often the model has answered since it."""
    answers = 0
    for message in reversed(messages):
        if message.role == "user" and message.text.startswith("Please "):
            return message.text.removeprefix("Please "), answers
        answers += message.role == "assistant"
    raise AssertionError("a conversation begins with its task")


def script(messages: Sequence[Message]) -> Reply:
    """What the model of all these runs answers: the task says how."""
    task, answers = _answers(messages)
    how, rounds = task.split()[0], int(task.split()[1])
    if answers < rounds:
        match answers % 3 if how != "look" else 1:
            case 0:
                return Reply.call("reserve", {"item": f"bolts M{answers}", "count": 3})
            case 1:
                said = f"Looking once more, {answers}. ünïcode 漢字"
                return Reply.call("look_up", {"item": "nuts"}, said=said)
            case _:
                return Reply.call("reserve", {"item": "washers", "count": 99})
    if how == "wait":
        asked = [("reserve", {"item": item, "count": 0}) for item in ("bolts", "nuts")]
        return Reply.calls(asked, said="Both, please.")
    if how == "ask" and answers == rounds:
        shelf = {"question": "Which shelf?", "options": ["3", "4"], "why": "to reserve it"}
        bolts = {"question": "How many bolts?"}
        reserved = {"item": "bolts", "count": 2}
        return Reply.calls([("ask_user", bolts), ("ask_user", shelf), ("reserve", reserved)])
    if how == "answer" or (how == "hesitate" and answers == rounds):
        return Reply.text("That is all I know.")
    return Reply.call("work_complete", {"summary": f"did {rounds} rounds"})


def _program() -> Program:
    model, tools = ScriptedModel(script), (reserve, look_up, ask_user)
    agent = ChatAgent(model=model, tools=tools, instructions="You keep a warehouse.")
    return Program.of(HarnessWorkflowBuilder(agent).insert_after("repair", Shelves()).build())


class Work:
    """Runs of one program, submitted to one runtime."""

    def __init__(self, runtime: LocalRuntime, folder: Path) -> None:
        self._runtime = runtime
        self._folder = folder
        self._program = _program()

    async def begin(self, task: str, *, talk: str | None = None, **settings: Any) -> RunSpec:
        config = HarnessConfig.from_mapping(settings)
        workspace = WorkspaceSpec(path=str(self._folder))
        spec = self._program.spec(
            f"Please {task}",
            config,
            conversation_id=talk,
            workspace=workspace if task.startswith("look") else None,
            metadata={"id": task, "tags": ["stored"]},
        )
        code = {self._program.code: self._program.blob}
        await self._runtime.submit([spec], code=code, secrets={})
        return spec

    async def end(self, task: str, *, talk: str | None = None, **settings: Any) -> RunSpec:
        """Begin a run, and return when it is over."""
        spec = await self.begin(task, talk=talk, **settings)
        await self.until(spec, lambda event: event.type == "run_completed")
        return spec

    async def until(self, spec: RunSpec, wanted: Callable[[Event], bool], count: int = 1) -> None:
        """Return when there were so many events of a run that are as wanted."""
        cursor = 0
        while True:
            told = await self._runtime.events(spec.run_id)
            if sum(wanted(event.event) for event in told) >= count:
                return
            assert told[-1:] == () or told[-1].event.type != "run_completed", told[-1]
            cursor = (await self._runtime.wait_for_news(cursor, messages=True)).cursor

    async def wait(self, rounds: int, **settings: Any) -> RunSpec:
        """Begin a run, and return when it is in the middle of a round with two open calls."""
        spec = await self.begin(f"wait {rounds}", **settings)
        await self.until(spec, lambda event: isinstance(event, ToolCalled), rounds + 2)
        return spec

    async def ask(self, rounds: int, answers: Mapping[str, str]) -> RunSpec:
        """Begin a run, and return when it has asked two questions and has these answers."""
        spec = await self.begin(f"ask {rounds}")
        await self.until(spec, lambda event: isinstance(event, InputAwaited))
        if answers:
            await self._runtime.answer(spec.run_id, answers)
        return spec

    async def stop(self, spec: RunSpec, mode: Any) -> None:
        await self._runtime.stop([spec.run_id], mode)
        ends = "run_completed" if mode == "cancel" else RunParked.type
        await self.until(spec, lambda event: event.type == ends)


async def make_journal(store: Path, workspace: Path, *, killed: Path | None = None) -> None:
    """Make a journal with finished, limited, cancelled, parked and unfinished runs.

    Args:
        store: Where; there must be nothing yet.
        workspace: A folder in which runs work.
        killed: A folder for a copy of it as it is while its process still has it open.
    """
    runtime = await LocalRuntime.open(store, "first command", copies=True)
    work = Work(runtime, workspace)
    await runtime.allow(5.0)
    first = await work.end("do 6")
    await work.end("do 3", talk=first.conversation_id)
    await work.end("hesitate 2", limits={"time_s": DAY_S, "tokens": 10**6, "cost_usd": 9.5})
    await work.end("answer 2", completion="answer", max_input_tokens=60)
    await work.end("look 9", limits={"model_calls": 4})
    await work.stop(await work.wait(2), "cancel")
    long = await work.wait(LONG_ROUNDS)
    await work.ask(2, {})
    await work.ask(1, {"q2": "4"})
    asked = await work.ask(1, {"q1": "a dozen", "q2": "3"})
    await runtime.resume([asked.run_id], secrets={})
    await work.until(asked, lambda event: event.type == "run_completed")
    await work.ask(0, {"q2": "4", "q1": "ünïcode 漢字"})
    await runtime.stop([long.run_id], "park")
    await work.stop(long, "park_now")
    await runtime.close()

    runtime = await LocalRuntime.open(store, "second command", copies=True)
    work = Work(runtime, workspace)
    await work.end("do 2")
    lost = await work.wait(1)
    for slot, peer in list(runtime.starter.hosts.items()):
        if slot.executor == "agent_turn":
            peer.kill()
    await work.until(lost, lambda event: isinstance(event, ExecutorLost))
    await work.until(lost, lambda event: isinstance(event, ToolCalled), 5)
    await work.stop(lost, "cancel")
    await work.wait(6)
    if killed is not None:
        for part in (store, store.with_name(f"{store.name}-wal")):
            shutil.copyfile(part, killed / part.name)
    await runtime.close()


if __name__ == "__main__":
    import tempfile

    import orjson

    from harness_actors.stores import JournalReader
    from harness_actors.stores.schema import VERSION
    from tests.stores.contents import contents_of

    with tempfile.TemporaryDirectory() as folder:
        closed, copied = Path(folder, "closed"), Path(folder, "copied")
        closed.mkdir()
        copied.mkdir()
        workspace = Path(tempfile.gettempdir(), "warehouse")
        asyncio.run(make_journal(closed / "runs.db", workspace, killed=copied))
        workspace.rmdir()
        reader = JournalReader(closed / "runs.db")
        found = {
            f"v{VERSION}.json": orjson.dumps(contents_of(reader)),
            f"v{VERSION}.db": (closed / "runs.db").read_bytes(),
            f"v{VERSION}-killed.db": (copied / "runs.db").read_bytes(),
            f"v{VERSION}-killed.db-wal": (copied / "runs.db-wal").read_bytes(),
        }
        reader.close()
    for name, content in found.items():
        Path(sys.argv[1], f"{name}.gz").write_bytes(gzip.compress(content, 9, mtime=0))
