"""What an actor of a cell hosts, whatever its kind and wherever it lives."""

import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar, TypeVarTuple

from harness_actors.actors.mailbox import Receiver, Tell
from harness_actors.coordination.protocol import Slot
from harness_actors.ports import Clock, ToolProcesses

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

ActorCall = Callable[[Any, *Ts], Coroutine[Any, Any, T]]
"""A method of the class that an actor hosts, as `TextStreams.read`; it travels as its name."""


LEAVE_WITHIN_S = 4.0
"""How long an actor that is to be killed may take to close what its users opened."""


class Reached(Protocol):
    """An actor, as those see it who know where it is; raises as a `Suspect` does."""

    async def call(self, method: ActorCall[*Ts, T], *arguments: *Ts) -> T: ...


Reach = Callable[[str], Awaitable[Reached]]
"""Finds an actor by its address; raises as `Reached` does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an actor is, for the class that it hosts.

    Attributes:
        slot: What it fills.
        address: Where others than its cell reach it; empty where nobody does.
        coordinator: Where its answers go.
        term: Term of that coordinator.
        clock: Its time.
        store: The journal of its cell; None where nothing is kept beside it.
        reach: Finds other actors.
        tell: The way to the coordinator for what needs no answer; there may be none.
        tool_processes: What starts the processes of tools; None where its kind runs none.
    """

    slot: Slot
    address: str
    coordinator: Receiver
    term: int
    clock: Clock
    store: Path | None
    reach: Reach
    tell: Tell = lambda _: False
    tool_processes: ToolProcesses | None = None


class Hosted:
    """The class that a kind of actor hosts; made with its `Place`, in the process it lives in."""

    async def ready(self) -> None:
        """Return when it serves; asked whenever somebody wants to know whether it does.

        Raises:
            HarnessError: It never will; says why.
        """

    async def receive(self, batch: Sequence[Any]) -> Any:
        """Take what is posted to it; a host only enqueues it."""
        return ()

    async def leave(self) -> None:
        """Close what was opened for those that it serves; asked before it is killed on purpose.

        It has `LEAVE_WITHIN_S` for that, and nothing more is served afterwards.
        """

    def close(self) -> None:
        """End what is in progress. Only what shares its process with others needs it."""


def free_port() -> int:
    """A port of this machine at which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
