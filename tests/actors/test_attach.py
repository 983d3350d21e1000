"""Reaching the cell of a journal whose Ray ends meanwhile."""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_actors.actors.driver import attach as attaching
from harness_actors.actors.driver.attach import attach
from harness_actors.actors.processes import mark_of
from harness_actors.errors import CellError
from tests.joining.strangers import closed_port

STORE = Path("/somewhere/runs.db")


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
