"""What a journal answers in place of a model, of tools and of the clock, in one visit.

Everything is a function of how long the log is, never a cursor. An answer of the model is the
message that stands at that place in the journal; what became of a call is found by its id among
the results of the same answer, wherever it stands there.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, cast

from harness_actors.config import Limits
from harness_actors.conversation import Conversation
from harness_actors.errors import ContextOverflowError, ModelError, ToolError
from harness_actors.events import ModelFellBack, StallFound, TurnCompleted
from harness_actors.messages import Message, ToolCall
from harness_actors.models.tries import current_tries, sum_of
from harness_actors.ports import AskedQuestion, Delegation, ModelResponse
from harness_actors.progress import Stall, StallKind
from harness_actors.records import StoredChange
from harness_actors.replay.handed_on import (
    CallPlace,
    HandedOn,
    asked_of_children,
    children_of,
)
from harness_actors.replay.observed import Observed
from harness_actors.replay.old_records import (
    failure_in_words,
    is_old,
    is_out_of_time,
    was_cut_short,
)
from harness_actors.replay.visits import Visit
from harness_actors.results import LimitKind, Usage
from harness_actors.signals import ChildRequest, TurnComplete
from harness_actors.state import AGENT_TURN, AWAITED, CONTRACT, MAIL, PRESSURE, USAGE, observed_by
from harness_actors.subagents.spec import BESIDE
from harness_actors.turn.delegation import NOTHING_LEFT, delegates
from harness_actors.turn.one_call import CUT_SHORT, PlannedCall
from harness_actors.turn.outcomes import ToolOutcome, outcome_of

_OBSERVED = observed_by(AGENT_TURN)
JUST_BEFORE_S = 0.001
"""What is left of a limit that ran out during a model call: that is stopped by it at once."""


class Tape:
    """The answers of one visit to the agent turn.

    Args:
        visit: The visit.
        log: The conversation as the executor has it; it grows while the visit goes on.
        limits: The bounds of the run.
        answered: Answers that the model had given in the run before the visit.
        handed_on: Which calls of the run asked its user, or were done by runs of their own.
        observed: What was observed in the visit.
        leave: Called where the journal has nothing more to say: with what was asked for in
            vain, or with an empty text where it shows that the visit was cut.
    """

    def __init__(
        self,
        visit: Visit,
        log: Conversation,
        limits: Limits,
        *,
        answered: int,
        handed_on: HandedOn,
        observed: Observed,
        leave: Callable[[str], None],
    ) -> None:
        self._visit = visit
        self._observed = observed
        self._log = log
        self._begun_at = len(log)
        self._limits = limits
        self._leave = leave
        self._messages = [
            (message, change) for change in visit.changes for message in change.delta.messages
        ]
        self._handed_on = handed_on
        self._answers = [answered]
        """How many there were before each message of the visit, and after the last."""
        self._results: dict[CallPlace, Message] = {}
        self._written: dict[CallPlace, int] = {}
        """The journal position of the change that holds each of them."""
        for message, change in self._messages:
            if message.role == "tool":
                place = (self._answers[-1], message.tool_call_id or "")
                self._results[place], self._written[place] = message, change.position
            self._answers.append(self._answers[-1] + (message.role == "assistant"))

    async def answer(self, model: str) -> ModelResponse:
        """What the model said next.

        Raises:
            Exception: What it raised, where the journal says that it failed.
        """
        found = self._next()
        if found is None:
            self._tell_failed_tries()
            await self._no_answer(model)
        message, change = found
        if message.role != "assistant":
            await self._give_up(f"the model was asked where {_placed(message)} follows")
        return ModelResponse(
            text=message.body.get("content"),
            tool_calls=message.tool_calls,
            finish_reason=self._finish_reason(message),
            usage=self._usage_of_answer(change),
        )

    async def result(self, call: ToolCall) -> ToolOutcome:
        """What became of a call that was made, or that the time of its run did not let begin."""
        message = self._results.get(self._place_of(call))
        if message is None:
            called = f"tool {call.name!r} was called by {call.id!r}"
            if (found := self._next()) is not None:
                await self._give_up(f"{called} where {_placed(found[0])} follows")
            await self._stuck(called)
        if not is_old(message):
            limit = cast("LimitKind | None", message.facts.limit or None)
            return outcome_of(message.text, message.failure, limit, images=message.images)
        limit = self.limit_by_time() if is_out_of_time(message) else None
        return outcome_of(message.text, failure_in_words(message), limit)

    def told_of(self, call: ToolCall) -> str | None:
        """What the model was told of a call; None where the journal has nothing of it."""
        message = self._results.get(self._place_of(call))
        return None if message is None else message.text

    def waves_of(self, plans: Sequence[PlannedCall]) -> list[Sequence[PlannedCall]]:
        """The calls of a message as they were made: a wave is written in one change.

        Where all calls of a message are, it says no more of waves, and need not. Those that are
        done by runs of their own are a wave before anything of them is written.
        """
        waves: list[list[PlannedCall]] = []
        open_until: int | None = None
        for plan in plans:
            elsewhere = delegates(plan)
            lone = plan.alone or elsewhere
            written = None if lone else self._written.get(self._place_of(plan.call))
            beside = elsewhere and bool(waves) and delegates(waves[-1][-1])
            if beside or (written is not None and written == open_until):
                waves[-1].append(plan)
            else:
                waves.append([plan])
            open_until = written
        return list(waves)

    def stall(self) -> Stall | None:
        """How the run came to nothing up to the round that has just ended; None where it did not.

        That is told in the change of the last message of the round.
        """
        if not 0 < self._place <= len(self._messages):
            return None
        events = self._messages[self._place - 1][1].delta.events
        found = next((event for event in events if isinstance(event, StallFound)), None)
        if found is None:
            return None
        return Stall(cast("StallKind", found.kind), found.rounds, found.what)

    def question(self, call: ToolCall) -> AskedQuestion:
        """What a call asks.

        Raises:
            ToolError: It could not ask that.
        """
        place = self._place_of(call)
        if place in self._handed_on.asked:
            return self._handed_on.asked[place][1]
        told = self._results.get(place)
        # Of one whose turn did not come in this visit, nobody looks at the words.
        raise ToolError("" if told is None else told.text)

    def delegation(self, call: ToolCall) -> Delegation | ChildRequest:
        """What a call has another agent do; only by whom it is done is on record here.

        Raises:
            ToolError: Nobody could do that.
        """
        place = self._place_of(call)
        known, told = self._handed_on.delegated.get(place), self._results.get(place)
        if known is None and told is not None and told.failure == "failed":
            raise ToolError(told.text)
        refused = place in self._handed_on.not_begun or any(
            _waits_for_others(change) for change in self._visit.changes
        )
        if known is None and told is None and refused:
            # It is refused when the others have ended; until then nobody looks at the words.
            raise ToolError("")
        if known is not None:
            return known[1]
        if call.name in BESIDE:
            return asked_of_children(call)
        return Delegation(agent=call.name, pool="", task="")

    def letters_due(self, waiting: int) -> int:
        """How many of the letters that wait its model was told before its next answer."""
        found = self._next()
        if found is None or found[0].role != "user":
            return 0
        taken = (w.value for w in found[1].delta.writes if (w.key, w.change) == (MAIL.name, "drop"))
        return min(waiting, next(taken, 0))

    @property
    def error(self) -> Mapping[str, Any] | None:
        """Facts of the error that ended the turn; None where none did."""
        ending = self._ending()
        return None if ending is None else ending.error

    def seconds_left(self) -> float | None:
        """What is left of the limit by time that ended the turn, of which the journal has nothing
        more, or nothing but that no further run was begun; None where none did."""
        if (follows := self._next()) is not None and follows[0].text != NOTHING_LEFT:
            return None
        if self._observed.has_more:
            return None
        ending = self._ending()
        if ending is None or ending.limit not in ("time", "working_time"):
            return None
        return JUST_BEFORE_S if self._asked_in_vain() else 0.0

    def turn_is_out_of_time(self, most_rounds: int) -> bool:
        """Whether the turn ended, where it is now, before it had so many rounds."""
        ending = self._ending()
        if self._next() is not None or ending is None or ending.ending != "rounds":
            return False
        events = self._visit.changes[-1].delta.events
        return any(isinstance(e, TurnCompleted) and e.rounds < most_rounds for e in events)

    def limit_by_time(self) -> LimitKind:
        """Which limit by time it was."""
        ending = self._ending()
        if ending is not None and ending.limit in ("time", "working_time"):
            return ending.limit
        return "time" if self._limits.time_s is not None else "working_time"

    @property
    def _place(self) -> int:
        """How many messages the visit has added so far."""
        return len(self._log) - self._begun_at

    def _place_of(self, call: ToolCall) -> CallPlace:
        """That of a call of the newest answer."""
        return self._answers[min(self._place, len(self._messages))], call.id

    def _next(self) -> tuple[Message, StoredChange] | None:
        return self._messages[self._place] if self._place < len(self._messages) else None

    def _ending(self) -> TurnComplete | None:
        signal = None if self._visit.hop is None else self._visit.hop.signal
        return signal if isinstance(signal, TurnComplete) else None

    def _asked_in_vain(self) -> bool:
        """The turn's last change counts a model call that brought no answer."""
        last = self._visit.changes[-1]
        answered = sum(message.role == "assistant" for message in last.delta.messages)
        return _usage_in(last).model_calls > answered

    def _usage_of_answer(self, change: StoredChange) -> Usage:
        """What an answer used, after telling what models used that were asked before it.

        Only tokens are told apart, for those of the answer say how long the conversation is: what
        a sum of costs was made of cannot be found again to the last digit.
        """
        used = _usage_in(change)
        if not (failed := _tell_fallback(change)):
            return used
        spent = sum_of([_tokens_of(one) for one in failed])
        current_tries().told.append(spent)
        return replace(
            used,
            input_tokens=used.input_tokens - spent.input_tokens,
            output_tokens=used.output_tokens - spent.output_tokens,
            cached_tokens=used.cached_tokens - spent.cached_tokens,
        )

    def _tell_failed_tries(self) -> None:
        """Tell what was used where no model answered."""
        if self._visit.changes and self._asked_in_vain():
            last = self._visit.changes[-1]
            _tell_fallback(last)
            current_tries().told.append(_usage_in(last))

    async def _no_answer(self, model: str) -> NoReturn:
        ending = self._ending()
        if ending is not None and ending.ending == "error":
            raise as_raised(model, ending)
        if (ending is not None and ending.limit == "context") or self._was_refused():
            raise ContextOverflowError(model, "as the journal has it")
        if ending is not None and self.seconds_left():
            await asyncio.Event().wait()
        await self._stuck("the model was asked once more")

    def _was_refused(self) -> bool:
        """The turn waits for room because its provider has refused a request."""
        last = self._visit.changes[-1:]
        writes = [write for change in last for write in change.delta.writes]
        return any(
            write.key == PRESSURE.name and bool((write.value or {}).get("refused"))
            for write in writes
        )

    async def _stuck(self, what: str) -> NoReturn:
        nothing_more = f"{what} where the journal has nothing more of this visit"
        await self._give_up("" if self._visit.cut is not None else nothing_more)

    async def _give_up(self, problem: str) -> NoReturn:
        # Not raised: whatever a model or a tool raises is an answer.
        self._leave(problem)
        await asyncio.Event().wait()
        raise AssertionError("a visit that was left does not go on")

    def _finish_reason(self, message: Message) -> str:
        if message.facts.finish_reason:
            return message.facts.finish_reason
        answer = self._answers[self._place + 1]
        places = ((answer, call.id) for call in message.tool_calls)
        results = [self._results[place] for place in places if place in self._results]
        if was_cut_short(results):
            return CUT_SHORT
        return "tool_calls" if message.tool_calls else "stop"


def as_raised(model: str, ending: TurnComplete) -> Exception:
    """An error of the kind and the words that the journal has of one."""
    facts = ending.error or {}
    words = str(facts.get("message", ""))
    kind = type(str(facts.get("type", "Exception")), (_RECORDED[facts.get("reason", "")],), {})
    error: Exception = kind(words)
    return error


class _RecordedModelError(ModelError):
    """A failure of the provider, in the words of the journal."""

    def __init__(self, words: str) -> None:
        super().__init__("recorded", words)

    def __str__(self) -> str:
        return self.problem


_RECORDED: dict[object, type[Exception]] = {
    "model_error": _RecordedModelError,
    "agent_error": Exception,
    "": Exception,
}


def _tell_fallback(change: StoredChange) -> tuple[dict[str, Any], ...]:
    """Tell of the models that were asked in a round beside the first; those that failed."""
    tries = current_tries()
    for event in change.delta.events:
        if isinstance(event, ModelFellBack):
            tries.model, tries.failed = event.model, tuple(map(dict, event.failed))
    return tries.failed


def _tokens_of(failed: Mapping[str, Any]) -> Usage:
    names = ("input_tokens", "output_tokens", "cached_tokens")
    return Usage(**{name: failed[name] for name in names})


def _usage_in(change: StoredChange) -> Usage:
    """What a change adds to the run's usage by its model; it holds one answer of it at most.

    What the judges of a contract used is a write of its own, which a rerun takes from what was
    observed of them.
    """
    told = [USAGE.decode(write.value) for write in change.delta.writes if write.key == USAGE.name]
    for write in change.delta.writes:
        if write.key == _OBSERVED and write.change == "append" and write.value["kind"] == CONTRACT:
            used = Usage(**write.value["answer"].get("usage", {}))
            if used in told:
                told.remove(used)
    spent = Usage()
    for each in told:
        spent += each
    return spent


def _waits_for_others(change: StoredChange) -> bool:
    """Whether a change begins runs, or asks something of such."""
    awaits = any(write.key == AWAITED.name and write.value for write in change.delta.writes)
    return awaits or any(True for _ in children_of(change))


def _placed(message: Message) -> str:
    return f"{message.role} message {message.encoded.decode()[:200]}"
