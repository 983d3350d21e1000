"""A Ray that was there before, and commands that join it one after the other."""

import asyncio
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness_actors.actors.cell_processes import coordinators_of
from harness_actors.actors.processes import is_alive
from harness_actors.records import ProcessMark
from harness_actors.stores import JournalReader
from tests.chaos.rays import RayByHand

HARNESS = (sys.executable, "-m", "harness_actors")
WITHIN_S = 90.0


@contextmanager
def joined_ray() -> Iterator[RayByHand]:
    """A Ray started by hand, for whoever lives in no event loop."""
    ray = RayByHand()
    asyncio.run(ray.__aenter__())
    try:
        yield ray
    finally:
        asyncio.run(ray.__aexit__(None, None, None))


@dataclass(frozen=True, slots=True)
class Done:
    """A process that has ended."""

    status: int
    out: str
    error: str


class Drivers:
    """Starts processes that join a Ray, each a driver of its own.

    Args:
        ray: Which.
        home: Where the journals are that nobody named a place for.
        idle_s: How long their cells may be idle.
    """

    def __init__(self, ray: RayByHand, home: Path, *, idle_s: float = 300.0) -> None:
        named = {"HARNESS_HOME": str(home), "HARNESS_CELL_IDLE_S": str(idle_s)}
        kept = {name: value for name, value in os.environ.items() if "OPENAI" not in name}
        self._variables: Mapping[str, str] = {**kept, **ray.variables, **named}

    async def start(
        self, *arguments: str, command: Sequence[str] = HARNESS, **variables: str
    ) -> asyncio.subprocess.Process:
        """Begin `harness` with these arguments, or another command."""
        return await asyncio.create_subprocess_exec(
            *command,
            *arguments,
            env={**self._variables, **variables},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(
        self, *arguments: str, command: Sequence[str] = HARNESS, **variables: str
    ) -> Done:
        """Begin `harness` with these arguments, or another command, and wait for its end."""
        return await ended(await self.start(*arguments, command=command, **variables))


async def ended(process: asyncio.subprocess.Process) -> Done:
    """What a process had to say until its end."""
    async with asyncio.timeout(WITHIN_S):
        out, error = await process.communicate()
    assert process.returncode is not None
    return Done(process.returncode, out.decode(), error.decode())


def coordinator(store: Path) -> ProcessMark:
    """The one process that serves a journal now."""
    (mark,) = coordinators_of(store)
    return mark


async def gone(store: Path) -> None:
    """Return when no process of a cell of the journal is left."""
    async with asyncio.timeout(WITHIN_S):
        while any(map(is_alive, await asyncio.to_thread(_marks, store))):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


def _marks(store: Path) -> list[ProcessMark]:
    return JournalReader(store).load_processes()
