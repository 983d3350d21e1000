"""The runtime on Ray: a driver's side of a cell."""

import asyncio
import hashlib
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ray
from ray.actor import ActorHandle

from harness_actors.actors.ray_calls import AwayError, CoordinatorCalls, is_ray_up
from harness_actors.actors.ray_cell import (
    NAMESPACE,
    clear_name,
    connect,
    cores_of,
    node_of_driver,
    on_node,
)
from harness_actors.actors.ray_hosts import RayCoordinatorActor
from harness_actors.actors.runtime import Happened, StopMode
from harness_actors.errors import CellError, HarnessError
from harness_actors.events import RunEvent
from harness_actors.messages import Message
from harness_actors.records import RunHeading, RunSpec

START_DEADLINE_S = 90.0

STARTER_THREAD = ThreadPoolExecutor(1, thread_name_prefix="ray-starter")
"""Starts Ray, and lives as long as this process: the kernel ends Ray's processes with the
thread that started them, so one of an event loop would take them along when that closes."""


class RayRuntime:
    """Answers the `Runtime` port from the actors of a cell.

    Its calls survive the coordinator; see `CoordinatorCalls`.
    """

    def __init__(self, coordinator: "ActorHandle[Any]") -> None:
        self._coordinator = coordinator
        self._calls = CoordinatorCalls(coordinator)

    @classmethod
    async def open(cls, store: Path, command: str, address: str | None = None) -> "RayRuntime":
        """Start a cell for a journal, on the Ray at an address.

        Args:
            store: The journal's file; made if there is none.
            command: Name of the command that submits the runs.
            address: See `connect`.

        Raises:
            CellError: Ray or the cell did not come up; says what was waited for.
            StoreError: The journal cannot be served.
        """
        # ray.init and its like block for seconds; a loop with other work must not.
        loop = asyncio.get_running_loop()
        coordinator = await loop.run_in_executor(
            STARTER_THREAD, _start_cell, store, command, address
        )
        runtime = cls(coordinator)
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                await runtime._calls.attach()
        except TimeoutError:
            await asyncio.to_thread(ray.kill, coordinator, no_restart=True)
            raise CellError(
                "the coordinator",
                f"its actor did not come up within {START_DEADLINE_S:.0f} s on node "
                f"{node_of_driver()}; look at `ray status`, the load and the free memory",
            ) from None
        return runtime

    async def submit(
        self,
        specs: Sequence[RunSpec],
        *,
        code: Mapping[str, bytes],
        secrets: Mapping[str, str],
    ) -> None:
        self._calls.secrets.update(secrets)
        await self._calls.call("submit", specs, code, secrets)

    async def resume(self, run_ids: Sequence[str], *, secrets: Mapping[str, str]) -> None:
        self._calls.secrets.update(secrets)
        await self._calls.call("resume", run_ids, secrets)

    async def happened(self, cursor: int, *, messages: bool = False) -> Happened:
        happened: Happened = await self._calls.call("happened", cursor, messages)
        return happened

    async def allow(self, budget_usd: float) -> None:
        self._calls.budget_usd = budget_usd
        await self._calls.call("allow", budget_usd)

    async def stop(self, run_ids: Sequence[str], mode: StopMode) -> None:
        await self._calls.call("stop", run_ids, mode)

    async def position(self) -> int:
        return int(await self._calls.call("position"))

    async def headings(self) -> list[RunHeading]:
        headings: list[RunHeading] = await self._calls.call("headings")
        return headings

    async def events(self, run_id: str) -> tuple[RunEvent, ...]:
        events: tuple[RunEvent, ...] = await self._calls.call("events", run_id)
        return events

    async def conversation(self, conversation_id: str) -> list[Message]:
        messages: list[Message] = await self._calls.call("conversation", conversation_id)
        return messages

    async def close(self) -> None:
        try:
            async with asyncio.timeout(10):
                await self._calls.once("close")
        except (HarnessError, TimeoutError, AwayError):
            pass  # it is killed below in any case, and the journal holds what is committed
        if await asyncio.to_thread(is_ray_up):
            await asyncio.to_thread(ray.kill, self._coordinator, no_restart=True)


def _start_cell(store: Path, command: str, address: str | None) -> "ActorHandle[Any]":
    connect(address)
    node = node_of_driver()
    name = cell_name(store)
    clear_name(name, time.sleep)
    options = {
        "name": name,
        "namespace": NAMESPACE,
        # It must outlive a driver that dies, to finish what is in flight; and it is the
        # one actor that Ray restarts: its children die with it, and it starts them anew.
        "lifetime": "detached",
        "max_restarts": -1,
        **on_node(node),
    }
    agent_turns = max(1, cores_of(node) // 2)
    actor: Any = RayCoordinatorActor.options(**options)
    handle: ActorHandle[Any] = actor.remote(str(store), command, node, agent_turns)
    return handle


def cell_name(store: Path) -> str:
    """Under which name the coordinator of a journal's cell is known to Ray."""
    parts = (version("harness_actors"), sys.version, sys.prefix, str(store.resolve()))
    return "coordinator:" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
