"""One gRPC call over a socket that is open: HTTP/2 is h2's, what gRPC says in it is done here.

For a question at an unknown port, where gRPC's own client is too much: it tries again and again,
keeps threads, tells little of what it saw, and connects anew to whoever has the port by then.
Source: gRPC over HTTP/2.
"""

import socket
import time
from collections.abc import Iterator

from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import H2Error
from hpack import HeaderTuple, NeverIndexedHeaderTuple

READ_BYTES = 1 << 16
STATUS_DIGITS = 2
"""No status of gRPC has more."""
SETTINGS = 4
"""The type of the first frame of whoever speaks HTTP/2, which is its fourth byte."""


class CallFailedError(Exception):
    """What was said is no answer to a gRPC call."""


def call(
    connection: socket.socket, path: str, message: bytes, token: str | None, until: float
) -> tuple[int, bytes]:
    """Do a unary call on a fresh connection, which is of no more use then.

    Args:
        connection: To whoever it is.
        path: ``/package.Service/Method``.
        message: The encoded request.
        token: The bearer token; None for none.
        until: Deadline, by the monotonic clock.

    Returns:
        The gRPC status and the encoded reply, which is empty unless the status is 0. A reply
        has at most 64 KiB, which is what they may send unasked.

    Raises:
        CallFailedError: They do not speak gRPC there.
        TimeoutError: No answer in time.
        OSError: The connection broke.
    """
    http = H2Connection()
    http.initiate_connection()
    stream = http.get_next_available_stream_id()
    http.send_headers(stream, _request_headers(path, token))
    http.send_data(stream, b"\0" + len(message).to_bytes(4, "big") + message, end_stream=True)
    status: bytes | None = None
    reply = b""
    for event in _events(connection, http, until):
        match event:
            case ResponseReceived() | TrailersReceived():
                status = dict(event.headers).get(b"grpc-status", status)
            case DataReceived():
                reply += event.data
            case StreamReset() | ConnectionTerminated():
                raise CallFailedError("it breaks off a gRPC call")
            case StreamEnded():
                break
    if status is None or not status.isdigit() or len(status) > STATUS_DIGITS:
        raise CallFailedError("it speaks HTTP/2, but not gRPC")
    return int(status), reply[5:] if int(status) == 0 else b""


def _events(connection: socket.socket, http: H2Connection, until: float) -> Iterator[Event]:
    """What they say, without end; what is to be said to it goes out in between."""
    begin = b""
    while True:
        connection.settimeout(_left(until))
        connection.sendall(http.data_to_send())
        connection.settimeout(_left(until))
        data = connection.recv(READ_BYTES)
        begin = (begin + data)[:9]
        if not data:
            said = f"after {begin!r}" if begin else "at once"
            raise CallFailedError(f"it hangs up {said}")
        # h2 would wait for the rest of a frame that never comes.
        if len(begin) > 3 and begin[3] != SETTINGS:
            raise CallFailedError(f"it speaks another protocol (begins with {begin!r})")
        try:
            yield from http.receive_data(data)
        except H2Error:
            raise CallFailedError(f"it speaks HTTP/2 badly (begins with {begin!r})") from None


def _left(until: float) -> float:
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _request_headers(path: str, token: str | None) -> list[HeaderTuple]:
    headers = [
        HeaderTuple(":method", "POST"),
        HeaderTuple(":scheme", "http"),
        HeaderTuple(":path", path),
        HeaderTuple(":authority", "ray"),
        HeaderTuple("te", "trailers"),
        HeaderTuple("content-type", "application/grpc"),
    ]
    if token is not None:
        headers.append(NeverIndexedHeaderTuple("authorization", f"Bearer {token}"))
    return headers
