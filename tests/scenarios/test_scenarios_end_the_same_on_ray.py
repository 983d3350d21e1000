"""The scenarios again, in one cell on Ray, all at once."""

import asyncio
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.stage import TASK, played

FOLDER = Path(__file__).parent


def scenarios() -> dict[str, Any]:
    """The modules that have one, by name."""
    names = sorted(path.stem for path in FOLDER.glob("test_*.py") if path != Path(__file__))
    modules = {name: import_module(f"tests.scenarios.{name}") for name in names}
    return {name: one for name, one in modules.items() if hasattr(one, "check")}


@pytest.mark.ray
@pytest.mark.timeout(240)
async def test_scenarios_end_the_same_on_ray(tmp_path: Path) -> None:
    found = scenarios()
    assert len(found) >= 7
    where = {"runtime": "ray", "address": "local", "store": tmp_path / "runs.db"}
    async with AsyncExitStack() as open_servers, asyncio.timeout(200):
        servers, harnesses = {}, {}
        for name, module in found.items():
            server = await open_servers.enter_async_context(module.SCENARIO.server())
            servers[name] = server
            harnesses[name] = module.SCENARIO.harness(tmp_path / name, server.base_url, **where)
        # Who is first opens the cell, and the others join it; closing one closes it for all.
        async with next(iter(harnesses.values())):
            results = await asyncio.gather(*(one.run(TASK) for one in harnesses.values()))
    for name, result in zip(found, results, strict=True):
        found[name].check(played(result, servers[name], tmp_path / name))
