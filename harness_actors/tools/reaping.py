"""Ends what earlier processes of a run left running, before the run continues."""

import asyncio

from harness_actors.tools.processes import end_carriers


class RunReaper:
    """Ends the processes of runs, found by a variable of their environment.

    Runs that are asked for at the same time share one look at the processes of the machine:
    after a crash hundreds are taken up at once.

    Args:
        variable: Name of the variable; its value is the id of the run.
    """

    def __init__(self, variable: str) -> None:
        self._variable = variable
        self._waiting: set[str] = set()
        self._next: asyncio.Task[int] | None = None
        self._one = asyncio.Lock()

    async def end_run(self, run_id: str) -> None:
        """Return when no process of a run is left, or those that are left cannot be killed."""
        self._waiting.add(run_id)
        if self._next is None:
            self._next = asyncio.ensure_future(self._end_waiting())
        await asyncio.shield(self._next)

    async def _end_waiting(self) -> int:
        async with self._one:
            # Who asks from here on has to wait for a look that begins later.
            runs, self._waiting, self._next = self._waiting, set(), None
            return await end_carriers(self._variable, runs)
