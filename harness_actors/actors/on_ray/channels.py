"""Batches between the processes of a cell, past Ray: a socket from each host to its coordinator.

A Ray call costs some 1.2 ms of CPU at its two ends, a batch through a socket of the machine
0.15 ms. Ray still says who lives. A channel that breaks is not made again: what was
in it, and all that follows, goes by Ray calls, until the host is replaced.
"""

import asyncio
import logging
import os
import secrets
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from weakref import WeakSet, WeakValueDictionary

from harness_actors.actors.on_ray.channel import TOKEN_BYTES, Channel, Take
from harness_actors.coordination.protocol import Slot

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False, weakref_slot=True)
class Invitation:
    """What a host needs to connect; good for one connection, and while somebody keeps it.

    Attributes:
        address: Where to connect.
        token: What to say there.
        slot: Of the host.
        incarnation: Of the host.
        channel: To the host; None until it has come.
    """

    address: str
    token: bytes
    slot: Slot
    incarnation: int
    channel: Channel | None = None


class Channels:
    """Where the hosts of a coordinator connect.

    Args:
        take: Called with the slot and the incarnation of a host and with each batch of it;
            what it returns is the answer.
        user: User id of the processes that are let in; this process's own by default.
    """

    def __init__(
        self, take: Callable[[Slot, int, bytes], Awaitable[bytes]], *, user: int | None = None
    ) -> None:
        self._take = take
        self._user = os.geteuid() if user is None else user
        self._server: asyncio.Server | None = None
        self._address = ""
        self._invited: WeakValueDictionary[bytes, Invitation] = WeakValueDictionary()
        self._channels: WeakSet[Channel] = WeakSet()

    async def open(self) -> None:
        """Listen, where the system has sockets that need no file; nothing is left of them."""
        address = f"\0harness-{secrets.token_hex(16)}"
        make = partial(Channel, None, greeted=self._greeted, user=self._user)
        # A socket of our own: loops that know such addresses themselves are not all there are.
        listening = _unix_socket()
        try:
            listening.bind(address)
            self._server = await asyncio.get_running_loop().create_unix_server(make, sock=listening)
        except OSError as error:
            listening.close()
            logger.info("batches go by Ray calls: %s", error)
        else:
            self._address = address

    def invite(self, slot: Slot, incarnation: int) -> Invitation:
        """A host is being started; its address is empty where there is nothing to connect to."""
        token = secrets.token_bytes(TOKEN_BYTES)
        self._invited[token] = invitation = Invitation(self._address, token, slot, incarnation)
        return invitation

    def close(self) -> None:
        """Let nobody in any more, and end what there is."""
        if self._server is not None:
            self._server.close()
        for channel in list(self._channels):
            channel.close()

    def _greeted(self, channel: Channel, token: bytes) -> None:
        invitation = self._invited.pop(token, None)
        if invitation is None:
            channel.close()
            return
        channel.take = partial(self._take, invitation.slot, invitation.incarnation)
        invitation.channel = channel
        self._channels.add(channel)


async def connect(address: str, token: bytes, take: Take) -> Channel | None:
    """The channel of a host to its coordinator.

    Args:
        address: Of its invitation, as is the next.
        token: What to say there.
        take: Called with each batch of the coordinator; returns the answer.

    Returns:
        None where it cannot be reached so.
    """
    loop = asyncio.get_running_loop()
    connecting = _unix_socket()
    try:
        await loop.sock_connect(connecting, address)
        _, channel = await loop.create_unix_connection(
            partial(Channel, take, user=os.geteuid(), connection=connecting), sock=connecting
        )
    except OSError as error:
        connecting.close()
        logger.info("batches go by Ray calls: %s", error)
        return None
    except BaseException:
        connecting.close()
        raise
    channel.greet(token)
    return channel


def _unix_socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.setblocking(False)
    return made
