"""A cell whose coordinator counts its messages and commits. The shipped one counts nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from harness_actors.actors import Runtime, RuntimeKind, local
from harness_actors.actors.coordinator.host import CoordinatorHost
from harness_actors.actors.local import LocalRuntime
from harness_actors.actors.mailbox import Parcel
from harness_actors.coordination.active import Post
from harness_actors.coordination.protocol import Envelope, Slot


class CountingCoordinatorHost(CoordinatorHost):
    """Serves runs as every coordinator, and counts."""

    received = batches = posted = 0

    async def receive(
        self, slot: Slot, incarnation: int, batch: Sequence[Parcel]
    ) -> tuple[Envelope, ...]:
        self.received += len(batch)
        self.batches += 1
        return await super().receive(slot, incarnation, batch)

    def _send(self, post: Post) -> None:
        self.posted += 1
        super()._send(post)

    async def counts(self) -> Mapping[str, int]:
        """Messages received and in how many calls, messages posted, commits, and their entries."""
        return {
            "received": self.received,
            "batches": self.batches,
            "posted": self.posted,
            "commits": self._writer.commits,
            "entries": await self.position(),
        }


def count_messages(kind: RuntimeKind) -> None:
    """Let the cells that this process opens from here on have coordinators that count."""
    # There is no other way to them: an option of the cell for this alone would be a cost to all.
    if kind == "local":
        setattr(local, "CoordinatorHost", CountingCoordinatorHost)  # noqa: B010 - a type
        return
    import ray

    from benchmarks.counting_actor import CountingCoordinator
    from harness_actors.actors.on_ray import coordinator

    # At its home, before whoever places it takes it from there.
    coordinator.RayCoordinatorActor = ray.remote(CountingCoordinator)


async def counts_of(runtime: Runtime) -> Mapping[str, int]:
    """What the coordinator of such a cell has counted so far."""
    reached: Any = runtime
    counted: Mapping[str, int]
    if isinstance(runtime, LocalRuntime):
        counted = await reached._coordinator.counts()
    else:
        counted = await reached._cell.call(CountingCoordinatorHost.counts)
    return counted
