"""The gates of one turn: what stands around its model calls, its rounds and its end."""

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from harness_actors.policies import (
    AfterModel,
    AfterRound,
    AgentStop,
    BeforeModel,
    Circling,
    Novel,
    OutputText,
)
from harness_actors.policies.verdicts import shortened_reason
from harness_actors.ports import ModelResponse, RunContext
from harness_actors.progress import Stall
from harness_actors.signals import TurnComplete
from harness_actors.state import TURN_COUNT
from harness_actors.turn.bounds import Bounds
from harness_actors.turn.call_gates import CallGates
from harness_actors.turn.hook_calls import Asked, HookCalls
from harness_actors.turn.meter import TurnMeter
from harness_actors.turn.output_gate import OutputGate
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.services import AgentTurnServices
from harness_actors.turn.stalls import AskAboutStall
from harness_actors.turn.workplace import Workplace

if TYPE_CHECKING:
    from harness_actors.turn.verification import ContractGate


@dataclass(frozen=True, slots=True)
class Gates:
    """The hooks and the approvals of one turn of one run, at their points.

    Attributes:
        context: The run.
        prepared: The agent.
        meter: What the turn uses.
        hooks: Asks the hooks.
        of_calls: Those of its calls and their results; None where nobody has a say in these.
        contract: Verifies what the run must have come to; None for nothing.
        output: Holds its answer to a type; None where it is text, or the tool that ends the run
            takes a value.
    """

    context: RunContext
    prepared: PreparedAgent
    meter: TurnMeter
    hooks: HookCalls
    of_calls: CallGates | None = None
    contract: "ContractGate | None" = None
    output: OutputGate | None = None

    @classmethod
    def of(
        cls,
        context: RunContext,
        prepared: PreparedAgent,
        meter: TurnMeter,
        services: AgentTurnServices,
        bounds: Bounds,
        place: Workplace,
    ) -> "Gates | None":
        """Those of a run; None where it has neither hooks, nor approvals, nor a contract, nor an
        answer that must be of a type."""
        has_contract = context.spec.config.contract is not None
        typed = prepared.output if prepared.completion is None else None
        if not (prepared.hooks or prepared.approvals is not None or has_contract or typed):
            return None
        hooks = HookCalls(
            context, prepared.hooks, services.in_thread, bounds.wall_due, prepared.agent_path
        )
        contract = None
        if has_contract:
            # Here, for it loads what checks schemas, which most runs do not need.
            from harness_actors.turn.verification import ContractGate

            contract = ContractGate(context, prepared, meter, services, bounds, place)
        output = None if typed is None else OutputGate(context, typed, meter, services, bounds)
        of_calls = CallGates.of(context, prepared, services, hooks)
        return cls(context, prepared, meter, hooks, of_calls, contract, output)

    @property
    def of_rounds(self) -> AskAboutStall | None:
        """Asks the hooks that have a say in whether a round came to something; None without any."""
        return self._after_round if self.prepared.hooks.stall else None

    @property
    def of_end(self) -> bool:
        """Whether somebody is asked when the agent says that it is done."""
        hooks = self.prepared.hooks
        asked = hooks.output_guard or hooks.agent_stop
        return bool(asked) or self.contract is not None or self.output is not None

    async def before_model(self) -> None:
        """The model is about to be asked."""
        number = self.meter.rounds + 1
        event = self.hooks.event(
            BeforeModel,
            round=number,
            messages=partial(tuple, self.context.log),
        )
        await self.hooks.tell("pre_model", number, event)

    async def after_model(self, response: ModelResponse, text: str) -> None:
        """The model has answered."""
        number = self.meter.rounds
        event = self.hooks.event(
            AfterModel,
            round=number,
            text=text,
            tool_calls=tuple(response.tool_calls),
            usage=response.usage,
        )
        await self.hooks.tell("post_model", number, event)

    async def _after_round(self, stall: Stall | None) -> Stall | None:
        """How a run goes in circles when its hooks were asked, too: the first that knows counts.

        Args:
            stall: How it does by the rules of the harness; None where it does not.
        """
        number = self.meter.rounds
        event = self.hooks.event(
            AfterRound,
            round=number,
            messages=partial(tuple, self.context.log),
            stall="" if stall is None else stall.text,
        )

        async def ask(asked: Asked) -> None:
            told = event()
            for hook in self.prepared.hooks.stall:
                match await self.hooks.answer("stall", hook, told, asked):
                    case Novel():
                        asked.plain["novel"] = True
                        return
                    case Circling(what):
                        asked.plain["circling"] = shortened_reason(what)
                        return

        plain = (await self.hooks.observe("stall", number, ask)).plain
        if "novel" in plain:
            return None
        if "circling" in plain:
            return Stall("hook", 1, plain["circling"])
        return stall

    async def at_end(self, ended: TurnComplete) -> TurnComplete:
        """How a turn ends by which the agent says that it is done: all gates are asked, and
        whatever speaks against that is in its findings."""
        turn = self.context.get(TURN_COUNT)
        output = self.hooks.event(OutputText, text=ended.text)
        guarded = (await self.hooks.judge("output_guard", turn, output)).plain
        if "ends" in guarded:
            return _refused_by("output_guard", guarded["ends"])
        stop = self.hooks.event(
            AgentStop,
            text=ended.text,
            tool_usage=partial(dict, self.meter.used),
        )
        stopped = (await self.hooks.judge("agent_stop", turn, stop)).plain
        causes = [asked["denied"] for asked in (guarded, stopped) if "denied" in asked]
        value, better = ended.output, False
        if self.output is not None:
            looked = await self.output.at_end(ended.text)
            if looked.error is not None:
                return TurnComplete(ending="error", error=looked.error)
            if looked.limit is not None:
                return replace(ended, ending="limit", limit=looked.limit)
            causes += [looked.cause] if looked.cause else []
            value = looked.value
        if self.contract is not None:
            came = await self.contract.at_end(ended.text)
            if came.limit is not None:
                # Not met by then, and nobody may work on.
                return replace(ended, ending="limit", limit=came.limit)
            causes += [came.cause] if came.cause else []
            better = came.better
        if causes or better or self.output is not None:
            return replace(ended, findings=tuple(causes), progressed=better, output=value)
        return ended


def _refused_by(kind: str, reason: str) -> TurnComplete:
    error = {"reason": "agent_error", "type": kind, "message": reason}
    return TurnComplete(ending="error", error=error)


def refused_input(reason: str) -> TurnComplete:
    """How a run ends whose task a guard does not let pass."""
    return _refused_by("input_guard", reason)
