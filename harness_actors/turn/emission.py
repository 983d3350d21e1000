"""What a call tells of itself while it goes on: to whoever reads along, and to nobody else."""

import asyncio
import threading
from collections.abc import Callable, Sequence

from harness_actors.events import ToolProgress
from harness_actors.messages import ToolCall
from harness_actors.policies import TextFilter
from harness_actors.ports import MOST_TOLD, TOLD_CHARS, DeadlineToken, RunContext
from harness_actors.state import TURN_COUNT
from harness_actors.turn.texts import well_formed


class Emission:
    """Takes what one call tells, as long as it goes on.

    Args:
        context: The run; who reads along is looked up each time, for they come and go.
        round: The round of the turn.
        call: The call.
        deadline: What says when it is over, after which nothing is taken.
        filters: Makes what each text passes through before it is told, in their order.
    """

    def __init__(
        self,
        context: RunContext,
        round: int,
        call: ToolCall,
        deadline: DeadlineToken,
        filters: Callable[[], Sequence[TextFilter]] = tuple,
    ) -> None:
        self._context = context
        self._round = round
        self._call = call
        self._deadline = deadline
        self._filters = filters
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._left = MOST_TOLD

    def tell(self, text: str) -> bool:
        """See `ToolContext.emit`."""
        if self._context.texts is None or self._left <= 0 or self._deadline.cancelled or not text:
            return False
        self._left -= 1
        if not (told := self._filtered(str(text))):
            return False
        if threading.get_ident() == self._thread:
            self._say(told)
            return True
        try:
            self._loop.call_soon_threadsafe(self._say, told)
        except RuntimeError:
            # The loop is closed: a thread has outlived all that it worked for.
            return False
        return True

    def want_summary(self, keep: str) -> bool:
        """See `ToolContext.want_summary`."""
        if self._deadline.cancelled or not self._context.spec.is_summarized:
            return False
        keep = well_formed(str(keep))
        if threading.get_ident() == self._thread:
            return self._context.want_summary(keep)
        try:
            self._loop.call_soon_threadsafe(self._context.want_summary, keep)
        except RuntimeError:
            return False
        return True

    def _filtered(self, text: str) -> str:
        """What may be told of a text. Of one that is cut, without what a filter holds back: what
        it began to look at goes on behind the cut."""
        whole, told = len(text) <= TOLD_CHARS, well_formed(text[:TOLD_CHARS])
        for one in self._filters():
            told = one.feed(told) + (one.end() if whole else "")
        return told

    def _say(self, text: str) -> None:
        sink = self._context.texts
        if self._deadline.cancelled or sink is None:
            return
        event = ToolProgress(call_id=self._call.id, tool_name=self._call.name, text=text)
        sink.announce(self._context.get(TURN_COUNT), self._round, event)
