"""The last executor of a cycle: decides whether the run is over, once per turn."""

from collections.abc import Mapping
from typing import Any

from harness_actors.config import Completion, HarnessConfig
from harness_actors.errors import WorkflowError
from harness_actors.events import ContinuationPrompt, StopDecided
from harness_actors.messages import Message
from harness_actors.ports import RunContext
from harness_actors.results import Reason, Status
from harness_actors.signals import Outcome, RepairTrigger, RunEnd, Signal, TurnComplete
from harness_actors.state import NUDGES, REQUEST_TOKENS, STOP_DECISION, TURN_COUNT, StateKey
from harness_actors.turn.bounds import out_of_turns, words_of

NUDGE = (
    "You answered without calling a tool, and `work_complete` has not been called, so the task "
    "still counts as unfinished. Do not repeat what you have said already. Do one of these now:\n"
    "- the task is done: call `work_complete` with a short summary of what came of it;\n"
    "- something is left to do: make the next tool call;\n"
    "- something failed: try another approach."
)
NOT_ACCEPTED = "The task does not count as done yet:\n{reasons}\nSee to that, then {again}."
AGAIN: Mapping[Completion, str] = {
    "explicit": "call `work_complete` again",
    "answer": "answer again",
}


class StopDecision:
    """Judges a turn by how it ended.

    In this order: what the run was to end by, even in its last turn; errors and bounds; rounds
    that came to nothing; the number of turns; and at last a text without `work_complete`, which
    is answered by a nudge until the nudges are spent and the stop policy decides.
    """

    name = STOP_DECISION
    reads: tuple[StateKey[Any], ...] = (TURN_COUNT, NUDGES)
    reads_log = False

    async def handle(self, signal: Signal, context: RunContext) -> Outcome:
        if not isinstance(signal, TurnComplete):
            raise WorkflowError(
                self.name,
                f"judges a TurnComplete, but the executor before it answered {signal!r}; "
                "let it pass on the TurnComplete that it got",
            )
        count = context.get(TURN_COUNT)
        end = _verdict(signal, context.spec.config, count)
        if end is None and signal.findings:
            nudges = self._nudges_without_progress(signal, context)
            end = self._not_accepted(signal, context, count, nudges)
            if end is None:
                return _continue(context, count, "not_accepted")
        elif end is None:
            nudges = self._nudges_without_progress(signal, context)
            if signal.ending == "rounds":
                return _continue(context, count, "max_rounds_per_turn")
            end = _out_of_nudges(signal, context.spec.config, nudges)
            if end is None:
                words = f"{NUDGE}\n{signal.stall}" if signal.stall else NUDGE
                _nudge(context, words, count, nudges + 1)
                return _continue(context, count, "work_complete_not_called")
        context.emit(StopDecided(turn=count, decision="stop", reason=end.reason.kind))
        return end

    def _not_accepted(
        self, signal: TurnComplete, context: RunContext, count: int, nudges: int
    ) -> RunEnd | None:
        """The end of a run whose gates will not let it end; None where it gets a message.

        Whoever is refused and works on may go on, to the last turn of the run at most.
        """
        config = context.spec.config
        end = _out_of_nudges(signal, config, nudges)
        if end is None:
            again = AGAIN[config.completion]
            # Each is one point, of however many lines.
            points = (finding.replace("\n", "\n  ") for finding in signal.findings)
            reasons = "\n".join(f"- {point}" for point in points)
            words = NOT_ACCEPTED.format(reasons=reasons, again=again)
            _nudge(context, words, count, nudges + 1)
        return end

    def _nudges_without_progress(self, turn: TurnComplete, context: RunContext) -> int:
        nudges = context.get(NUDGES)
        if turn.progressed and nudges:
            context.set(NUDGES, 0)
            return 0
        return nudges


def _verdict(turn: TurnComplete, config: HarnessConfig, count: int) -> RunEnd | None:
    """The end that needs no further question; None where the run may go on."""
    match turn.ending:
        case "completed" if not turn.findings:
            return _end("done", "completed", turn, verified=True)
        case "text" if config.completion == "answer" and not turn.findings:
            return _end("done", "answered", turn, verified=True)
        case "error":
            facts = turn.error or {}
            kind = "model_error" if facts.get("reason") == "model_error" else "agent_error"
            message = f"{facts.get('type', 'error')}: {facts.get('message', 'no details')}"
            return _end("failed", kind, turn, message, {"turn": count, "error": dict(facts)})
        case "limit":
            kind = turn.limit or "budget"
            words = str((turn.error or {}).get("message", "")) or words_of(kind, config)
            return _end("limit", kind, turn, words, {"turn": count})
        case "stalled":
            return _end("stalled", "repetition", turn, turn.stall, {"turn": count})
    if out_of_turns(config, count):
        words = words_of("max_turns", config)
        return _end("limit", "max_turns", turn, words, {"turn": count})
    return None


def _out_of_nudges(turn: TurnComplete, config: HarnessConfig, nudges: int) -> RunEnd | None:
    """The end of a run whose model stopped too often; None where it gets a nudge."""
    allowed = config.continuation.max_prompts if config.continuation is not None else 0
    if nudges < allowed:
        return None
    message = f"the model stopped without calling work_complete, after {nudges} nudges in a row"
    if turn.findings:
        message = f"not accepted, after {nudges} nudges in a row: {'; '.join(turn.findings)}"
    causes = {"causes": list(turn.findings)} if turn.findings else {}
    if config.stop_policy == "interactive":
        return _end("done", "unverified", turn, message, causes)
    return _end("stalled", "blocked" if causes else "no_completion", turn, message, causes)


def _nudge(context: RunContext, words: str, turn: int, count: int) -> None:
    continuation = context.spec.config.continuation
    message = Message.told(words)
    context.add_message(message)
    context.increment(REQUEST_TOKENS, message.tokens)
    context.set(NUDGES, count)
    context.emit(
        ContinuationPrompt(
            turn=turn, count=count, max=continuation.max_prompts if continuation else 0
        )
    )


def _continue(context: RunContext, turn: int, reason: str) -> RepairTrigger:
    context.emit(StopDecided(turn=turn, decision="continue", reason=reason))
    return RepairTrigger()


def _end(
    status: Status,
    kind: str,
    turn: TurnComplete,
    message: str = "",
    details: dict[str, Any] | None = None,
    *,
    verified: bool = False,
) -> RunEnd:
    return RunEnd(
        status=status,
        reason=Reason(kind=kind, message=message, details=details or {}),
        output_text=turn.text,
        completion_verified=verified,
        output=turn.output if status == "done" else None,
    )
