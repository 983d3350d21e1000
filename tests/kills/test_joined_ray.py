"""Under a Ray that was there before: the cell outlives its driver, the next command goes on."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_actors.testing import LoopbackProcess
from harness_actors.tools.processes import end_processes
from tests.kills.batches import KillableBatch

pytestmark = [pytest.mark.ray, pytest.mark.timeout(240)]


@pytest.fixture
def ray_tmpdir() -> Iterator[Path]:
    """The folder of a Ray that a user has started by hand."""
    # Short: the paths of Ray's sockets, which lie in it, must be.
    folder = Path(tempfile.mkdtemp(prefix="hr"))
    command = [str(Path(sys.executable).with_name("ray")), "start", "--head", "--block"]
    head = subprocess.Popen(
        [*command, "--port=0", "--include-dashboard=false", "--num-cpus=2"],
        env={**os.environ, "RAY_TMPDIR": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert head.stdout is not None
    said = []
    for line in head.stdout:
        said.append(line.decode())
        if "runtime started" in said[-1]:
            break
    else:
        pytest.fail(f"ray start ended: {said}")
    yield folder
    # At once: on SIGTERM it takes half a minute to take leave of its processes.
    asyncio.run(end_processes({"RAY_TMPDIR": str(folder)}))
    head.communicate(timeout=60)
    shutil.rmtree(folder, ignore_errors=True)


async def test_the_next_command_goes_on_after_its_driver_was_killed(
    tmp_path: Path, ray_tmpdir: Path
) -> None:
    with LoopbackProcess("tests.kills.script:reply") as server:
        batch = KillableBatch(
            tmp_path,
            server.base_url,
            tasks=8,
            rounds=4,
            seconds=0.5,
            address="auto",
            variables={"RAY_TMPDIR": str(ray_tmpdir)},
        )

        batch.start()
        await batch.noted(9)
        before = batch.process_of("coordinator")
        batch.kill("driver")
        await batch.finish()
        batch.start()

        assert await batch.finish() == 0
        batch.check_nothing_lost_or_doubled()
        assert not batch.is_alive(before)
