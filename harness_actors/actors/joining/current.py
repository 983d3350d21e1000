"""The connection that this process has, watched for as long as it has it."""

import threading
import time

import ray

from harness_actors.actors.joining.connection import Connection, OwnRay, connection
from harness_actors.actors.joining.signs import raylet_here, sign_of_head
from harness_actors.actors.processes import wait_until_gone

LOOK_S = 1.0
HEAD_AWAY_S = 10.0
"""How long the head may take no connection before it is given up. Ray itself gives it a minute,
and then ends this process, too."""

_current: Connection | None = None
_knowing = threading.Lock()


def current_connection() -> Connection:
    """The connection of this process, which must have one. It is watched from then on."""
    return _known(is_ours=False, own=None)


def connected(own: OwnRay | None) -> Connection:
    """It was us who have just connected this process."""
    known = _known(is_ours=True, own=own)
    known.is_ours, known.own = True, own
    return known


def _known(*, is_ours: bool, own: OwnRay | None) -> Connection:
    global _current
    with _knowing:
        name = connection()
        if _current is None or _current.name != name:
            address = ray.get_runtime_context().gcs_address
            _current = Connection(name, address, raylet_here(), is_ours=is_ours, own=own)
            threading.Thread(
                target=_watch, args=(_current,), name="ray-watcher", daemon=True
            ).start()
        return _current


def _watch(watched: Connection) -> None:
    """Return when the Ray of a connection is lost, or the connection is given up."""
    answered_at = time.monotonic()
    while watched.is_current and watched.problem is None:
        if watched.raylet is None:
            time.sleep(LOOK_S)
        elif wait_until_gone(watched.raylet, timeout_s=LOOK_S):
            watched.lose("its raylet on this machine has ended")
            break
        match sign_of_head(watched.address):
            case "there":
                answered_at = time.monotonic()
            case "refuses" if watched.own is not None:
                # The head of a Ray of our own is on this machine, and does not come back.
                watched.lose("its head has ended")
            case _ if time.monotonic() - answered_at > HEAD_AWAY_S:
                watched.lose("nobody answers there any more")
    if watched.own is not None and not watched.is_current:
        watched.own.release.set()
