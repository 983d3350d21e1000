"""What the runs of a journal had cost before its present term began."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from harness_actors.coordination.coordinator import Coordinator
from harness_actors.ports import Journal
from harness_actors.records import RunHeading


@dataclass(eq=False)
class EarlierCosts:
    """Adds up, once, what a budget must count that this term has not seen being spent.

    Args:
        coordinator: Whose budget it is.
        journal: Has the runs.
        read: Calls the journal where it may block, with arguments.
        settle: Returns when what was decided until then is on disk.
    """

    _coordinator: Coordinator
    _journal: Journal
    _read: Callable[..., Awaitable[Any]]
    _settle: Callable[[], Awaitable[None]]
    _ended_usd: float | None = field(default=None, init=False)

    async def ended_usd(self) -> float:
        """What those cost that were over when this term began, in US dollars.

        What the others have cost so far is put into the budget, for they may be taken up.
        """
        while self._ended_usd is None:
            ended_since = self._coordinator.budget.ended_usd
            await self._settle()
            total: float = await self._read(self._journal.removed_cost_usd)
            headings: list[RunHeading] = await self._read(self._journal.headings)
            total += sum(one.end.usage.cost_usd for one in headings if one.end is not None)
            # One that ended meanwhile may be in the one sum and not in the other, and among
            # those that may be taken up.
            if ended_since == self._coordinator.budget.ended_usd:
                self._ended_usd = total - ended_since
                for heading in headings:
                    if heading.end is None:
                        # Of those that are served, it knows more than the journal.
                        self._coordinator.budget.take_up(heading.run_id, heading.usage.cost_usd)
        return self._ended_usd
