"""The rounds of a turn: ask the model, run the tools that it asks for, and again."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from harness_actors.errors import HarnessError
from harness_actors.events import RoundCompleted, ToolsCounted
from harness_actors.messages import Message
from harness_actors.ports import ModelResponse, RunContext
from harness_actors.progress import RunProgress
from harness_actors.results import Usage
from harness_actors.signals import Parked, TurnComplete, Waiting, Yielded
from harness_actors.state import (
    BUDGET,
    CHILDREN,
    CHILDREN_USAGE,
    REQUEST_TOKENS,
    SAID_DONE,
    TURN_BEGAN,
    TURN_COUNT,
    SaidDone,
)
from harness_actors.turn.acceptance import is_large
from harness_actors.turn.answers import as_message, ask
from harness_actors.turn.bounds import Bounds
from harness_actors.turn.brevity import briefer
from harness_actors.turn.budget import TurnBudget
from harness_actors.turn.call_scheduler import ToolCalls
from harness_actors.turn.child_copies import CopiesOfRun
from harness_actors.turn.fallback import TurnChain, fell_back
from harness_actors.turn.gates import Gates
from harness_actors.turn.log_messages import LogMessages
from harness_actors.turn.mail import IncomingMail
from harness_actors.turn.meter import TurnMeter
from harness_actors.turn.preparation import PreparedAgent
from harness_actors.turn.recovery import findings_of, told_of_cut
from harness_actors.turn.repeats import RepeatGuard
from harness_actors.turn.services import AgentTurnServices
from harness_actors.turn.stalls import Stalls
from harness_actors.turn.state import TurnState
from harness_actors.turn.texts import counted
from harness_actors.turn.voice import Voice
from harness_actors.turn.window import Window
from harness_actors.turn.workplace import Workplace

MOST_LOG_BYTES = 64 * 1024 * 1024
"""The largest conversation that is sent. No honest provider takes a larger request; one that wants
to fill this process's memory would take any."""


class TurnLoop:
    """The rounds of one turn of one run, from where its state says that it stands.

    What a crash may cost decides what is written when:

    - A round with a call that is not idempotent is *fenced*: its message and the index
      of its calls are on disk before the first tool starts, and each result follows as
      it ends, so a call of unknown outcome is never made twice.
    - A round of idempotent calls is written once, at its end: after a crash it never was.
    - The round that ends the turn is written with the answer, so no turn can be found
      that is over but was not judged. Where gates are asked about its end, who may take long,
      it is on disk before with the word that it is done: after a crash they are asked again,
      and the model is not.
    - No model call begins before the round before the last one is on disk; where runs share
      a budget, or the bounds of their tree, not before the last one is: what it cost must be known,
      and what the others have.
    """

    def __init__(
        self,
        context: RunContext,
        prepared: PreparedAgent,
        services: AgentTurnServices,
        workspace: Path | None,
        progress: RunProgress | None = None,
    ) -> None:
        self._context = context
        self._prepared = prepared
        self._meter = TurnMeter(context, services.clock, counts_tools=prepared.counts_tools)
        # Executors of the user's own may have written anything between two turns.
        task = () if context.spec.custom else context.spec.task
        repeats = RepeatGuard(context.log, prepared.by_name, task)
        self._state = TurnState(self._meter, self._budget(), repeats, services.clock.monotonic)
        limits = context.spec.config.limits
        below = context.get(CHILDREN_USAGE) if prepared.delegates else None
        self._is_one_of_many = context.get(BUDGET) is not None or context.spec.parent is not None
        self._bounds = Bounds(limits, context.started_at, services.clock, below)
        self._watched = None if workspace is None else services.watch_workspace(workspace)
        folder_id = None if self._watched is None else self._watched.id
        messages = None if context.plan is None else LogMessages(context.log)
        artifacts, copies = services.artifacts(context.spec), CopiesOfRun.of(context, services)
        place = Workplace(workspace, folder_id, artifacts, messages, copies)
        self._gates = Gates.of(context, prepared, self._meter, services, self._bounds, place)
        of_calls = None if self._gates is None else self._gates.of_calls
        self._calls = ToolCalls(
            context, prepared, services, self._state, self._bounds, place, of_calls
        )
        ask = None if self._gates is None else self._gates.of_rounds
        self._stalls = Stalls.of(context, self._meter, progress, services.read_stall, ask)
        self._window = Window.of(context, prepared)
        self._mail = IncomingMail.of(context, prepared, services)
        self._models = TurnChain.of(prepared.agent.model, limits)
        self._last: Awaitable[None] | None = None
        self._awaited: Awaitable[None] | None = None
        """To be on disk before the next model call begins."""

    async def run(self) -> TurnComplete | Parked | Waiting | Yielded:
        """Do rounds until the turn ends, waits for its user, or is to park between two."""
        try:
            ended = self._said_before() or await self._rounds()
        finally:
            self._state.close_writes()
        if isinstance(ended, Parked | Waiting | Yielded):
            return ended
        if ended.ending != "limit":
            # Else the last calls could leave another folder to whoever scores it.
            self._check_workspace()
        says_done = self._says_done(ended) and not ended.findings
        if says_done and self._gates is not None and self._gates.of_end:
            await self._keep(ended)
            ended = await self._gates.at_end(self._in_words(ended))
        ended = self._in_words(ended)
        if self._says_done(ended) and not ended.findings:
            ended = briefer(self._context, ended)
        self._meter.write()
        if self._meter.used:
            turn = self._context.get(TURN_COUNT)
            self._context.emit(ToolsCounted(turn=turn, calls=dict(self._meter.used)))
        return replace(ended, progressed=ended.progressed or self._meter.progressed)

    def _in_words(self, ended: TurnComplete) -> TurnComplete:
        said = ended.text or _said_last(self._context.log, self._meter.rounds)
        return replace(ended, text=said)

    def _said_before(self) -> TurnComplete | None:
        """How the turn ends whose process died while gates were asked about that."""
        said = self._context.get(SAID_DONE)
        if said is None:
            return None
        return TurnComplete(
            ending=said.ending, text=said.text, stall=said.stall, output=said.output
        )

    async def _keep(self, ended: TurnComplete) -> None:
        """Have the last round on disk, and that there is none to come."""
        if self._context.get(SAID_DONE) is None:
            assert ended.ending in ("completed", "text"), "no other says that it is done"
            said = SaidDone(
                ending=ended.ending, text=ended.text, stall=ended.stall, output=ended.output
            )
            self._context.set(SAID_DONE, said)
            self._meter.write()
            await self._context.flush()

    def _says_done(self, ended: TurnComplete) -> bool:
        answers = self._context.spec.config.completion == "answer"
        return ended.ending == "completed" or (ended.ending == "text" and answers)

    async def _rounds(self) -> TurnComplete | Parked | Waiting | Yielded:
        self._last = self._context.flush()
        ended: TurnComplete | Parked | Waiting | Yielded | None = await self._finish_round()
        while ended is None:
            if self._awaited is not None:
                await self._awaited
            # Looked at after that: what is told meanwhile holds for this round, too.
            if self._context.parking:
                ended = Parked()
            else:
                if self._mail is not None:
                    await self._mail.read()
                ended = self._bound_reached() or self._out_of_room() or await self._round()
        return ended

    async def _finish_round(self) -> TurnComplete | Waiting | None:
        """End the round that a death or a pause cut off, if there is one."""
        if self._context.log.open_calls():
            return await self._end_round(await self._calls.finish())
        if self._stalls is not None and self._stalls.is_due:
            return await self._end_round(None)
        return None

    def _budget(self) -> TurnBudget | None:
        limits = self._context.spec.config.turn_limits
        if limits is None:
            return None
        return TurnBudget(limits, self._context.get(TURN_BEGAN) or Usage(), self._meter)

    def _rounds_done(self) -> TurnComplete | None:
        budget = self._state.budget
        done = self._meter.rounds >= self._context.spec.config.max_rounds_per_turn
        if done or (budget is not None and budget.is_spent):
            return TurnComplete(ending="rounds")
        return None

    def _bound_reached(self) -> TurnComplete | None:
        if (ended := self._rounds_done()) is not None:
            return ended
        view = self._context.view
        shown = self._context.log if view is None else view
        if shown.size_bytes > MOST_LOG_BYTES:
            return TurnComplete(ending="limit", limit="context")
        return self._limit_reached()

    def _out_of_room(self) -> TurnComplete | Yielded | None:
        return None if self._window is None else self._window.full()

    def _limit_reached(self) -> TurnComplete | None:
        kind = self._bounds.reached(self._meter.usage)
        return None if kind is None else TurnComplete(ending="limit", limit=kind)

    async def _round(self) -> TurnComplete | Parked | Waiting | Yielded | None:
        """One model call and its tools; how the turn ends, or None where it goes on."""
        self._check_workspace()
        if self._gates is not None:
            await self._gates.before_model()
            if (over := self._limit_reached()) is not None:
                # Hooks have taken the time that was left, and no request begins.
                return over
        working_s, voice = self._meter.working_s, self._voice()
        answer = await ask(
            self._prepared, self._context, self._bounds, working_s, voice, self._models
        )
        response, spent = answer.response, answer.tries.spent
        if isinstance(response, Parked):
            return response
        fallback = fell_back(answer.tries, self._context, self._meter.rounds + 1)
        if isinstance(response, TurnComplete):
            if fallback is not None:
                self._context.emit(fallback)
            self._meter.failed(waited_s=answer.waited_s, spent=spent)
            if response.limit == "context" and self._window is not None:
                self._meter.write()
                return self._window.refused()
            return response
        if self._window is not None:
            self._window.answered(response.usage.input_tokens)
        if voice is None and (late := self._voice()) is not None:
            # Somebody began to read in the middle of the call.
            late.tell(response)
        if is_large(response):
            # Known to be this run's, should taking it in be more than the process bears.
            self._context.tools_started()
            await asyncio.sleep(0)
        message = await as_message(response, self._prepared)
        waited_s, tokens = answer.waited_s, message.tokens
        self._meter.answered(response, answer_tokens=tokens, waited_s=waited_s, spent=spent)
        # A model may take long to answer, and what it asks for would be done nowhere.
        self._check_workspace()
        if fallback is not None:
            self._context.emit(fallback)
        self._context.add_message(message)
        if self._gates is not None:
            await self._gates.after_model(response, message.text)
        calls = message.tool_calls
        if calls:
            ended = await self._calls.run(calls, finish_reason=response.finish_reason)
        elif told := told_of_cut(response, self._context.log):
            ended = None
            message = await counted(Message.told(told), self._prepared.counter)
            self._context.add_message(message)
            self._context.increment(REQUEST_TOKENS, message.tokens)
        else:
            completion = self._context.spec.config.completion
            ended = TurnComplete(ending="text", findings=findings_of(response, completion))
        self._context.emit(self._completed(response, spent, len(calls)))
        return await self._end_round(ended)

    def _check_workspace(self) -> None:
        """Let the run fail where the folder that it works in was taken away."""
        if self._watched is None:
            return
        try:
            self._watched.check()
        except HarnessError:
            self._meter.write()
            raise

    def _voice(self) -> Voice | None:
        """What tells the text of the round to come; None where nobody reads it."""
        sink = self._context.texts
        if sink is None:
            return None
        return Voice(sink, self._context.get(TURN_COUNT), self._meter.rounds + 1)

    async def _end_round(
        self, ended: TurnComplete | Waiting | None
    ) -> TurnComplete | Waiting | None:
        """The results of a round are in the log; how the turn ends, or None where it goes on."""
        if isinstance(ended, Waiting):
            return ended
        if self._stalls is not None:
            ended = await self._stalls.after_round(ended)
        ended = ended or self._rounds_done()
        if ended is not None:
            return ended
        self._meter.write()
        self._context.close_place()
        before_last, self._last = self._last, self._context.flush()
        self._awaited = self._last if self._shares() else before_last
        return None

    def _shares(self) -> bool:
        """Whether others may be at work beside the run who use up its bounds or budget."""
        if self._is_one_of_many:
            return True
        return self._prepared.delegates and self._context.get(CHILDREN) > 0

    def _completed(
        self, response: ModelResponse, spent: Usage | None, calls: int
    ) -> RoundCompleted:
        usage = response.usage if spent is None else response.usage + spent
        return RoundCompleted(
            turn=self._context.get(TURN_COUNT),
            round=self._meter.rounds,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            cost_usd=usage.cost_usd,
            tool_calls=calls,
        )


def _said_last(log: Sequence[Message], rounds: int) -> str:
    """The newest words of so many rounds at the end of a log; empty where it has none."""
    answers = (message for message in reversed(log) if message.role == "assistant")
    return next((message.text for message in islice(answers, rounds) if message.text), "")
