"""Worker processes: what they do like other tools, and what nothing else can do."""

import asyncio
import json
import os
import pickle
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from harness_actors.actors.host.tool_workers import describe, without_keys
from harness_actors.config import ArtifactsConfig
from harness_actors.errors import ToolError
from harness_actors.messages import ToolCall
from harness_actors.ports import MOST_TOLD, DeadlineToken, ToolContext, ToolOutput, ToolProcesses
from harness_actors.stores.artifacts import ArtifactFolder, artifacts_of
from harness_actors.tools import FunctionTool, tool
from harness_actors.tools.processes import read_process
from harness_actors.tools.workers.failure import WorkerToolError
from harness_actors.tools.workers.long_results import Handover
from harness_actors.tools.workers.pool import WorkerPool
from harness_actors.tools.workers.texts import MOST_TEXT_CHARS, WorkerTexts
from harness_actors.turn.artifacts import keep_large
from harness_actors.turn.bounds import Due
from harness_actors.turn.one_call import PlannedCall, run_call
from harness_actors.turn.outcomes import ToolOutcome
from harness_actors.turn.texts import shortened
from harness_actors.turn.tracebacks import user_traceback
from tests.tools import worker_tools
from tests.tools.conftest import both

pytestmark = pytest.mark.timeout(180)

RUN_VARIABLE = "HARNESS_RUN"
GONE_WITHIN_S = 1.0

Call = Callable[..., Awaitable[str]]


def pool_of(processes: ToolProcesses, variables: Mapping[str, str], **options: Any) -> WorkerPool:
    texts = WorkerTexts(describe=describe, shorten=partial(shortened, limit=MOST_TEXT_CHARS))
    return WorkerPool(
        processes,
        environment=lambda: {**without_keys(), **variables},
        pack=cloudpickle.dumps,
        texts=texts,
        **options,
    )


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Where `connection` says when it is opened and closed."""
    return tmp_path / "journal"


@pytest.fixture
async def pool(processes: ToolProcesses, journal: Path) -> AsyncIterator[WorkerPool]:
    pool = pool_of(processes, {"RESOURCE_JOURNAL": str(journal)}, most=1)
    yield pool
    await pool.close()


@pytest.fixture
def context(context: ToolContext, pool: WorkerPool) -> ToolContext:
    return replace(context, workers=pool)


async def gone(pid: int) -> None:
    """Return when a process is gone."""
    await asyncio.to_thread(_await_end, pid)


def _await_end(pid: int) -> None:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    watched = select.poll()
    watched.register(handle, select.POLLIN)
    watched.poll(10_000)
    os.close(handle)
    assert read_process(pid) is None


async def pid_in(path: Path) -> int:
    """The process that says so in a file, as soon as it does."""
    return await asyncio.to_thread(_awaited_pid, path)


def _awaited_pid(path: Path) -> int:
    for _ in range(6_000):
        if text := read(path):
            return int(text)
        time.sleep(0.01)
    raise AssertionError(f"nobody writes to {path}")


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@both
async def test_a_call_runs_in_a_process_of_its_own_which_the_next_one_finds_warm(
    call: Call,
) -> None:
    pids = {await call(worker_tools.who), await call(worker_tools.who_async)}

    assert len(pids) == 1
    assert pids != {str(os.getpid())}


async def test_arguments_and_results_are_those_of_other_tools(call: Call) -> None:
    assert await call(worker_tools.double, point={"x": 4}) == '{"x":8}'
    with pytest.raises(ToolError, match=r"point\.x: .*got 'four'"):
        await call(worker_tools.double, point={"x": "four"})


async def test_what_blocks_runs_beside_the_loop_and_always_in_the_same_thread(call: Call) -> None:
    assert await call(worker_tools.loops) == "looped"
    assert await call(worker_tools.thread) == await call(worker_tools.thread)


async def test_a_tool_of_a_script_is_sent_with_its_code(call: Call) -> None:
    factor = 3

    @tool(worker=True)
    def times(number: int) -> int:
        return factor * number

    assert await call(times, number=5) == "15"


async def test_what_cannot_be_pickled_is_refused_with_the_way_out(call: Call) -> None:
    lock = asyncio.get_running_loop()

    @tool(worker=True)
    def locked() -> str:
        return repr(lock)

    with pytest.raises(ToolError, match=r"'locked' cannot be sent .* by a resource"):
        await call(locked)


async def test_without_workers_it_runs_like_any_other_tool(context: ToolContext) -> None:
    alone = replace(context, workers=None)

    assert await worker_tools.who.run("{}", alone) == str(os.getpid())


async def test_it_knows_its_call_and_carries_its_run(call: Call, workspace: Path) -> None:
    assert json.loads(await call(worker_tools.facts)) == ["run-1", "call-1", str(workspace)]
    assert await call(worker_tools.variable, name=RUN_VARIABLE) == "run-1"


async def test_it_knows_how_long_it_may_take(call: Call, context: ToolContext) -> None:
    bounded = replace(context, deadline=DeadlineToken(60.0))

    left = float(await worker_tools.seconds_left.run("{}", bounded))

    assert 0 < left < 60.0
    assert await call(worker_tools.seconds_left) == ""


async def test_whoever_looks_for_a_run_finds_the_worker_while_it_serves_it_and_not_later(
    call: Call, context: ToolContext
) -> None:
    of_other = replace(context, run_id="another", environment={RUN_VARIABLE: "another-run"})

    first = (await call(worker_tools.started_with)).splitlines()
    pid = int(await call(worker_tools.who))
    idle = read(Path(f"/proc/{pid}/environ")).split("\0")
    second = (await worker_tools.started_with.run("{}", of_other)).splitlines()

    assert f"{RUN_VARIABLE}=run-1" in first
    assert f"{RUN_VARIABLE}=" in idle
    assert f"{RUN_VARIABLE}=another-run" in second
    assert f"{RUN_VARIABLE}=run-1" not in second
    assert await call(worker_tools.who) == str(pid)


async def test_a_run_with_a_long_name_gets_a_worker_with_room_for_it(
    call: Call, context: ToolContext
) -> None:
    pid, name = await call(worker_tools.who), "run" * 100
    long = replace(context, environment={RUN_VARIABLE: name})

    assert f"{RUN_VARIABLE}={name}" in await worker_tools.started_with.run("{}", long)
    assert await worker_tools.who.run("{}", long) != pid


async def test_no_key_is_in_its_environment(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")

    assert await call(worker_tools.variable, name="OPENAI_API_KEY") == ""
    assert "sk-secret" not in await call(worker_tools.started_with)


async def test_each_call_has_context_variables_of_its_own(call: Call) -> None:
    assert [await call(worker_tools.context_variable) for _ in range(2)] == ["nothing"] * 2


async def test_calls_wait_for_a_free_worker(context: ToolContext) -> None:
    calls = [worker_tools.who.run("{}", context) for _ in range(5)]

    assert len(set(await asyncio.gather(*calls))) == 1


# What tools do that do not behave


@both
async def test_a_call_that_ignores_its_deadline_is_killed_within_a_second(
    call: Call, tmp_path: Path
) -> None:
    path = tmp_path / "pid"
    spinning = asyncio.ensure_future(call(worker_tools.spin, path=str(path)))
    pid = await pid_in(path)

    spinning.cancel()
    async with asyncio.timeout(GONE_WITHIN_S):
        await gone(pid)

    with pytest.raises(asyncio.CancelledError):
        await spinning
    assert await call(worker_tools.who) != str(pid)


async def test_the_model_is_told_that_the_process_was_killed(
    context: ToolContext, tmp_path: Path
) -> None:
    late = tool(worker=True, timeout_s=1.5, name="spin")(worker_tools.spin.function)
    arguments = json.dumps({"path": str(tmp_path / "pid")})
    planned = PlannedCall(call=ToolCall("c", "spin", arguments), tool=late)

    # A process may take its time to start, and is stopped then, too.
    outcome = await run_call(planned, context, Due(None))

    assert outcome.failure == "timed_out"
    assert outcome.text.startswith("'spin' was stopped: it ran past its limit of 1.5 s.")
    if text := read(tmp_path / "pid"):
        async with asyncio.timeout(GONE_WITHIN_S):
            await gone(int(text))


async def test_a_call_that_waits_for_a_worker_says_so_when_it_is_stopped(
    call: Call, context: ToolContext, tmp_path: Path
) -> None:
    path = tmp_path / "pid"
    spinning = asyncio.ensure_future(call(worker_tools.spin, path=str(path)))
    await pid_in(path)
    short = tool(worker=True, timeout_s=0.2)(worker_tools.pause.function)
    planned = PlannedCall(call=ToolCall("c", "pause", '{"seconds": 0}'), tool=short)

    outcome = await run_call(planned, context, Due(None))

    assert "It has not begun: all 1 worker processes are busy." in outcome.text
    spinning.cancel()
    await asyncio.wait((spinning,))


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("sys.exit", "'leave' ended with SystemExit: 3"),
        ("KeyboardInterrupt", "RuntimeError: KeyboardInterrupt"),
        ("StopIteration", "RuntimeError: StopIteration: 7"),
        ("MemoryError", "MemoryError: no room"),
        ("ToolError", "^not today$"),
        ("unpicklable", "UnpicklableError: a lock"),
        ("anything", "KeyError: 'anything'"),
    ],
)
async def test_what_a_tool_raises_comes_back_and_the_worker_stays(
    how: str, told: str, call: Call
) -> None:
    pid = await call(worker_tools.who)

    with pytest.raises(WorkerToolError, match=told):
        await call(worker_tools.leave, how=how)

    assert await call(worker_tools.who) == pid


async def test_its_traceback_shows_the_users_lines(call: Call) -> None:
    with pytest.raises(WorkerToolError) as caught:
        await call(worker_tools.leave, how="anything")

    told = user_traceback(caught.value)
    assert "worker_tools.py" in told
    assert "raise KeyError(how)" in told
    assert "harness_actors/" not in told
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.text, again.traceback) == (caught.value.text, told)


@both
@pytest.mark.parametrize(
    ("how", "told"),
    [("os._exit", "ended with exit code 3"), ("SIGSEGV", "was ended by SIGSEGV")],
)
async def test_a_tool_that_ends_its_process_fails_and_the_next_call_gets_another(
    how: str, told: str, call: Call
) -> None:
    pid = await call(worker_tools.who)

    with pytest.raises(ToolError, match=f"its worker process {told}"):
        await call(worker_tools.leave, how=how)

    assert await call(worker_tools.who) != pid


async def test_a_fork_that_comes_back_answers_nothing(call: Call) -> None:
    assert await call(worker_tools.fork) == "parent"
    assert await call(worker_tools.double, point={"x": 1}) == '{"x":2}'


async def test_what_forks_without_end_is_killed_with_all_of_it(call: Call) -> None:
    with pytest.raises(ToolError, match="it had more than 512 processes at once"):
        await call(worker_tools.fork_without_end)

    assert await call(worker_tools.double, point={"x": 1}) == '{"x":2}'


@both
async def test_a_process_that_a_call_leaves_ends_with_it(call: Call, tmp_path: Path) -> None:
    pid = await call(worker_tools.leave_child, path=str(tmp_path / "pid"))

    async with asyncio.timeout(GONE_WITHIN_S):
        await gone(await pid_in(tmp_path / "pid"))
    assert await call(worker_tools.who) != pid


async def test_a_thread_that_a_call_leaves_ends_with_it(call: Call) -> None:
    assert await call(worker_tools.leave_thread) != await call(worker_tools.who)


@pytest.mark.parametrize(
    ("what", "result"), [("NaN", "NaN"), ("text", "fine"), ("surrogate", "\udcff")]
)
async def test_results_that_json_has_no_word_for_come_back(
    what: str, result: str, call: Call
) -> None:
    assert await call(worker_tools.returned, what=what) == result


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("lambda", "cannot be written as JSON"),
        ("lock", "cannot be written as JSON"),
        ("bytes", "not UTF-8 text"),
    ],
)
async def test_a_result_that_is_none_is_said_to_be(what: str, told: str, call: Call) -> None:
    with pytest.raises(ToolError, match=told):
        await call(worker_tools.returned, what=what)


async def test_an_image_comes_back(call: Call) -> None:
    output = await call(worker_tools.returned, what="image")

    assert isinstance(output, ToolOutput)
    assert output == "[image/png, 1 × 1, 70 bytes]\na pixel"
    assert [url[:22] for url in output.images] == ["data:image/png;base64,"]
    assert output.image_tokens == 255


def resident_mb() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


async def test_200_mb_never_come_to_the_actor(call: Call) -> None:
    await call(worker_tools.who)
    before = resident_mb()

    result = await call(worker_tools.large, size=200_000_000)

    assert len(result) < 100_000
    assert f"{200_000_000 - MOST_TEXT_CHARS} of 200000000 characters left out" in result
    assert resident_mb() - before < 50


async def test_a_result_of_millions_of_values_is_refused(call: Call) -> None:
    with pytest.raises(ToolError, match="too large to be written as JSON"):
        await call(worker_tools.many, count=2_000_000)


# Long results, where they are kept


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "runs.db"
    path.touch()
    return path


@pytest.fixture
def keeping(context: ToolContext, store: Path) -> ToolContext:
    return replace(context, artifacts=ArtifactFolder(store).of("talk", ArtifactsConfig()))


async def outcome_of(context: ToolContext, **arguments: Any) -> ToolOutcome:
    """What enters the log of a call of `long`."""
    call = ToolCall("c", "long", json.dumps(arguments))
    outcome = await run_call(PlannedCall(call=call, tool=worker_tools.long), context, Due(None))
    return await keep_large(outcome, "long", context)


def whole(context: ToolContext, outcome: ToolOutcome) -> str:
    """What is kept of a result that the model got a reference to."""
    (artifact_id,) = set(re.findall(r"artifact (a[0-9a-f]{10});", outcome.text))
    assert context.artifacts is not None
    with context.artifacts.open(artifact_id) as file:
        return file.read().decode()


@pytest.mark.both_loops
async def test_a_long_result_is_kept_whole_and_its_worker_stays(keeping: ToolContext) -> None:
    pid = await worker_tools.who.run("{}", keeping)

    for how, chars in product(
        ("text", "file", "raised", "raised file"), (MOST_TEXT_CHARS + 1, 1_500_000)
    ):
        outcome = await outcome_of(keeping, chars=chars, how=how)

        assert whole(keeping, outcome) == worker_tools.text_of(chars), how
        assert outcome.failure == ("failed" if how.startswith("raised") else None)
    assert await worker_tools.who.run("{}", keeping) == pid


async def test_a_worker_that_asks_twice_for_a_file_does_not_speak_as_it_should(
    keeping: ToolContext,
) -> None:
    handover = Handover(keeping)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        await handover.make(ours.fileno())
        with pytest.raises(OSError, match="does not speak as it should"):
            await handover.make(ours.fileno())
        with pytest.raises(OSError, match="does not speak as it should"):
            await Handover(replace(keeping, artifacts=None)).make(ours.fileno())
    handover.close()


async def test_what_can_be_told_asks_for_no_file(keeping: ToolContext, store: Path) -> None:
    result = await worker_tools.long.run(json.dumps({"chars": MOST_TEXT_CHARS}), keeping)

    assert result == worker_tools.text_of(MOST_TEXT_CHARS)
    assert not artifacts_of(store).exists()


async def test_a_long_text_beside_an_image_is_kept_whole_and_the_image_with_it(
    keeping: ToolContext,
) -> None:
    for chars in (200_000, 20):
        outcome = await outcome_of(keeping, chars=chars, how="image")

        assert len(outcome.images) == 1
        assert outcome.image_tokens == 255
        text = whole(keeping, outcome) if chars > MOST_TEXT_CHARS else outcome.text
        assert text == f"[image/png, 1 × 1, 70 bytes]\n{worker_tools.text_of(chars)}"


async def test_a_result_for_which_there_is_no_room_is_a_failure(
    context: ToolContext, store: Path
) -> None:
    small = ArtifactFolder(store).of("talk", ArtifactsConfig(cap_bytes=120_000))

    outcome = await outcome_of(replace(context, artifacts=small), chars=200_000)

    assert outcome.failure == "failed"
    kept = whole(replace(context, artifacts=small), outcome)
    assert kept.startswith("the result of the call could not be kept whole: it is more than there")
    assert "artifacts may take" not in kept
    assert "120,000 bytes together (artifacts.cap_bytes)" in kept
    assert "characters left out" in kept


async def test_a_result_for_which_there_is_no_place_is_a_failure(
    keeping: ToolContext, store: Path
) -> None:
    pid = await worker_tools.who.run("{}", keeping)
    store.unlink()  # noqa: ASYNC240 - of a test's own

    outcome = await outcome_of(keeping, chars=200_000)

    assert outcome.failure == "failed"
    assert "was moved or removed" in outcome.text
    assert len(outcome.text) <= ArtifactsConfig().inline_chars
    assert await worker_tools.who.run("{}", keeping) == pid


# What it tells


async def test_what_it_prints_is_printed_here_and_breaks_nothing(
    call: Call, capfd: pytest.CaptureFixture[str]
) -> None:
    assert await call(worker_tools.prints, text="hello") == "done"

    out, error = capfd.readouterr()
    assert sorted(out.splitlines()) == ["hello", "hello by descriptor"]
    assert error.splitlines() == ["hello"]


async def test_what_it_tells_is_told_here_up_to_a_bound(context: ToolContext) -> None:
    told: list[str] = []

    def tell(text: str) -> bool:
        told.append(text)
        return True

    arguments = json.dumps({"count": MOST_TOLD + 5})
    result = await worker_tools.tells.run(arguments, replace(context, tell=tell))

    assert told == [f"step {step}" for step in range(MOST_TOLD)]
    assert json.loads(result) == [True] * MOST_TOLD + [False] * 5


@pytest.mark.parametrize("counting", [worker_tools.counts, worker_tools.counts_async])
async def test_a_generator_tells_each_value_and_its_last_is_the_result(
    counting: FunctionTool[..., Any], context: ToolContext
) -> None:
    told: list[str] = []
    result = await counting.run('{"to": 3}', replace(context, tell=lambda t: not told.append(t)))  # type: ignore[func-returns-value]

    assert (told, result) == (["1", "2", "3"], "3")


async def test_a_generator_without_end_is_stopped(call: Call) -> None:
    await call(worker_tools.who)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.3):
            await call(worker_tools.counts_without_end)

    assert await call(worker_tools.double, point={"x": 1}) == '{"x":2}'


async def test_a_failure_is_tried_again_there(call: Call, tmp_path: Path) -> None:
    output = await call(worker_tools.fails_until, path=str(tmp_path / "tries"), times=1)

    assert isinstance(output, ToolOutput)
    assert (output, output.tries) == ("2", 2)
    with pytest.raises(ToolError, match=r"ConnectionError: not yet\nIt was tried 3 times\."):
        await call(worker_tools.fails_until, path=str(tmp_path / "others"), times=9)


# The processes themselves


async def test_a_resource_is_opened_once_per_worker_and_closed_with_it(
    call: Call, pool: WorkerPool, journal: Path
) -> None:
    first, second = await call(worker_tools.connected), await call(worker_tools.connected)
    pid = first.rpartition(" ")[2]
    assert first == second

    await pool.close()

    assert read(journal).splitlines() == [f"open {pid}", f"close {pid}"]


async def test_a_worker_that_is_not_needed_closes_what_it_has_open_and_ends(
    processes: ToolProcesses, context: ToolContext, journal: Path
) -> None:
    pool = pool_of(processes, {"RESOURCE_JOURNAL": str(journal)}, most=1, idle_s=0.1)

    told = await worker_tools.connected.run("{}", replace(context, workers=pool))
    pid = told.rpartition(" ")[2]
    await gone(int(pid))

    assert pool.idle == 0
    assert read(journal).splitlines() == [f"open {pid}", f"close {pid}"]
    await pool.close()


@both
async def test_a_busy_worker_is_gone_with_its_actor(
    call: Call, pool: WorkerPool, processes: ToolProcesses, tmp_path: Path
) -> None:
    spinning = asyncio.ensure_future(call(worker_tools.spin, path=str(tmp_path / "pid")))
    pid = await pid_in(tmp_path / "pid")

    spinning.cancel()
    await asyncio.wait((spinning,))
    await pool.close()
    processes.close()

    async with asyncio.timeout(GONE_WITHIN_S):
        await gone(pid)


async def test_after_the_end_no_worker_starts(
    call: Call, pool: WorkerPool, processes: ToolProcesses
) -> None:
    await pool.close()
    processes.close()

    with pytest.raises(ToolError, match="the host of this agent was closed"):
        await call(worker_tools.who)


def test_what_a_worker_waits_for_before_its_first_call_is_little_of_the_harness() -> None:
    # All rooms of the harness would take longer than most calls.
    program = (
        "import sys, harness_actors.tools.workers.process, harness_actors.tools.function\n"
        "print(*{name.partition('.')[2].partition('.')[0] or name for name in sys.modules\n"
        "    if name.startswith(('harness_actors.', 'pydantic', 'ray', 'cloudpickle'))})"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert set(told.stdout.decode().split()) == {
        *("errors", "exact_json", "lazy", "messages", "pickling", "plan", "ports", "tools")
    }


async def test_an_interpreter_that_does_not_come_up_is_said_to(
    processes: ToolProcesses, context: ToolContext
) -> None:
    pool = pool_of(processes, {"PYTHONHOME": "/nowhere"})

    with pytest.raises(ToolError, match=r"a worker process did not start: .*"):
        await worker_tools.who.run("{}", replace(context, workers=pool))
    await pool.close()
