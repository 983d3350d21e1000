"""What is on disk before what begins."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_actors.conversation import UNKNOWN_OUTCOME, Conversation
from harness_actors.errors import BadInputError
from harness_actors.events import RoundCompleted, TurnCompleted
from harness_actors.executors import AgentTurn, AgentTurnServices, DeltaContext
from harness_actors.messages import Message, ToolCall
from harness_actors.ports import DelegatingTool, Delegation, Tool, ToolContext, ToolSpec
from harness_actors.records import FolderId, WorkspaceSpec
from harness_actors.signals import CompactionComplete, Parked, RunEnd, TurnComplete
from harness_actors.state import (
    BUDGET,
    CHILDREN,
    OPEN_CALLS,
    TURN,
    TURN_COUNT,
    USAGE,
    OpenCall,
    StateDelta,
    Write,
    observed_by,
)
from harness_actors.testing.clock import ManualClock
from harness_actors.testing.scripted import Reply
from harness_actors.tools import ask_user
from harness_actors.turn.call_scheduler import NOT_MADE
from tests.executors.driver import (
    Driver,
    RecordingModel,
    SimpleAgent,
    SimpleTool,
    WordCounter,
    a_tool,
    calls,
    finishes,
)


class SlowDisk:
    """Takes changes at once and commits them when it is told to."""

    def __init__(self) -> None:
        self.sent: list[StateDelta] = []
        self._commits: list[asyncio.Future[None]] = []

    def send(self, delta: StateDelta) -> asyncio.Future[None]:
        self.sent.append(delta)
        self._commits.append(asyncio.get_running_loop().create_future())
        return self._commits[-1]

    def commit(self, count: int) -> None:
        """The first `count` changes are on disk."""
        for committed in self._commits[:count]:
            if not committed.done():
                committed.set_result(None)


class Bench:
    """One turn over a disk that waits for us."""

    def __init__(
        self,
        script: list[Reply],
        *tools: Tool,
        values: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.disk = SlowDisk()
        self.clock = ManualClock()
        self.model = RecordingModel(script)
        driver = Driver(SimpleAgent(self.model, tools), **settings)
        services = AgentTurnServices(
            counter_for=lambda _model: WordCounter(),
            clock=self.clock,
            in_thread=asyncio.to_thread,
            prepare_workspace=lambda _spec: pytest.fail("there is no workspace"),
        )
        executor = AgentTurn(services)
        self.context = DeltaContext(
            spec=driver.spec,
            agent=driver.agent,
            writer_name="agent_turn",
            reads=executor.reads,
            values=values or {},
            log=Conversation(),
            started_at=self.clock.now(),
            send=self.disk.send,
        )
        self.turn = asyncio.ensure_future(executor.handle(CompactionComplete(), self.context))

    async def settle(self) -> None:
        """Let the turn go on until it waits for the disk, or is over."""
        for _ in range(50):
            await asyncio.sleep(0)


async def test_the_turn_is_one_round_ahead_of_the_disk_and_no_more() -> None:
    script = [calls((f"c{i}", "read")) for i in range(5)]
    bench = Bench(script, a_tool("read", idempotent=True))

    # The turn's start is sent and waits; its first round does not wait for that.
    await bench.settle()
    assert (len(bench.model.requests), len(bench.disk.sent)) == (1, 2)
    bench.disk.commit(1)
    await bench.settle()
    assert (len(bench.model.requests), len(bench.disk.sent)) == (2, 3)
    bench.disk.commit(2)
    await bench.settle()
    assert (len(bench.model.requests), len(bench.disk.sent)) == (3, 4)
    bench.turn.cancel()


class Scout(DelegatingTool):
    """Sends others out, who work beside the run."""

    spec = ToolSpec(name="scout", description="Looks.", parameters={"type": "object"})

    def delegation(self, call: ToolCall) -> Delegation:
        return Delegation(agent="scout", pool="scout", task="look", background=True)


@pytest.mark.parametrize("shared", [{BUDGET.name: 10.0}, {CHILDREN.name: 1}])
async def test_where_others_use_up_what_is_left_a_round_is_on_disk_before_the_next_model_call(
    shared: dict[str, Any],
) -> None:
    script = [calls((f"c{i}", "read")) for i in range(5)]
    bench = Bench(script, a_tool("read", idempotent=True), Scout(), values=shared)
    for rounds in (1, 2, 3):
        await bench.settle()
        bench.disk.commit(rounds)
        await bench.settle()
        assert len(bench.model.requests) == rounds
        bench.disk.commit(rounds + 1)
    bench.turn.cancel()


async def test_who_has_sent_nobody_out_is_one_round_ahead_though_it_could() -> None:
    script = [calls((f"c{i}", "read")) for i in range(5)]
    bench = Bench(script, a_tool("read", idempotent=True), Scout())
    await bench.settle()
    bench.disk.commit(1)
    await bench.settle()
    assert len(bench.model.requests) == 2
    bench.turn.cancel()


async def test_a_run_that_is_asked_to_park_while_it_waits_for_the_disk_asks_no_more() -> None:
    script = [calls((f"c{i}", "read")) for i in range(5)]
    bench = Bench(script, a_tool("read", idempotent=True))
    await bench.settle()
    bench.context.parking = True
    bench.disk.commit(1)
    await bench.settle()

    assert bench.turn.result() == Parked()
    assert len(bench.model.requests) == 1


async def test_no_model_call_is_counted_when_time_is_over_before_the_disk_is_ready() -> None:
    bench = Bench([calls(("a", "read"))], a_tool("read", idempotent=True), limits={"time_s": 10.0})
    await bench.settle()
    bench.clock.advance(11.0)
    bench.disk.commit(1)
    await bench.settle()

    ended = bench.turn.result()
    assert isinstance(ended, TurnComplete)
    assert ended.limit == "time"
    deltas = [*bench.disk.sent, bench.context.take()]
    used = [write.value for delta in deltas for write in delta.writes if write.key == USAGE.name]
    assert sum(value["model_calls"] for value in used) == len(bench.model.requests) == 1


async def test_a_tool_that_is_not_idempotent_starts_when_its_record_is_on_disk() -> None:
    write, read = a_tool("write"), a_tool("read", idempotent=True)
    bench = Bench([calls(("a", "write"), ("b", "read")), finishes()], write, read)

    await bench.settle()
    assert write.calls == []
    record = bench.disk.sent[-1]
    assert [message.role for message in record.messages] == ["assistant"]

    bench.disk.commit(2)
    await bench.settle()
    assert (len(write.calls), len(read.calls)) == (1, 1)
    bench.turn.cancel()


async def test_results_of_a_fenced_round_follow_one_by_one_without_waiting() -> None:
    bench = Bench([calls(("a", "write"), ("b", "write"), ("c", "write"))], a_tool())
    await bench.settle()
    bench.disk.commit(2)
    await bench.settle()

    results = bench.disk.sent[2:]
    assert [[m.tool_call_id for m in delta.messages] for delta in results] == [["a"], ["b"], ["c"]]
    index = [
        (write.change, write.value)
        for delta in results
        for write in delta.writes
        if write.key == OPEN_CALLS.name
    ]
    assert index == [("drop", 1), ("drop", 1), ("set", [])], "what ended, and not what is left"
    assert any(isinstance(event, RoundCompleted) for event in results[-1].events)
    bench.turn.cancel()


async def test_a_round_of_idempotent_calls_is_written_once_at_its_end() -> None:
    bench = Bench([calls(("a", "read"), ("b", "read"))], a_tool("read", idempotent=True))
    await bench.settle()
    assert [message.role for message in bench.disk.sent[1].messages] == [
        "assistant",
        "tool",
        "tool",
    ]
    assert OPEN_CALLS.name not in {write.key for write in bench.disk.sent[1].writes}
    bench.turn.cancel()


async def test_how_far_a_turn_is_is_written_when_it_changes() -> None:
    script = [calls(("a", "write")), calls(("b", "write")), finishes()]
    driver = Driver(SimpleAgent(RecordingModel(script), [a_tool()]))
    await driver.serve("agent_turn", CompactionComplete())
    written = [w.value for delta in driver.deltas for w in delta.writes if w.key == TURN.name]

    assert [value["rounds"] for value in written if value] == [0, 1, 1, 2, 3]
    assert [value["progressed"] for value in written if value] == [False, False, True, True, True]
    assert written[-1] is None


@pytest.mark.parametrize("last", [Reply.text("done"), finishes()])
async def test_the_round_that_ends_a_turn_is_written_with_the_answer(last: Reply) -> None:
    driver = Driver(SimpleAgent(RecordingModel([last])))
    await driver.serve("agent_turn", CompactionComplete())
    delta = driver.deltas[-1]
    assert delta.messages[0].role == "assistant"
    assert [type(event) for event in delta.events] == [RoundCompleted, TurnCompleted]


async def test_the_last_result_of_a_fenced_round_that_ends_a_turn_is_written_with_it() -> None:
    script = [calls(("a", "write"), ("b", "work_complete", '{"summary": "ok"}'))]
    driver = Driver(SimpleAgent(RecordingModel(script), [a_tool()]))
    await driver.serve("agent_turn", CompactionComplete())
    assert [[m.tool_call_id for m in d.messages] for d in driver.deltas[-2:]] == [["a"], ["b"]]
    assert isinstance(driver.deltas[-1].events[-1], TurnCompleted)


@pytest.mark.parametrize("tool", ["read", "write"])
async def test_the_last_of_the_rounds_that_a_turn_may_have_is_written_with_the_answer(
    tool: str,
) -> None:
    model = RecordingModel([calls(("a", tool))])
    tools = [a_tool("read", idempotent=True), a_tool("write")]
    driver = Driver(SimpleAgent(model, tools), max_rounds_per_turn=1)
    await driver.serve("agent_turn", CompactionComplete())
    delta = driver.deltas[-1]
    assert delta.messages[-1].tool_call_id == "a"
    assert [type(event) for event in delta.events] == [RoundCompleted, TurnCompleted]


@pytest.mark.parametrize(
    ("names", "notices"),
    [
        (["read"], 1),
        (["read", "work_complete"], 1),
        (["work_complete"], 0),
        (["unknown"], 0),
        (["read", "write"], 0),
    ],
)
async def test_tools_that_no_record_announces_are_told_of(names: list[str], notices: int) -> None:
    reply = Reply.calls([(name, {"summary": "x"}) for name in names])
    tools = [a_tool(), a_tool("read", idempotent=True)]
    driver = Driver(SimpleAgent(RecordingModel([reply, Reply.text("x")]), tools))
    await driver.serve("agent_turn", CompactionComplete())
    assert driver.tool_notices == notices


def left_open(
    driver: Driver,
    *asked: tuple[str, bool],
    results: tuple[Message, ...] = (),
    arguments: str = '{"summary": "x"}',
) -> None:
    """Commit a turn that died in a round with these calls, idempotent or not."""
    message = Message.assistant(
        None, [ToolCall(f"c{i}", name, arguments) for i, (name, _) in enumerate(asked)]
    )
    answered = {result.tool_call_id for result in results}
    index = tuple(
        OpenCall(call_id=f"c{i}", tool_name=name, idempotent=idempotent, turn=1)
        for i, (name, idempotent) in enumerate(asked)
        if f"c{i}" not in answered
    )
    writes = (
        Write(TURN_COUNT.name, "increment", 1),
        Write(TURN.name, "set", {"rounds": 1, "progressed": False}),
        Write(OPEN_CALLS.name, "set", OPEN_CALLS.encode(index)),
    )
    driver.state.apply(
        StateDelta(writes=writes, messages=(Message.user("the task"), message, *results))
    )


async def test_idempotent_calls_left_open_are_run_again_and_told_of() -> None:
    read, look = a_tool("read", idempotent=True), a_tool("look", idempotent=True)
    driver = Driver(SimpleAgent(RecordingModel([Reply.text("-"), Reply.text("x")]), [read, look]))
    left_open(driver, ("read", True), ("look", True))

    await driver.serve("agent_turn", CompactionComplete())

    assert len(read.calls) == len(look.calls) == 1
    assert driver.tool_notices == 1
    assert driver.value(OPEN_CALLS) == ()
    assert [m.role for m in driver.model.requests[0].messages[-3:]] == ["assistant", "tool", "tool"]


async def test_a_last_round_that_died_is_written_with_the_answer_when_it_is_made_up_for() -> None:
    read = a_tool("read", idempotent=True)
    driver = Driver(SimpleAgent(RecordingModel([]), [read]), max_rounds_per_turn=1)
    left_open(driver, ("read", True))
    driver.parking = True

    outcome = await driver.serve("agent_turn", CompactionComplete())

    assert isinstance(outcome, TurnComplete), "nothing is left of it that could be parked"
    assert outcome.ending == "rounds"
    assert driver.deltas[-1].messages[-1].tool_call_id == "c0"


async def test_what_is_not_idempotent_is_not_run_again_whoever_forgot_to_close_it() -> None:
    write, look = a_tool(), a_tool("look", idempotent=True)
    driver = Driver(SimpleAgent(RecordingModel([Reply.text("-"), Reply.text("x")]), [write, look]))
    left_open(driver, ("write", False), ("look", True))

    await driver.serve("agent_turn", CompactionComplete())

    assert (len(write.calls), len(look.calls)) == (0, 1)
    assert [(r.text, r.is_error) for r in driver.results()] == [
        (UNKNOWN_OUTCOME, True),
        ("done", False),
    ]
    assert driver.value(OPEN_CALLS) == ()
    driver.check_log()


async def test_a_call_that_was_refused_before_a_crash_does_not_run_after_it() -> None:
    # There were no calls left for the second, which lists it as harmless; what the first
    # used was lost with the process, so that there seems to be one left.
    write = a_tool()
    model = RecordingModel([Reply.text("-"), Reply.text("x")])
    driver = Driver(SimpleAgent(model, [write]), limits={"tool_calls": 1})
    left_open(driver, ("write", False), ("write", True))

    await driver.serve("agent_turn", CompactionComplete())

    assert write.calls == []
    assert [r.text for r in driver.results()] == [UNKNOWN_OUTCOME, NOT_MADE]


async def test_a_call_that_was_refused_before_a_crash_does_not_run_after_a_wait_either() -> None:
    write = a_tool()
    driver = Driver(SimpleAgent(RecordingModel([Reply.text("x")]), [write, ask_user]))
    driver.answer = str
    question = '{"question": "Which?"}'
    left_open(driver, ("ask_user", True), ("write", True), arguments=question)

    assert isinstance(await driver.run(resumed=True), RunEnd)

    assert write.calls == []
    assert [r.text for r in driver.results()][:2] == ["Which?", NOT_MADE]


async def test_a_completion_left_open_counts_when_its_message_went_well() -> None:
    driver = Driver(SimpleAgent(RecordingModel([]), [a_tool()]))
    done = Message.tool_result("c0", "done")
    left_open(driver, ("write", False), ("work_complete", True), results=(done,))
    outcome = await driver.serve("agent_turn", CompactionComplete())
    assert outcome == TurnComplete(ending="completed", text="x")
    assert driver.model.requests == []


async def test_a_completion_left_open_is_refused_when_a_call_before_it_failed() -> None:
    driver = Driver(SimpleAgent(RecordingModel([Reply.text("-"), Reply.text("x")]), [a_tool()]))
    failed = Message.tool_result("c0", "no", is_error=True)
    left_open(driver, ("write", False), ("work_complete", True), results=(failed,))
    await driver.serve("agent_turn", CompactionComplete())
    assert "another call of this message failed" in driver.results()[1].text


# ---- the folder that it works in --------------------------------------------------------------


class Folder:
    """A folder that may go away."""

    id = FolderId.of(Path("/").stat())
    gone = False

    def check(self) -> None:
        if self.gone:
            raise BadInputError("the workspace", ("it is gone",))


def working_in(folder: Folder, driver: Driver) -> AgentTurnServices:
    return AgentTurnServices(
        counter_for=lambda _model: WordCounter(),
        clock=driver.clock,
        in_thread=asyncio.to_thread,
        prepare_workspace=lambda spec: Path(spec.path),
        watch_workspace=lambda _path: folder,
    )


async def test_tools_are_told_which_folder_it_is() -> None:
    seen: list[ToolContext] = []

    async def look(_arguments: str, context: ToolContext) -> str:
        seen.append(context)
        return "done"

    model = RecordingModel([calls(("a", "look")), finishes()])
    agent = SimpleAgent(model, [SimpleTool("look", look)])
    driver = Driver(agent, workspace=WorkspaceSpec(path="/somewhere"))
    driver.executors["agent_turn"] = AgentTurn(working_in(Folder(), driver))
    await driver.run()
    assert [context.workspace_id for context in seen] == [Folder.id]


async def test_a_run_at_its_limit_ends_by_that_though_its_folder_is_gone() -> None:
    folder = Folder()

    async def removes(_arguments: str, _context: ToolContext) -> str:
        folder.gone = True
        return "done"

    model = RecordingModel([calls(("a", "removes"))])
    driver = Driver(
        SimpleAgent(model, [SimpleTool("removes", removes)]),
        workspace=WorkspaceSpec(path="/somewhere"),
        limits={"model_calls": 1},
    )
    driver.executors["agent_turn"] = AgentTurn(working_in(folder, driver))
    outcome = await driver.serve("agent_turn", CompactionComplete())
    assert isinstance(outcome, TurnComplete)
    assert (outcome.ending, outcome.limit) == ("limit", "model_calls")


async def test_a_run_is_not_done_in_a_folder_that_its_last_call_took_away() -> None:
    folder = Folder()

    async def removes(_arguments: str, _context: ToolContext) -> str:
        folder.gone = True
        return "done"

    ends = ("z", "work_complete", '{"summary": "ok"}')
    agent = SimpleAgent(
        RecordingModel([calls(("a", "removes"), ends)]), [SimpleTool("removes", removes)]
    )
    driver = Driver(agent, workspace=WorkspaceSpec(path="/somewhere"))
    driver.executors["agent_turn"] = AgentTurn(working_in(folder, driver))
    with pytest.raises(BadInputError):
        await driver.serve("agent_turn", CompactionComplete())


@pytest.mark.parametrize(("gone_at", "asked"), [("the start", 0), ("the model", 1), ("a tool", 1)])
async def test_where_its_folder_goes_away_nothing_more_is_asked_or_done(
    gone_at: str, asked: int
) -> None:
    folder = Folder()

    async def goes_at(place: str) -> None:
        folder.gone |= place == gone_at

    async def read(_arguments: str, _context: ToolContext) -> str:
        done.append("read")
        await goes_at("a tool")
        return "done"

    done: list[str] = []
    model = RecordingModel([calls(("a", "read"))] * 3, before=lambda: goes_at("the model"))
    tool = SimpleTool("read", read, idempotent=True)
    driver = Driver(SimpleAgent(model, [tool]), workspace=WorkspaceSpec(path="/somewhere"))
    driver.executors["agent_turn"] = AgentTurn(working_in(folder, driver))
    await goes_at("the start")
    with pytest.raises(BadInputError):
        await driver.serve("agent_turn", CompactionComplete())
    assert len(model.requests) == asked
    assert done == (["read"] if gone_at == "a tool" else [])
    assert driver.value(USAGE).model_calls == asked, "what was asked has its price"


async def test_what_was_observed_in_a_round_is_at_hand_until_it_is_over() -> None:
    """Also for whoever goes on in the middle of it, after a death."""
    stored = {"kind": "verdict", "question": "a", "number": 1, "answer": "allow"}
    entry = observed_by("agent_turn")
    seen: list[Any] = []

    async def look(_arguments: str, _context: Any) -> str:
        seen.append(list(driver.state.values.get(entry, ())))
        return "done"

    script = [calls(("a", "write")), calls(("b", "write")), finishes()]
    driver = Driver(SimpleAgent(RecordingModel(script), [SimpleTool("write", look)]))
    driver.state.values[entry] = [stored]

    await driver.run()

    assert seen == [[stored], []]
    assert driver.state.values[entry] == []
