"""A large batch that its user stops and kills: the same command ends it."""

from pathlib import Path

import pytest

from tests.chaos.checks import check
from tests.chaos.command import BatchCommand
from tests.chaos.model import WatchedModel
from tests.chaos.plans import make_plans

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]


@pytest.mark.parametrize("count", [150, pytest.param(500, marks=pytest.mark.long)])
async def test_a_large_batch_that_is_interrupted_twice_ends_complete(
    tmp_path: Path, count: int
) -> None:
    plans = make_plans(count, seed=5, rounds=(1, 2), log=str(tmp_path / "tools.log"), seconds=0.05)
    async with WatchedModel(tmp_path / "model.log", latency_s=(0.0, 0.02)) as model:
        command = BatchCommand(tmp_path, model.base_url, plans, at_once=count // 5)
        try:
            command.start()
            await command.ended(count // 5, within_s=120)
            command.interrupt()
            assert await command.finish(within_s=60) == 130
            command.start()
            await command.ended(count // 2, within_s=120)
            command.kill()
            await command.finish(within_s=60)
            assert len(command.results_path.read_bytes().splitlines()) < count
            command.start()
            status = await command.finish(within_s=180)
        finally:
            await command.clean_up()

    assert status == 0, command.said()
    assert check(command, asked=model.asked).broken == []
