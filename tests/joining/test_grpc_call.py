"""A gRPC call to whoever answers: what is sent, and what is made of all that may be said."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, RequestReceived, StreamEnded
from hypothesis import given
from hypothesis import strategies as st

from harness_actors.actors.joining.grpc_call import CallFailedError, call

SETTINGS = b"\0\0\0\x04\0\0\0\0\0"
STREAM = 1
OK = (":status", "200")


def answered(said: bytes) -> tuple[int, bytes]:
    """What the call makes of somebody who says this and hangs up."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(said)
        theirs.shutdown(socket.SHUT_WR)
        return call(ours, "/a.B/C", b"", None, time.monotonic() + 5.0)


class Server:
    """Takes one call, keeps it, and answers it.

    Attributes:
        headers: Of the request.
        body: Of the request.
    """

    def __init__(self, answer: Callable[[H2Connection], None]) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        self._answer = answer

    def called(self, message: bytes = b"", token: str | None = None) -> tuple[int, bytes]:
        """What a call to it comes to."""
        ours, theirs = socket.socketpair()
        serving = threading.Thread(target=self._serve, args=(theirs,))
        serving.start()
        try:
            with ours:
                return call(ours, "/a.B/C", message, token, time.monotonic() + 5.0)
        finally:
            serving.join()

    def _serve(self, connection: socket.socket) -> None:
        http = H2Connection(H2Configuration(client_side=False))
        http.initiate_connection()
        with connection:
            while data := connection.recv(65536):
                for event in http.receive_data(data):
                    match event:
                        case RequestReceived():
                            self.headers = dict(event.headers)
                        case DataReceived():
                            self.body += event.data
                        case StreamEnded():
                            self._answer(http)
                with suppress(OSError):
                    connection.sendall(http.data_to_send())


def ends(http: H2Connection) -> None:
    http.send_headers(STREAM, [OK, ("grpc-status", "0")], end_stream=True)


def test_a_status_may_stand_among_the_first_headers() -> None:
    def refuses(http: H2Connection) -> None:
        headers = [OK, ("content-type", "application/grpc"), ("grpc-status", "16")]
        http.send_headers(STREAM, headers, end_stream=True)

    assert Server(refuses).called() == (16, b"")


@pytest.mark.parametrize(("status", "kept"), [(0, b"a reply"), (12, b"")])
def test_a_reply_counts_with_the_status_behind_it(status: int, kept: bytes) -> None:
    def replies(http: H2Connection) -> None:
        http.send_headers(STREAM, [OK])
        http.ping(b"12345678")
        http.send_data(STREAM, b"\0\0\0\0\x07a re", pad_length=3)
        http.send_data(STREAM, b"ply")
        http.send_headers(STREAM, [("grpc-status", str(status))], end_stream=True)

    assert Server(replies).called() == (status, kept)


def test_headers_of_many_frames_are_read_as_one() -> None:
    def says_much(http: H2Connection) -> None:
        long = [(f"x-{number}", "x" * 5000) for number in range(8)]
        http.send_headers(STREAM, [OK, *long, ("grpc-status", "5")], end_stream=True)

    assert Server(says_much).called() == (5, b"")


@pytest.mark.parametrize("status", [None, "", "-1", "0x1", "\u00b2", "9" * 5000])
def test_what_has_no_status_is_not_grpc(status: str | None) -> None:
    def is_another(http: H2Connection) -> None:
        headers = [] if status is None else [("grpc-status", status)]
        http.send_headers(STREAM, [OK, *headers], end_stream=True)

    with pytest.raises(CallFailedError, match="not gRPC"):
        Server(is_another).called()


@pytest.mark.parametrize("leaves", [H2Connection.close_connection, H2Connection.reset_stream])
def test_a_call_that_is_broken_off_is_told(leaves: Callable[..., None]) -> None:
    def breaks_off(http: H2Connection) -> None:
        leaves(http) if leaves is H2Connection.close_connection else leaves(http, STREAM)

    with pytest.raises(CallFailedError, match="breaks off"):
        Server(breaks_off).called()


def test_a_reply_that_never_ends_is_not_taken_in() -> None:
    """They may send 64 KiB unasked; this is somebody who does not care."""
    headers = b"\0\0\x01\x01\x04\0\0\0\x01\x88"
    data = b"\0\x40\0\0\0\0\0\0\x01" + bytes(1 << 14)

    with pytest.raises(CallFailedError, match="badly"):
        answered(SETTINGS + headers + 5 * data)


@given(st.binary(max_size=200))
def test_whatever_a_stranger_says_is_a_status_or_told(said: bytes) -> None:
    headers = len(said).to_bytes(3, "big") + b"\x01\x05\0\0\0\x01" + said
    for whole in (said, SETTINGS + said, SETTINGS + headers):
        with suppress(CallFailedError):
            assert answered(whole)[0] >= 0


@pytest.mark.parametrize(("said", "seen"), [(b"", "hangs up at once"), (b"SSH", "after b'SSH'")])
def test_who_hangs_up_is_told_with_what_was_said(said: bytes, seen: str) -> None:
    with pytest.raises(CallFailedError, match=seen):
        answered(said)


def test_who_drips_is_left_in_time() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(SETTINGS[:5])
        with pytest.raises(TimeoutError):
            call(ours, "/a.B/C", b"", None, time.monotonic() + 0.1)


@pytest.mark.parametrize("size", [1, 126, 127, 128, 255, 1000, 8000])
def test_a_token_of_any_length_is_sent_whole(size: int) -> None:
    server = Server(ends)

    assert server.called(b"message", "t" * size) == (0, b"")
    assert server.headers[b"authorization"] == b"Bearer " + b"t" * size
    assert server.headers[b":path"] == b"/a.B/C"
    assert server.body == b"\0\0\0\0\x07message"


def test_no_token_is_sent_where_there_is_none() -> None:
    server = Server(ends)

    assert server.called() == (0, b"")
    assert b"authorization" not in server.headers
