"""One SIGKILL each, in mid-round, while an effectful tool runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_actors.testing import LoopbackProcess
from tests.kills.batches import KillableBatch

pytestmark = [pytest.mark.ray, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def server() -> Iterator[LoopbackProcess]:
    with LoopbackProcess("tests.kills.script:reply") as server:
        yield server


@pytest.mark.parametrize(
    "role", ["agent_turn", "repair", "compaction", "stop_decision", "coordinator"]
)
async def test_a_batch_ends_complete_when_an_actor_is_killed(
    role: str, tmp_path: Path, server: LoopbackProcess
) -> None:
    batch = KillableBatch(tmp_path, server.base_url, tasks=8, rounds=4, seconds=0.5)

    batch.start()
    await batch.noted(9)
    batch.kill(role)

    assert await batch.finish() == 0
    batch.check_nothing_lost_or_doubled()


async def test_500_tasks_interrupted_twice_end_complete(
    tmp_path: Path, server: LoopbackProcess
) -> None:
    batch = KillableBatch(tmp_path, server.base_url, tasks=500, rounds=3, seconds=0.05, at_once=50)

    batch.start()
    await batch.ended(100)
    batch.interrupt()
    assert await batch.finish() == 130
    batch.start()
    await batch.ended(250)
    batch.kill("driver")
    await batch.finish()
    assert len(batch.results()) < 500
    batch.start()

    assert await batch.finish() == 0
    batch.check_nothing_lost_or_doubled()


async def test_the_same_command_ends_a_batch_whose_driver_was_killed(
    tmp_path: Path, server: LoopbackProcess
) -> None:
    batch = KillableBatch(tmp_path, server.base_url, tasks=8, rounds=4, seconds=0.5)

    batch.start()
    await batch.noted(9)
    batch.kill("driver")
    await batch.finish()
    batch.start()

    assert await batch.finish() == 0
    batch.check_nothing_lost_or_doubled()
