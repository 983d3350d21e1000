"""The cells that are up, asked and stopped over the Rays that they live on."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from harness_actors.actors.cell_facts import CellFacts
from harness_actors.actors.cell_processes import rays_with_cells
from harness_actors.actors.joining.address import check_form, find_ray
from harness_actors.actors.liveness import SUSPECT_S
from harness_actors.actors.on_ray.attach import cells_at
from harness_actors.actors.on_ray.cells import end, put_aside, retire
from harness_actors.actors.on_ray.known_cells import KnownCell, describe_cell
from harness_actors.errors import BadInputError, CellError, HarnessError
from harness_actors.stores.places import holder_of

PARKED_WITHIN_S = 120.0
LOOK_S = 0.2

Mode = Literal["park", "force"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CellReport:
    """A cell as a list shows it.

    Attributes:
        cell: What Ray knows of it.
        address: The Ray that it lives on.
        facts: What it says of itself; None where it does not answer.
        command: The process that works on its journal; None where none does.
    """

    cell: KnownCell
    address: str
    facts: CellFacts | None
    command: int | None

    @property
    def status(self) -> str:
        """`serving`, `warm`, `broken` where it cannot go on and is about to leave, or `silent`
        where it does not answer."""
        if self.facts is None:
            return "silent"
        if self.facts.problem:
            return "broken"
        return "serving" if self.facts.in_progress or self.command is not None else "warm"

    def as_json(self) -> dict[str, Any]:
        told = {} if self.facts is None else asdict(self.facts)
        known = {"pid": self.cell.pid, "store": str(self.cell.store)}
        more = {"status": self.status, "address": self.address, "command": self.command}
        return {**told, **known, **more}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What became of a cell that was to stop; `problem` is empty where it did."""

    store: str
    pid: int
    problem: str = ""


async def reports(
    address: str | None, unreachable: list[CellError]
) -> AsyncIterator[list[CellReport]]:
    """The cells of one Ray after the other, while this process is connected to it.

    Args:
        address: Which Ray; None for the one that commands would join, and those besides
            that have a cell on this machine.
        unreachable: Gets why a Ray is left out that was not asked for.

    Raises:
        BadInputError: The Ray that is asked for cannot be reached.
    """
    asked = await asyncio.to_thread(_asked, address)
    others = set() if address not in (None, "auto") else await asyncio.to_thread(rays_with_cells)
    seen: set[str] = set()
    for one in [*asked, *sorted(others - asked.keys())]:
        try:
            cells = await cells_at(one, is_named=asked.get(one, False))
        except CellError as error:
            if one in asked:
                raise BadInputError("--address", (str(error),)) from error
            theirs = f"the Ray at {one!r}, which has a cell on this machine"
            unreachable.append(CellError(theirs, error.problem))
            continue
        # One Ray may have several addresses, such as 127.0.0.1 and that of its node.
        cells = [cell for cell in cells if cell.key not in seen]
        seen.update(cell.key for cell in cells)
        facts = await asyncio.gather(*(describe_cell(cell, weigh=True) for cell in cells))
        yield [
            CellReport(cell=cell, address=one, facts=told, command=holder_of(cell.store))
            for cell, told in zip(cells, facts, strict=True)
        ]


def _asked(address: str | None) -> dict[str, bool]:
    """The Ray that is asked for, if any, and whether the user named it."""
    if address == "local":
        raise BadInputError("--address", ("a Ray of our own ends with its command; give another",))
    check_form(address)
    try:
        found = find_ray(address)
        if found is None:
            return {}
        found.check()
    except CellError as error:
        raise BadInputError("--address", (str(error),)) from error
    return {found.address: found.is_named}


async def stop_cell(report: CellReport, mode: Mode | None) -> Stopped:
    """Stop a cell, and see its processes gone.

    One that does not answer is killed; the next command goes on with its runs.

    Args:
        report: The cell.
        mode: What to do with runs in progress: put them aside after their rounds, or at
            once; None refuses to stop it then.
    """
    try:
        problem = await _stop(report, mode)
    except HarnessError as error:
        problem = str(error)
    return Stopped(store=str(report.cell.store), pid=report.cell.pid, problem=problem)


async def _stop(report: CellReport, mode: Mode | None) -> str:
    """Returns why it was left as it is."""
    cell = report.cell
    if report.facts is not None and (runs := report.facts.in_progress):
        if mode is None:
            them = "it" if len(runs) == 1 else "them"
            return (
                f"{_counted(len(runs))} in progress; --park puts {them} aside, --force cuts {them}"
            )
        if mode == "park" and report.command is not None:
            return (
                f"process {report.command} works on it, and would begin others; press Ctrl-C "
                "there, or --force"
            )
        await put_aside(cell, runs, "park" if mode == "park" else "park_now")
        if mode == "park" and not await _parked(cell):
            return "its runs are still in their rounds; give the command again, or --force"
    # One that was silent when it was looked at had half of the time that it gets.
    within_s = SUSPECT_S if report.facts is not None else SUSPECT_S / 2
    if left := await retire(cell, answers_within_s=within_s):
        if mode != "force":
            return f"{_counted(left)} in progress by now; give the command again"
        await end(cell)
    return ""


async def _parked(cell: KnownCell) -> bool:
    """Whether its runs have stopped in time."""
    deadline = asyncio.get_running_loop().time() + PARKED_WITHIN_S
    while asyncio.get_running_loop().time() < deadline:
        facts = await describe_cell(cell)
        if facts is None or not facts.in_progress:
            return True
        await asyncio.sleep(LOOK_S)
    return False


def store_named(target: Path) -> Path:
    """The journal that a run directory or a file stands for; it need not be there any more."""
    return (target / "runs.db" if target.is_dir() else target).resolve()


def _counted(runs: int) -> str:
    return "1 run is" if runs == 1 else f"{runs} runs are"
