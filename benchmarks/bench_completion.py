"""Does a fallible model still end with the task truly done, or with an honest no?

    python benchmarks/bench_completion.py [--tasks 40] [--files 6] [--only FAULT] [--seed 0]
        [--timeout-s 1.5]

Tasks of three kinds (write files, check and fix, find and report) by a capable model that
misbehaves at 4 % of its steps, each fault alone and all of them mixed: for our defaults, for ours
with a contract, which says of each file what must be in it, and for a loop by hand with every
countermeasure and no knowledge of the task. What is on the disk in the end
is the truth; a task that the loop holds to be done and that is not is a false success. Model calls
are counted by the server, those that it refuses included. All contenders meet the same draws.

A fault other than a false claim that leaves a task undone is one that our defaults should see. What
is lost to false claims takes a contract to find.
"""

import argparse
import asyncio
import re
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Run as a command, it finds the modules beside it only.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from openai import AsyncOpenAI, OpenAIError

from benchmarks.by_hand import run_by_hand
from benchmarks.command import publish
from benchmarks.findings import Finding
from benchmarks.measure import machine
from harness_actors.agents import ChatAgent
from harness_actors.contracts import AnyOf, ContainsText, RequiredOutput, TaskContract
from harness_actors.harness import AgentHarness
from harness_actors.models import OpenAIModel
from harness_actors.testing import CheckableTask, FallibleModel, checkable_task, fallible_server
from harness_actors.testing.checkable import KINDS
from harness_actors.testing.fallible import MISBEHAVIOURS, Misbehaviour, ToolNames
from harness_actors.tools import coding_tools

RATE = 0.04
AT_ONCE = 8
TIMEOUT_S = 1.5
"""Of one attempt. On a machine with other work a longer one keeps its slowness out of this."""
STALL = 2.0
"""How long a stall is, in timeouts."""
RETRIES = 5
MIXED = "mixed"
DEFAULTS, CONTRACT, BY_HAND = "our defaults", "ours with a contract", "by hand"
AT_LEAST_MIXED, AT_MOST_MIXED = 82.0, 18.0
AT_MOST_CALLS = 9.5
"""A task of 6 steps, with a contract and all faults mixed."""
AT_MOST_WANDERED = 10
"""Calls until a model that wanders is stopped or brought back."""

Contender = Callable[[str, CheckableTask, float], Awaitable[bool]]
"""Does a task with a model server, given the timeout of an attempt."""


def contract_of(task: CheckableTask) -> TaskContract:
    """What a task must have come to: the files that it is to leave, and what is in them."""
    last = {step.output: step for step in task.steps if step.deed != "read"}
    outputs = [
        RequiredOutput(
            id=f"R{number}",
            description=f"{name} is as the task says",
            type="artifact",
            predicate=AnyOf(
                tuple(ContainsText(re.escape(text), file=name) for text in step.shown_by)
            ),
        )
        for number, (name, step) in enumerate(last.items(), 1)
    ]
    return TaskContract(goal=task.name, outputs=tuple(outputs))


async def run_defaults(base_url: str, task: CheckableTask, timeout_s: float) -> bool:
    """As an agent with the shipped tools and no setting; whether it ended `completed`."""
    return await run_ours(base_url, task, timeout_s, None)


async def run_contract(base_url: str, task: CheckableTask, timeout_s: float) -> bool:
    """The same, held to what the task must have come to."""
    return await run_ours(base_url, task, timeout_s, contract_of(task))


async def run_ours(
    base_url: str, task: CheckableTask, timeout_s: float, contract: TaskContract | None
) -> bool:
    model = OpenAIModel("fallible", base_url=base_url, api_key="none", timeout_s=timeout_s)
    store = task.folder.with_suffix(".db")
    agent = ChatAgent(model=model, tools=coding_tools())
    async with AgentHarness(agent, runtime="local", store=store, workspace=task.folder) as harness:
        result = await harness.run(task.prompt, contract=contract)
    # One that was let through unverified says so: it is no success, true or false.
    return result.status == "done" and result.reason.kind == "completed"


async def run_hand(base_url: str, task: CheckableTask, timeout_s: float) -> bool:
    async with AsyncOpenAI(
        base_url=base_url, api_key="none", timeout=timeout_s, max_retries=RETRIES
    ) as client:
        try:
            return await run_by_hand(client, task.prompt, task.folder)
        except OpenAIError:
            return False


CONTENDERS: Mapping[str, Contender] = {
    DEFAULTS: run_defaults,
    CONTRACT: run_contract,
    BY_HAND: run_hand,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one task ended.

    Attributes:
        claimed: The loop holds it to be done.
        missing: Files that are not as they should be.
        met: The faults that it met.
    """

    task: str
    claimed: bool
    missing: list[str]
    calls: int
    met: Sequence[Misbehaviour]
    useless: int


async def measure(
    run: Contender,
    rates: Mapping[Misbehaviour, float],
    options: Any,
    tools: ToolNames | None = None,
) -> list[Outcome]:
    """All tasks of one contender under some faults; `tools` is what it calls its own."""
    with tempfile.TemporaryDirectory(prefix="completion-") as name:
        tasks = [
            checkable_task(
                f"task-{number}",
                Path(name) / f"task-{number}",
                kind=KINDS[number % len(KINDS)],
                size=options.files,
            )
            for number in range(options.tasks)
        ]
        for task in tasks:
            task.prepare()
        stall_s = STALL * options.timeout_s
        model = FallibleModel(tasks, rates, seed=options.seed, tools=tools, stall_s=stall_s)
        free = asyncio.Semaphore(AT_ONCE)
        async with fallible_server(model) as server:

            async def one(task: CheckableTask) -> Outcome:
                async with free:
                    claimed = await run(server.base_url, task, options.timeout_s)
                met = [fault for name, _, fault in model.occurred if name == task.name]
                return Outcome(
                    task=task.name,
                    claimed=claimed,
                    missing=task.missing,
                    calls=model.calls(task.name),
                    met=met,
                    useless=model.useless_calls(task.name),
                )

            return list(await asyncio.gather(*map(one, tasks)))


def share(outcomes: list[Outcome], count: Callable[[Outcome], bool]) -> float:
    return 100 * sum(map(count, outcomes)) / len(outcomes)


def calls_a_task(outcomes: list[Outcome]) -> float:
    return sum(outcome.calls for outcome in outcomes) / len(outcomes)


def truly(outcome: Outcome) -> bool:
    return not outcome.missing


def falsely(outcome: Outcome) -> bool:
    return outcome.claimed and bool(outcome.missing)


def findings_of(found: Mapping[str, Mapping[str, list[Outcome]]]) -> list[Finding]:
    """The answers: bars are ours, and the loop by hand has none."""
    findings: list[Finding] = []
    for fault, by_name in found.items():
        for name, outcomes in by_name.items():
            ours, least, most = name in (DEFAULTS, CONTRACT), 100.0, 0.0
            if fault == MIXED and name == DEFAULTS:
                least, most = AT_LEAST_MIXED, AT_MOST_MIXED
            has_bar = ours and (fault != "claims" or name == CONTRACT)
            bar_of_calls = name == CONTRACT and fault == MIXED
            findings += [
                Finding.of(
                    f"{fault}, {name}: truly complete",
                    [share(outcomes, truly)],
                    unit="%",
                    at_least=least if has_bar else None,
                ),
                Finding.of(
                    "… false success",
                    [share(outcomes, falsely)],
                    unit="%",
                    at_most=most if has_bar else None,
                ),
                Finding.of(
                    "… calls a task",
                    [calls_a_task(outcomes)],
                    unit="",
                    at_most=AT_MOST_CALLS if bar_of_calls else None,
                ),
            ]
            if fault == "wanders":
                findings.append(
                    Finding.of(
                        "… most useless calls of one task",
                        [max(outcome.useless for outcome in outcomes)],
                        unit="",
                        at_most=AT_MOST_WANDERED if ours else None,
                    )
                )
        if fault == MIXED:
            findings += _mixed(by_name)
    return findings


def _mixed(by_name: Mapping[str, list[Outcome]]) -> list[Finding]:
    ours, hand = by_name[DEFAULTS], by_name[BY_HAND]
    lost = sum(bool(o.missing) and "claims" not in o.met for o in ours)
    ahead = share(ours, truly) - share(hand, truly)
    return [
        Finding.of("… lost without a false claim, our defaults", [lost], unit="", at_most=0),
        Finding.of("… truly complete, beyond the loop by hand", [ahead], unit="%", at_least=0),
    ]


def main() -> None:
    options = parse_arguments()
    options.machine = machine()
    found: dict[str, dict[str, list[Outcome]]] = {}
    rows: list[tuple[str, ...]] = []
    for fault in options.only or (*MISBEHAVIOURS, MIXED):
        chosen = MISBEHAVIOURS if fault == MIXED else (fault,)
        rates = dict.fromkeys(chosen, RATE if not options.smoke else 0.2)
        found[fault] = {}
        for name, run in CONTENDERS.items():
            outcomes = asyncio.run(measure(run, rates, options))
            found[fault][name] = outcomes
            shown = f"{share(outcomes, truly):.0f} %", f"{share(outcomes, falsely):.0f} %"
            lost = " ".join(f"{o.task}:{'+'.join(o.met)}" for o in outcomes if o.missing)
            met = sum(len(outcome.met) for outcome in outcomes)
            rows.append((fault, name, *shown, f"{calls_a_task(outcomes):.1f}", str(met), lost))
    heads = ("fault", "", "truly complete", "false success", "calls a task", "met", "lost")
    figures = {
        "outcomes": {
            fault: {
                name: [
                    {"task": o.task, "claimed": o.claimed, "missing": o.missing, "met": o.met}
                    for o in outcomes
                    if o.missing
                ]
                for name, outcomes in by_name.items()
            }
            for fault, by_name in found.items()
        }
    }
    publish("completion", "%", options, findings_of(found), figures, (heads, rows))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=40)
    parser.add_argument("--files", type=int, default=6, help="steps of a task")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout-s", type=float, default=TIMEOUT_S, help="of an attempt")
    parser.add_argument("--only", action="append", choices=(*MISBEHAVIOURS, MIXED), metavar="FAULT")
    parser.add_argument("--smoke", action="store_true", help="once and small: does it run?")
    options = parser.parse_args()
    options.repeats = 1
    if options.smoke:
        options.tasks, options.only = 3, options.only or ["garbles", MIXED]
    return options


if __name__ == "__main__":
    main()
