"""What stands in a rerun where tools stood."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness_actors.conversation import Conversation
from harness_actors.messages import ToolCall
from harness_actors.outputs import OutputType
from harness_actors.outputs.output_type import InThread
from harness_actors.outputs.words import NOT_CHECKED
from harness_actors.plan import ToolPolicy
from harness_actors.plan.shown import ANCHORING
from harness_actors.ports import (
    AskedQuestion,
    AskingTool,
    DelegatingTool,
    Delegation,
    Model,
    Tool,
    ToolContext,
    ToolSpec,
)
from harness_actors.progress import RunProgress, Stall
from harness_actors.replay.old_records import as_told_then
from harness_actors.replay.stage import Stage
from harness_actors.signals import ChildRequest
from harness_actors.turn.bounds import Due
from harness_actors.turn.one_call import PlannedCall, run_call
from harness_actors.turn.outcomes import ToolDenied, ToolFailure, ToolOutcome
from harness_actors.turn.preparation import READ_ARTIFACT

WORK_COMPLETE = "work_complete"
"""With `READ_ARTIFACT` the harness's own tools, which a rerun has like any run."""


@dataclass(frozen=True)
class RecordedTool:
    """One that is known by its name; what became of its calls is in the journal."""

    spec: ToolSpec

    async def run(self, arguments: str, context: ToolContext) -> str:
        """Never called: see `RecordedCalls`."""
        raise NotImplementedError(f"{self.spec.name} does nothing in a rerun")


@dataclass(frozen=True)
class RecordedCalls:
    """Says of each call of a recorded tool what the journal has of it; nothing is done, and
    nothing is read that the run had read from elsewhere."""

    stage: Stage

    async def run(self, planned: PlannedCall, context: ToolContext, due: Due) -> ToolOutcome:
        tool = planned.tool
        # Files may be gone by now.
        if isinstance(tool, RecordedTool) or (tool and tool.spec.name == READ_ARTIFACT):
            tape = self.stage.open_tape()
            result = await tape.result(planned.call)
            if isinstance(result, ToolFailure) and result.text == NOT_CHECKED:
                return replace(result, ends=tape.error)
            return result
        outcome = await run_call(planned, context, due)
        if isinstance(outcome, ToolDenied) and tool is None:
            told = self.stage.open_tape().told_of(planned.call)
            outcome = replace(outcome, text=as_told_then(outcome.text, told))
        return outcome

    async def text(self, call: ToolCall) -> str:
        """What its model was told of a call."""
        return (await self.stage.open_tape().result(call)).text

    def stall(self, progress: RunProgress, log: Conversation) -> Stall | None:
        """How the journal says that the run came to nothing: it does not hold which tools have
        answers that change by themselves."""
        return self.stage.open_tape().stall()

    def letters_due(self, waiting: int) -> int:
        """Those of which the journal shows that the model was told."""
        return self.stage.open_tape().letters_due(waiting)

    def waves_of(self, plans: Sequence[PlannedCall]) -> list[Sequence[PlannedCall]]:
        """Those that the journal shows: it does not hold what may run beside what."""
        return self.stage.open_tape().waves_of(plans)


class RecordedOutput(OutputType):
    """A form of which nothing is known: what fitted it is on record."""

    given = None

    @property
    def schema(self) -> Mapping[str, Any]:
        return {}

    parameters = schema

    def completion(self, *, checked: bool) -> Tool:
        return RecordedTool(recorded_spec(WORK_COMPLETE))

    def prompt(self, model: Model) -> str:
        return ""

    async def read_arguments(self, arguments: str, in_thread: InThread) -> str:
        """Never called: see `RecordedCalls`."""
        raise NotImplementedError("a rerun looks at no value")

    async def problem(self, text: str, in_thread: InThread) -> str:
        """Never called: it is on record."""
        raise NotImplementedError("a rerun looks at no value")


@dataclass(frozen=True)
class RecordedAskingTool(AskingTool):
    """Asks what the journal has, and refuses what the journal has refused."""

    stage: Stage
    known: ToolSpec

    @property
    def spec(self) -> ToolSpec:
        return self.known

    def question(self, call: ToolCall) -> AskedQuestion:
        return self.stage.open_tape().question(call)


@dataclass(frozen=True)
class RecordedDelegatingTool(DelegatingTool):
    """Has done by runs of their own what the journal has of such, and refuses what it has
    refused."""

    stage: Stage
    known: ToolSpec

    @property
    def spec(self) -> ToolSpec:
        return self.known

    def delegation(self, call: ToolCall) -> Delegation | ChildRequest:
        return self.stage.open_tape().delegation(call)


def recorded_spec(
    name: str, *, idempotent: bool = True, policy: ToolPolicy = ANCHORING
) -> ToolSpec:
    """All that a rerun needs to know of a tool of this name."""
    return ToolSpec(
        name=name,
        description="recorded",
        parameters={"type": "object"},
        idempotent=idempotent,
        # Whatever a call was answered with, and by whom, is in the journal.
        volatile=True,
        durability=policy.durability,
        keep=policy.keep,
    )
