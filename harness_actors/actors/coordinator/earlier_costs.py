"""What the runs of a journal had cost before its present term began."""

from collections.abc import Awaitable, Callable
from typing import Any

from harness_actors.coordination.coordinator import Coordinator
from harness_actors.ports import Journal


class EarlierCosts:
    """Adds up, once, what a budget must count that this term has not seen being spent.

    Args:
        coordinator: Whose budget it is.
        journal: Has the runs.
        read: Calls the journal where it may block, with arguments.
        settle: Returns when what was decided until then is on disk.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        journal: Journal,
        read: Callable[..., Awaitable[Any]],
        settle: Callable[[], Awaitable[None]],
    ) -> None:
        self._coordinator = coordinator
        self._journal = journal
        self._read = read
        self._settle = settle
        self._ended_usd: float | None = None

    async def ended_usd(self) -> float:
        """What those cost that were over when this term began, in US dollars.

        What the others have cost so far is put into the budget, for they may be taken up.
        """
        while self._ended_usd is None:
            ended_since = self._coordinator.budget.ended_usd
            await self._settle()
            total = await self._sum()
            # One that ended meanwhile may be in the one sum and not in the other.
            if ended_since == self._coordinator.budget.ended_usd:
                self._ended_usd = total - ended_since
        return self._ended_usd

    async def _sum(self) -> float:
        total: float = await self._read(self._journal.removed_cost_usd)
        for heading in await self._read(self._journal.headings):
            if heading.end is not None:
                total += heading.end.usage.cost_usd
            elif heading.run_id not in self._coordinator.runs:
                self._coordinator.budget.take_up(heading.run_id, heading.usage.cost_usd)
        return total
