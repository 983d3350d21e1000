"""A cell that serves one driver after the other."""

from pathlib import Path

from harness_actors.agents import Program
from harness_actors.stores.expiry import expire
from harness_actors.testing import an_agent
from tests.actors import gates
from tests.actors.tasks import look
from tests.actors.test_coordinator_host import (
    Opens,
    a_program,
    a_spec,
    a_waiting_program,
    cell_at,
)

__all__ = ["cell_at"]


async def test_code_that_the_journal_has_dropped_since_is_stored_again(
    cell_at: Opens, tmp_path: Path
) -> None:
    async with cell_at() as cell:
        program, other = a_program(), Program.of(an_agent(tools=[look]))
        for number, one in enumerate((program, other)):
            await cell.submit(one, a_spec(one, f"run{number}"))
            await cell.until(f"run{number}")
        assert expire(tmp_path / "runs.db", ended_before=float("inf")).code == 1
        assert cell.journal.load_code(program.code) is None

        cell.host.forget_driver()
        await cell.submit(program, a_spec(program, "next"))

        assert cell.journal.load_code(program.code) == program.blob
        await cell.until("next")


async def test_what_is_in_progress_is_known_until_it_is_over(cell_at: Opens) -> None:
    async with cell_at() as cell:
        program = a_waiting_program("progress")
        assert cell.host.in_progress == ()
        await cell.submit(program, a_spec(program))
        before = cell.host.committed
        assert cell.host.in_progress == ("run",)
        gates.opened["progress"].set()
        await cell.until("run")
        assert cell.host.in_progress == ()
        assert cell.host.committed > before


async def test_a_budget_is_taken_back_by_a_driver_that_has_none(cell_at: Opens) -> None:
    async with cell_at() as cell:
        allowed = []
        for budget_usd in (None, 3.0, None):
            await cell.host.allow(budget_usd)
            allowed.append(cell.host._coordinator.budget.limit_usd)
    assert allowed == [None, 3.0, None]


async def test_the_program_is_with_its_host_before_the_first_run_gets_there(
    cell_at: Opens,
) -> None:
    async with cell_at() as cell:
        program = a_program()
        await cell.submit(program, a_spec(program))
        (slot,) = (slot for slot in cell.host._slots if slot.executor == "agent_turn")
        assert cell.host._seats.knows(slot, program.code, {})
        await cell.until("run")
