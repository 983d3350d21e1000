"""How the actors of a cell are placed on a Ray."""

from collections.abc import Callable
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from harness_actors.actors.joining.connect import NAMESPACE
from harness_actors.errors import CellError


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
