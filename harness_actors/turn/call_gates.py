"""The gates of calls: what stands before their effects and after their results."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from harness_actors.exact_json import values_in
from harness_actors.policies import (
    AfterTool,
    Ask,
    BeforeTool,
    Change,
    Deny,
    HookEvent,
    Replace,
)
from harness_actors.policies.approvals import ApprovalNeed
from harness_actors.policies.verdicts import CallVerdict, encoded_arguments, shortened_reason
from harness_actors.ports import LargeResult, RunContext
from harness_actors.turn.approvals import NOT_MADE, asked_about, denied, ruled
from harness_actors.turn.hook_calls import Asked, HookCalls, Withhold, size_on_record
from harness_actors.turn.one_call import PlannedCall
from harness_actors.turn.outcomes import ToolExecutionResult, ToolFailure, ToolOutcome
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.services import AgentTurnServices
from harness_actors.turn.texts import shortened, well_formed

VERDICTS_BYTES = 512 * 1024
"""What is kept of the verdicts on the calls of one message, at most."""
WITHHELD = {
    "failed": "The result of this call is withheld: a hook that must look at it first has failed.",
    "cut": (
        "The result of this call is withheld: the run's time was over before a hook had looked at "
        "it, which must be first."
    ),
}
"""What stands in the place of a result that nobody may see, by why not; nothing of what the hook or
the tool said is in it."""
TOO_MUCH = "its hooks have changed too much in this message; call again by itself"


@dataclass(frozen=True, slots=True)
class CallGates:
    """The hooks and the approvals of the calls of one turn.

    Attributes:
        context: The run.
        prepared: The agent.
        services: Those of the process.
        hooks: Asks the hooks.
    """

    context: RunContext
    prepared: PreparedAgent
    services: AgentTurnServices
    hooks: HookCalls

    @classmethod
    def of(
        cls,
        context: RunContext,
        prepared: PreparedAgent,
        services: AgentTurnServices,
        hooks: HookCalls,
    ) -> "CallGates | None":
        """Those of a run; None where nobody has a say in its calls or their results."""
        given = prepared.hooks
        if given.pre_tool or given.post_tool or prepared.approvals is not None:
            return cls(context, prepared, services, hooks)
        return None

    @property
    def of_results(self) -> bool:
        """Whether hooks have a say in results, which must be left whole until they had it."""
        return bool(self.prepared.hooks.post_tool)

    async def before_calls(
        self, plans: Sequence[PlannedCall], unasked: Collection[str] = ()
    ) -> list[PlannedCall]:
        """What becomes of the calls of a message, before the first of them begins.

        Those that a person must approve have an `approval`: also those that have it by now.

        Args:
            plans: The calls.
            unasked: Ids of those that no hook is asked about: what is on record of them counts.
        """
        hooked = await self._hooked(plans, unasked)
        if self.prepared.approvals is None:
            return hooked
        return await ruled(self.context, self.prepared, hooked, self._message(), self.services)

    async def _hooked(
        self, plans: Sequence[PlannedCall], unasked: Collection[str]
    ) -> list[PlannedCall]:
        if not self.prepared.hooks.pre_tool:
            return list(plans)
        kept, judged, message = 0, [], self._message()
        for plan in plans:
            if plan.tool is None or plan.tool is self.prepared.completion:
                judged.append(plan)
                continue
            known = plan.call.id in unasked
            ask = partial(self._judge_call, plan, VERDICTS_BYTES - kept)
            asked = await self.hooks.observe(
                "pre_tool",
                [message, plan.call.id],
                _ask_nobody if known else ask,
                announce=not kept and not known,
                call_id=plan.call.id,
            )
            kept += size_on_record(asked.plain)
            judged.append(_judged(plan, asked.plain))
        return judged

    async def after_call(self, plan: PlannedCall, outcome: ToolOutcome) -> ToolOutcome:
        """What the model is told of a call, whatever became of it."""
        if plan.tool is not None and plan.tool is self.prepared.completion:
            return outcome
        ask = partial(self._look_at, plan, outcome)
        asked = await self.hooks.observe(
            "post_tool",
            [self._message(), plan.call.id],
            ask,
            announce=False,
            call_id=plan.call.id,
        )
        if (why := asked.plain.get("withheld")) is not None:
            text = WITHHELD[why]
        elif "replaced" not in asked.plain:
            return outcome
        else:
            known = asked.text
            text = await self.services.text_on_record(plan.call) if known is None else known
        if isinstance(outcome.text, LargeResult):
            outcome.text.close()
        if isinstance(outcome, ToolExecutionResult):
            # In place of all that there was, images included.
            return ToolExecutionResult(text=text)
        if why is not None and isinstance(outcome, ToolFailure):
            # A traceback says what the tool has raised.
            return ToolFailure(text=text)
        return replace(outcome, text=text)

    def _message(self) -> int:
        """Where in the log the message stands whose calls are made. Ids come again in others, and
        a round whose calls Repair has closed is the place of the next message, too."""
        log = self.context.log
        return next(at for at in range(len(log) - 1, -1, -1) if log[at].role == "assistant")

    async def _judge_call(self, plan: PlannedCall, room: int, asked: Asked) -> None:
        """Ask all hooks about a call: the first denial wins, and changes add up."""
        verdict = CallVerdict()
        for hook in self.prepared.hooks.of("pre_tool"):
            arguments = verdict.arguments or plan.call.arguments
            event = self._call_event(plan, arguments)()
            answer = await self.hooks.answer("pre_tool", hook, event, asked)
            match answer:
                case Deny(reason):
                    verdict = CallVerdict(denied=shortened_reason(reason))
                    break
                case Ask(why):
                    verdict = replace(verdict, asks=shortened_reason(why))
                case Change(changed):
                    try:
                        verdict = replace(verdict, arguments=encoded_arguments(changed))
                    except ValueError as error:
                        asked.failed(hook, str(error))
                        if hook.denies_on_error("pre_tool"):
                            reason = f"the hook {hook.name} {error}"
                            verdict = CallVerdict(denied=reason)
                            break
        if size_on_record(verdict.as_plain()) > room:
            verdict = CallVerdict(denied=TOO_MUCH)
        asked.plain |= verdict.as_plain()

    async def _look_at(self, plan: PlannedCall, outcome: ToolOutcome, asked: Asked) -> None:
        text = outcome.text
        for hook in self.prepared.hooks.of("post_tool"):
            event = self.hooks.event(
                AfterTool,
                call_id=plan.call.id,
                tool_name=plan.call.name,
                arguments=partial(_parsed, plan.given.arguments),
                disposition=outcome.failure or "done",
                text=text,
            )
            answer = await self.hooks.answer("post_tool", hook, event(), asked)
            if isinstance(answer, Withhold):
                # Those after it hear of the call, and not of what it said.
                text, asked.plain["withheld"] = WITHHELD[answer.why], answer.why
            elif isinstance(answer, Replace) and "withheld" not in asked.plain:
                text = shortened(well_formed(answer.text))
                asked.text, asked.plain["replaced"] = text, True

    def _call_event(self, plan: PlannedCall, arguments: str) -> Callable[[], HookEvent]:
        assert plan.tool is not None, "others are not asked about"
        spec = plan.tool.spec
        return self.hooks.event(
            BeforeTool,
            call_id=plan.call.id,
            tool_name=plan.call.name,
            arguments=partial(_parsed, arguments),
            raw_arguments=plan.call.arguments,
            effect=spec.effect,
            idempotent=plan.idempotent,
        )


async def _ask_nobody(asked: Asked) -> None:
    """Leave it at what is known."""


def _judged(plan: PlannedCall, plain: dict[str, Any]) -> PlannedCall:
    told = {name: text for name, text in plain.items() if name in ("denied", "asks", "arguments")}
    if not told:
        return plan
    verdict = CallVerdict.from_plain(told)
    if verdict.denied is not None:
        return denied(plan, NOT_MADE.format(reason=verdict.denied))
    changed = replace(plan, arguments=verdict.arguments)
    return changed if verdict.asks is None else asked_about(changed, ApprovalNeed(why=verdict.asks))


def _parsed(arguments: str) -> Any:
    """A copy of one's own for each that is told."""
    try:
        return values_in(arguments)
    except ValueError:
        return None
