"""Processes of earlier hosts are ended by run, in one look for many runs."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from secrets import token_hex

import pytest

from harness_actors.tools.processes import end_carriers, read_process
from harness_actors.tools.reaping import RunReaper

VARIABLE = "HARNESS_TEST_RUN"


@pytest.fixture
async def runs() -> AsyncIterator[list[str]]:
    names = [f"{token_hex(6)}-{number}" for number in range(4)]
    yield names
    await end_carriers(VARIABLE, names)


async def left_by(run_id: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        "sleep", "300", env={"PATH": os.environ["PATH"], VARIABLE: run_id}, start_new_session=True
    )


async def test_only_the_processes_of_the_runs_that_are_asked_for_are_ended(
    runs: list[str],
) -> None:
    left = [await left_by(run_id) for run_id in runs]
    reaper = RunReaper(VARIABLE)

    await asyncio.gather(*(reaper.end_run(run_id) for run_id in runs[:3]))

    assert [await process.wait() for process in left[:3]] == [-9] * 3
    assert left[3].returncode is None
    left[3].kill()
    await left[3].wait()


async def test_what_a_process_of_a_run_has_started_is_ended_with_it(runs: list[str]) -> None:
    # In a session of its own, and with nothing of us in its environment.
    child = "setsid env -i sh -c 'echo $$; exec sleep 300'"
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", f"{child} & sleep 300"),
        env={"PATH": os.environ["PATH"], VARIABLE: runs[0]},
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    pid = int(await process.stdout.readline())
    try:
        await RunReaper(VARIABLE).end_run(runs[0])
        assert read_process(pid) is None
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        await process.communicate()


async def test_a_run_that_is_asked_for_during_a_look_gets_one_of_its_own(
    runs: list[str],
) -> None:
    reaper = RunReaper(VARIABLE)
    first = asyncio.ensure_future(reaper.end_run(runs[0]))
    await asyncio.sleep(0)
    # The first look has begun, and need not see this one.
    process = await left_by(runs[1])
    await reaper.end_run(runs[1])
    await first
    async with asyncio.timeout(30):
        assert await process.wait() == -9


async def test_a_run_that_is_cut_does_not_stop_the_look_for_the_others(runs: list[str]) -> None:
    process = await left_by(runs[1])
    reaper = RunReaper(VARIABLE)
    cut = asyncio.ensure_future(reaper.end_run(runs[0]))
    other = asyncio.ensure_future(reaper.end_run(runs[1]))
    await asyncio.sleep(0)
    cut.cancel()
    await other
    assert await process.wait() == -9
