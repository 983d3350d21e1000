"""Signs of life of a Ray, for whoever is connected to it."""

import os
import socket
import struct
from typing import Any, Literal

import ray._private.worker  # see `raylet_here`

from harness_actors.actors.processes import mark_of
from harness_actors.records import ProcessMark

ANSWER_S = 1.0


def sign_of_head(address: str) -> Literal["there", "refuses", "silent"]:
    """Whether the head of a Ray takes connections."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_S):
            return "there"
    except ConnectionRefusedError:
        return "refuses"
    except OSError:
        return "silent"


def raylet_here() -> ProcessMark | None:
    """The raylet of this node, as whoever listens at its socket."""
    # Nothing public tells where that socket is.
    node: Any = ray._private.worker._global_node
    if node is None:
        return None
    with socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(ANSWER_S)
        try:
            asking.connect(node.raylet_socket_name)
            told = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:
            return None
    pid = struct.unpack("3i", told)[0]
    # 0 where it is in another namespace; we are nobody's raylet.
    return mark_of(pid, "raylet") if pid not in (0, os.getpid()) else None
