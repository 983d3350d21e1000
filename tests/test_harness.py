import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors import AgentHarness, ChatAgent, HarnessConfig, HarnessResult, Limits, tool
from harness_actors.actors.packing import unpack
from harness_actors.agents import Program
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.errors import (
    AgentCodeError,
    BadInputError,
    ConfigError,
    ConversationBusyError,
    ConversationMovedOnError,
    HarnessError,
    RunNotFoundError,
    RunParkedError,
    StaleTermError,
    StoreError,
    StoreInUseError,
)
from harness_actors.events import RunCompleted, RunEvent, RunStarted, ToolCalled, ToolReturned
from harness_actors.messages import Message
from harness_actors.models import OpenAIModel
from harness_actors.ports import Tool, ToolContext
from harness_actors.stores import SqliteJournal
from harness_actors.testing import Reply, ScriptedModel
from tests.actors.tasks import lines, look, note, replies, written

WITHIN_S = 60.0


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Journals that nobody named a place for are the test's own."""
    home = tmp_path / "home"
    monkeypatch.setenv("HARNESS_HOME", str(home))
    return home


def tells_what_it_sees(messages: Sequence[Message]) -> Reply:
    """Completes with all that users have said to it."""
    said = [message.text for message in messages if message.role == "user"]
    return Reply.call("work_complete", {"summary": " | ".join(said)})


@tool
async def interrupts() -> str:
    """Raise what a Ctrl-C raises."""
    raise KeyboardInterrupt


def test_a_tool_that_raises_what_ctrl_c_raises_ends_no_program() -> None:
    model = ScriptedModel(
        lambda messages: (
            Reply.call("work_complete", {"summary": messages[-1].text})
            if messages[-1].role == "tool"
            else Reply.call("interrupts", {})
        )
    )
    harness = AgentHarness(ChatAgent(model=model, tools=[interrupts]), runtime="local")
    result = asyncio.run(harness.run("Go."))
    assert (result.status, result.output_text) == ("done", "KeyboardInterrupt")


def telling() -> ChatAgent:
    return ChatAgent(model=ScriptedModel(tells_what_it_sees))


def noting(log: Path, *, rounds: int = 1, seconds: float = 0.0) -> ChatAgent:
    """Writes a line in each round, then completes."""
    path = str(log)

    def script(messages: Sequence[Message]) -> Reply:
        if replies(messages) < rounds:
            return Reply.call("note", {"path": path, "seconds": seconds})
        return Reply.call("work_complete", {"summary": f"after {rounds} notes"})

    return ChatAgent(model=ScriptedModel(script), tools=[note])


@pytest.fixture
async def at_work(tmp_path: Path) -> AsyncIterator[tuple[AgentHarness, Path]]:
    """A harness whose agent takes its time in each of two calls, and the log of its calls."""
    log = tmp_path / "log"
    async with AgentHarness(noting(log, rounds=2, seconds=0.3), runtime="local") as harness:
        yield harness, log


# ---- running -------------------------------------------------------------------------


async def test_a_run_ends_with_its_result_and_its_events() -> None:
    async with AgentHarness(telling(), runtime="local") as harness:
        result = await harness.run("hello")

    assert (result.status, result.reason.kind) == ("done", "completed")
    assert result.output_text == "hello"
    assert result.completion_verified
    kinds = [type(event.event) for event in result.transcript]
    assert (kinds[0], kinds[-1]) == (RunStarted, RunCompleted)


async def test_a_stream_tells_each_event_once_and_the_result_last() -> None:
    async with AgentHarness(telling(), runtime="local") as harness:
        *events, result = [item async for item in harness.run_stream("hello")]

    assert isinstance(result, HarnessResult)
    assert tuple(events) == result.transcript


async def test_a_task_may_be_messages() -> None:
    async with AgentHarness(telling(), runtime="local") as harness:
        result = await harness.run([Message.user("first"), Message.user("second")])

    assert "first" in result.output_text
    assert "second" in result.output_text


@pytest.mark.parametrize(
    "message", ["", "  \n", [], None, 7, ["text"], [{"role": "user", "content": "x"}]]
)
async def test_what_is_no_task_is_refused_and_the_harness_stays_usable(message: Any) -> None:
    async with AgentHarness(telling(), runtime="local") as harness:
        with pytest.raises(BadInputError, match="message"):
            await harness.run(message)
        assert (await harness.run("hello")).status == "done"


async def test_a_workflow_is_run_like_an_agent() -> None:
    workflow = HarnessWorkflowBuilder(telling()).build()
    async with AgentHarness(workflow, runtime="local") as harness:
        assert (await harness.run("hello")).output_text == "hello"


async def test_tools_work_in_the_folder_that_was_given(tmp_path: Path) -> None:
    @tool
    def where(context: ToolContext) -> str:
        """Say where this works."""
        return str(context.workspace)

    model = ScriptedModel([Reply.call("where"), Reply.call("work_complete", {"summary": "x"})])
    agent = ChatAgent(model=model, tools=[where])
    async with AgentHarness(agent, runtime="local", workspace=tmp_path / "new") as harness:
        result = await harness.run("go")

    (returned, _) = [e.event for e in result.transcript if isinstance(e.event, ToolReturned)]
    assert returned.text == str((tmp_path / "new").resolve())
    assert (tmp_path / "new").is_dir()


# ---- conversations -------------------------------------------------------------------


async def test_runs_of_one_harness_continue_one_conversation() -> None:
    async with AgentHarness(telling(), runtime="local") as harness:
        await harness.run("first")
        second = await harness.run("second")

    assert second.output_text == "first | second"


async def test_two_runs_of_one_harness_share_the_log_and_nothing_else(tmp_path: Path) -> None:
    limits = Limits(model_calls=3, tool_calls=1)
    agent = noting(tmp_path / "log")
    async with AgentHarness(agent, runtime="local", limits=limits, max_turns=1) as harness:
        first = await harness.run("first")
        second = await harness.run("second")

    assert first.run_id != second.run_id
    for result in (first, second):
        assert result.status == "done"
        assert result.turn_count == 1
        assert (result.usage.model_calls, result.usage.tool_calls) == (2, 1)
        assert {event.run_id for event in result.transcript} == {result.run_id}


async def test_two_harnesses_do_not_see_each_other() -> None:
    harnesses = [AgentHarness(telling(), runtime="local") for _ in range(5)]
    async with asyncio.timeout(WITHIN_S):
        results = await asyncio.gather(
            *(harness.run(f"task {number}") for number, harness in enumerate(harnesses))
        )
        await harnesses[0].close()

    assert [result.output_text for result in results] == [f"task {n}" for n in range(5)]


async def test_a_second_run_beside_the_first_is_refused_and_the_first_goes_on(
    at_work: tuple[AgentHarness, Path],
) -> None:
    harness, log = at_work
    running = asyncio.create_task(harness.run("first"))
    await written(log, 1)

    with pytest.raises(ConversationBusyError, match="begin another conversation, in a new"):
        await harness.run("second")

    assert (await running).output_text == "after 2 notes"


async def test_one_harness_works_in_one_event_loop_after_another() -> None:
    harness = AgentHarness(telling(), runtime="local")

    def all_runs() -> list[str]:
        return [asyncio.run(harness.run(f"{n}")).output_text for n in range(3)]

    assert await asyncio.to_thread(all_runs) == ["0", "0 | 1", "0 | 1 | 2"]


async def test_another_event_loop_cannot_share_the_cell_of_this_one() -> None:
    told: list[str] = []

    def elsewhere() -> None:
        try:
            asyncio.run(AgentHarness(telling(), runtime="local").run("x"))
        except StoreInUseError as error:
            told.append(str(error))

    async with AgentHarness(telling(), runtime="local") as harness:
        await harness.run("first")
        thread = threading.Thread(target=elsewhere)
        thread.start()
        await asyncio.to_thread(thread.join)
        assert (await harness.run("second")).status == "done"

    assert "in another event loop" in told[0]


# ---- inputs stay as they are ---------------------------------------------------------


async def test_what_the_caller_hands_over_is_never_changed() -> None:
    tools = [look]
    messages = [Message.user("hello")]
    config = HarnessConfig(max_turns=3)
    agent = ChatAgent(model=ScriptedModel(tells_what_it_sees), tools=tools)
    before = (list(tools), list(messages), replace(config), agent.tools, agent.instructions)

    for _ in range(2):
        async with AgentHarness(agent, config=config, max_turns=5, runtime="local") as harness:
            assert harness.config.max_turns == 5
            for _ in range(2):
                assert (await harness.run(messages)).status == "done"

    assert (tools, messages, config, agent.tools, agent.instructions) == before
    assert agent.tools[0] is look


async def test_what_the_caller_does_to_its_list_later_does_not_matter() -> None:
    tools: list[Tool] = [look]
    agent = ChatAgent(model=ScriptedModel(tells_what_it_sees), tools=tools)
    async with AgentHarness(agent, runtime="local") as harness:
        tools.append(note)
        tools.append(note)
        assert (await harness.run("hello")).status == "done"

    assert agent.tools == (look,)


# ---- settings ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"max_turn": 3}, "max_turn"),
        ({"max_turns": 0}, "max_turns"),
        ({"max_turns": True}, "max_turns"),
        ({"limits": {"tokens": 0}}, "limits.tokens"),
        ({"limits": {"token": 5}}, "limits.token"),
        ({"limits": 5}, "limits"),
        ({"completion": "maybe"}, "completion"),
        ({"stall": {"threshold": 1}}, "stall.threshold"),
        ({"sub_agents": {"depth": 1}}, "sub_agents.depth"),
        ({"compaction": {"soft": 1.5}}, "compaction.soft"),
        ({"contract": 7}, "contract"),
        ({"hooks": 7}, "hooks"),
        ({"runtime": "threads"}, "runtime"),
        ({"config": {"max_turns": 3}}, "config"),
        ({"config": HarnessConfig(), "max_turns": 0}, "max_turns"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(settings: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        AgentHarness(telling(), **settings)

    assert caught.value.field == field


@pytest.mark.parametrize("agent", ["gpt-4.1-mini", None, ScriptedModel([])])
def test_what_is_no_agent_is_refused(agent: Any) -> None:
    with pytest.raises(ConfigError, match=r"agent: must be a ChatAgent"):
        AgentHarness(agent)


def test_keyword_settings_take_precedence_over_the_config() -> None:
    config = HarnessConfig(max_turns=3, max_rounds_per_turn=7)

    harness = AgentHarness(telling(), config=config, max_turns=5)

    assert (harness.config.max_turns, harness.config.max_rounds_per_turn) == (5, 7)
    assert config.max_turns == 3


def unpriced() -> ChatAgent:
    """An agent whose model has no price that anybody knows."""
    return ChatAgent(model=OpenAIModel("unheard-of", base_url="http://127.0.0.1:9/v1"))


@pytest.mark.parametrize("given", [{"limits": {"cost_usd": 1}}, {"limits": Limits(cost_usd=1)}])
def test_a_bound_on_cost_that_would_bound_nothing_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"limits\.cost_usd: no price is known for 'unheard-of'"):
        AgentHarness(unpriced(), **given)
    with pytest.raises(ConfigError, match=r"limits\.cost_usd: no price is known"):
        AgentHarness(HarnessWorkflowBuilder(unpriced(), HarnessConfig.from_mapping(given)).build())

    AgentHarness(unpriced(), limits={"tokens": 1000})


def test_a_workflow_brings_the_settings_that_it_was_built_with() -> None:
    config = HarnessConfig(max_turns=3, completion="answer")
    workflow = HarnessWorkflowBuilder(telling(), config).build()

    assert AgentHarness(workflow).config == config
    assert AgentHarness(workflow, config=replace(config)).config == config
    assert AgentHarness(workflow, max_turns=5).config == replace(config, max_turns=5)
    with pytest.raises(ConfigError, match="config: the workflow was built with another config"):
        AgentHarness(workflow, config=HarnessConfig(max_turns=4))


async def test_a_run_of_a_workflow_has_its_settings() -> None:
    talker = ChatAgent(model=ScriptedModel(lambda _: Reply.text("not yet")))
    workflow = HarnessWorkflowBuilder(talker, HarnessConfig(max_turns=2)).build()
    async with AgentHarness(workflow, runtime="local") as harness:
        result = await harness.run("go on")

    assert (result.status, result.reason.kind, result.turn_count) == ("limit", "max_turns", 2)


def test_settings_of_a_workflow_make_no_other_code_of_it() -> None:
    workflow = HarnessWorkflowBuilder(telling(), HarnessConfig(max_turns=3)).build()

    assert unpack(Program.of(workflow).blob).config is None


def test_a_part_that_cannot_be_pickled_is_named_before_anything_runs() -> None:
    lock = threading.Lock()

    @tool
    def guarded() -> str:
        """Use a lock."""
        with lock:
            return "x"

    agent = ChatAgent(model=ScriptedModel([]), tools=[look, guarded])
    with pytest.raises(AgentCodeError, match="tool 'guarded' cannot be pickled"):
        AgentHarness(agent)


# ---- stopping and going on -----------------------------------------------------------


@pytest.mark.parametrize("now", [False, True])
async def test_a_parked_run_is_resumed_without_doing_anything_twice(
    at_work: tuple[AgentHarness, Path], now: bool
) -> None:
    harness, log = at_work
    running = asyncio.create_task(harness.run("go"))
    await written(log, 1)
    await harness.park(now=now)
    with pytest.raises(RunParkedError) as parked:
        await running
    assert len(lines(log)) == 1

    result = await harness.resume(parked.value.run_id)

    assert result.status == "done"
    assert len(lines(log)) == len(set(lines(log))) == 2


async def test_a_run_that_is_parked_before_it_began_can_be_resumed() -> None:
    async with AgentHarness(telling(), runtime="local") as harness:
        running = asyncio.create_task(harness.run("hello"))
        await asyncio.sleep(0)
        assert harness.is_running
        await harness.park(now=True)
        with pytest.raises(RunParkedError) as parked:
            await running

        assert (await harness.resume(parked.value.run_id)).output_text == "hello"


async def test_parking_where_nothing_runs_does_nothing() -> None:
    async with AgentHarness(telling(), runtime="local") as harness:
        await harness.park()
        assert (await harness.run("hello")).status == "done"
        await harness.park(now=True)
        assert (await harness.run("again")).status == "done"


async def test_after_a_run_that_was_cut_the_conversation_is_free_again(
    at_work: tuple[AgentHarness, Path],
) -> None:
    harness, log = at_work
    running = asyncio.create_task(harness.run("first"))
    await written(log, 1)
    await harness.park(now=True)
    with pytest.raises(RunParkedError):
        await running

    assert (await harness.run("second")).status == "done"


async def test_a_cut_run_whose_conversation_went_on_is_not_resumed(
    at_work: tuple[AgentHarness, Path],
) -> None:
    harness, log = at_work
    running = asyncio.create_task(harness.run("first"))
    await written(log, 1)
    await harness.park(now=True)
    with pytest.raises(RunParkedError) as parked:
        await running
    second = await harness.run("second")
    notes = lines(log)

    with pytest.raises(ConversationMovedOnError) as refused:
        await harness.resume(parked.value.run_id)

    error = refused.value
    facts = (parked.value.run_id, parked.value.run_id, second.run_id)
    assert (error.run_id, error.conversation_id, error.later_run_id) == facts
    assert lines(log) == notes, "no tool was called"
    assert (await harness.run("third")).status == "done"


def test_a_file_is_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    agent = ChatAgent(model=ScriptedModel([Reply.text("done")]))
    with pytest.raises(ConfigError, match=r"workspace: must be a folder, and '.*notes.txt' is a"):
        AgentHarness(agent, runtime="local", workspace=tmp_path / "notes.txt")


async def test_a_run_whose_workspace_is_gone_is_resumed_when_it_is_there_again(
    tmp_path: Path,
) -> None:
    log, folder = tmp_path / "log", tmp_path / "work"
    agent = noting(log, rounds=2, seconds=0.3)
    async with AgentHarness(agent, runtime="local", workspace=folder) as harness:
        running = asyncio.create_task(harness.run("go"))
        await written(log, 1)
        await harness.park()
        with pytest.raises(RunParkedError) as parked:
            await running
        folder.rmdir()

        with pytest.raises(BadInputError, match="make it again") as refused:
            await harness.resume(parked.value.run_id)
        assert repr(parked.value.run_id) in str(refused.value)
        assert repr(str(folder.resolve())) in str(refused.value)
        assert len(lines(log)) == 1

        folder.mkdir()
        assert (await harness.resume(parked.value.run_id)).status == "done"


async def test_a_caller_that_is_cancelled_parks_its_run(
    at_work: tuple[AgentHarness, Path],
) -> None:
    harness, log = at_work
    events: list[object] = []

    async def follow() -> None:
        async for item in harness.run_stream("go"):
            events.append(item)

    running = asyncio.create_task(follow())
    await written(log, 1)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    first = events[0]
    assert isinstance(first, RunEvent)

    result = await harness.resume(first.run_id)

    assert result.status == "done"
    assert len(lines(log)) == len(set(lines(log))) == 2


async def test_a_run_that_was_cut_by_a_time_limit_is_known_to_its_harness(
    at_work: tuple[AgentHarness, Path],
) -> None:
    harness, log = at_work
    assert known(harness) is None

    async def run_in_time() -> None:
        async with asyncio.timeout(None) as limit:
            at_work = asyncio.create_task(written(log, 1))
            at_work.add_done_callback(lambda _: limit.reschedule(0))
            await harness.run("go")

    with pytest.raises(TimeoutError):
        await run_in_time()
    cut = known(harness)

    assert cut is not None
    result = await harness.resume(cut)
    assert (result.status, result.run_id, known(harness)) == ("done", cut, cut)
    assert (await harness.run("again")).run_id == known(harness) != cut


def known(harness: AgentHarness) -> str | None:
    return harness.run_id


async def test_a_reader_that_leaves_its_stream_parks_the_run(
    at_work: tuple[AgentHarness, Path],
) -> None:
    harness, log = at_work
    seen = []
    async with aclosing(harness.run_stream("first")) as stream:
        async for item in stream:
            seen.append(item)
            if isinstance(item, RunEvent) and isinstance(item.event, ToolCalled):
                break
    assert not harness.is_running

    result = await harness.resume(seen[0].run_id)

    assert result.status == "done"
    assert len(lines(log)) == len(set(lines(log)))


async def test_a_run_that_is_over_is_told_again(tmp_path: Path) -> None:
    store = tmp_path / "own.db"
    async with AgentHarness(telling(), runtime="local", store=store) as harness:
        result = await harness.run("hello")
    async with AgentHarness(telling(), runtime="local", store=store) as harness:
        assert await harness.resume(result.run_id) == result
        second = await harness.run("more")

    assert second.output_text == "hello | more"


async def test_closing_in_the_middle_of_a_run_keeps_what_is_committed(tmp_path: Path) -> None:
    log, store = tmp_path / "log", tmp_path / "own.db"
    harness = AgentHarness(noting(log, rounds=2, seconds=0.3), runtime="local", store=store)
    running = asyncio.create_task(harness.run("go"))
    await written(log, 1)
    await harness.close()
    with pytest.raises(HarnessError):
        await running

    journal = SqliteJournal(store)
    (heading,) = journal.headings()
    journal.close()
    async with harness:
        assert (await harness.resume(heading.run_id)).status == "done"
    assert len(lines(log)) == len(set(lines(log))) == 2


async def test_closing_twice_or_what_was_never_open_is_fine() -> None:
    harness = AgentHarness(telling(), runtime="local")
    await harness.close()
    await harness.run("hello")
    await harness.close()
    await harness.close()
    assert (await harness.run("again")).output_text == "hello | again"
    await harness.close()


async def test_a_cell_that_lost_its_journal_is_told_and_the_next_run_gets_another(
    tmp_path: Path,
) -> None:
    store = tmp_path / "own.db"
    async with AgentHarness(telling(), runtime="local", store=store) as harness:
        await harness.run("first")
        thief = SqliteJournal(store)
        thief.begin_term()
        thief.close()

        with pytest.raises(StaleTermError):
            await harness.run("second")
        assert (await harness.run("third")).status == "done"


def lost(folder: Path) -> None:
    shutil.rmtree(folder)


def moved(folder: Path) -> None:
    folder.rename(folder.with_name("aside"))


@pytest.mark.parametrize("take_away", [lost, moved])
async def test_a_conversation_whose_journal_was_taken_away_is_not_forgotten_without_a_word(
    tmp_path: Path, take_away: Callable[[Path], None]
) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    async with AgentHarness(telling(), runtime="local", store=folder / "own.db") as harness:
        await harness.run("first")
        take_away(folder)

        for _ in range(2):
            with pytest.raises(StoreError, match="moved away"):
                await harness.run("second")
        folder.mkdir(exist_ok=True)
        with pytest.raises(StoreError, match="begin_conversation"):
            await harness.run("third")
        assert not (folder / "own.db").exists(), "none is made in its place"
        await AgentHarness(telling(), runtime="local", store=folder / "own.db").run("of another")
        with pytest.raises(StoreError, match="another file was put in its place"):
            await harness.run("fourth")

        harness.begin_conversation()
        assert (await harness.run("anew")).status == "done"


@pytest.mark.parametrize("copied", [False, True])
async def test_a_conversation_goes_on_where_its_journal_is_back(
    tmp_path: Path, copied: bool
) -> None:
    folder, aside = tmp_path / "kept", tmp_path / "aside"
    folder.mkdir()
    async with AgentHarness(telling(), runtime="local", store=folder / "own.db") as harness:
        first = await harness.run("first")
        folder.rename(aside)
        with pytest.raises(StoreError):
            await harness.run("second")
        if copied:
            shutil.copytree(aside, folder)
        else:
            aside.rename(folder)

        await harness.run("third")
        asked = [m["content"] for m in await harness.conversation(first.run_id)]

    assert [text for text in asked if text in ("first", "second", "third")] == ["first", "third"]


# ---- where journals are --------------------------------------------------------------


async def test_without_a_store_the_journal_is_in_the_home(own_home: Path) -> None:
    async with AgentHarness(telling(), runtime="local") as harness:
        await harness.run("hello")

    assert (own_home / "runs.db").is_file()


async def test_another_harness_finds_a_run_by_its_name_alone() -> None:
    async with AgentHarness(telling(), runtime="local") as harness:
        result = await harness.run("hello")
    async with AgentHarness(telling(), runtime="local") as another:
        assert (await another.resume(result.run_id)).output_text == "hello"


async def test_a_run_that_nobody_knows_is_named() -> None:
    async with AgentHarness(telling(), runtime="local") as harness:
        with pytest.raises(RunNotFoundError, match="nobody"):
            await harness.resume("nobody")
        assert (await harness.run("hello")).status == "done"
        with pytest.raises(RunNotFoundError, match="nobody"):
            await harness.resume("nobody")


async def test_a_place_where_no_journal_can_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = tmp_path / "file" / "runs.db"
    with pytest.raises(BadInputError, match="HARNESS_HOME"):
        await AgentHarness(telling(), runtime="local", store=store).run("x")


ELSEWHERE = """
import asyncio, sys
from tests.test_harness import AgentHarness, noting, telling
from pathlib import Path

async def main() -> None:
    what, *more = sys.argv[1:]
    if what == "run":
        agent = noting(Path(more[0]), rounds=2, seconds=0.5)
        print((await AgentHarness(agent, runtime="local").run("go")).output_text)
    else:
        print((await AgentHarness(telling(), runtime="local").resume(more[0])).output_text)

try:
    asyncio.run(main())
except Exception as error:
    print(type(error).__name__, error)
"""


def journals(home: Path) -> list[str]:
    return sorted(path.name for path in home.glob("*.db"))


def elsewhere(*arguments: str) -> "subprocess.Popen[str]":
    """A process of its own with a harness in it."""
    return subprocess.Popen(
        [sys.executable, "-c", ELSEWHERE, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    )


async def told(process: "subprocess.Popen[str]") -> str:
    out, _ = await asyncio.to_thread(process.communicate, timeout=WITHIN_S)
    return out.strip()


async def test_processes_at_the_same_time_get_a_journal_each(
    own_home: Path, tmp_path: Path
) -> None:
    logs = [tmp_path / "a", tmp_path / "b"]
    processes = [elsewhere("run", str(log)) for log in logs]
    await asyncio.gather(*(written(log, 1) for log in logs))

    assert [await told(process) for process in processes] == ["after 2 notes"] * 2
    assert journals(own_home) == ["runs-2.db", "runs.db"]


async def test_another_process_takes_up_the_run_of_one_that_was_killed(
    own_home: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    victim = elsewhere("run", str(log))
    await written(log, 2)
    os.kill(victim.pid, signal.SIGKILL)
    await told(victim)
    run_id = lines(log)[0].split()[0]

    assert await told(elsewhere("resume", run_id)) == "after 2 notes"
    assert len(lines(log)) == len(set(lines(log))) == 2


async def test_a_run_of_a_process_at_work_is_left_to_it() -> None:
    async with AgentHarness(telling(), runtime="local") as harness:
        result = await harness.run("hello")
        said = await told(elsewhere("resume", result.run_id))
    assert said.startswith("StoreInUseError")
    assert str(os.getpid()) in said

    assert await told(elsewhere("resume", result.run_id)) == "hello"


# ---- on Ray --------------------------------------------------------------------------


@pytest.mark.ray
async def test_on_ray_a_run_streams_parks_and_is_resumed_while_the_loop_goes_on(
    tmp_path: Path,
) -> None:
    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    beating = asyncio.create_task(beat())
    log = tmp_path / "log"
    agent = noting(log, rounds=2, seconds=0.5)
    async with AgentHarness(agent, address="local") as harness:
        running = asyncio.create_task(harness.run("go"))
        await written(log, 1)
        # Ray takes seconds to start, and nothing else may wait for it.
        assert beats > 50
        await harness.park(now=True)
        with pytest.raises(RunParkedError) as parked:
            await running
        result = await harness.resume(parked.value.run_id)
        second = await harness.run("more")
    beating.cancel()

    assert (result.status, second.status) == ("done", "done")
    assert len(lines(log)) == len(set(lines(log))) == 4


@pytest.mark.ray
def test_on_ray_one_harness_works_in_one_event_loop_after_another() -> None:
    harness = AgentHarness(telling(), address="local")

    told = [asyncio.run(harness.run(text)).output_text for text in ("first", "second")]
    asyncio.run(harness.close())

    assert told == ["first", "first | second"]


@pytest.mark.ray
async def test_harnesses_that_begin_at_once_share_one_cell_on_ray(own_home: Path) -> None:
    harnesses = [AgentHarness(telling(), address="local") for _ in range(3)]

    results = await asyncio.gather(*(harness.run("x") for harness in harnesses))
    await harnesses[0].close()

    assert {result.status for result in results} == {"done"}
    assert journals(own_home) == ["runs.db"]
