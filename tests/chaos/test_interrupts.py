"""A large batch that its user stops and kills: the same command ends it."""

from pathlib import Path

import pytest

from tests.chaos.checks import check
from tests.chaos.command import BatchCommand
from tests.chaos.model import WatchedModel
from tests.chaos.plans import make_plans

pytestmark = [pytest.mark.ray, pytest.mark.timeout(300)]


async def test_500_tasks_interrupted_twice_end_complete(tmp_path: Path) -> None:
    plans = make_plans(500, seed=5, rounds=(1, 2), log=str(tmp_path / "tools.log"), seconds=0.05)
    async with WatchedModel(tmp_path / "model.log", latency_s=(0.0, 0.02)) as model:
        command = BatchCommand(tmp_path, model.base_url, plans, at_once=100)
        try:
            command.start()
            await command.ended(100, within_s=120)
            command.interrupt()
            assert await command.finish(within_s=60) == 130
            command.start()
            await command.ended(250, within_s=120)
            command.kill()
            await command.finish(within_s=60)
            assert len(command.results_path.read_bytes().splitlines()) < 500
            command.start()
            status = await command.finish(within_s=180)
        finally:
            await command.clean_up()

    assert status == 0, command.said()
    assert check(command, asked=model.asked).broken == []
