"""Runs that their own command cannot go on with, for lack of a key, can be stopped."""

import asyncio
import os
import signal
from contextlib import suppress
from secrets import token_hex

import pytest

from harness_actors.agents import Program
from harness_actors.conversation import repaired
from harness_actors.errors import RunNotFoundError
from harness_actors.testing import an_agent
from harness_actors.tools.processes import read_process
from harness_actors.turn.services import RUN_VARIABLE
from tests.actors import gates
from tests.actors.test_coordinator_host import Cell, KeyedModel, Opens, Waits, a_spec, cell_at

__all__ = ["cell_at"]

KEY = {"TEST_KEY_OF_NOBODY": "secret"}


async def leave_a_run(cell: Cell, run_id: str = "run") -> None:
    """Begin a run that is in the middle of a tool when the cell ends."""
    gates.make("keys")
    program = Program.of(an_agent(KeyedModel(gated=True), [Waits("keys")]))
    await cell.submit(program, a_spec(program, run_id), **KEY)
    await gates.started["keys"].wait()


async def test_a_held_run_can_be_cancelled(cell_at: Opens) -> None:
    async with cell_at() as cell:
        await leave_a_run(cell)
    async with cell_at() as cell:
        await cell.host.stop(["run"], "cancel")
        assert (await cell.until("run"))["run"].status == "cancelled"
        assert repaired(await cell.host.conversation("run"))[1] == 0
        await cell.host.attach(KEY)
        assert not cell.host._coordinator.runs


async def test_a_run_is_held_until_whoever_attaches_has_its_keys(cell_at: Opens) -> None:
    async with cell_at() as cell:
        await leave_a_run(cell)
    async with cell_at() as cell:
        await cell.host.attach({})
        assert not cell.host._coordinator.runs
        gates.opened["keys"].set()
        await cell.host.attach(KEY)
        assert (await cell.until("run"))["run"].status == "done"


async def test_cancelling_a_run_that_nobody_serves_ends_what_its_tools_left(
    cell_at: Opens,
) -> None:
    # Its processes are looked for on the whole machine, where other tests may run, too.
    run_id = token_hex(6)
    async with cell_at() as cell:
        await leave_a_run(cell, run_id)
    variables = {RUN_VARIABLE: run_id, "PATH": os.defpath}
    stray = await asyncio.create_subprocess_exec("sleep", "300", env=variables)
    try:
        async with cell_at() as cell:
            await cell.host.stop([run_id], "cancel")
            assert read_process(stray.pid) is None
    finally:
        with suppress(ProcessLookupError):
            stray.kill()
        assert await stray.wait() == -signal.SIGKILL


@pytest.mark.parametrize("mode", ["park", "park_now"])
async def test_a_held_run_can_be_parked_and_stays_parked_when_the_keys_come(
    cell_at: Opens, mode: str
) -> None:
    async with cell_at() as cell:
        await leave_a_run(cell)
    async with cell_at() as cell:
        await cell.host.stop(["run"], "park" if mode == "park" else "park_now")
        await cell.until("run", parked=True)
        await cell.host.attach(KEY)
        assert not cell.host._coordinator.runs
        gates.opened["keys"].set()
        await cell.host.resume(["run"], KEY)
        assert (await cell.until("run"))["run"].status == "done"


async def test_one_that_nobody_knows_does_not_keep_the_others_from_being_cancelled(
    cell_at: Opens,
) -> None:
    async with cell_at() as cell:
        await leave_a_run(cell)
    async with cell_at() as cell:
        with pytest.raises(RunNotFoundError, match="nowhere"):
            await cell.host.stop(["nowhere", "run"], "cancel")
        assert (await cell.until("run"))["run"].status == "cancelled"
