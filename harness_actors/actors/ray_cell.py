"""Which Ray to use, and how the actors of a cell are placed on it."""

import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ray
import ray._private.worker
from ray._private.authentication.authentication_token_setup import (
    maybe_enable_token_auth_if_token_available,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from harness_actors.errors import CellError

NAMESPACE = "harness_actors"
OBJECT_STORE_BYTES = 150_000_000
"""Ours carries messages of some kilobytes, not data; the default takes 30 % of the memory."""


def connect(address: str | None) -> None:
    """Connect this process to a Ray, and start one if there is none to join.

    Blocks for about 5 s where one is started.

    Args:
        address: None or ``"auto"``: the Ray that this process is connected to, else the one
            of ``RAY_ADDRESS``, else a live one on this machine, else one of our own;
            ``"local"``: one of our own; else ``"HOST:PORT"``.

    Raises:
        CellError: There is no Ray at the address, or it does not let us in.
    """
    if ray.is_initialized():
        return
    _keep_quiet()
    target = _target(address)
    own = target == "local"
    if _is_host_and_port(target) and not _answers(target):
        # Ray itself would try for two minutes, and talk about it on the terminal.
        raise CellError(f"Ray at {target!r}", f"nobody answers there; {_hint(address)}")
    if target not in ("local", "auto"):
        # What Ray does by itself for the other two: use the token that this user has.
        maybe_enable_token_auth_if_token_available(warn_if_disabled=False)
    try:
        ray.init(
            address=target,
            namespace=NAMESPACE,
            configure_logging=False,
            log_to_driver=False,
            include_dashboard=False if own else None,
            object_store_memory=OBJECT_STORE_BYTES if own else None,
        )
    except Exception as error:  # Ray raises whatever its layers raise, RuntimeError for one
        hint = "look at the free memory and disk of this machine" if own else _hint(address)
        first = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
        raise CellError(f"Ray at {target!r}", f"{first}; {hint}") from error


def _hint(address: str | None) -> str:
    return (
        "is a Ray up there, and is its token in this environment (RAY_AUTH_TOKEN or "
        "RAY_AUTH_TOKEN_PATH)? Start one with `ray start --head`, or use --address local; "
        f"asked for {address or 'auto'}"
    )


def _is_host_and_port(target: str) -> bool:
    return "://" not in target and target.rpartition(":")[2].isdigit()


def _target(address: str | None) -> str:
    if address not in (None, "auto"):
        return address or "local"
    if os.environ.get("RAY_ADDRESS"):
        return os.environ["RAY_ADDRESS"]
    # `ray start` leaves its address behind, also when that Ray is long dead.
    root = Path(os.environ.get("RAY_TMPDIR") or "/tmp")
    note = root / "ray" / "ray_current_cluster"
    try:
        found = note.read_text().strip()
    except OSError:
        return "local"
    # By this word Ray finds it again by itself, and its token with it.
    return "auto" if _answers(found) else "local"


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        return False
    try:
        with socket.create_connection((host, int(port)), timeout=1.0):
            return True
    except OSError:
        return False


def _keep_quiet() -> None:
    """Keep Ray's talk off the terminal; what matters comes as errors of our own."""
    logging.getLogger("ray").setLevel(logging.ERROR)
    # Unset, it makes each process warn of a default that has to do with GPUs.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # The one way in which raylet messages ("a worker died") reach a terminal; Ray has no
    # option for it. Deaths are told by our own events.
    if hasattr(ray._private.worker, "print_to_stdstream"):
        ray._private.worker.print_to_stdstream = _say_nothing


def _say_nothing(*_args: object, **_kwargs: object) -> None:
    return


def node_of_driver() -> str:
    """The node that a cell goes to: the driver's own."""
    return str(ray.get_runtime_context().get_node_id())


def cores_of(node: str) -> int:
    """Cores of a node as Ray counts them, at least 1."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call]
    for known in nodes:
        if known["NodeID"] == node:
            return max(1, int(known["Resources"].get("CPU", 1)))
    return 1


def on_node(node: str) -> dict[str, Any]:
    """Options of an actor that must live on a node and takes no CPU of its schedule.

    Runs wait for models most of their time, so a CPU for each actor would be wasted; and
    a cell lives and dies on one node, so another one is no substitute.
    """
    return {
        "num_cpus": 0,
        "scheduling_strategy": NodeAffinitySchedulingStrategy(node_id=node, soft=False),
    }


def clear_name(name: str, wait: Callable[[float], None]) -> None:
    """End the actor of this name that an earlier command left behind."""
    try:
        ray.kill(ray.get_actor(name, namespace=NAMESPACE), no_restart=True)
    except ValueError:
        return
    # The name is free a moment after the actor is dead.
    for _ in range(100):
        try:
            ray.get_actor(name, namespace=NAMESPACE)
        except ValueError:
            return
        wait(0.05)
    raise CellError(name, "a coordinator of an earlier command does not end; kill it by hand")
