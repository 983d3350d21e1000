"""The runs of a harness that are to come to values: their programs, and what its user is given."""

import asyncio
import logging
from collections import OrderedDict

from harness_actors.agents import Program, with_output_type
from harness_actors.outputs import OutputType
from harness_actors.results import HarnessResult

logger = logging.getLogger(__name__)

KEPT = 16
"""Types of single runs whose programs are kept, so that the next run of one costs nothing."""
OPEN = 256
"""Runs with a type of their own that are not over, and whose types are known."""


class TypedRuns:
    """Knows which run is to come to what.

    Args:
        program: That of the harness, whose agent may have a type.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        self._output = OutputType.of(getattr(program.workflow.agent, "output_type", None))
        self._programs: list[tuple[OutputType, Program]] = []
        self._open: OrderedDict[str, OutputType] = OrderedDict()

    def program_for(self, output_type: object) -> tuple[Program, OutputType | None]:
        """The program of a run, and what it is to come to.

        Args:
            output_type: That of the run alone; None for that of the agent.

        Raises:
            ConfigError: It is no type, or the agent is of a class of its user's.
            AgentCodeError: It cannot be sent to another process.
        """
        given = OutputType.of(output_type)
        if given is None or given == self._output:
            return self._program, self._output
        known = next((one for one in self._programs if one[0] == given), None)
        if known is None:
            workflow = with_output_type(self._program.workflow, given)
            program = Program(workflow, self._program.secrets)  # type: ignore[arg-type]
            _ = program.blob  # what cannot travel is told before anything runs
            known = given, program
            self._programs = [known, *self._programs][:KEPT]
        return known[1], known[0]

    def begun(self, run_id: str, output: OutputType | None) -> None:
        """A run has begun."""
        if output is not None and output is not self._output:
            self._open[run_id] = output
            while len(self._open) > OPEN:
                self._open.popitem(last=False)

    async def given(self, result: HarnessResult) -> HarnessResult:
        """A result as the user has it: with an instance of the type of its run."""
        output = self._open.get(result.run_id, self._output)
        if result.status != "awaiting_input":
            self._open.pop(result.run_id, None)
        if output is None or result.output is None:
            return result
        try:
            # Code of the user, which may block.
            instance = await asyncio.to_thread(output.instance, result.output)
        except Exception as error:  # noqa: BLE001 - whatever such code raises
            told = "run %s: its output is given as plain values, for here it does not fit %r: %s"
            logger.warning(told, result.run_id, output.given, error)
            return result
        return result.with_output(instance)
