"""One promise, every runtime: the same tests on Ray and in one process."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from harness_actors.actors import Runtime
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig, Limits
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.errors import ConversationBusyError, ModelSetupError, RunNotFoundError
from harness_actors.events import (
    ExecutorLost,
    RunCompleted,
    RunParked,
    ToolCalled,
    TurnStarted,
)
from harness_actors.messages import Message
from harness_actors.ports import RunContext
from harness_actors.signals import CompactionComplete, Outcome, Signal
from harness_actors.state import StateKey
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools.processes import list_processes
from tests.actors.followers import opened, results, specs, submit, until
from tests.actors.stubborn import (
    begin,
    command_is_gone,
    hangs_then_completes,
    stalled,
    stubborn,
    stuck_runs,
)
from tests.actors.tasks import (
    lines,
    look_then_complete,
    note,
    note_then_complete,
    replies,
    written,
)

KINDS = ["local", pytest.param("ray", marks=pytest.mark.ray)]


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(params=KINDS, scope="module", loop_scope="module")
async def runtime(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Runtime]:
    """The same promises must hold wherever the actors live; one cell serves them all."""
    store = tmp_path_factory.mktemp(request.param) / "runs.db"
    async with opened(request.param, store) as runtime:
        yield runtime


@pytest.fixture
def release(tmp_path: Path) -> Iterator[Path]:
    """Lets all that is stuck go, at the end of the test."""
    path = tmp_path / "release"
    yield path
    path.touch()


async def test_runs_end_done_and_their_tools_ran_once(runtime: Runtime, tmp_path: Path) -> None:
    program = note_then_complete(tmp_path / "log", rounds=3, seconds=0)
    runs = specs(program, 20)

    await submit(runtime, program, runs)
    ended = await results(runtime, [spec.run_id for spec in runs])

    assert {result.status for result in ended.values()} == {"done"}
    assert {result.output_text for result in ended.values()} == {"after 3 notes"}
    assert {result.usage.model_calls for result in ended.values()} == {4}
    logged = lines(tmp_path / "log")
    assert len(logged) == len(set(logged)) == 60


async def test_submitting_a_run_again_changes_nothing(runtime: Runtime, tmp_path: Path) -> None:
    program = note_then_complete(tmp_path / "log", rounds=1, seconds=0)
    runs = specs(program, 1)

    await submit(runtime, program, runs)
    await submit(runtime, program, runs)
    await results(runtime, [runs[0].run_id])
    await submit(runtime, program, runs)

    assert len(lines(tmp_path / "log")) == 1
    known = [heading.run_id for heading in await runtime.headings()]
    assert known.count(runs[0].run_id) == 1


async def test_the_events_of_a_run_are_told_in_order_and_end_with_its_completion(
    runtime: Runtime,
) -> None:
    program = look_then_complete(rounds=2)
    (spec,) = specs(program, 1)
    told: list[str] = []

    await submit(runtime, program, [spec])
    await results(runtime, [spec.run_id], seen=lambda event: told.append(event.event.type))

    assert told[0] == "run_started"
    assert told[-1] == "run_completed"
    assert told.count("tool_called") == told.count("tool_returned") == 3
    stored = await runtime.events(spec.run_id)
    assert [event.event.type for event in stored] == told
    assert [event.position for event in stored] == sorted(event.position for event in stored)


async def test_a_cursor_continues_where_it_was(runtime: Runtime) -> None:
    program = look_then_complete(rounds=1)
    first, second = specs(program, 2)

    await submit(runtime, program, [first])
    await results(runtime, [first.run_id])
    cursor = await runtime.position()
    await submit(runtime, program, [second])
    seen: set[str] = set()
    ended: set[str] = set()
    while second.run_id not in ended:
        happened = await runtime.wait_for_news(cursor, messages=True)
        cursor = happened.cursor
        seen |= {event.run_id for event in happened.events}
        ended |= set(happened.results)

    assert seen == {second.run_id}


async def test_a_tool_that_raises_and_arguments_that_are_no_json_are_answered(
    runtime: Runtime,
) -> None:
    def script(messages: Sequence[Message]) -> Reply:
        match replies(messages):
            case 0:
                return Reply.calls([("note", "{no json"), ("nothing", {}), ("note", {})])
            case _:
                return Reply.call("work_complete", {"summary": "went on"})

    program = Program.of(ChatAgent(model=ScriptedModel(script), tools=[note]))
    (spec,) = specs(program, 1)

    await submit(runtime, program, [spec])
    ended = await results(runtime, [spec.run_id])

    assert ended[spec.run_id].status == "done"
    log = await runtime.conversation(spec.conversation_id)
    refused = [message for message in log if message.role == "tool" and message.is_error]
    assert len(refused) == 3


async def test_a_model_that_fails_ends_the_run_with_its_reason(runtime: Runtime) -> None:
    failure = Reply.error(ModelSetupError("scripted", "the key is wrong", 401))
    program = Program.of(ChatAgent(model=ScriptedModel([failure])))
    (spec,) = specs(program, 1)

    await submit(runtime, program, [spec])
    ended = (await results(runtime, [spec.run_id]))[spec.run_id]

    assert (ended.status, ended.reason.kind) == ("failed", "model_error")
    assert "the key is wrong" in ended.reason.message


async def test_a_limit_ends_the_run_and_says_which(runtime: Runtime) -> None:
    program = look_then_complete(rounds=100)
    (spec,) = specs(program, 1, HarnessConfig(limits=Limits(model_calls=5)))

    await submit(runtime, program, [spec])
    ended = (await results(runtime, [spec.run_id]))[spec.run_id]

    assert (ended.status, ended.reason.kind) == ("limit", "model_calls")
    assert ended.usage.model_calls == 5


async def test_a_cancelled_run_ends_at_once_with_every_call_answered(
    runtime: Runtime, tmp_path: Path
) -> None:
    program = note_then_complete(tmp_path / "log", rounds=1, seconds=60)
    (spec,) = specs(program, 1)

    await submit(runtime, program, [spec])
    await until(runtime, spec.run_id, lambda event: isinstance(event, ToolCalled))
    await runtime.stop([spec.run_id], "cancel")
    ended = (await results(runtime, [spec.run_id]))[spec.run_id]

    assert (ended.status, ended.reason.kind) == ("cancelled", "user")
    log = await runtime.conversation(spec.conversation_id)
    assert [message.role for message in log] == ["user", "assistant", "tool"]


async def test_a_cancelled_run_has_its_result_within_a_second_whatever_it_is_stuck_in(
    runtime: Runtime, release: Path
) -> None:
    runs = stuck_runs(release)
    await begin(runtime, runs)
    ids = [spec.run_id for _, spec in runs.values()]

    cursor = await runtime.position()
    async with asyncio.timeout(1):
        await runtime.stop(ids, "cancel")
        ended = await results(runtime, ids, cursor=cursor)

    endings = {(ended[run_id].status, ended[run_id].reason.kind) for run_id in ids}
    assert endings == {("cancelled", "user")}
    await command_is_gone(runs["run_command"][1].run_id)


async def test_a_run_has_its_result_within_a_second_of_its_time_whatever_it_is_stuck_in(
    runtime: Runtime, release: Path
) -> None:
    # So much that they are stuck by then, also on a machine with other work.
    runs = stuck_runs(release, Limits(time_s=6))
    await begin(runtime, runs)

    ids = [spec.run_id for _, spec in runs.values()]

    ended = await results(runtime, ids)

    endings = {(ended[run_id].status, ended[run_id].reason.kind) for run_id in ids}
    assert endings == {("limit", "time")}
    # Within a second where the machine is at rest.
    assert max(ended[run_id].wall_s for run_id in ids) < 9
    await command_is_gone(runs["run_command"][1].run_id)


@pytest.mark.parametrize("runtime", KINDS[1:], indirect=True, scope="module")
async def test_a_run_that_blocks_its_actor_ends_in_time_and_its_neighbours_go_on_elsewhere(
    runtime: Runtime, tmp_path: Path, release: Path
) -> None:
    away = tmp_path / "away"
    hanging = hangs_then_completes(away)
    # So many that, wherever there are more actors than one, some are where it is blocked.
    neighbours = specs(hanging, 4)
    await submit(runtime, hanging, neighbours)
    for spec in neighbours:
        await until(runtime, spec.run_id, lambda event: isinstance(event, ToolCalled))
    stalling = stubborn("stall", release)
    # Its time is over when the loop is blocked and not killed yet, which takes 10 s.
    limited = stalling.spec("block", HarnessConfig(limits=Limits(time_s=5)))
    patient = stalling.spec("block", HarnessConfig())
    cursor = await runtime.position()

    await submit(runtime, stalling, [limited, patient])
    blocked = await stalled(release)
    # At once where the machine is at rest; in any case before the actor is killed.
    async with asyncio.timeout(5):
        await runtime.stop([patient.run_id], "cancel")
        ended = await results(runtime, [patient.run_id], cursor=cursor)
    ended |= await results(runtime, [limited.run_id], cursor=cursor)
    # Whoever can see it is where nothing is blocked.
    away.touch()
    went_on = await results(runtime, [spec.run_id for spec in neighbours], cursor=cursor)

    assert ended[patient.run_id].status == "cancelled"
    late = ended[limited.run_id]
    assert (late.status, late.reason.kind) == ("limit", "time")
    assert late.wall_s < 6
    assert {went_on[spec.run_id].output_text for spec in neighbours} == {"went on"}
    told = [event.event for spec in neighbours for event in await runtime.events(spec.run_id)]
    causes = {event.cause for event in told if isinstance(event, ExecutorLost)}
    assert causes == {"it did not answer for 10 s and was killed"}
    assert blocked not in list_processes()


@pytest.mark.parametrize("mode", ["park", "park_now"])
async def test_a_parked_run_goes_on_when_it_is_taken_up(
    runtime: Runtime, tmp_path: Path, mode: str
) -> None:
    program = note_then_complete(tmp_path / "log", rounds=6, seconds=0.3)
    (spec,) = specs(program, 1)

    await submit(runtime, program, [spec])
    cursor = await until(runtime, spec.run_id, lambda event: isinstance(event, ToolCalled))
    await written(tmp_path / "log", 1)
    await runtime.stop([spec.run_id], "park" if mode == "park" else "park_now")
    cursor = await until(
        runtime, spec.run_id, lambda event: isinstance(event, RunParked), cursor=cursor
    )
    assert len(lines(tmp_path / "log")) < 6
    await runtime.resume([spec.run_id], secrets={})
    ended = (await results(runtime, [spec.run_id], cursor=cursor))[spec.run_id]

    assert ended.status == "done"
    assert ended.turn_count == 1
    logged = lines(tmp_path / "log")
    # A call that was announced may have been cut before it began; none began twice.
    assert 5 <= len(set(logged)) == len(logged) <= 6


async def test_a_run_that_nobody_knows_cannot_be_resumed(runtime: Runtime) -> None:
    with pytest.raises(RunNotFoundError, match="nowhere"):
        await runtime.resume(["nowhere"], secrets={})


async def test_a_run_continues_a_conversation_but_not_its_counters(runtime: Runtime) -> None:
    program = look_then_complete(rounds=1)
    first = program.spec("first", HarnessConfig())
    second = program.spec("second", HarnessConfig(), conversation_id=first.conversation_id)

    await submit(runtime, program, [first])
    await results(runtime, [first.run_id])
    await submit(runtime, program, [second])
    ended = (await results(runtime, [second.run_id]))[second.run_id]

    log = await runtime.conversation(first.conversation_id)
    assert [message.text for message in log if message.role == "user"] == ["first", "second"]
    assert ended.turn_count == 1
    assert ended.usage.model_calls == 2


async def test_two_runs_of_one_conversation_at_once_are_an_error(
    runtime: Runtime, tmp_path: Path
) -> None:
    program = note_then_complete(tmp_path / "log", rounds=1, seconds=5)
    first = program.spec("first", HarnessConfig())
    second = program.spec("second", HarnessConfig(), conversation_id=first.conversation_id)

    await submit(runtime, program, [first])
    with pytest.raises(ConversationBusyError):
        await submit(runtime, program, [second])
    await runtime.stop([first.run_id], "cancel")
    await results(runtime, [first.run_id])


CYCLES: StateKey[int] = StateKey("tests.cycles", int, "counting", "increment", 0)


class Counting:
    """A user's own executor: counts the cycles and reminds the model of them."""

    name = "counting"
    reads = (CYCLES,)
    reads_log = True

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        assert isinstance(signal, CompactionComplete)
        context.increment(CYCLES, 1)
        context.add_message(Message.user(f"This is cycle {context.get(CYCLES)}."))
        return signal


async def test_a_users_executor_takes_part_at_any_edge(runtime: Runtime) -> None:
    def script(messages: Sequence[Message]) -> Reply:
        if messages[-1].text == "This is cycle 2.":
            return Reply.call("work_complete", {"summary": "cycle 2"})
        return Reply.text("I wait.")

    agent = ChatAgent(model=ScriptedModel(script))
    workflow = HarnessWorkflowBuilder(agent).insert_after("compaction", Counting()).build()
    program = Program.of(workflow)
    (spec,) = specs(program, 1)

    await submit(runtime, program, [spec])
    ended = (await results(runtime, [spec.run_id]))[spec.run_id]

    assert (ended.status, ended.output_text) == ("done", "cycle 2")
    assert ended.turn_count == 2


async def test_what_a_batch_follows_is_told_without_its_messages(runtime: Runtime) -> None:
    program = look_then_complete(rounds=2)
    runs = specs(program, 5)

    await submit(runtime, program, runs)
    kinds: set[str] = set()
    waiting = {spec.run_id for spec in runs}
    cursor = 0
    while waiting:
        happened = await runtime.wait_for_news(cursor)
        cursor = happened.cursor
        kinds |= {event.event.type for event in happened.events}
        waiting -= set(happened.results)

    assert {"turn_started", "round_completed", "run_completed"} <= kinds
    assert "tool_called" not in kinds


async def test_a_call_for_news_waits_until_there_is_some(runtime: Runtime) -> None:
    cursor = await runtime.position()
    waiting = asyncio.ensure_future(runtime.wait_for_news(cursor))
    program = look_then_complete(rounds=0)
    (spec,) = specs(program, 1)

    done, _ = await asyncio.wait([waiting], timeout=0.2)
    assert not done
    await submit(runtime, program, [spec])
    happened = await waiting

    assert {event.run_id for event in happened.events} <= {spec.run_id}


@pytest.mark.parametrize("kind", KINDS)
async def test_another_command_takes_up_what_an_earlier_one_left(kind: str, tmp_path: Path) -> None:
    store, log = tmp_path / "runs.db", tmp_path / "log"
    program = note_then_complete(log, rounds=6, seconds=0.3)
    (spec,) = specs(program, 1)

    async with opened(kind, store) as runtime:
        await submit(runtime, program, [spec])
        await written(log, 1)
    async with opened(kind, store) as runtime:
        (heading,) = await runtime.headings()
        assert heading.end is None
        cursor = await runtime.position()
        await runtime.resume([spec.run_id], secrets={})
        ended = (await results(runtime, [spec.run_id], cursor=cursor))[spec.run_id]
        kinds = [event.event for event in await runtime.events(spec.run_id)]

    assert ended.status == "done"
    logged = lines(log)
    assert 5 <= len(set(logged)) == len(logged) <= 6
    assert sum(isinstance(event, RunCompleted) for event in kinds) == 1
    assert sum(isinstance(event, TurnStarted) for event in kinds) == 1
