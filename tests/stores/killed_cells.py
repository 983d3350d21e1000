"""Makes the journal of a cell that is killed at work: those in `tests/data/cells` are such ones.

To store that of a version, before the next one is begun, and without the path of this file:
``python - tests/data/cells < tests/stores/killed_cells.py``
"""

import asyncio
import gzip
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness_actors.actors.local import LocalRuntime
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig
from harness_actors.errors import ModelRefusedError
from harness_actors.events import Event, ExecutorLost, RunParked, ToolReturned
from harness_actors.messages import Message
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.records import RunSpec
from harness_actors.results import Usage
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool

WAREHOUSE = "HARNESS_TESTS_WAREHOUSE"
"""The variable that names the folder of all effects. A file `open` in it lets go what waits."""
LEDGER, SHELVES, OPEN = "ledger", "shelves", "open"

FINISHED = {
    "done": ("done", "completed"),
    "talk-1": ("done", "completed"),
    "talk-2": ("done", "completed"),
    "overtaker": ("done", "completed"),
    "done-today": ("done", "completed"),
    "failed": ("failed", "model_error"),
    "limited": ("limit", "model_calls"),
    "spent": ("limit", "budget"),  # In the first version: of its own.
    "cancelled": ("cancelled", "user"),
}
"""How runs had ended when the cell was killed: status and reason."""
PARKED = ("parked-in-a-call", "parked-before-a-call", "parked-while-asked", "overtaken")
AT_WORK = ("lost", "within-a-message", "behind-an-effect", "before-an-effect", "asked", "talk-3")
QUEUED = ("queued-1", "queued-2", "queued-3")


async def _wait(what: str, wait: bool) -> None:
    """Say that something waits, and wait for whoever opens the warehouse."""
    folder = Path(os.environ["HARNESS_TESTS_WAREHOUSE"])
    if not wait or (folder / "open").exists():
        return
    (folder / f"waits-{what}").touch()
    await asyncio.Event().wait()


@tool
async def book(item: str, wait: str = "") -> str:
    """Write a line into the ledger. Twice is one too many.

    Args:
        item: What it says.
        wait: `before` or `after` it is written.
    """
    await _wait(item, wait == "before")
    with (Path(os.environ["HARNESS_TESTS_WAREHOUSE"]) / "ledger").open("a") as ledger:
        ledger.write(f"{item}\n")
    await _wait(item, wait == "after")
    return f"{item} is booked"


@tool(idempotent=True)
async def shelve(item: str, wait: bool = False) -> str:
    """Put something on its shelf, where it may be already.

    Args:
        item: What.
        wait: Before it is there.
    """
    await _wait(item, wait)
    shelves = Path(os.environ["HARNESS_TESTS_WAREHOUSE"]) / "shelves"
    shelves.mkdir(exist_ok=True)
    (shelves / item).touch()
    return f"{item} is shelved"


@tool(effect="read_only")
async def look_up(item: str) -> str:
    """Whether the ledger has a line.

    Args:
        item: What it says.
    """
    ledger = Path(os.environ["HARNESS_TESTS_WAREHOUSE"]) / "ledger"
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    return "booked" if item in lines else "not booked"


def _calls(*calls: tuple[str, dict[str, Any]]) -> Reply:
    return Reply.calls(list(calls))


def scripts() -> dict[str, list[Reply]]:
    """What the model says at first, by run."""
    nuts = ("look_up", {"item": "nuts"})
    plain = {
        name: [_calls(("book", {"item": f"{name} a"}), nuts), _calls(nuts)]
        for name in (*FINISHED, "asked", "parked-while-asked", *QUEUED)
    }

    def after(name: str) -> list[Reply]:
        return [_calls(nuts), _calls(("book", {"item": f"{name} a", "wait": "after"}))]

    def before(name: str) -> list[Reply]:
        return [_calls(nuts), _calls(("book", {"item": f"{name} a", "wait": "before"}))]

    return {
        **plain,
        "failed": [_calls(nuts), Reply.error(ModelRefusedError("warehouse", "it is closed", 400))],
        "limited": [_calls(nuts)] * 9,
        "spent": [_calls(nuts)] * 99,
        "cancelled": after("cancelled"),
        "parked-in-a-call": after("parked-in-a-call"),
        "parked-before-a-call": before("parked-before-a-call"),
        "overtaken": after("overtaken"),
        "lost": [_calls(nuts), _calls(("shelve", {"item": "lost s", "wait": True}))],
        "within-a-message": [
            _calls(("book", {"item": "within-a-message a"})),
            _calls(
                ("book", {"item": "within-a-message b"}),
                ("shelve", {"item": "within-a-message s", "wait": True}),
                ("book", {"item": "within-a-message c"}),
            ),
        ],
        "behind-an-effect": [
            _calls(
                ("shelve", {"item": "behind-an-effect s"}),
                ("book", {"item": "behind-an-effect a", "wait": "after"}),
                ("book", {"item": "behind-an-effect b"}),
                nuts,
            ),
        ],
        "before-an-effect": before("before-an-effect"),
        "talk-3": after("talk-3"),
    }


def booked() -> list[str]:
    """What is to be in the ledger when all is done, each line once."""
    return _named("book")


def shelved() -> list[str]:
    """What is to be on the shelves when all is done."""
    return _named("shelve")


def _named(tool_name: str) -> list[str]:
    return sorted(
        json.loads(arguments)["item"]
        for replies in scripts().values()
        for reply in replies
        for name, arguments in reply.asked
        if name == tool_name
    )


def _newest_task(messages: Sequence[Message]) -> tuple[str, list[Message]]:
    """The run that a conversation is at, and what was said since."""
    for place in reversed(range(len(messages))):
        message = messages[place]
        if message.role == "user" and message.text.startswith("Please "):
            return message.text.removeprefix("Please "), list(messages[place + 1 :])
    raise AssertionError("a conversation begins with its task")


def script(messages: Sequence[Message]) -> Reply:
    """First what the run is to do, and then whatever is not known to be booked."""
    name, said = _newest_task(messages)
    replies = scripts()[name]
    answers = sum(message.role == "assistant" for message in said)
    if answers < len(replies):
        return replies[answers]
    known = _known(said)
    for item, state in known.items():
        if state == "unknown":
            return Reply.call("look_up", {"item": item})
        if state == "not booked":
            return Reply.call("book", {"item": item})
    return Reply.call("work_complete", {"summary": f"booked {len(known)}"})


def _known(said: Sequence[Message]) -> dict[str, str]:
    """What the model knows of each line that it meant to book."""
    calls = {call.id: call for message in said for call in message.tool_calls}
    known: dict[str, str] = {}
    for message in said:
        call = calls.get(message.tool_call_id or "")
        if call is None:
            continue
        item = json.loads(call.arguments).get("item", "")
        if call.name == "book":
            known[item] = "unknown" if message.is_error else "booked"
        elif call.name == "look_up" and item in known:
            known[item] = message.text
    return known


class Clerk:
    """A scripted model that costs a cent a call, and waits where a run is called `asked`."""

    name = "clerk"
    key_names: tuple[str, ...] = ()
    costs_known = True

    def __init__(self) -> None:
        self._model = ScriptedModel(script)

    async def complete(self, request: ModelRequest) -> ModelResponse:
        name, said = _newest_task(request.messages)
        await _wait(name, "asked" in name and bool(said))
        response = await self._model.complete(request)
        usage = Usage(model_calls=1, input_tokens=100, output_tokens=10, cost_usd=0.01)
        return replace(response, usage=usage)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        yield await self.complete(request)


class Command:
    """A command that works on runs of one program."""

    def __init__(self, runtime: LocalRuntime, folder: Path) -> None:
        self._runtime = runtime
        self._folder = folder
        self._program = Program.of(ChatAgent(model=Clerk(), tools=(book, shelve, look_up)))

    async def begin(self, *names: str, talk: str | None = None, **settings: Any) -> None:
        specs = [self._spec(name, talk, settings) for name in names]
        code = {self._program.code: self._program.blob}
        await self._runtime.submit(specs, code=code, secrets={})

    def _spec(self, name: str, talk: str | None, settings: dict[str, Any]) -> RunSpec:
        spec: RunSpec = self._program.spec(
            f"Please {name}",
            HarnessConfig.from_mapping({"stall": None, **settings}),
            run_id=name,
            conversation_id=talk or name,
            metadata={"id": name},
        )
        return spec

    async def end(self, name: str, *, talk: str | None = None, **settings: Any) -> None:
        """Begin a run, and return when it is over."""
        await self.begin(name, talk=talk, **settings)
        await self.until(name, lambda event: event.type == "run_completed")

    async def wait(
        self, name: str, what: str, *, talk: str | None = None, results: int = 1
    ) -> None:
        """Begin a run, and return when something of it waits after so many results."""
        await self.begin(name, talk=talk)
        await self.waits(what)
        await self.until(name, lambda event: isinstance(event, ToolReturned), results)

    async def waits(self, what: str) -> None:
        waiting = self._folder / f"waits-{what}"
        while not waiting.exists():  # noqa: ASYNC110 - whatever loop it is in
            await asyncio.sleep(0.005)
        waiting.unlink()

    async def until(self, name: str, wanted: Callable[[Event], bool], count: int = 1) -> None:
        """Return when there were so many events of a run that are as wanted."""
        cursor = 0
        while sum(wanted(told.event) for told in await self._runtime.events(name)) < count:
            cursor = (await self._runtime.wait_for_news(cursor, messages=True)).cursor

    async def stop(self, name: str, mode: Any) -> None:
        await self._runtime.stop([name], mode)
        ends = "run_completed" if mode == "cancel" else RunParked.type
        await self.until(name, lambda event: event.type == ends)


async def _allow(runtime: LocalRuntime, budget_usd: float) -> bool:
    """Whether there is a budget of all runs together, which the first version had not."""
    if not hasattr(LocalRuntime, "allow"):
        return False
    await runtime.allow(budget_usd)
    return True


async def make_and_die(store: Path, folder: Path) -> None:
    """Make the journal, and kill this process with runs in every state."""
    runtime = await LocalRuntime.open(store, "a thrifty command", copies=True)
    shared = await _allow(runtime, 0.055)
    settings: dict[str, Any] = {} if shared else {"limits": {"cost_usd": 0.055}}
    await Command(runtime, folder).end("spent", **settings)
    await runtime.close()

    runtime = await LocalRuntime.open(store, "yesterday's command", copies=True)
    await _allow(runtime, 50.0)
    command = Command(runtime, folder)
    await command.end("done")
    await command.end("talk-1", talk="talk")
    await command.end("talk-2", talk="talk")
    await command.end("failed")
    await command.end("limited", limits={"model_calls": 2})
    await command.wait("cancelled", "cancelled a")
    await command.stop("cancelled", "cancel")
    for name in PARKED:
        waiting = name if "asked" in name else f"{name} a"
        await command.wait(name, waiting, results=2 if "asked" in name else 1)
        await command.stop(name, "park_now")
    await command.end("overtaker", talk="overtaken")
    await runtime.close()

    runtime = await LocalRuntime.open(store, "today's command", copies=True)
    await _allow(runtime, 50.0)
    command = Command(runtime, folder)
    await command.end("done-today")
    await command.wait("lost", "lost s")
    for slot, peer in list(runtime.starter.hosts.items()):
        if slot.executor == "agent_turn":
            peer.kill()
    await command.until("lost", lambda event: isinstance(event, ExecutorLost))
    await command.waits("lost s")
    await command.wait("within-a-message", "within-a-message s", results=2)
    await command.wait("behind-an-effect", "behind-an-effect a")
    await command.wait("before-an-effect", "before-an-effect a")
    await command.wait("asked", "asked", results=2)
    await command.wait("talk-3", "talk-3 a", talk="talk")
    await command.begin(*QUEUED)
    os.kill(os.getpid(), signal.SIGKILL)


def store_killed(target: Path, version: int) -> None:
    """Let a process make it, and pack what that leaves."""
    import tempfile

    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        store = folder / "runs.db"
        os.environ[WAREHOUSE] = made
        pid = os.fork()
        if not pid:
            asyncio.run(make_and_die(store, folder))
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
        effects = {
            LEDGER: (folder / LEDGER).read_text().splitlines(),
            SHELVES: sorted(path.name for path in (folder / SHELVES).iterdir()),
        }
        for path in (store, store.with_name("runs.db-wal")):
            packed = gzip.compress(path.read_bytes(), 9, mtime=0)
            (target / f"{path.name.replace('runs', f'v{version}')}.gz").write_bytes(packed)
    (target / f"v{version}.json").write_text(json.dumps(effects, indent=1) + "\n")


if __name__ == "__main__":
    from harness_actors.stores.schema import VERSION

    store_killed(Path(sys.argv[1]), VERSION)
