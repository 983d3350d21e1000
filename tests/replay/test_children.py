"""Runs that begin others, and those, come out the same from their journals, byte for byte."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors.agents import ChatAgent, Program
from harness_actors.contracts import ContainsText, RequiredOutput, TaskContract
from harness_actors.coordination.protocol import Slot
from harness_actors.events import ChildEnded, Event, ExecutorLost, RunParked, ToolCalled
from harness_actors.messages import Message
from harness_actors.replay.recording import load_recording
from harness_actors.replay.rerun import replay
from harness_actors.state import BRIEFER
from harness_actors.stores import JournalReader
from harness_actors.subagents import SubAgentSpec
from harness_actors.testing import Reply
from tests.actors.followers import until
from tests.replay.families import (
    CHILD,
    SENT_OUT,
    begun,
    check_tree,
    ended,
    ends,
    family,
    grown,
    is_over,
    scouts,
    silent_ones,
)
from tests.replay.recorded_runs import (
    FIRST_COMMAND,
    SECOND_COMMAND,
    TOOLS,
    CountingModel,
    Session,
    done,
    opened_locally,
)

ANSWERS = TaskContract(
    goal="an answer",
    outputs=(RequiredOutput(id="it", description="x", predicate=ContainsText("signed")),),
)
WRITE = ("write", {"text": "a"})
READ = ("read", {"text": "a"})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def scout(task: str) -> tuple[str, dict[str, str]]:
    return "scout", {"prompt": task}


RUNS: dict[str, list[Reply]] = {
    "one": [scouts("read a"), done()],
    "several at once": [scouts("read a", "write b", "read c"), done()],
    "several waves": [
        Reply.calls([WRITE, scout("read a"), scout("read b"), WRITE, ("talker", {"prompt": "x"})]),
        done(),
    ],
    "beside what only reads": [Reply.calls([READ, scout("read a"), READ, READ]), done()],
    "before the end": [
        Reply.calls([scout("read a"), ("work_complete", {"summary": "done"})]),
    ],
    "refused": [
        scouts(" "),
        Reply.calls([scout("read a"), scout("")]),
        Reply.calls([scout(""), WRITE, scout("read b"), WRITE]),
        Reply.calls([WRITE, scout(""), WRITE]),
        Reply.calls([("scout", {"wrong": 1}), ("scout", "no json"), READ]),
        done(),
    ],
    "refused alone": [Reply.calls([WRITE, scout(""), WRITE]), done()],
    "in several rounds": [scouts("read a"), Reply.text("hm"), scouts("read b", "read c"), done()],
    "ids used again": [
        Reply.calls([scout("read a"), scout("read b")], ids=["a", "a"]),
        Reply.calls([scout("read c"), WRITE], ids=["a", "b"]),
        done(),
    ],
    "one that fails": [scouts("break it", "read a"), done()],
    "long-winded ones": [
        Reply.calls([("talker", {"prompt": f"talk {words}"}) for words in ("3 0", "9 4", "9 8")]),
        done(),
    ],
}


@pytest.mark.parametrize("name", RUNS)
async def test_a_tree_of_runs_comes_out_the_same(store: Path, name: str) -> None:
    await grown(store, RUNS[name])

    replayed = await check_tree(store)

    assert replayed["run"].end is not None
    assert replayed["run"].end.status == "done", replayed["run"].end
    told = "what came of the runs that it began" in replayed["run"].facts
    assert told == (name != "refused alone")


HELD: dict[str, dict[str, Any]] = {
    "contract": {"contract": ANSWERS},
    "value": {"output_type": {"type": "object", "required": ["text"]}},
    "value as an argument": {"output_type": {"type": "object"}, "completion": "explicit"},
    "both": {"output_type": {"type": "object"}, "contract": ANSWERS},
}


@pytest.mark.parametrize("fits", [True, False])
@pytest.mark.parametrize("name", HELD)
async def test_children_that_are_held_to_something_come_out_the_same(
    store: Path, name: str, fits: bool
) -> None:
    def script(conversation: Sequence[Message]) -> Reply:
        said = sum(message.role == "assistant" for message in conversation)
        if not conversation[0].text.startswith(SENT_OUT):
            return [Reply.calls([scout("a"), scout("b"), WRITE]), done()][min(said, 1)]
        if said != 1 or not fits:
            return Reply.text("not that")
        if name == "value as an argument":
            return Reply.call("work_complete", {"summary": "s", "output": {"text": "signed"}})
        return Reply.text('{"text": "signed"}')

    spec = SubAgentSpec(name="scout", description="Looks.", instructions=CHILD, **HELD[name])
    agent = ChatAgent(model=CountingModel(script), tools=TOOLS, sub_agents=[spec])
    session = Session(store, Program.of(agent))
    await session.to_its_end()

    await check_tree(store)

    texts = [message.text for message in session.recording().messages if message.role == "tool"]
    assert all(text == '{"text":"signed"}' for text in texts[:2]) or name == "contract" or not fits
    assert all(("not accepted" in text or "nudges" in text) != fits for text in texts[:2])


async def test_a_child_that_was_asked_to_be_brief_is_asked_again(store: Path) -> None:
    session = await grown(store, RUNS["long-winded ones"])

    await check_tree(store)
    asked = []
    for number in (1, 2, 3):
        session.run_id = f"run.{number}"
        asked.append(any(session.recording().writes_of(BRIEFER.name)))
    assert asked == [False, True, True]


@pytest.mark.parametrize("depth", [0, 1, 2])
async def test_children_with_children_come_out_the_same(store: Path, depth: int) -> None:
    replies = [scouts("ask read a and write b", "ask read c"), done()]
    await grown(store, replies, sub_agents={"max_depth": depth})

    replayed = await check_tree(store)

    assert len(replayed) == (1, 3, 6)[depth]


LIMITS: dict[str, tuple[list[Reply], dict[str, Any]]] = {
    "model_calls": ([scouts("read a", "read b", "read c"), done()], {"model_calls": 4}),
    "one for each": ([scouts("read a"), scouts("read b"), done()], {"model_calls": 5}),
    "tool_calls": (
        [Reply.calls([scout("read a"), WRITE, scout("read b")]), done()],
        {"tool_calls": 3},
    ),
    "nothing left": ([Reply.calls([WRITE, scout("read a"), WRITE]), done()], {"tool_calls": 1}),
    "cost": ([scouts("read a", "read b"), scouts("read c"), done()], {"cost_usd": 0.045}),
    "tokens": ([scouts("read a", "read b"), done()], {"tokens": 400}),
}


@pytest.mark.parametrize("parallel", [1, 64])
@pytest.mark.parametrize("name", LIMITS)
async def test_a_tree_that_reached_a_bound_comes_out_the_same(
    store: Path, name: str, parallel: int
) -> None:
    replies, limits = LIMITS[name]
    await grown(store, replies, limits=limits, sub_agents={"max_parallel": parallel})

    await check_tree(store)


async def test_a_tree_whose_time_was_over_comes_out_the_same(store: Path) -> None:
    replies = [scouts("be silent", "read a"), done()]
    await grown(store, replies, limits={"time_s": 0.5})

    await check_tree(store)
    end = ends(store)["run"]
    assert end is not None
    assert (end.status, end.reason.kind) == ("limit", "time")


async def test_children_for_which_no_time_was_left_are_refused_again(store: Path) -> None:
    replies = [Reply.calls([("hang", {}), scout("read a"), scout("read b"), WRITE]), done()]
    session = await grown(store, replies, limits={"working_s": 0.3})

    await check_tree(store)
    results = [message.text for message in session.recording().messages if message.role == "tool"]
    assert sum("Not begun" in text for text in results) == 2


# ---- what came from outside -------------------------------------------------------------


def called(name: str) -> Callable[[Event], bool]:
    return lambda event: isinstance(event, ToolCalled) and event.tool_name == name


def child_ended(event: Event) -> bool:
    return isinstance(event, ChildEnded)


def parked(event: Event) -> bool:
    return isinstance(event, RunParked)


SILENT: dict[str, list[Reply]] = {
    "some are over": [scouts("read a", "be silent", "be silent"), done()],
    "with more behind": [Reply.calls([WRITE, scout("be silent"), scout("read a"), WRITE]), done()],
    "nested": [scouts("ask be silent and read a", "read b"), done()],
}


def silent(store: Path, name: str, **settings: Any) -> Session:
    return Session(store, family(SILENT[name]), {"sub_agents": {"max_depth": 2}, **settings})


@pytest.mark.parametrize("name", SILENT)
async def test_a_tree_that_was_cancelled_while_it_waited(store: Path, name: str) -> None:
    session = silent(store, name)
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(child_ended, runtime)
        await check_tree(store)
        await runtime.stop(["run"], "cancel")

    replayed = await check_tree(store)

    assert {end and end.reason.kind for end in ends(store).values()} >= {"user", "parent"}
    assert "its user cancelled it while it waited" in replayed["run"].facts


@pytest.mark.parametrize("taken_up", [False, True])
@pytest.mark.parametrize("name", SILENT)
async def test_a_tree_that_was_put_aside_and_cancelled(
    store: Path, name: str, taken_up: bool
) -> None:
    session = silent(store, name)
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(child_ended, runtime)
        await runtime.stop(["run"], "park_now")
        await session.until(parked, runtime)
        await check_tree(store)
    async with opened_locally(store, SECOND_COMMAND) as runtime:
        if taken_up:
            await runtime.resume(["run"], secrets={})
            await check_tree(store)
        await runtime.stop(["run"], "cancel")
        await session.until(is_over, runtime)

    replayed = await check_tree(store)

    assert "its user cancelled it while it waited" in replayed["run"].facts


@pytest.mark.parametrize("name", SILENT)
async def test_children_that_were_cancelled_themselves(store: Path, name: str) -> None:
    session = silent(store, name, sub_agents={"max_parallel": 1, "max_depth": 2})
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await begun(session, runtime)
        # The newest first, some of which are queued.
        for number in (3, 2, 1):
            if f"run.{number}" in ends(store):
                await runtime.stop([f"run.{number}"], "cancel")
        await ended(runtime, "run")

    await check_tree(store)


@pytest.mark.parametrize("command", [FIRST_COMMAND, SECOND_COMMAND])
@pytest.mark.parametrize("name", SILENT)
async def test_a_tree_whose_cell_died_and_that_was_resumed(
    store: Path, name: str, command: str
) -> None:
    session = silent(store, name)
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await session.until(child_ended, runtime)
    await check_tree(store)
    async with opened_locally(store, command) as runtime:
        await runtime.resume(["run"], secrets={})
        await runtime.stop(silent_ones(store), "cancel")
        await ended(runtime, "run")

    await check_tree(store)


async def test_what_is_on_disk_of_a_run_at_any_moment_is_replayed(store: Path) -> None:
    """Also where a call was refused beside others, and nothing says so yet."""
    replies = [
        Reply.calls([WRITE, scout("read a"), scout(""), scout("write b"), WRITE, scout("read c")]),
        Reply.calls([scout("read d"), scout(""), WRITE]),
        done(),
    ]
    session = Session(store, family(replies))
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        await ended(runtime, "run")
    whole = load_recording(JournalReader(store), "run")
    # Its last two changes are one commit.
    for at in range(1, len(whole.changes) - 1):
        replayed = await replay(replace(whole, changes=whole.changes[:at], end=None))
        assert not replayed.differences, (at, replayed.differences)


@pytest.mark.parametrize("commits", [7, 12, 22, 31, 43, 60])
async def test_a_tree_that_died_at_any_commit(store: Path, commits: int) -> None:
    """Its cell is closed when so much is on disk, and the same command goes on."""
    replies = [
        Reply.calls([WRITE, scout("read a"), scout(""), scout("write b"), WRITE, scout("read c")]),
        Reply.calls([scout("ask read d and read e"), READ]),
        done(),
    ]
    session = Session(store, family(replies), {"sub_agents": {"max_depth": 2}})
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await session.submit(runtime)
        while await runtime.position() < commits:
            await runtime.wait_for_news(await runtime.position(), messages=True)
    await check_tree(store)
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await runtime.resume(["run"], secrets={})
        await ended(runtime, "run")

    await check_tree(store)


@pytest.mark.parametrize("task", ["hang", "read a"])
async def test_a_tree_of_which_a_process_died(store: Path, task: str) -> None:
    """That of a child, while it waits; or its own, when it goes on behind them."""
    session = Session(store, family([Reply.calls([scout(task), ("hang", {})]), done()]))
    run_id, slot = ("run.1", Slot("agent_turn", pool="sub_agent"))
    if task != "hang":
        run_id, slot = "run", Slot("agent_turn")
    async with opened_locally(store, FIRST_COMMAND) as runtime:
        await begun(session, runtime)
        coordinator = runtime._coordinator._coordinator
        while coordinator.runs[run_id].busy_since is None:  # noqa: ASYNC110 - nobody tells it
            await asyncio.sleep(0)
        runtime.starter.hosts[slot].kill()
        await until(runtime, run_id, lambda event: isinstance(event, ExecutorLost))
        await runtime.stop([run_id], "cancel")
        if run_id != "run":
            await session.until(child_ended, runtime)
            await runtime.stop(["run"], "cancel")
        await ended(runtime, "run")

    replayed = await check_tree(store)

    assert any("died while a tool ran" in fact for fact in replayed[run_id].facts)
