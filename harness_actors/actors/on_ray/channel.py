"""One end of a connection between a host and its coordinator: batches, one after the other."""

import asyncio
import logging
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import cast

from harness_actors.actors.mailbox import UnreachableError
from harness_actors.errors import error_facts

logger = logging.getLogger(__name__)

_HEAD = struct.Struct("!cQ")
_GREETING, _BATCH, _NOTE, _ANSWER, _REFUSAL = b"g", b"b", b"n", b"a", b"r"
_CREDENTIALS = struct.Struct("3i")
TOKEN_BYTES = 16
"""Length of what whoever connects says first."""

Take = Callable[[bytes], Awaitable[bytes]]


class NotTakenError(Exception):
    """The other end could do nothing with a batch; says why."""


class Channel(asyncio.Protocol):
    """One end of a connection: hands over batches, one after the other, and takes others.

    Args:
        take: Called with each batch of the other end; what it returns is the answer. None
            where it is known only when the other end has greeted.
        greeted: Called with what the other end says first, where it says something.
        user: Only with a process of this user id is anything exchanged.
        connection: The socket beneath, at the end that has something to `tell`.
    """

    def __init__(
        self,
        take: Take | None,
        *,
        greeted: Callable[["Channel", bytes], None] | None = None,
        user: int,
        connection: socket.socket | None = None,
    ) -> None:
        self.take = take
        self._greeted = greeted
        self._user = user
        self._connection = connection
        self._transport: asyncio.Transport | None = None
        self._bytes = bytearray()
        self._asked: asyncio.Future[bytes] | None = None
        self._taking: set[asyncio.Task[object]] = set()

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    async def ask(self, packed: bytes) -> bytes:
        """Hand over a batch and return the answer. One at a time.

        Raises:
            UnreachableError: The connection broke; the batch may have been taken.
            NotTakenError: The other end failed on it.
        """
        if self._transport is None:
            raise UnreachableError("the channel is closed")
        self._asked = asyncio.get_running_loop().create_future()
        self._send(_BATCH, packed)
        try:
            return await self._asked
        except asyncio.CancelledError:
            # What is answered still must not be taken for the next answer.
            self.close()
            raise
        finally:
            self._asked = None

    def tell(self, packed: bytes) -> None:
        """Hand over a batch that nobody waits for; it is lost where the connection breaks.

        The kernel has it when this returns, where nothing that was sent before waits still.
        """
        if self._transport is None:
            return
        left = _framed(_NOTE, packed)
        if self._connection is not None and self._transport.get_write_buffer_size() == 0:
            # The transports of uvloop up to 0.22 send only when the loop goes on. What hinders
            # this, the transport will meet, too.
            with suppress(OSError):
                left = left[self._connection.send(left) :]
        if left:
            self._transport.write(left)

    def greet(self, words: bytes) -> None:
        """Say who is at this end, before anything else."""
        self._send(_GREETING, words)

    def close(self) -> None:
        """End the connection; what is on its way may be lost."""
        if self._transport is not None:
            self._transport.abort()

    # ---- from asyncio ---------------------------------------------------------------

    def connection_made(self, made: asyncio.BaseTransport) -> None:
        # Not asked for its class: that of another loop need not derive from asyncio's.
        transport = cast(asyncio.Transport, made)
        # The names of such sockets can be read by everyone on the machine, and whoever could
        # send a pickle could do anything.
        if _user_of(transport) != self._user:
            logger.warning("a process of another user was refused")
            transport.abort()
            return
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if self._asked is not None and not self._asked.done():
            self._asked.set_exception(UnreachableError(f"the channel broke ({exc or 'closed'})"))

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            return
        self._bytes += data
        while len(self._bytes) >= _HEAD.size:
            kind, length = _HEAD.unpack_from(self._bytes)
            if self.take is None and (kind, length) != (_GREETING, TOKEN_BYTES):
                # Nothing is kept of what somebody says that has not been invited.
                self.close()
                return
            end = _HEAD.size + length
            if len(self._bytes) < end:
                return
            with memoryview(self._bytes) as view:
                content = bytes(view[_HEAD.size : end])
            del self._bytes[:end]
            self._received(kind, content)

    # ---- what follows from it -------------------------------------------------------

    def _received(self, kind: bytes, content: bytes) -> None:
        if kind in (_BATCH, _NOTE) and self.take is not None:
            taken = (
                self._answer(self.take, content) if kind == _BATCH else _outcome(self.take, content)
            )
            task: asyncio.Task[object] = asyncio.get_running_loop().create_task(taken)
            self._taking.add(task)
            task.add_done_callback(self._taking.discard)
        elif self.take is None and self._greeted is not None:
            self._greeted(self, content)
        elif self._asked is None or self._asked.done():
            self.close()
        elif kind == _ANSWER:
            self._asked.set_result(content)
        elif kind == _REFUSAL:
            self._asked.set_exception(NotTakenError(content.decode()))
        else:
            self.close()

    async def _answer(self, take: Take, packed: bytes) -> None:
        try:
            self._send(*await _outcome(take, packed))
        except BaseException:
            # Whoever asked must not wait for ever: it asks again, by a Ray call.
            self.close()
            raise

    def _send(self, kind: bytes, content: bytes) -> None:
        if self._transport is not None:
            self._transport.write(_framed(kind, content))


def _framed(kind: bytes, content: bytes) -> bytes:
    return _HEAD.pack(kind, len(content)) + content


async def _outcome(take: Take, packed: bytes) -> tuple[bytes, bytes]:
    """What to say of a batch: the answer, or why there is none."""
    try:
        return _ANSWER, await take(packed)
    except Exception as error:
        logger.exception("a batch was not taken")
        facts = error_facts(error)
        words = f"{facts['type']}: {facts['message']}"
        return _REFUSAL, words.encode("utf-8", "backslashreplace")


def _user_of(transport: asyncio.Transport) -> int:
    """User id of the process at the other end, as the kernel says it."""
    connection: socket.socket = transport.get_extra_info("socket")
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    user: int = _CREDENTIALS.unpack(packed)[1]
    return user
