"""A run that is cancelled, or has reached a bound, has its result within a second."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from harness_actors.actors import Runtime
from harness_actors.actors.local import LocalRuntime
from harness_actors.agents import ChatAgent, Program
from harness_actors.config import HarnessConfig, Limits
from harness_actors.conversation import repaired
from harness_actors.coordination.graph import HarnessWorkflowBuilder
from harness_actors.errors import RunNotFoundError
from harness_actors.events import RunParked, ToolCalled
from harness_actors.messages import Message
from harness_actors.models import OpenAIModel
from harness_actors.ports import ModelRequest, ModelResponse, RunContext
from harness_actors.replay import load_recording, replay
from harness_actors.results import HarnessResult, Usage
from harness_actors.signals import Outcome, RepairTrigger, Signal
from harness_actors.state import STOP_DECISION, StateKey
from harness_actors.stores import JournalReader
from harness_actors.testing import LoopbackServer, Reply, ScriptedModel
from harness_actors.testing.faults import always, rate_limited
from tests.actors.followers import opened, results, specs, submit, until
from tests.actors.stubborn import StuckRuns, begin, command_is_gone, stubborn, stuck_runs
from tests.actors.tasks import look, look_then_complete, note_then_complete, replies, written

PROMISED_S = 1.0


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with opened("local", tmp_path / "runs.db") as runtime:
        yield runtime


@pytest.fixture
def release(tmp_path: Path) -> Iterator[Path]:
    """Lets all that is stuck go, at the end of the test."""
    path = tmp_path / "release"
    yield path
    path.touch()


async def check_logs(runtime: Runtime, runs: StuckRuns) -> None:
    for _, spec in runs.values():
        log = await runtime.conversation(spec.conversation_id)
        assert repaired(log)[1] == 0


async def test_a_cancelled_run_ends_at_once_whatever_it_is_stuck_in(
    runtime: Runtime, release: Path
) -> None:
    runs = stuck_runs(release)
    await begin(runtime, runs)
    ids = [spec.run_id for _, spec in runs.values()]

    async with asyncio.timeout(PROMISED_S):
        await runtime.stop(ids, "cancel")
        ended = await results(runtime, ids)

    assert {(e.status, e.reason.kind) for e in ended.values()} == {("cancelled", "user")}
    await command_is_gone(runs["run_command"][1].run_id)
    await check_logs(runtime, runs)


@pytest.mark.parametrize(
    ("limits", "kind", "words"),
    [
        (Limits(time_s=1.5), "time", "1.5 s of wall time"),
        (Limits(working_s=1.5), "working_time", "1.5 s of working time"),
    ],
)
async def test_a_run_whose_time_is_up_ends_whatever_it_is_stuck_in(
    runtime: Runtime, release: Path, limits: Limits, kind: str, words: str
) -> None:
    runs = stuck_runs(release, limits)
    await begin(runtime, runs)
    ids = [spec.run_id for _, spec in runs.values()]

    ended = await results(runtime, ids)

    assert {(e.status, e.reason.kind) for e in ended.values()} == {("limit", kind)}
    assert all(words in e.reason.message for e in ended.values())
    assert max(e.wall_s for e in ended.values()) < 1.5 + PROMISED_S
    await command_is_gone(runs["run_command"][1].run_id)
    await check_logs(runtime, runs)


class Hangs:
    """An executor of a user's own that is slow, or does not end whatever it is told."""

    name = STOP_DECISION
    reads: tuple[StateKey[Any], ...] = ()
    reads_log = False

    def __init__(self, release: Path, seconds: float | None = None) -> None:
        self._release = release
        self._seconds = seconds

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        if self._seconds is not None:
            await asyncio.sleep(self._seconds)
            return RepairTrigger()
        while not self._release.exists():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.02)
        return RepairTrigger()


def judged_by(executor: Hangs) -> Program:
    agent = ChatAgent(model=ScriptedModel(lambda _: Reply.text("done")))
    return Program.of(HarnessWorkflowBuilder(agent).replace(STOP_DECISION, executor).build())


@pytest.mark.parametrize("seconds", [None, 0.2], ids=["hangs", "slow"])
@pytest.mark.parametrize(
    ("limits", "kind"), [(Limits(time_s=0.5), "time"), (Limits(working_s=0.5), "working_time")]
)
async def test_a_run_whose_time_is_up_ends_in_an_executor_of_its_users_own(
    runtime: Runtime, release: Path, limits: Limits, kind: str, seconds: float | None
) -> None:
    program = judged_by(Hangs(release, seconds))
    config = HarnessConfig(limits=limits, completion="answer")
    (spec,) = specs(program, 1, config)

    async with asyncio.timeout(10):
        await submit(runtime, program, [spec])
        end = (await results(runtime, [spec.run_id]))[spec.run_id]

    assert (end.status, end.reason.kind) == ("limit", kind)
    if kind == "working_time":
        # All of it was spent in that executor.
        assert end.usage.working_s >= 0.5
    if seconds is None:
        assert end.turn_count == 1
        await runtime.close()
        journal = JournalReader(release.with_name("runs.db"))
        replayed = await replay(load_recording(journal, spec.run_id))
        assert replayed.same, replayed.differences


async def test_what_is_left_alone_reaches_no_log_when_it_returns(
    runtime: Runtime, release: Path
) -> None:
    runs = stuck_runs(release, Limits(time_s=0.7))
    await begin(runtime, runs)
    ids = [spec.run_id for _, spec in runs.values()]
    await results(runtime, ids)
    before = {run_id: await runtime.conversation(run_id) for run_id in ids}
    position = await runtime.position()

    await asyncio.to_thread(release.touch)
    program = look_then_complete(rounds=2)
    (after,) = specs(program, 1)
    await submit(runtime, program, [after])
    ended = await results(runtime, [after.run_id], cursor=position)

    assert ended[after.run_id].status == "done"
    assert {run_id: await runtime.conversation(run_id) for run_id in ids} == before
    news = await runtime.wait_for_news(position, messages=True)
    assert {event.run_id for event in news.events} == {after.run_id}


async def test_a_run_that_was_cut_in_a_stubborn_tool_goes_on_beside_it(
    runtime: Runtime, release: Path
) -> None:
    program = stubborn("swallow", release)
    (spec,) = specs(program, 1, HarnessConfig(limits=Limits(tool_calls=1)))
    await submit(runtime, program, [spec])
    cursor = await until(runtime, spec.run_id, lambda event: isinstance(event, ToolCalled))

    async with asyncio.timeout(3):
        await runtime.stop([spec.run_id], "park_now")
        await runtime.resume([spec.run_id], secrets={})
        cursor = await until(
            runtime, spec.run_id, lambda event: isinstance(event, ToolCalled), cursor=cursor
        )
        await runtime.stop([spec.run_id], "cancel")
        ended = await results(runtime, [spec.run_id], cursor=cursor)

    assert ended[spec.run_id].status == "cancelled"
    log = await runtime.conversation(spec.conversation_id)
    assert repaired(log)[1] == 0


class Priced(ScriptedModel):
    """A scripted model whose answers cost a dollar."""

    async def complete(self, request: ModelRequest) -> ModelResponse:
        response = await super().complete(request)
        usage = Usage(model_calls=1, input_tokens=90, output_tokens=10, cost_usd=1.0)
        return ModelResponse(
            text=response.text,
            tool_calls=response.tool_calls,
            finish_reason=response.finish_reason,
            usage=usage,
        )


def looks_for_ever(messages: Sequence[Message]) -> Reply:
    return Reply.call("look", {"topic": f"number {replies(messages)}"})


def endless() -> Program:
    return Program.of(ChatAgent(model=Priced(looks_for_ever), tools=[look]))


@pytest.mark.parametrize(
    ("limits", "kind", "words", "rounds"),
    [
        (Limits(tokens=250), "tokens", "250 tokens", 3),
        (Limits(cost_usd=2.5), "cost", "2.5 USD", 3),
        (Limits(model_calls=4), "model_calls", "4 model calls", 4),
        (Limits(tool_calls=2), "tool_calls", "2 tool calls", 3),
    ],
)
async def test_a_run_that_has_used_what_it_may_ends_and_says_of_what(
    runtime: Runtime, limits: Limits, kind: str, words: str, rounds: int
) -> None:
    program = endless()
    (spec,) = specs(program, 1, HarnessConfig(limits=limits))
    await submit(runtime, program, [spec])
    async with asyncio.timeout(10):
        ended = (await results(runtime, [spec.run_id]))[spec.run_id]
    assert (ended.status, ended.reason.kind) == ("limit", kind)
    assert words in ended.reason.message
    assert ended.usage.model_calls == rounds, "overdrawn by one round at most"


# ---- runs that nobody serves --------------------------------------------------------------------


async def cancelled(runtime: Runtime, run_id: str) -> HarnessResult:
    cursor = await runtime.position()
    async with asyncio.timeout(PROMISED_S):
        await runtime.stop([run_id], "cancel")
        return (await results(runtime, [run_id], cursor=cursor))[run_id]


@pytest.mark.parametrize("mode", ["park", "park_now"])
async def test_a_parked_run_can_be_cancelled(runtime: Runtime, tmp_path: Path, mode: str) -> None:
    program = note_then_complete(tmp_path / "log", rounds=5, seconds=0.2)
    (spec,) = specs(program, 1)
    await submit(runtime, program, [spec])
    await written(tmp_path / "log", 1)
    await runtime.stop([spec.run_id], "park" if mode == "park" else "park_now")
    await until(runtime, spec.run_id, lambda event: isinstance(event, RunParked))

    result = await cancelled(runtime, spec.run_id)

    assert (result.status, result.reason.kind) == ("cancelled", "user")
    assert repaired(await runtime.conversation(spec.conversation_id))[1] == 0
    events = await runtime.events(spec.run_id)
    assert events[-1].event.type == "run_completed"
    await runtime.stop([spec.run_id], "cancel")
    assert len(await runtime.events(spec.run_id)) == len(events), "over is over"


async def test_an_unfinished_run_of_another_command_can_be_cancelled(
    tmp_path: Path, release: Path
) -> None:
    store = tmp_path / "other.db"
    program = stubborn("hang", release)
    (spec,) = specs(program, 1)
    async with opened("local", store) as runtime:
        await submit(runtime, program, [spec])
        await until(runtime, spec.run_id, lambda event: isinstance(event, ToolCalled))
    async with opened("local", store) as runtime:
        result = await cancelled(runtime, spec.run_id)
        assert result.status == "cancelled"
        assert repaired(await runtime.conversation(spec.conversation_id))[1] == 0


async def test_cancelling_a_run_that_nobody_knows_says_so_and_cancels_the_others(
    runtime: Runtime, release: Path
) -> None:
    program = stubborn("hang", release)
    (spec,) = specs(program, 1)
    await submit(runtime, program, [spec])
    with pytest.raises(RunNotFoundError, match="nowhere"):
        await runtime.stop(["nowhere", spec.run_id], "cancel")
    ended = await results(runtime, [spec.run_id])
    assert ended[spec.run_id].status == "cancelled"


async def test_to_park_a_run_that_nobody_knows_does_nothing(runtime: Runtime) -> None:
    await runtime.stop(["nowhere"], "park")
    await runtime.stop(["nowhere"], "park_now")
    assert not await runtime.headings()


async def test_a_run_that_is_resumed_while_it_parks_goes_on(
    runtime: Runtime, tmp_path: Path
) -> None:
    program = note_then_complete(tmp_path / "log", rounds=3, seconds=0.2)
    (spec,) = specs(program, 1)
    await submit(runtime, program, [spec])
    await written(tmp_path / "log", 1)
    await runtime.stop([spec.run_id], "park")
    await runtime.resume([spec.run_id], secrets={})

    ended = await results(runtime, [spec.run_id])

    assert ended[spec.run_id].status == "done"
    kinds = [event.event.type for event in await runtime.events(spec.run_id)]
    assert "run_parked" not in kinds


async def test_a_run_that_is_parked_while_it_waits_to_ask_again_does_not_ask_again(
    runtime: Runtime,
) -> None:
    async with LoopbackServer(faults=always(rate_limited(60))) as server:
        program = Program.of(ChatAgent(model=OpenAIModel("scripted", base_url=server.base_url)))
        (spec,) = specs(program, 1)
        await submit(runtime, program, [spec])
        await server.until_asked(1)
        await server.until_idle()
        await runtime.stop([spec.run_id], "park")
        async with asyncio.timeout(30):
            await until(runtime, spec.run_id, lambda event: isinstance(event, RunParked))
        await asyncio.sleep(0.1)
        assert server.requests == 1

        # Taken up again it asks again: nothing of it is over.
        await runtime.resume([spec.run_id], secrets={})
        await server.until_asked(2)


async def test_a_run_that_is_parked_while_it_is_refused_does_not_ask_again(
    runtime: Runtime,
) -> None:
    async with LoopbackServer(faults=always(rate_limited(0))) as server:
        server.hold()
        program = Program.of(ChatAgent(model=OpenAIModel("scripted", base_url=server.base_url)))
        (spec,) = specs(program, 1)
        await submit(runtime, program, [spec])
        await server.until_open(1)
        await runtime.stop([spec.run_id], "park")
        server.release()
        async with asyncio.timeout(30):
            await until(runtime, spec.run_id, lambda event: isinstance(event, RunParked))
        assert server.requests == 1


async def test_a_request_to_park_outlives_the_command_that_it_was_made_to(tmp_path: Path) -> None:
    store, log = tmp_path / "runs.db", tmp_path / "log"
    program = note_then_complete(log, rounds=9, seconds=0.5)
    (spec,) = specs(program, 1)
    async with opened("local", store, command="same") as runtime:
        await submit(runtime, program, [spec])
        await written(log, 1)
        await runtime.stop([spec.run_id], "park")
    async with opened("local", store, command="same") as runtime:
        async with asyncio.timeout(5):
            await until(runtime, spec.run_id, lambda event: isinstance(event, RunParked))
        assert isinstance(runtime, LocalRuntime)
        assert not runtime._coordinator._coordinator.runs
