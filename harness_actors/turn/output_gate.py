"""The value of a run as a gate: an answer that is to be one is looked at before it ends the run."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from harness_actors.outputs import OutputCodeError, OutputType, json_in, value_of
from harness_actors.outputs.words import FINDING_CHARS, UNFIT, shown_schema
from harness_actors.ports import RunContext
from harness_actors.results import LimitKind
from harness_actors.state import TURN_COUNT
from harness_actors.turn.bounds import Bounds
from harness_actors.turn.deadline import Allowance, Raised, TimedOut, run_within
from harness_actors.turn.meter import TurnMeter
from harness_actors.turn.outputs import facts_of
from harness_actors.turn.services import AgentTurnServices
from harness_actors.turn.texts import shortened, well_formed

OBSERVED = "output"
"""The kind of what is on record of a value that was looked at."""
ANNOUNCED = "the type of the output"
PROBLEM_CHARS = 4_000


@dataclass(frozen=True, slots=True)
class Came:
    """What looking at an answer came to.

    Attributes:
        cause: Why it is not the value, in words for the model; empty where it is.
        value: The value.
        error: Facts of what failed in code of a user; None where nothing did.
        limit: The bound of the run that was reached meanwhile; None where none was.
    """

    cause: str = ""
    value: Any = None
    error: Mapping[str, Any] | None = None
    limit: LimitKind | None = None


@dataclass(frozen=True, slots=True)
class OutputGate:
    """Holds the answers of one run to its type, in one of its turns.

    Attributes:
        context: The run.
        output: The type.
        meter: What the turn uses.
        services: Those of the process.
        bounds: Those of the run.
    """

    context: RunContext
    output: OutputType
    meter: TurnMeter
    services: AgentTurnServices
    bounds: Bounds

    async def at_end(self, answer: str) -> Came:
        """Look at an answer.

        Whether it fits is on record, and what it says is in the log, so a rerun needs no code of
        the user.

        Args:
            answer: What the agent has answered.
        """
        text = json_in(answer)
        turn = self.context.get(TURN_COUNT)
        record = await self.context.observe(OBSERVED, turn, partial(self._record, text))
        if record:
            return Came(
                cause=record.get("cause", ""),
                error=record.get("error"),
                limit=record.get("limit"),
            )
        return Came(value=value_of(text))

    async def _record(self, text: str) -> dict[str, Any]:
        # Should code of the user end this process, it is known whose that was.
        self.context.tools_started([ANNOUNCED])
        wall, working_s = self.bounds.wall_due(), self.bounds.working_left(self.meter.working_s)
        look = partial(self.output.problem, text, self.services.in_thread)
        outcome = await run_within(Allowance(wall, working_s), ANNOUNCED, look)
        match outcome:
            case TimedOut(due):
                return {"limit": due.kind}
            case Raised(OutputCodeError() as failed):
                return {"error": facts_of(failed)}
            case Raised(error):
                raise error
            case returned:
                problem = shortened(well_formed(str(returned.value)), PROBLEM_CHARS)
        if not problem:
            return {}
        schema = shown_schema(self.output.schema, FINDING_CHARS)
        return {"cause": UNFIT.format(problem=problem, schema=schema)}
