"""Runs on their way to the runtime: those that come while a call is made go with the next."""

import asyncio

from harness_actors.actors.runtime import Runtime
from harness_actors.agents import Program
from harness_actors.records import RunSpec


class Submissions:
    """Submits runs to a runtime, many with one call where many wait."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._waiting: list[tuple[RunSpec, Program]] = []
        self._calling = asyncio.Lock()

    async def submit(self, spec: RunSpec, program: Program) -> None:
        """Submit a run; returns when the runtime has it.

        Raises:
            HarnessError: The runtime failed. Of several that went together only one raises.
        """
        self._waiting.append((spec, program))
        async with self._calling:
            together, self._waiting = self._waiting, []
            if together:
                await self._runtime.submit(
                    [one for one, _ in together],
                    code={name: kept for _, its in together for name, kept in its.stored.items()},
                    secrets={
                        name: value for _, its in together for name, value in its.secrets.items()
                    },
                )
