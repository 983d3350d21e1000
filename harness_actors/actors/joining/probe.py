"""Who answers at the address of a Ray, found out in one call and before Ray is asked to join.

Ray's own client is no good for this: without an answer it tries for 12 s and longer, it writes
to the terminal from C++, and without a token that it expects it aborts the process.
"""

import json
import os
import queue
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from harness_actors.actors.joining.listeners import Users, users_behind

Verdict = Literal["ray", "locked", "closed", "silent", "unreachable", "stranger", "unknown"]
"""`locked`: a Ray that refuses the token, or wants one; `closed`: nobody listens; `silent`:
somebody does and says nothing; `unreachable`: no way there, or no such name; `stranger`:
somebody else than a Ray; `unknown`: somebody listens, and TLS keeps us from asking more."""

ANSWER_S = 3.0
UNAUTHENTICATED = 16

_METADATA = b"CLUSTER_METADATA", b"cluster"
_GET = "/ray.rpc.InternalKVGcsService/InternalKVGet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Who is there.

    Attributes:
        verdict: Who.
        detail: What was seen, in a few words.
        users: Who listens there.
        ray: Its version of Ray; None where it is not known.
        python: The same of Python.
    """

    verdict: Verdict
    detail: str = ""
    users: Users = None
    ray: str | None = None
    python: str | None = None


def ask(host: str, port: int, token_for: Callable[[Users], str | None]) -> Answer:
    """Ask whoever listens there for the versions that its Ray runs with.

    Args:
        host: A name, or an IPv4 or IPv6 address without brackets.
        port: That of the GCS, Ray's head service.
        token_for: What to show, by who listens there; None for nothing.

    Returns:
        In `ANSWER_S` or little more, the lookup of the name included.
    """
    answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
    until = time.monotonic() + ANSWER_S
    # In a thread, for nothing else ends a lookup of a name in time.
    asking = threading.Thread(
        target=lambda: answers.put(_ask(host, port, token_for, until)), daemon=True
    )
    asking.start()
    try:
        return answers.get(timeout=ANSWER_S + 0.5)
    except queue.Empty:
        return Answer(verdict="unreachable", detail="its name is not found in time")


def _ask(host: str, port: int, token_for: Callable[[Users], str | None], until: float) -> Answer:
    # Here, for it takes 20 ms to import, and most commands find nobody to ask.
    from harness_actors.actors.joining.grpc_call import CallFailedError, call

    try:
        connection = socket.create_connection((host, port), _left(until))
    except ConnectionRefusedError:
        return Answer(verdict="closed", detail="nobody listens there")
    except socket.gaierror as error:
        return Answer(verdict="unreachable", detail=f"unknown host ({error.strerror})")
    except TimeoutError:
        return Answer(verdict="unreachable", detail="it takes no connection in time")
    except (OSError, UnicodeError) as error:
        return Answer(verdict="unreachable", detail=str(error))
    with connection:
        # Of this very connection: what is shown next goes to nobody else.
        users = users_behind(connection)
        if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
            return Answer(verdict="unknown", detail="it speaks TLS", users=users)
        try:
            status, reply = call(connection, _GET, _request(*_METADATA), token_for(users), until)
        except TimeoutError:
            return Answer(verdict="silent", detail="it says nothing", users=users)
        except (CallFailedError, OSError) as error:
            return Answer(verdict="stranger", detail=str(error), users=users)
    if status == UNAUTHENTICATED:
        return Answer(verdict="locked", users=users)
    if status:
        return Answer(verdict="stranger", detail=f"gRPC status {status}", users=users)
    ray, python = _versions(reply)
    return Answer(verdict="ray", users=users, ray=ray, python=python)


def users_at(host: str, port: int) -> Users:
    """Who listens there.

    Raises:
        OSError: It takes no connection.
    """
    with socket.create_connection((host, port), ANSWER_S) as connection:
        return users_behind(connection)


def nothing_for(_users: Users) -> None:
    """No token for anybody."""


def _left(until: float) -> float:
    return max(0.01, until - time.monotonic())


def _request(key: bytes, namespace: bytes) -> bytes:
    # InternalKVGetRequest: both are shorter than 128 bytes, so their lengths take one.
    return b"\x0a%c%b\x12%c%b" % (len(key), key, len(namespace), namespace)


def _versions(reply: bytes) -> tuple[str | None, str | None]:
    """Of an InternalKVGetReply, whose value is a JSON object; it is not worth a parser."""
    start, end = reply.find(b"{"), reply.rfind(b"}")
    try:
        found = json.loads(reply[start : end + 1])
        return str(found["ray_version"]), str(found["python_version"])
    except (ValueError, KeyError, TypeError):
        return None, None
