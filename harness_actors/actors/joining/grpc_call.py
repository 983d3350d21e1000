"""One gRPC call over a socket, by hand: HTTP/2 frames, and of HPACK what it takes for that.

For a question at an unknown port, where a client library is too much: it tries again and again,
keeps threads, and tells little of what it saw. Source: RFC 9113, RFC 7541, gRPC over HTTP/2.
"""

import socket
import time
from collections.abc import Iterator

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
ACK = END_STREAM = 0x1
END_HEADERS, PADDED, PRIORITY = 0x4, 0x8, 0x20
LARGEST = 1 << 20
"""Bytes that an answer may have: whoever sends more has not understood us."""


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
        The gRPC status and the encoded reply, which is empty unless the status is 0.

    Raises:
        CallFailedError: They do not speak gRPC there.
        TimeoutError: No answer in time.
        OSError: The connection broke.
    """
    body = b"\0" + len(message).to_bytes(4, "big") + message
    connection.sendall(
        PREFACE
        + _frame(SETTINGS, 0, 0)
        + _frame(HEADERS, END_HEADERS, 1, _request_headers(path, token))
        + _frame(DATA, END_STREAM, 1, body)
    )
    headers = reply = b""
    for kind, flags, payload in _frames(connection, until):
        if kind == HEADERS:
            headers += _unpadded(payload, flags, 5 if flags & PRIORITY else 0)
        elif kind == CONTINUATION:
            headers += payload
        elif kind == DATA:
            reply += _unpadded(payload, flags, 0)
        elif kind in (RESET, GOAWAY):
            raise CallFailedError("it breaks off a gRPC call")
        if flags & END_STREAM and kind in (HEADERS, DATA):
            break
    status = _status(headers)
    return status, reply[5:] if status == 0 else b""


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big")
    return head + payload


def _frames(connection: socket.socket, until: float) -> Iterator[tuple[int, int, bytes]]:
    """Their frames but those that are about the connection, which are answered here."""
    is_first = True
    while True:
        head = _read(connection, 9, until)
        size, kind, flags = int.from_bytes(head[:3], "big"), head[3], head[4]
        if is_first and (kind != SETTINGS or size > LARGEST):
            raise CallFailedError(f"it speaks another protocol (begins with {head!r})")
        if size > LARGEST:
            raise CallFailedError("it sends too much")
        is_first = False
        payload = _read(connection, size, until)
        if kind in (SETTINGS, PING) and not flags & ACK:
            connection.sendall(_frame(kind, ACK, 0, payload if kind == PING else b""))
        elif kind not in (SETTINGS, PING):
            yield kind, flags, payload


def _read(connection: socket.socket, size: int, until: float) -> bytes:
    parts = b""
    while len(parts) < size:
        left = until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        part = connection.recv(size - len(parts))
        if not part:
            said = f" after {parts!r}" if parts else " at once"
            raise CallFailedError(f"it hangs up{said}")
        parts += part
    return parts


def _unpadded(payload: bytes, flags: int, skipped: int) -> bytes:
    if not flags & PADDED:
        return payload[skipped:]
    return payload[1 + skipped : len(payload) - payload[0]]


def _request_headers(path: str, token: str | None) -> bytes:
    """The headers, by their places in HPACK's static table, and nothing to be remembered."""
    block = b"\x83\x86"  # :method POST, :scheme http
    block += _literal(b"\x04", path)
    block += _literal(b"\x01", "ray")  # :authority
    block += _literal(b"\x0f\x10", "application/grpc")  # content-type
    block += b"\x00" + _text("te") + _text("trailers")
    if token is not None:
        block += _literal(b"\x1f\x08", f"Bearer {token}")  # authorization, never indexed
    return block


def _literal(name: bytes, value: str) -> bytes:
    return name + _text(value)


def _text(text: str) -> bytes:
    encoded = text.encode()
    size = len(encoded)
    if size < 127:
        return bytes((size,)) + encoded
    rest, digits = size - 127, [127]
    while rest >= 128:
        digits.append(rest % 128 + 128)
        rest //= 128
    return bytes((*digits, rest)) + encoded


def _status(block: bytes) -> int:
    """The gRPC status among headers.

    It stands there in full at its first time, as no table of HPACK has it before.

    Raises:
        CallFailedError: It is not there, or written in HPACK's compressed way, which gRPC's
            servers do not use.
    """
    position = 0
    try:
        while position < len(block):
            first = block[position]
            if first & 0x80:
                _, position = _number(block, position, 7)
            elif first & 0xE0 == 0x20:
                _, position = _number(block, position, 5)
            else:
                index, position = _number(block, position, 6 if first & 0x40 else 4)
                name = b""
                if not index:
                    name, position = _string(block, position)
                value, position = _string(block, position)
                if name == b"grpc-status" and value.isdigit():
                    return int(value)
    except (IndexError, ValueError):
        pass  # no headers that can be read are no status either
    raise CallFailedError("it speaks HTTP/2, but not gRPC")


def _number(block: bytes, position: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    number = block[position] & most
    position += 1
    if number < most:
        return number, position
    shift = 0
    while True:
        digit = block[position]
        position += 1
        number += (digit & 0x7F) << shift
        shift += 7
        if not digit & 0x80:
            return number, position


def _string(block: bytes, position: int) -> tuple[bytes, int]:
    size, start = _number(block, position, 7)
    return block[start : start + size], start + size
