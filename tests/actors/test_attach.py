"""Reaching the cell of a journal whose Ray ends meanwhile."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_actors.actors.driver import attach as attaching
from harness_actors.actors.driver.attach import attach
from harness_actors.actors.processes import mark_of
from harness_actors.errors import CellError
from tests.joining.strangers import closed_port

STORE = Path("/somewhere/runs.db")

REACHES_A_RAY_THAT_NEVER_ANSWERS = """
import asyncio, subprocess, time
from pathlib import Path
from harness_actors.actors.driver import attach as attaching
from harness_actors.actors.on_ray import attach as on_ray
from harness_actors.actors.processes import mark_of

async def main():
    coordinator = subprocess.Popen(["sleep", "60"])
    mark = mark_of(coordinator.pid, "coordinator")
    attaching.coordinator_of = lambda _: mark
    attaching.ray_of = lambda _: "127.0.0.1:1"
    attaching.ENDS_WITHIN_S = 0.5
    on_ray._connect_to = lambda *_: time.sleep(60)
    asyncio.get_running_loop().call_later(1.0, lambda: (coordinator.kill(), coordinator.wait()))
    print(await attaching.attach(Path("/somewhere/runs.db")))

asyncio.run(main())
"""
"""As ``ray.init()`` does where a raylet that was there a moment ago is gone."""


@pytest.fixture
def coordinator(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A process that says it serves the journal, on a Ray whose head has ended."""
    process = subprocess.Popen(["sleep", "60"])
    mark = mark_of(process.pid, "coordinator")
    with closed_port() as address:
        monkeypatch.setattr(attaching, "coordinator_of", lambda _: mark)
        monkeypatch.setattr(attaching, "ray_of", lambda _: address)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


async def test_a_cell_that_has_ended_since_it_was_found_is_none(
    coordinator: subprocess.Popen[bytes],
) -> None:
    asyncio.get_running_loop().call_later(0.3, coordinator.kill)
    assert await attach(STORE) is None


async def test_a_ray_that_lets_nobody_in_is_told_while_its_cell_is_there(
    coordinator: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attaching, "ENDS_WITHIN_S", 0.1)
    with pytest.raises(CellError, match=r"127\.0\.0\.1"):
        await attach(STORE)
    assert coordinator.poll() is None


async def test_a_ray_that_is_looked_for_in_vain_holds_up_nobody() -> None:
    began = time.monotonic()
    command = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", REACHES_A_RAY_THAT_NEVER_ANSWERS), stdout=subprocess.PIPE
    )
    async with asyncio.timeout(30):
        said, _ = await command.communicate()

    assert (said, command.returncode) == (b"None\n", 0)
    assert time.monotonic() - began < 20
