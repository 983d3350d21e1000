"""The gRPC call that is done by hand."""

import socket
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.actors.joining.grpc_call import CallFailedError, call

SETTINGS = b"\0\0\0\x04\0\0\0\0\0"


def answered(said: bytes) -> tuple[int, bytes]:
    """What the call makes of somebody who says this and hangs up."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(said)
        theirs.shutdown(socket.SHUT_WR)
        return call(ours, "/a.B/C", b"", None, time.monotonic() + 5.0)


def headers(block: bytes, flags: int = 0x5) -> bytes:
    return len(block).to_bytes(3, "big") + bytes((1, flags, 0, 0, 0, 1)) + block


def test_the_status_is_found_after_other_headers() -> None:
    name = b"grpc-status"
    block = b"\x88" + b"\x5f\x10application/grpc" + b"\x40" + bytes((len(name),)) + name + b"\x0216"

    assert answered(SETTINGS + headers(block)) == (16, b"")


def test_headers_that_go_on_in_another_frame_are_one_block() -> None:
    name = b"grpc-status"
    block = b"\x88\x00" + bytes((len(name),)) + name + b"\x0212"
    rest = block[5:]
    frame = len(rest).to_bytes(3, "big") + bytes((9, 0x4, 0, 0, 0, 1)) + rest
    # Our call takes the end of the stream from the frame that says it, so it is said later.
    end = b"\0\0\0\0\x01\0\0\0\x01"

    assert answered(SETTINGS + headers(block[:5], flags=0) + frame + end) == (12, b"")


@given(st.binary(max_size=200))
def test_whatever_a_stranger_says_is_a_status_or_told(said: bytes) -> None:
    for whole in (said, SETTINGS + headers(said)):
        with suppress(CallFailedError):
            assert answered(whole)[0] >= 0


@pytest.mark.parametrize("size", [0, 126, 127, 128, 255, 1000, 8000])
def test_a_token_of_any_length_is_sent_whole(size: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(SETTINGS)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(CallFailedError):
            call(ours, "/a.B/C", b"message", "t" * size, time.monotonic() + 5.0)
        ours.shutdown(socket.SHUT_WR)
        sent = theirs.makefile("rb").read()

    value = b"Bearer " + b"t" * size
    start = sent.index(value)
    digits = sent[sent.index(b"\x1f\x08") + 2 : start]
    told = digits[0] + sum((d & 0x7F) << 7 * place for place, d in enumerate(digits[1:]))
    assert told == len(value)
