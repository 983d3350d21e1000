"""What happens in the runs that a followed one has begun."""

from collections.abc import Sequence
from dataclasses import replace

from harness_actors.actors.runtime import Runtime
from harness_actors.events import ChildrenStarted, RunEvent
from harness_actors.records import CHILD_MARK


class Below:
    """Knows the runs below others, and the way to each.

    Args:
        runtime: What serves them.
        run_ids: Those that are followed.
    """

    def __init__(self, runtime: Runtime, run_ids: Sequence[str]) -> None:
        self._runtime = runtime
        self._begin_so = tuple(run_id + CHILD_MARK for run_id in run_ids)
        self._paths: dict[str, str] = dict.fromkeys(run_ids, "")

    async def told(self, event: RunEvent) -> RunEvent | None:
        """An event with the path of its run; None where that does not stand below."""
        if not event.run_id.startswith(self._begin_so):
            return None
        if (path := await self._path_of(event.run_id)) is None:
            return None
        self.learn(event)
        return replace(event, path=path)

    def learn(self, event: RunEvent) -> None:
        """An event of one of the runs comes: it may begin others."""
        if isinstance(event.event, ChildrenStarted) and event.run_id in self._paths:
            self._paths |= _paths(event.event, self._paths[event.run_id])

    async def _path_of(self, run_id: str) -> str | None:
        if run_id not in self._paths:
            # It was begun before anybody followed: who has begun it has told.
            parent = run_id.rpartition(CHILD_MARK)[0]
            if parent not in self._paths and await self._path_of(parent) is None:
                return None
            for event in await self._runtime.events(parent):
                self.learn(event)
        return self._paths.get(run_id)


def _paths(event: ChildrenStarted, above: str) -> dict[str, str]:
    before = f"{above}/" if above else ""
    return {child["run_id"]: before + child["agent"] for child in event.children}
