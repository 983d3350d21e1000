"""What an executor observed in a visit, as its journal has it."""

import asyncio
from collections.abc import Callable
from typing import Any

from harness_actors.executors.observations import Asked, asked_of
from harness_actors.replay.visits import Visit
from harness_actors.state import observed_by


class Observed:
    """Answers in place of what an executor would ask outside of its run.

    Args:
        visit: The visit.
        leave: Called where the journal does not have what is asked for: with that, or with an
            empty text where the visit was cut, and nobody knows whether it was asked for by then.
    """

    def __init__(self, visit: Visit, leave: Callable[[str], None]) -> None:
        self._visit = visit
        self._leave = leave
        entry = observed_by(visit.to)
        self._answers = {
            asked_of(visit.to, write.value): write.value["answer"]
            for change in visit.changes
            for write in change.delta.writes
            if write.key == entry and write.change == "append"
        }
        self._unread = set(self._answers)

    @property
    def has_more(self) -> bool:
        """Whether something was observed that was not asked for yet."""
        return bool(self._unread)

    async def answer(self, asked: Asked) -> Any:
        """What was observed; where that is not on record, the visit is left."""
        if asked not in self._answers:
            which = f"{asked.kind!r} of {asked.question}"
            if asked.number > 1:
                which += f" for the {asked.number}. time"
            nothing = f"{asked.executor!r} observes {which}, and the journal does not have that"
            self._leave("" if self._visit.cut is not None else nothing)
            await asyncio.Event().wait()
        self._unread.discard(asked)
        return self._answers[asked]
