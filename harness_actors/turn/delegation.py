"""Calls that delegate: begun together as runs of their own, waited for, and answered."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from harness_actors.config import HarnessConfig, Limits
from harness_actors.errors import ToolError
from harness_actors.ports import DelegatingTool, Delegation, RunContext, Tool
from harness_actors.results import Usage
from harness_actors.signals import ChildRequest, ChildStart, Waiting
from harness_actors.state import CHILD_RESULTS, ChildResult
from harness_actors.turn.bounds import Bounds
from harness_actors.turn.meter import TurnMeter
from harness_actors.turn.one_call import PlannedCall
from harness_actors.turn.outcomes import (
    ToolDenied,
    ToolExecutionResult,
    ToolFailure,
    ToolOutcome,
    ToolTimeout,
)

A = TypeVar("A", int, float)

NOTHING_LEFT = (
    "Not begun: nothing is left of what the run may use; do what is still needed yourself."
)

NO_PLACE = (
    "Not begun: it works in a copy of your workspace, and there is none, or no place for a copy."
)

FORKED = (
    "Not begun: you are a copy of the agent that has this tool, sent out for one thing; do that "
    "yourself."
)


class Delegating:
    """The runs that one turn of one run begins, and what it asks of those beside it.

    Those of neighbouring calls of a message begin together, and the run waits for all of them that
    are not to be beside it; what stands in the message after them begins when they have ended.
    """

    def __init__(
        self, context: RunContext, meter: TurnMeter, bounds: Bounds, copies: Path | None
    ) -> None:
        self._context, self._meter, self._bounds = context, meter, bounds
        self._copies = copies

    @property
    def has_results(self) -> bool:
        """Whether what it has waited for is there, and not in the log yet."""
        return bool(self._context.get(CHILD_RESULTS))

    def is_begun_by(self, plan: PlannedCall) -> bool:
        """Whether a call begins a run, as things stand; else its result is that it does not, or is
        there."""
        return delegates(plan) and not self._has_ended(plan) and self._refusal(plan) is None

    def ended(self, plan: PlannedCall, tool: Tool | None) -> PlannedCall:
        """A call that is planned again, for its run has ended: it was made, whatever is left now.

        Args:
            plan: The call.
            tool: What it calls.
        """
        if plan.tool is not None or not self._has_ended(plan):
            return plan
        return PlannedCall(call=plan.call, tool=tool)

    def _has_ended(self, plan: PlannedCall) -> bool:
        results = self._context.get(CHILD_RESULTS) or ()
        return any(one.call_id == plan.call.id for one in results)

    def outcomes(
        self, wave: Sequence[PlannedCall], left: Sequence[PlannedCall]
    ) -> Sequence[ToolOutcome] | Waiting:
        """What comes of calls that delegate; that they wait, where runs are to be begun first, or
        those that were begun beside it are to be asked.

        Args:
            wave: The calls.
            left: What stands after them in their message. They were neighbours of some of these
                when their runs began, if one between them must not be made any more.
        """
        results = {one.call_id: one for one in self._context.get(CHILD_RESULTS) or ()}
        # By agent: of one message they are the same, and so thousands of children take little room.
        settings: dict[str, HarnessConfig] = {}
        found = [
            _outcome_of(results.get(plan.call.id)) or self._asked(plan, settings) for plan in wave
        ]
        starts = tuple(one for one in found if isinstance(one, ChildStart))
        requests = tuple(one for one in found if isinstance(one, ChildRequest))
        if starts or requests:
            return Waiting(children=starts, requests=requests)
        if results and not any(plan.call.id in results for plan in left):
            self._context.drop(CHILD_RESULTS, len(results))
        return [one for one in found if not isinstance(one, ChildStart | ChildRequest)]

    def _refusal(self, plan: PlannedCall) -> ToolOutcome | None:
        """Why a call begins no run, nor asks those that there are; None where it does."""
        asked = self._asked(plan, {})
        return None if isinstance(asked, ChildStart | ChildRequest) else asked

    def _asked(
        self, plan: PlannedCall, settings: dict[str, HarnessConfig]
    ) -> ChildStart | ChildRequest | ToolOutcome:
        """The run that a call begins, or what it asks of others; or why it does not.

        Args:
            plan: The call.
            settings: Those of the runs that other calls of its message begin, by agent.
        """
        try:
            delegation = _delegation(plan)
        except ToolError as error:
            return ToolFailure(text=error.text)
        if isinstance(delegation, ChildRequest):
            return delegation
        link = self._context.spec.parent
        if link is not None and link.forked:
            return ToolDenied(text=FORKED)
        copies = ""
        if delegation.workspace == "copy":
            if self._copies is None or self._context.spec.workspace is None:
                return ToolDenied(text=NO_PLACE)
            copies = str(self._copies)
        limits = self._limits(delegation)
        if limits is None:
            return ToolDenied(text=NOTHING_LEFT)
        config = settings.get(delegation.agent)
        if config is None:
            config = _settings(self._context.spec.config, delegation, limits)
            settings[delegation.agent] = config
        return ChildStart(
            call_id=plan.call.id,
            agent=delegation.agent,
            pool=delegation.pool,
            task=delegation.task,
            config=config,
            most_words=delegation.most_words,
            model=delegation.model,
            typed=delegation.typed,
            background=delegation.background,
            forked=delegation.forked,
            workspace=delegation.workspace,
            copies=copies,
        )

    def _limits(self, delegation: Delegation) -> Limits | None:
        """The bounds of a child, inside what is left of those of its parent; None where nothing
        is."""
        of_run, wanted = self._context.spec.config.limits, delegation.limits
        used, wall = self._bounds.with_children(self._meter.usage), self._bounds.wall_due()
        left = Left(of_run, used)
        if self._bounds.reached(self._meter.usage) is not None or left.is_nothing or wall.over:
            return None
        return replace(
            wanted,
            model_calls=min(wanted.model_calls, left.model_calls),
            tool_calls=_least(wanted.tool_calls, left.tool_calls),
            tokens=_least(wanted.tokens, left.tokens),
            cost_usd=_least(wanted.cost_usd, left.cost_usd),
            time_s=_least(wanted.time_s, wall.seconds),
            working_s=_least(wanted.working_s, self._bounds.working_left(self._meter.working_s)),
            calls_per_message=min(wanted.calls_per_message, of_run.calls_per_message),
        )


class Left:
    """What is left of the bounds of a run.

    Args:
        limits: The bounds.
        used: What was used, children included.
    """

    def __init__(self, limits: Limits, used: Usage) -> None:
        self.model_calls = limits.model_calls - used.model_calls
        self.tool_calls = None if limits.tool_calls is None else limits.tool_calls - used.tool_calls
        self.tokens = None if limits.tokens is None else limits.tokens - used.tokens
        self.cost_usd = None if limits.cost_usd is None else limits.cost_usd - used.cost_usd

    @property
    def is_nothing(self) -> bool:
        """A child could not do anything with it."""
        amounts = (self.model_calls, self.tool_calls, self.tokens, self.cost_usd)
        return any(amount is not None and amount <= 0 for amount in amounts)


def delegates(plan: PlannedCall) -> bool:
    """Whether a call is done by a run of its own."""
    return isinstance(plan.tool, DelegatingTool) and plan.approval is None and plan.answer is None


def _delegation(plan: PlannedCall) -> Delegation | ChildRequest:
    assert isinstance(plan.tool, DelegatingTool), "only such calls come here"
    return plan.tool.delegation(plan.given)


def _outcome_of(result: ChildResult | None) -> ToolOutcome | None:
    if result is None:
        return None
    match result.status:
        case "completed":
            return ToolExecutionResult(text=result.text)
        case "timed_out":
            return ToolTimeout(text=result.text)
        case _:
            return ToolFailure(text=result.text)


def _settings(config: HarnessConfig, delegation: Delegation, limits: Limits) -> HarnessConfig:
    """The settings of a child: those of its parent, but for what is its own."""
    return replace(
        config,
        completion=delegation.completion or config.completion,
        limits=limits,
        contract=delegation.contract,
        max_input_tokens=delegation.window_tokens or config.max_input_tokens,
    )


def _least(wanted: A | None, left: A | None) -> A | None:
    return min((amount for amount in (wanted, left) if amount is not None), default=None)
