"""Where hosts are that tests make by hand."""

from typing import Any

from harness_actors.actors.hosted import Place, Reached
from harness_actors.actors.mailbox import Receiver
from harness_actors.coordination.protocol import Slot
from harness_actors.errors import ActorLostError
from harness_actors.testing import ManualClock


class Nowhere:
    """A coordinator that takes everything and answers nothing."""

    async def receive(self, batch: object) -> tuple[()]:
        return ()


async def nobody(name: str) -> Reached:
    raise ActorLostError(name, "nobody is there")


def a_place(slot: Slot, coordinator: Receiver | None = None, **others: Any) -> Place:
    """Where a host is that nobody but its coordinator reaches."""
    return Place(
        slot=slot,
        address="",
        coordinator=coordinator or Nowhere(),
        term=1,
        clock=ManualClock(),
        store=None,
        reach=nobody,
        **others,
    )
