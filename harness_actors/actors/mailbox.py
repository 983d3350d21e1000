"""How messages leave an actor: one outbox per peer, with one call in flight at most."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness_actors.coordination.protocol import Envelope
from harness_actors.errors import ActorLostError
from harness_actors.records import ProcessMark

logger = logging.getLogger(__name__)

REMEMBERED_RUNS = 1_000
"""Runs that are over of which a receiver still knows what it got."""
FIRST_RETRY_S = 0.02
LONGEST_RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class Code:
    """The program of runs that follow: sent once to each host that needs it.

    Attributes:
        code: Its hash.
        blob: The pickled workflow.
        keys: Secrets that its model asks for, by name. In memory only.
        number: Counts what this host is told of programs, from 1: a batch that is sent twice
            may come the second time after what followed it.
    """

    code: str
    blob: bytes
    keys: Mapping[str, str]
    number: int

    def __repr__(self) -> str:
        # Whatever prints a batch must not print a key.
        return f"Code({self.code!r}, {len(self.blob)} bytes, keys={sorted(self.keys)})"


@dataclass(frozen=True, slots=True)
class DropCode:
    """This program is not needed now; it comes again if it is. Counted as `Code` is."""

    code: str
    number: int


Parcel = Envelope | Code | DropCode

Tell = Callable[[Sequence[Parcel]], bool]
"""Hands a batch to a peer before it returns, where that can be done; says whether it was.
There is no answer, and what breaks the connection may lose it."""


class UnreachableError(Exception):
    """A call did not come through, or its answer did not come back; the actor may live."""


class Receiver(Protocol):
    """The other end of an outbox; raises as a `Suspect` does."""

    async def receive(self, batch: Sequence[Parcel]) -> Sequence[Envelope]:
        """Hand over a batch.

        A host only enqueues it. A coordinator answers when what it changes is on disk, and
        tells that with the answer: a message of its own would cost as much as the batch.
        """
        ...


class Suspect(Protocol):
    """An actor whose death can be awaited, and made.

    Raises, from every call:
        UnreachableError: The connection broke; the call may have been executed.
        ActorLostError: The actor is dead.
    """

    async def hello(self) -> tuple[ProcessMark, ...]:
        """Wait until the actor serves; says in which processes, its own first.

        All of them must be gone before anything that it did goes on elsewhere.
        """
        ...

    async def watch(self) -> None:
        """Return when the actor is dead."""
        ...

    def kill(self) -> None:
        """End the actor at once."""
        ...


class Outbox:
    """Posts to one peer, in order.

    What is posted while a call is in flight goes with the next one, as one batch: under
    light load a message leaves at once, under heavy load batches grow by themselves.

    Args:
        answered: Called with what the peer tells with its answer to a batch. The answer may get
            lost; then it is told again with that of the copy.
        undeliverable: Called with what cannot be sent, or that the peer fails on, and why.
        tell: The way to the peer for what needs no answer; there may be none.
    """

    def __init__(
        self,
        *,
        answered: Callable[[Sequence[Envelope]], None] = lambda _: None,
        undeliverable: Callable[[Parcel, Exception], None] = lambda *_: None,
        tell: Tell = lambda _: False,
    ) -> None:
        self._answered = answered
        self._undeliverable = undeliverable
        self._tell = tell
        self._peer: Receiver | None = None
        self._waiting: list[Parcel] = []
        self._sending: asyncio.Task[None] | None = None
        self._closed = False

    def connect(self, peer: Receiver) -> None:
        """Say where posts go; what was posted before leaves now."""
        self._peer = peer
        self._send()

    def post(self, parcel: Parcel) -> None:
        if not self._closed:
            self._waiting.append(parcel)
            self._send()

    def tell(self, parcel: Parcel) -> None:
        """Post what may be lost with the connection, and may come before what was posted earlier.

        Where there is a way for it, the kernel has it when this returns, whatever becomes of this
        process next: also while a call is in flight, whose answer waits for the disk.
        """
        if self._closed or not self._tell((parcel,)):
            self.post(parcel)

    @property
    def is_idle(self) -> bool:
        """Whatever was posted has come through; never so after the death of the peer."""
        return not self._closed and not self._waiting and self._sending is None

    def close(self) -> None:
        """Drop what waits, and whatever is still posted: the peer is gone."""
        self._closed = True
        self._waiting.clear()
        if self._sending is not None:
            self._sending.cancel()

    def _send(self) -> None:
        if self._peer is not None and self._waiting and self._sending is None:
            self._sending = asyncio.get_running_loop().create_task(self._drain(self._peer))

    async def _drain(self, peer: Receiver) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await self._deliver(peer, batch)
        except ActorLostError:
            # Whoever watches the peer decides what becomes of its runs.
            self._waiting.clear()
            self._closed = True
        finally:
            self._sending = None

    async def _deliver(self, peer: Receiver, batch: list[Parcel]) -> None:
        pause = FIRST_RETRY_S
        while True:
            try:
                self._answered(await peer.receive(batch))
                return
            except UnreachableError:
                # The same batch again: receivers drop what they have seen.
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_RETRY_S)
            except ActorLostError:
                raise
            except Exception as error:
                # Of one run, most likely: what was posted with it and after it must still leave.
                if len(batch) > 1:
                    for parcel in batch:
                        await self._deliver(peer, [parcel])
                    return
                about = batch[0].run_id if isinstance(batch[0], Envelope) else batch[0]
                logger.exception("a message was not taken: %s", about)
                self._undeliverable(batch[0], error)
                return


class SeenEnvelopes:
    """What a receiver remembers, per run, of what it got: the newest order."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, int, int]] = {}
        # A copy may come late, after the word that its run is over: it must not begin
        # the run anew.
        self._over: OrderedDict[str, tuple[int, int, int]] = OrderedDict()

    def is_new(self, envelope: Envelope) -> bool:
        """Whether the envelope was not seen before; it is from here on."""
        run_id = envelope.run_id
        newest = self._newest.get(run_id) or self._over.get(run_id)
        if newest is not None and envelope.order <= newest:
            return False
        self._over.pop(run_id, None)
        self._newest[run_id] = envelope.order
        return True

    def __len__(self) -> int:
        """Runs that it knows and that are not over."""
        return len(self._newest)

    def forget(self, run_id: str) -> None:
        """A run is over. Of so many it is still known what was got."""
        newest = self._newest.pop(run_id, None)
        if newest is not None:
            self._over[run_id] = newest
            if len(self._over) > REMEMBERED_RUNS:
                self._over.popitem(last=False)
