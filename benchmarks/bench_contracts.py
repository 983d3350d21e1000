"""What does it cost to verify a contract, and does that grow with the run?

    python benchmarks/bench_contracts.py [--items 100] [--files 5] [--turns 1000] [--repeats 7]

Milliseconds on the wall of one verification of a contract of 100 requirements, of which five look
at files: three that exist, one that contains a text, one that is JSON as a schema has it. The first
attempt of a run, and those of another one after its thousandth, each on the ledger of the one
before; they take turns, and a repetition is the median of 50. Above 1 ms, or where the later ones
take longer than the first by more than what the machine does by itself, verification would have to
look at less.

Beside it, without a bar: what a pattern that is searched for in a process and a command add.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.command import publish
from benchmarks.findings import Finding, ratios
from benchmarks.measure import Spread, machine
from harness_actors.contracts import (
    AlwaysTrue,
    CommandSucceeds,
    ContainsText,
    ContractVerifier,
    CoverageLedger,
    FileExists,
    Grounds,
    JsonSchemaValid,
    Predicate,
    RequiredOutput,
    TaskContract,
    WorkspaceCommands,
    WorkspaceFiles,
)

AT_MOST_MS = 1.0
AT_MOST_LATER = 1.1
ATTEMPTS = 50
"""Of which a repetition is the median."""
SCHEMA = {"type": "object", "required": ["total"], "properties": {"total": {"type": "integer"}}}


def file_predicates(count: int) -> list[Predicate]:
    """So many; the last two look into their files, where there are as many."""
    exist: list[Predicate] = [FileExists(f"part-{place}.md") for place in range(max(0, count - 2))]
    into: list[Predicate] = [
        ContainsText("total: 42", file="report.md"),
        JsonSchemaValid(schema=SCHEMA, file="report.json"),
    ]
    return [*exist, *into][:count]


def make_files(folder: Path, count: int) -> None:
    for place in range(count):
        (folder / f"part-{place}.md").write_text("# Part\n" + "words\n" * 1_000)
    (folder / "report.md").write_text("# Report\n" + "words\n" * 1_000 + "Total: 42\n")
    (folder / "report.json").write_text(json.dumps({"total": 42, "rows": list(range(500))}))


def contract_of(predicates: list[Predicate], items: int) -> TaskContract:
    every = [*predicates, *[AlwaysTrue()] * (items - len(predicates))]
    outputs = tuple(
        RequiredOutput(id=f"R{place}", description="it is there", predicate=predicate)
        for place, predicate in enumerate(every)
    )
    return TaskContract(goal="all is there", outputs=outputs)


class Attempts:
    """The attempts of one run to be done.

    Args:
        contract: Its contract.
        folder: Its workspace.
    """

    def __init__(self, contract: TaskContract, folder: Path) -> None:
        self._verifier = ContractVerifier(contract)
        self._grounds = Grounds(
            workspace=folder,
            files=WorkspaceFiles(folder=folder),
            commands=WorkspaceCommands(folder=folder),
        )
        self._ledger: CoverageLedger | None = None
        self.made = 0

    async def ms(self) -> float:
        """The next one, in milliseconds."""
        self.made += 1
        begun = time.perf_counter()
        verification = await self._verifier.verify(
            self._grounds, ledger=self._ledger, attempt=self.made
        )
        took_s = time.perf_counter() - begun
        assert verification.satisfied, verification.gaps.text()
        self._ledger = verification.ledger
        return 1e3 * took_s


async def measure(options: argparse.Namespace, folder: Path) -> dict[str, list[float]]:
    """Milliseconds of an attempt, by what it is."""
    make_files(folder, options.files)
    contract = contract_of(file_predicates(options.files), options.items)
    alone: Mapping[str, Predicate] = {
        "a pattern": ContainsText("total: [0-9]+", file="report.md"),
        "a command": CommandSucceeds("true"),
    }
    found: dict[str, list[float]] = {"first": [], "later": [], **{name: [] for name in alone}}
    old = Attempts(contract, folder)
    for _ in range(options.turns):
        await old.ms()
    for _ in range(options.repeats):
        first, later = [], []
        for _ in range(options.attempts):
            first.append(await Attempts(contract, folder).ms())
            later.append(await old.ms())
        found["first"].append(statistics.median(first))
        found["later"].append(statistics.median(later))
        for name, predicate in alone.items():
            one = Attempts(contract_of([predicate], 1), folder)
            found[name].append(statistics.median([await one.ms() for _ in range(5)]))
    return found


def main() -> None:
    options = parse_arguments()
    options.machine = machine()
    with tempfile.TemporaryDirectory(prefix="contracts-") as folder:
        found = asyncio.run(measure(options, Path(folder)))
    of = f"{options.files} file predicates, {options.items} ledger items"
    findings = [
        Finding.of(f"{of}, turn 1", found["first"], unit="ms", at_most=AT_MOST_MS, computing=True),
        Finding.of(
            f"… turn {options.turns:,}",
            found["later"],
            unit="ms",
            at_most=AT_MOST_MS,
            computing=True,
        ),
        Finding.of("… to turn 1", ratios(found["later"], found["first"]), at_most=AT_MOST_LATER),
        Finding.of("a pattern that is no plain text, alone", found["a pattern"], unit="ms"),
        Finding.of("a command, `true`, alone", found["a command"], unit="ms"),
    ]
    rows = [(name, str(Spread.of(values))) for name, values in found.items()]
    heads = ("ms of one verification", "")
    publish("contracts", "ms", options, findings, {"verified": found}, (heads, rows))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--files", type=int, default=5)
    parser.add_argument("--turns", type=int, default=1_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--attempts", type=int, default=ATTEMPTS)
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    options = parser.parse_args()
    if options.smoke:
        options.turns, options.repeats, options.attempts = 10, 1, 2
    return options


if __name__ == "__main__":
    main()
