"""The place of one actor of a cell: who fills it, what it was sent, and who waits for it."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from harness_actors.actors.hosted import Reached
from harness_actors.actors.liveness import Liveness
from harness_actors.actors.mailbox import Code, DropCode, Outbox, Receiver, Suspect
from harness_actors.coordination.protocol import Slot
from harness_actors.errors import HarnessError

KEPT_PROGRAMS = 64
"""Programs that a host keeps loaded, if no more are in use; those of a batch share one."""


class Peer(Receiver, Suspect, Reached, Protocol):
    """An actor, as the one who started it sees it."""

    @property
    def address(self) -> str:
        """Where others than its cell reach it; empty where nobody does."""
        ...


class HostStarter(Protocol):
    """Places actors of every kind; one answer per runtime."""

    async def start(self, slot: Slot, incarnation: int) -> Peer:
        """Begin to start an actor for a slot; `hello` of what is returned awaits it.

        Raises:
            CellError: It cannot be placed; says why.
        """
        ...


@dataclass(slots=True)
class Seat:
    """A slot with the actor that fills it now."""

    slot: Slot
    incarnation: int
    outbox: Outbox = field(default_factory=Outbox)
    peer: Peer | None = None
    signs: Liveness = field(default_factory=Liveness)
    codes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Hashes of the code that this actor has, with the keys that it was given."""
    codes_told: int = 0
    """How often it was told of one."""
    address: str = ""
    placed: asyncio.Event = field(default_factory=asyncio.Event)
    """It is known where the actor will be, or that there is none."""
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """The actor serves, or it is known why there is none."""
    problem: HarnessError | None = None

    def place(self, address: str) -> None:
        self.address = address
        self.placed.set()

    def fail(self, problem: HarnessError) -> None:
        """Whoever waits for the actor is told that there is none."""
        self.problem = problem
        self.place("")
        self.settled.set()

    def teach(self, code: str, blob: bytes, keys: Mapping[str, str]) -> None:
        """Send the actor the code of the runs that follow."""
        self.codes[code] = keys
        self.codes_told += 1
        self.outbox.post(Code(code, blob, keys, self.codes_told))

    def knows(self, code: str, keys: Mapping[str, str]) -> bool:
        """Whether the actor was sent this code with these keys."""
        return self.codes.get(code) == keys

    def drop_a_program(self, in_use: Callable[[str], bool]) -> None:
        """Make room in the actor, where it has many programs and not all are in use."""
        if len(self.codes) > KEPT_PROGRAMS:
            oldest = next((code for code in self.codes if not in_use(code)), None)
            if oldest is not None:
                del self.codes[oldest]
                self.codes_told += 1
                self.outbox.post(DropCode(oldest, self.codes_told))
