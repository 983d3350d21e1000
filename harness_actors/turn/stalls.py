"""What a turn does when its rounds come to nothing: it tells the model, and then ends."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from weakref import WeakKeyDictionary

from harness_actors.config import StallConfig
from harness_actors.conversation import Conversation, repaired
from harness_actors.events import StallFound
from harness_actors.messages import Message
from harness_actors.ports import RunContext
from harness_actors.progress import RunProgress, Stall
from harness_actors.signals import TurnComplete
from harness_actors.state import STALLED_ROUNDS, TURN_COUNT, UNJUDGED
from harness_actors.turn.meter import TurnMeter
from harness_actors.turn.preparation import PreparedAgent

WARNING = (
    "You go in circles: {stall}. To go on in the same way brings nothing new and ends the run. "
    "Use what you know by now, or do something else: make another call, or try another approach. "
    "If the task cannot be done, say what is in the way."
)
SAID_AGAIN = "You repeat yourself: these words have been read."

ReadStall = Callable[[RunProgress, Conversation], Stall | None]
"""Takes the rounds that have ended, and says how the run comes to nothing; None where it does
not."""

AskAboutStall = Callable[[Stall | None], Awaitable[Stall | None]]
"""Asks whoever has a say in whether a round came to something; takes and returns what that is."""


class KnownProgress:
    """The progress of the runs that are served in this process, each with its conversation: they
    are forgotten together."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Conversation, RunProgress] = WeakKeyDictionary()

    def of(self, context: RunContext, prepared: PreparedAgent) -> RunProgress | None:
        """That of a run; None where nobody asks for it."""
        spec, rules = context.spec, context.spec.config.stall
        if rules is None:
            return None
        known = self._known.get(context.log)
        if known is None or known.run_id != spec.run_id:
            task, _ = repaired(spec.task)
            known = RunProgress(
                spec.run_id, rules, prepared.polled, context.log, task[-1] if task else None
            )
            self._known[context.log] = known
        return known


class Stalls:
    """Watches the rounds of one turn.

    Args:
        context: The run.
        meter: What the turn uses.
        progress: That of the run.
        read: Says how it comes to nothing.
        rules: After how many rounds it is told, and how many may go on in the same way then.
        ask: Asks the user's own hooks; None where there are none.
    """

    def __init__(
        self,
        context: RunContext,
        meter: TurnMeter,
        progress: RunProgress,
        read: ReadStall,
        rules: StallConfig,
        ask: AskAboutStall | None = None,
    ) -> None:
        self._context = context
        self._meter = meter
        self._progress = progress
        self._read = read
        self._threshold, self._grace = rules.threshold, rules.grace
        self._ask = ask

    @classmethod
    def of(
        cls,
        context: RunContext,
        meter: TurnMeter,
        progress: RunProgress | None,
        read: ReadStall,
        ask: AskAboutStall | None = None,
    ) -> "Stalls | None":
        """Those of a turn; None where nobody asks whether its run comes on."""
        rules = context.spec.config.stall
        if progress is None or rules is None:
            return None
        return cls(context, meter, progress, read, rules, ask)

    @property
    def is_due(self) -> bool:
        """Whether the newest round ended without being looked at: Repair has closed it."""
        return self._context.get(UNJUDGED)

    async def after_round(self, ended: TurnComplete | None) -> TurnComplete | None:
        """Look at the round that has ended.

        The model is told once. When it goes on in the same way, the turn ends by that, and so
        does the run. One that was told of calls without news, and then repeats one of them alone,
        goes on in another way: it is told once more. One that answers without a call is told by
        whoever judges the turn.

        Args:
            ended: How the turn ends by that round; None where it goes on.

        Returns:
            The same, as this leaves it.
        """
        if self.is_due:
            self._context.set(UNJUDGED, False)
        if ended is not None and ended.ending != "text":
            return ended
        stall = self._read(self._progress, self._context.log)
        if self._ask is not None:
            stall = await self._ask(stall)
        if stall is not None:
            self._tell(stall)
        if ended is not None:
            return ended if stall is None else replace(ended, stall=_in_the_nudge(stall))
        # Words that were cut off are told so, and their turn is judged when they are so again.
        cut_off = stall is not None and stall.kind == "monologue"
        return self._judged(None if cut_off else stall)

    def _judged(self, stall: Stall | None) -> TurnComplete | None:
        stalled = self._context.get(STALLED_ROUNDS)
        if stall is None:
            if stalled:
                self._context.set(STALLED_ROUNDS, 0)
            return None
        told = self._to_tell(stall, stalled)
        if told is None and (stalled == self._grace or stalled >= 2 * self._grace):
            return TurnComplete(ending="stalled", stall=stall.text)
        if told is not None:
            warning = Message.told(WARNING.format(stall=told.text))
            self._context.add_message(warning)
            self._meter.told(warning.tokens)
        told_again = told is not None and stalled > 0
        self._context.set(STALLED_ROUNDS, 1 + (self._grace if told_again else stalled))
        return None

    def _to_tell(self, stall: Stall, stalled: int) -> Stall | None:
        """What the model is to be told; None where it was, and goes on in the same way."""
        if stalled == 0:
            return stall
        if stalled > self._grace:
            return None
        # A model that is told to stop reading in circles may read one thing for ever: it has
        # heard, and needs to hear that this is a circle, too.
        another = stall if stall.kind == "repetition" else None
        if stalled == self._grace and stall.begun is not None and stall.begun.rounds >= stalled:
            another = stall.begun
        if another is None or another.rounds - stalled >= self._threshold:
            # It was one already when the model was told.
            return None
        return another

    def _tell(self, stall: Stall) -> None:
        self._context.emit(
            StallFound(
                turn=self._context.get(TURN_COUNT),
                round=self._meter.rounds,
                kind=stall.kind,
                rounds=stall.rounds,
                what=stall.what,
                text=stall.text,
            )
        )


def _in_the_nudge(stall: Stall) -> str:
    """What whoever judges an answer without a call tells the model of it."""
    return SAID_AGAIN if stall.kind == "monologue" else f"You go in circles: {stall.text}."
