"""Rules that every test obeys."""

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping

import hypothesis
import pytest
import uvloop

from tests.virtual_time import VirtualTimeLoop

# The slowest machine that runs these tests must not turn a slow example into a failure.
hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")


def pytest_asyncio_loop_factories(
    item: pytest.Item,
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run asynchronous tests on asyncio's loop, those marked `both_loops` on uvloop as well.

    Those marked `virtual_time` run on that of the name alone.
    """
    if item.get_closest_marker("virtual_time") is not None:
        return {"virtual_time": VirtualTimeLoop}
    loops = {"asyncio": asyncio.new_event_loop}
    if item.get_closest_marker("both_loops") is not None:
        loops["uvloop"] = uvloop.new_event_loop
    return loops


@pytest.fixture(autouse=True)
def ray_only_where_asked(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Fail a test that starts Ray without carrying `@pytest.mark.ray`."""
    if request.node.get_closest_marker("ray") is not None:
        yield
        return

    def refuse(*_args: object, **_kwargs: object) -> None:
        pytest.fail("this test starts Ray; mark it @pytest.mark.ray or use the local runtime")

    # Importing Ray takes a second, so it is not imported for this: a test that imports it first
    # thing is caught afterwards.
    ray = sys.modules.get("ray")
    if ray is not None:
        monkeypatch.setattr(ray, "init", refuse)
        yield
        return
    yield
    ray = sys.modules.get("ray")
    if ray is not None and ray.is_initialized():
        ray.shutdown()
        refuse()
