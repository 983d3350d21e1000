"""Contracts of a schedule: which runs are held to one, and by what that is verified."""

from dataclasses import replace
from random import Random
from typing import Any

from harness_actors.contracts import (
    AllOf,
    AnyOf,
    CommandSucceeds,
    Custom,
    FileExists,
    Predicate,
    RequiredOutput,
    TaskContract,
)
from harness_actors.ports import CommandEnd, ContractCommands, ContractFiles, FileFact
from tests.simulation.verifying import Verifying
from tests.simulation.workload import PlannedRun, Workload

CONTRACTED = 0.15
"""Share of the schedules whose runs are held to contracts."""
HELD = 0.8
"""Share of their runs that are."""
CUSTOM = "verdict"


def plan_contracts(workload: Workload, seed: int) -> Workload:
    """The workload of a seed with the contracts of its runs."""
    chance = Random(f"{seed}/contracts")
    if chance.random() >= CONTRACTED:
        return workload
    runs = {
        name: _held(chance, run) if chance.random() < HELD else run
        for name, run in workload.runs.items()
    }
    return replace(workload, runs=runs, contracted=True)


def _held(chance: Random, run: PlannedRun) -> PlannedRun:
    outputs = tuple(
        RequiredOutput(
            id=f"R{place}",
            description=f"what {place} is",
            predicate=predicate(chance, f"{run.run_id}/R{place}"),
            optional=place > 0 and chance.random() < 0.15,
        )
        for place in range(chance.choice((1, 2, 2, 3)))
    )
    contract: Any = TaskContract(goal=f"of {run.run_id}", outputs=outputs)
    return replace(run, config=replace(run.config, contract=contract))


def predicate(chance: Random, key: str) -> Predicate:
    """By what something is verified.

    Args:
        chance: That of the schedule.
        key: What is looked at: the run and the output, or the output of whichever run looks.
    """
    leaves = (FileExists(key), CommandSucceeds(f"verify {key}"), _custom(key))
    kind = chance.random()
    if kind < 0.1:
        return AllOf((FileExists(key), _custom(key)))
    if kind < 0.2:
        return AnyOf((CommandSucceeds(f"verify {key}"), FileExists(key)))
    return chance.choice(leaves)


def _custom(key: str) -> Custom:
    return Custom(CUSTOM, arguments={"key": key}, timeout_s=5.0)


class DrawnFiles:
    """Answers the port `ContractFiles`: what is there is drawn whenever somebody looks."""

    def __init__(self, verifying: Verifying) -> None:
        self._verifying = verifying

    async def glance(self, questions: Any) -> list[FileFact]:
        verdicts = [await self._verifying.look(one.path, "file") for one in questions]
        return [FileFact(found="file" if met else "missing", size_bytes=1) for met in verdicts]

    async def look(self, question: Any, *, time_s: float) -> Any:
        raise NotImplementedError("no contract of a schedule asks for more than a glance")

    async def read(self, path: str, most_chars: int) -> Any:
        raise NotImplementedError("no contract of a schedule has a judge")


class DrawnCommands:
    """Answers the port `ContractCommands`: they exit as is drawn."""

    def __init__(self, verifying: Verifying) -> None:
        self._verifying = verifying

    async def run(self, command: str, *, timeout_s: float) -> CommandEnd:
        met = await self._verifying.look(command.removeprefix("verify "), "command")
        return CommandEnd(exit_code=0 if met else 1, output="")


def grounds_of(verifying: Verifying) -> dict[str, Any]:
    """What turns verify the contracts of a schedule on, by the names of their services."""
    files: ContractFiles = DrawnFiles(verifying)
    commands: ContractCommands = DrawnCommands(verifying)
    return {"contract_files": lambda _: files, "contract_commands": lambda _: commands}


def predicates_of(verifying: Verifying) -> dict[str, Any]:
    """The functions that contracts of a schedule name."""

    async def verdict(question: Any) -> bool:
        return await verifying.look(question.arguments["key"], "custom")

    return {CUSTOM: verdict}
