"""What a run has cost that nobody has taken up yet is spent, too."""

import time
from pathlib import Path

from harness_actors.config import HarnessConfig, Limits
from harness_actors.events import RoundCompleted, RunParked
from harness_actors.stores.expiry import expire
from tests.actors.followers import opened, results, specs, submit, until
from tests.actors.test_ends_in_time import endless


async def test_what_a_run_cost_that_waits_to_be_taken_up_counts_for_the_next_command(
    tmp_path: Path,
) -> None:
    store, program = tmp_path / "runs.db", endless()
    waiting, fresh = specs(program, 2)
    async with opened("local", store) as runtime:
        await submit(runtime, program, [waiting])
        cursor = 0
        for _ in range(4):
            cursor = await until(
                runtime, waiting.run_id, lambda e: isinstance(e, RoundCompleted), cursor=cursor
            )
        await runtime.stop([waiting.run_id], "park")
        await until(runtime, waiting.run_id, lambda e: isinstance(e, RunParked), cursor=cursor)

    async with opened("local", store) as runtime:
        await runtime.allow(1)
        await submit(runtime, program, [fresh])
        ended = (await results(runtime, [fresh.run_id]))[fresh.run_id]

    assert (ended.reason.kind, ended.usage.model_calls) == ("budget", 0)


async def test_what_ended_before_there_was_a_budget_counts_once(tmp_path: Path) -> None:
    program = endless()
    first, second = specs(program, 2, HarnessConfig(limits=Limits(model_calls=3)))
    async with opened("local", tmp_path / "runs.db") as runtime:
        await submit(runtime, program, [first])
        assert (await results(runtime, [first.run_id]))[first.run_id].usage.cost_usd == 3

        # As the next command on a cell that is up: it leaves room for all calls but the last.
        await runtime.allow(5)
        await submit(runtime, program, [second])
        ended = (await results(runtime, [second.run_id]))[second.run_id]

    assert (ended.reason.kind, ended.usage.model_calls) == ("budget", 2)


async def test_what_runs_cost_that_were_removed_is_spent_all_the_same(tmp_path: Path) -> None:
    store, program = tmp_path / "runs.db", endless()
    old, newest, fresh = specs(program, 3, HarnessConfig(limits=Limits(model_calls=3)))
    async with opened("local", store) as runtime:
        for spec in (old, newest):
            await submit(runtime, program, [spec])
            await results(runtime, [spec.run_id])
    assert expire(store, ended_before=time.time() + 1).runs == 1

    async with opened("local", store) as runtime:
        await runtime.allow(8)
        await submit(runtime, program, [fresh])
        ended = (await results(runtime, [fresh.run_id]))[fresh.run_id]

    assert (ended.reason.kind, ended.usage.model_calls) == ("budget", 2)
