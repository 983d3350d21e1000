"""The coordinator's actor of a cell that counts; see `counting`."""

from typing import Any

from benchmarks.counting import CountingCoordinatorHost
from harness_actors.actors.on_ray import coordinator


class CountingCoordinator(coordinator.RayCoordinator):
    """Makes a coordinator that counts, in the process that it lives in."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        setattr(coordinator, "CoordinatorHost", CountingCoordinatorHost)  # noqa: B010 - a type
        super().__init__(*arguments, **options)
