"""Telling an executor that a run which was served here is over, and that this is on disk."""

import asyncio
from typing import Any

from harness_actors.actors.host.host_programs import LoadedPrograms
from harness_actors.coordination.graph import Workflow
from harness_actors.errors import AgentCodeError
from harness_actors.ports import Executor
from harness_actors.records import RunSpec
from harness_actors.signals import RunEnd


class SessionEnds:
    """Tells ends, each once and beside all other work: nobody waits for what comes of it.

    Args:
        executor: Who is told, by its `over`; nobody where it has none.
        programs: The agents that are loaded here.
    """

    def __init__(self, executor: Executor | None, programs: LoadedPrograms) -> None:
        self._over: Any = getattr(executor, "over", None)
        self._programs = programs
        self._telling: set[asyncio.Task[None]] = set()

    def tell(self, spec: RunSpec, end: RunEnd, turn: int) -> None:
        """A run is over."""
        # Now: the program may be dropped before a task begins.
        loading = self._programs.loading(spec.code)
        if self._over is None or loading is None:
            return
        task = asyncio.get_running_loop().create_task(self._tell(loading, spec, end, turn))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    def close(self) -> None:
        """Tell nothing more."""
        for task in self._telling:
            task.cancel()

    async def _tell(
        self,
        loading: "asyncio.Future[Workflow | AgentCodeError]",
        spec: RunSpec,
        end: RunEnd,
        turn: int,
    ) -> None:
        workflow = await asyncio.shield(loading)
        # One that could not be loaded has no hooks; its run has failed for that.
        if isinstance(workflow, Workflow):
            await self._over(self._programs.agent_of(spec, workflow), spec, end, turn)
