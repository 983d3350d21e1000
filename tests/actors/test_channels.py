"""Channels: batches through sockets, both ways, and what becomes of them when one breaks."""

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from typing import Any
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.actors.mailbox import Outbox, Parcel, UnreachableError
from harness_actors.actors.on_ray.batches import unpack_batch
from harness_actors.actors.on_ray.channel import Channel, NotTakenError
from harness_actors.actors.on_ray.channels import Channels, Invitation, connect
from harness_actors.actors.on_ray.hosts import CoordinatorPeer, HostPeer
from harness_actors.coordination.protocol import Committed, Envelope, Slot

pytestmark = pytest.mark.both_loops

SLOT = Slot("agent_turn")


class End:
    """One end: keeps what it takes, and answers with its length when it is let."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.from_whom: list[tuple[Slot, int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: BaseException | None = None

    async def take(self, packed: bytes) -> bytes:
        self.taken.append(packed)
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return b"%d" % len(packed)

    async def take_from(self, slot: Slot, incarnation: int, packed: bytes) -> bytes:
        self.from_whom.append((slot, incarnation))
        return await self.take(packed)


async def until(met: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not met():  # noqa: ASYNC110 - nobody tells it
            await asyncio.sleep(0.001)


@asynccontextmanager
async def a_pair(coordinator: End, host: End) -> AsyncIterator[tuple[Channel, Channel]]:
    """Both ends of a channel: that of the coordinator, and that of its host number 7."""
    channels = Channels(coordinator.take_from)
    await channels.open()
    invitation = channels.invite(SLOT, 7)
    theirs = await connect(invitation.address, invitation.token, host.take)
    assert theirs is not None
    await until(lambda: invitation.channel)
    ours = invitation.channel
    assert ours is not None
    try:
        yield ours, theirs
    finally:
        theirs.close()
        channels.close()
        await until(lambda: not theirs.is_open and not ours.is_open)


async def test_a_batch_is_answered_in_both_directions_at_once() -> None:
    coordinator, host = End(), End()
    async with a_pair(coordinator, host) as (ours, theirs):
        coordinator.gate.clear()
        waiting = asyncio.ensure_future(theirs.ask(b"up"))
        await until(lambda: coordinator.taken)
        assert await ours.ask(b"down!") == b"5"
        assert not waiting.done()
        coordinator.gate.set()
        assert await waiting == b"2"
    assert coordinator.from_whom == [(SLOT, 7)]
    assert host.taken == [b"down!"]


async def test_a_batch_of_many_megabytes_comes_through_whole() -> None:
    coordinator, host = End(), End()
    large = os.urandom(1 << 20) * 20
    async with a_pair(coordinator, host) as (ours, theirs):
        answers = await asyncio.gather(ours.ask(large), theirs.ask(large))
    assert set(answers) == {b"%d" % len(large)}
    assert coordinator.taken == host.taken == [large]


@given(batches=st.lists(st.binary(max_size=400), max_size=8), cuts=st.data())
def test_what_comes_in_any_pieces_is_put_together(
    batches: list[bytes], cuts: st.DataObject
) -> None:
    async def play() -> list[bytes]:
        end, wire = End(), _Wire()
        sender = Channel(None, user=os.geteuid())
        sender.connection_made(wire)
        asking = [asyncio.ensure_future(sender.ask(batch)) for batch in batches]
        await asyncio.sleep(0)
        receiver = Channel(end.take, user=os.geteuid())
        receiver.connection_made(_Wire())
        left = bytes(wire.written)
        while left:
            size = cuts.draw(st.integers(1, len(left)))
            receiver.data_received(left[:size])
            left = left[size:]
        await until(lambda: len(end.taken) == len(batches))
        for each in asking:
            each.cancel()
        return end.taken

    assert asyncio.run(play()) == batches


class _Credentials:
    def getsockopt(self, level: int, option: int, size: int) -> bytes:
        return os.getpid().to_bytes(4, "little") + os.geteuid().to_bytes(4, "little") + bytes(4)


class _Wire(asyncio.Transport):
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"socket": _Credentials()})
        self.written = bytearray()

    def write(self, data: Any) -> None:
        self.written += data


async def test_what_is_told_comes_before_what_is_asked_after_it() -> None:
    coordinator = End()
    async with a_pair(coordinator, End()) as (_, theirs):
        theirs.tell(b"told")
        assert await theirs.ask(b"asked") == b"5", "there is no answer to the first"
    assert coordinator.taken == [b"told", b"asked"]


async def test_what_is_told_comes_whole_and_in_order_however_long_it_is() -> None:
    coordinator = End()
    large = os.urandom(1 << 20) * 8
    async with a_pair(coordinator, End()) as (_, theirs):
        for told in (large, b"small", large, b"last"):
            theirs.tell(told)
        await until(lambda: len(coordinator.taken) == 4)
    assert coordinator.taken == [large, b"small", large, b"last"]


async def test_a_coordinator_that_closes_lets_go_of_its_hosts() -> None:
    coordinator = End()
    channels = Channels(coordinator.take_from)
    await channels.open()
    invitation = channels.invite(SLOT, 7)
    theirs = await connect(invitation.address, invitation.token, End().take)
    assert theirs is not None
    await until(lambda: invitation.channel)
    coordinator.gate.clear()
    asking = asyncio.ensure_future(theirs.ask(b"up"))
    await until(lambda: coordinator.taken)
    channels.close()
    async with asyncio.timeout(5):
        with pytest.raises(UnreachableError):
            await asking
    assert not theirs.is_open
    assert await connect(invitation.address, invitation.token, End().take) is None
    coordinator.gate.set()


async def test_an_end_that_fails_on_what_it_is_told_takes_the_next() -> None:
    coordinator = End()
    async with a_pair(coordinator, End()) as (_, theirs):
        coordinator.failure = ValueError("no")
        theirs.tell(b"told")
        await until(lambda: coordinator.taken)
        coordinator.failure = None
        assert await theirs.ask(b"asked") == b"5"


async def test_what_is_told_arrives_though_its_process_ends_at_once() -> None:
    coordinator = End()
    channels = Channels(coordinator.take_from)
    await channels.open()
    invitation = channels.invite(SLOT, 7)
    program = _TELL_AND_DIE.format(
        loop=type(asyncio.get_running_loop()).__module__.split(".")[0],
        address=invitation.address,
        token=invitation.token,
    )
    with closing(channels):
        dying = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
        async with asyncio.timeout(30):
            assert await dying.wait() == -signal.SIGKILL
        await until(lambda: len(coordinator.taken) == 2)
    assert coordinator.taken == [b"asked", b"told"]


_TELL_AND_DIE = """
import asyncio, os, signal, {loop}
from harness_actors.actors.on_ray.channels import connect

async def tell_and_die():
    channel = await connect({address!r}, {token!r}, print)
    await channel.ask(b"asked")
    channel.tell(b"told")
    os.kill(os.getpid(), signal.SIGKILL)

{loop}.run(tell_and_die())
"""


async def test_what_is_asked_when_the_connection_breaks_is_in_doubt() -> None:
    coordinator, host = End(), End()
    async with a_pair(coordinator, host) as (ours, theirs):
        coordinator.gate.clear()
        asking = asyncio.ensure_future(theirs.ask(b"up"))
        await until(lambda: coordinator.taken)
        ours.close()
        async with asyncio.timeout(5):
            with pytest.raises(UnreachableError):
                await asking
        with pytest.raises(UnreachableError):
            await theirs.ask(b"again")
        await until(lambda: not ours.is_open)
        with pytest.raises(UnreachableError):
            await ours.ask(b"down")


@pytest.mark.parametrize("error", [None, ConnectionResetError("reset")])
async def test_a_connection_that_is_lost_is_told_to_whoever_waits_and_whoever_comes(
    error: Exception | None,
) -> None:
    channel, wire = Channel(None, user=os.geteuid()), _Wire()
    channel.connection_made(wire)
    asking = asyncio.ensure_future(channel.ask(b"up"))
    await asyncio.sleep(0)
    channel.connection_lost(error)
    await asyncio.wait((asking,), timeout=0)
    await asyncio.sleep(0)
    assert asking.done()
    assert isinstance(asking.exception(), UnreachableError)
    assert ("reset" if error else "closed") in str(asking.exception())
    assert not channel.is_open
    sent = bytes(wire.written)
    channel.tell(b"told")
    channel.data_received(b"a" + (1).to_bytes(8) + b"!")
    with pytest.raises(UnreachableError):
        await channel.ask(b"again")
    assert wire.written == sent


async def test_a_connection_that_is_lost_when_the_answer_has_come_leaves_the_answer() -> None:
    channel = Channel(None, user=os.geteuid())
    channel.take = End().take
    channel.connection_made(_Wire())
    asking = asyncio.ensure_future(channel.ask(b"up"))
    await asyncio.sleep(0)
    channel.data_received(b"a" + (1).to_bytes(8) + b"!")
    channel.connection_lost(None)
    assert await asking == b"!"


async def test_an_end_that_fails_on_a_batch_says_so_and_takes_the_next() -> None:
    coordinator, host = End(), End()
    async with a_pair(coordinator, host) as (_, theirs):
        coordinator.failure = ValueError("no such thing")
        with pytest.raises(NotTakenError, match="ValueError: no such thing"):
            await theirs.ask(b"up")
        coordinator.failure = None
        assert await theirs.ask(b"next") == b"4"


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize("failure", [UnspeakableError(), asyncio.CancelledError()])
async def test_an_end_that_cannot_even_say_why_leaves_nobody_waiting(
    failure: BaseException,
) -> None:
    coordinator, host = End(), End()
    async with a_pair(coordinator, host) as (_, theirs):
        coordinator.failure = failure
        async with asyncio.timeout(10):
            with pytest.raises(UnreachableError):
                await theirs.ask(b"up")


async def test_an_answer_that_nobody_waits_for_is_not_taken_for_the_next() -> None:
    coordinator, host = End(), End()
    async with a_pair(coordinator, host) as (_, theirs):
        coordinator.gate.clear()
        asking = asyncio.ensure_future(theirs.ask(b"up"))
        await until(lambda: coordinator.taken)
        asking.cancel()
        await asyncio.wait((asking,))
        coordinator.gate.set()
        with pytest.raises(UnreachableError):
            await theirs.ask(b"next")


async def test_an_invitation_is_good_for_one_connection_and_while_somebody_keeps_it() -> None:
    coordinator, host = End(), End()
    channels = Channels(coordinator.take_from)
    await channels.open()
    kept, dropped = channels.invite(SLOT, 1), channels.invite(SLOT, 2)
    address, tokens = kept.address, (kept.token, dropped.token, bytes(16))
    first = await connect(address, kept.token, host.take)
    assert first is not None
    await until(lambda: kept.channel)
    del dropped
    for token in tokens:
        other = await connect(address, token, host.take)
        assert other is not None
        with pytest.raises(UnreachableError):
            await other.ask(b"let me in")
    first.greet(tokens[0])  # once more: no host does that
    await until(lambda: not first.is_open)
    assert coordinator.taken == []
    channels.close()


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"b" + (4).to_bytes(8, "big") + b"take", id="a batch"),
        pytest.param(b"g" + (2**63).to_bytes(8, "big"), id="a greeting without end"),
        pytest.param(os.urandom(4096), id="noise"),
    ],
)
async def test_whoever_was_not_invited_is_not_listened_to(said: bytes) -> None:
    coordinator = End()
    channels = Channels(coordinator.take_from)
    await channels.open()
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.setblocking(False)
        await loop.sock_connect(stranger, channels.invite(SLOT, 1).address)
        await loop.sock_sendall(stranger, said)
        async with asyncio.timeout(10):
            # Closed with what was not read, it looks like a reset.
            with suppress(ConnectionError):
                assert await loop.sock_recv(stranger, 1) == b""
    assert coordinator.taken == []
    channels.close()


async def test_a_process_of_another_user_is_not_let_in() -> None:
    coordinator, host = End(), End()
    channels = Channels(coordinator.take_from, user=os.geteuid() + 1)
    await channels.open()
    invitation = channels.invite(SLOT, 1)
    stranger = await connect(invitation.address, invitation.token, host.take)
    assert stranger is not None
    with pytest.raises(UnreachableError):
        await stranger.ask(b"let me in")
    assert coordinator.taken == []
    assert invitation.channel is None
    channels.close()


async def come_and_gone(channels: Channels, incarnation: int) -> "ref[Channel]":
    """The coordinator's end of the channel of a host that came, and died."""
    invitation = channels.invite(SLOT, incarnation)
    theirs = await connect(invitation.address, invitation.token, End().take)
    assert theirs is not None
    await until(lambda: invitation.channel)
    ours = invitation.channel
    assert ours is not None
    theirs.close()
    await until(lambda: not ours.is_open)
    return ref(ours)


async def test_of_a_host_that_nobody_keeps_nothing_is_left() -> None:
    channels = Channels(End().take_from)
    await channels.open()
    seen = [await come_and_gone(channels, incarnation) for incarnation in range(20)]
    await until(lambda: gc.collect() + 1 and not any(channel() for channel in seen))
    channels.close()


async def test_where_nobody_listens_there_is_no_channel() -> None:
    assert await connect("\0harness-nobody", bytes(16), End().take) is None


# ---- with the peers that use them -----------------------------------------------------


class Calls:
    """Stands for Ray's handle of an actor: its methods are called with `.remote`."""

    def __init__(self, method: Callable[..., Awaitable[bytes]]) -> None:
        self.receive = self.take = self
        self.remote = method


def a_batch() -> list[Parcel]:
    return [Envelope("run", 1, 1, 1, Committed(1))]


async def test_a_host_whose_channel_breaks_says_the_same_again_by_a_call() -> None:
    coordinator, called = End(), End()

    async def receive(slot: Slot, incarnation: int, packed: bytes) -> bytes:
        await called.take_from(slot, incarnation, packed)
        return _NOTHING

    answered = asyncio.Event()
    async with a_pair(coordinator, End()) as (ours, theirs):
        coordinator.gate.clear()
        handle: Any = Calls(receive)
        peer = CoordinatorPeer(handle, SLOT, 7)
        peer.channel = theirs
        outbox = Outbox(answered=lambda _: answered.set())
        outbox.connect(peer)
        for parcel in a_batch():
            outbox.post(parcel)
        await until(lambda: coordinator.taken)
        ours.close()
        async with asyncio.timeout(10):
            await answered.wait()
        assert not peer.tell(a_batch()), "nothing can be told where there is no channel"
    assert called.from_whom == [(SLOT, 7)]
    assert called.taken == coordinator.taken
    assert unpack_batch(called.taken[0]) == a_batch()


async def test_a_coordinator_whose_channel_breaks_says_the_same_again_by_a_call() -> None:
    host, called = End(), End()
    coordinator = End()
    async with a_pair(coordinator, host) as (ours, theirs):
        host.gate.clear()
        handle: Any = Calls(called.take)
        peer = HostPeer(handle, Invitation("", b"", SLOT, 7, ours), "")
        outbox = Outbox()
        outbox.connect(peer)
        for parcel in a_batch():
            outbox.post(parcel)
        await until(lambda: host.taken)
        theirs.close()
        await until(lambda: outbox.is_idle)
    assert called.taken == host.taken
    assert unpack_batch(called.taken[0]) == a_batch()


_NOTHING = b"\x80\x04)."
"""An empty tuple, pickled."""
