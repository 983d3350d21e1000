"""What contracts are verified on in tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness_actors.contracts import (
    ContractVerifier,
    Grounds,
    Predicate,
    RequiredOutput,
    TaskContract,
    Verification,
    WorkspaceCommands,
    WorkspaceFiles,
)
from harness_actors.contracts.findings import Finding
from harness_actors.ports import NewestResult


def contract_with(*predicates: Predicate, **more: Any) -> TaskContract:
    """A contract of some predicates; its outputs are R1, R2 and so on."""
    outputs = tuple(
        RequiredOutput(id=f"R{place}", description=f"thing {place}", predicate=predicate)
        for place, predicate in enumerate(predicates, 1)
    )
    return TaskContract(goal="it is done", outputs=outputs, **more)


def grounds_of(folder: Path, **more: Any) -> Grounds:
    """A folder, with commands in it."""
    return Grounds(
        workspace=folder,
        files=WorkspaceFiles(folder=folder),
        commands=WorkspaceCommands(folder=folder),
        **more,
    )


async def verified(folder: Path, *predicates: Predicate, **more: Any) -> Verification:
    """Some predicates, in a folder."""
    return await ContractVerifier(contract_with(*predicates)).verify(grounds_of(folder, **more))


async def found(folder: Path, predicate: Predicate, **more: Any) -> Finding:
    """What is found of one predicate, in a folder."""
    return (await verified(folder, predicate, **more)).findings["R1"]


class Results:
    """What the tools of a run gave last."""

    def __init__(self, newest: Mapping[str, NewestResult]) -> None:
        self._newest = newest

    def newest(self, tool_name: str) -> NewestResult | None:
        return self._newest.get(tool_name)


class ScriptedJudge:
    """Says always the same, and remembers what it was asked."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str | None]] = []

    async def ask(self, text: str, *, model: str | None) -> str:
        self.asked.append((text, model))
        return self.answer
