"""The cells of the Ray that this process is connected to, as they are found there."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
import ray._private.state  # see `_pid_of`
from ray.actor import ActorHandle
from ray.exceptions import RayError

from harness_actors.actors.cell_facts import CellFacts
from harness_actors.actors.cell_key import cell_name, store_of
from harness_actors.actors.joining.connect import NAMESPACE
from harness_actors.actors.liveness import SUSPECT_S


@dataclass(frozen=True, slots=True)
class KnownCell:
    """A cell as Ray knows it.

    Attributes:
        name: Its coordinator's.
        store: Its journal.
        coordinator: Its coordinator.
        pid: The process of that; 0 while it is between two incarnations.
    """

    name: str
    store: Path
    coordinator: "ActorHandle[Any]"
    pid: int

    @property
    def key(self) -> str:
        """What tells it from all others, by whichever address its Ray is reached."""
        return str(self.coordinator._actor_id.hex())


def list_cells() -> list[KnownCell]:
    """All cells of this Ray, whichever version of the package they run."""
    named = ray.util.list_named_actors(all_namespaces=True)
    names = [one["name"] for one in named if one["namespace"] == NAMESPACE]
    found = (_find(name) for name in names if store_of(name) is not None)
    return [cell for cell in found if cell is not None]


def find_cell(store: Path) -> KnownCell | None:
    """The cell of a journal for commands like this process; None where there is none."""
    return _find(cell_name(store))


def _find(name: str) -> KnownCell | None:
    store = store_of(name)
    try:
        coordinator = ray.get_actor(name, namespace=NAMESPACE)
    except ValueError:
        return None
    return None if store is None else KnownCell(name, store, coordinator, _pid_of(coordinator))


def _pid_of(coordinator: "ActorHandle[Any]") -> int:
    # What is public of this asks the dashboard, which not every Ray has.
    known = ray._private.state.actors(coordinator._actor_id.hex())
    return int(known.get("Pid") or 0) if known.get("State") == "ALIVE" else 0


async def describe_cell(
    cell: KnownCell, *, answers_within_s: float = SUSPECT_S / 2, weigh: bool = False
) -> CellFacts | None:
    """What a cell says of itself; None where it does not answer in time.

    Args:
        cell: The cell.
        answers_within_s: How long it may take, in seconds.
        weigh: Ask for its memory, too, which takes it some milliseconds.
    """
    coordinator: Any = cell.coordinator
    try:
        async with asyncio.timeout(answers_within_s):
            facts: CellFacts = await coordinator.describe.remote(weigh)
    except (TimeoutError, RayError):
        return None
    return facts
