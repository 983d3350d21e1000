"""What people are shown of the contract of a run: as it goes on, at its end, and later."""

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from harness_actors import AgentHarness, ChatAgent
from harness_actors.batch.causes import cause_of
from harness_actors.batch.outcomes import outcome_of
from harness_actors.batch.tasks import Task
from harness_actors.cli.app import app
from harness_actors.cli.event_lines import EventLines, event_line
from harness_actors.contracts import FileExists, TaskContract
from harness_actors.events import ContractVerified
from harness_actors.results import HarnessResult
from harness_actors.testing import Reply, ScriptedModel
from tests.contracts.grounds import contract_with

DONE = Reply.call("work_complete", {"summary": "It is done."})


def claims(_: object) -> Reply:
    return DONE


async def a_result(folder: Path, contract: TaskContract) -> HarnessResult:
    """Of a run that its contract did not let end."""
    few: dict[str, Any] = {"stop_policy": "strict_automation", "continuation": {"max_prompts": 1}}
    agent = ChatAgent(model=ScriptedModel(claims))
    store, work = folder / "runs.db", folder / "work"
    async with AgentHarness(
        agent, runtime="local", store=store, workspace=work, contract=contract, **few
    ) as harness:
        return await harness.run("go")


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({"satisfied": True, "met": 3, "required": 3}, "  verified: all 3 required are met"),
        (
            {"satisfied": False, "met": 1, "required": 3, "unmet": ("R1", "R3")},
            "  verified: 1 of 3 required are met, without R1, R3",
        ),
        (
            {"satisfied": False, "met": 0, "required": 3, "limit": "time"},
            "  the time of the run was over before its contract was verified",
        ),
    ],
)
def test_each_verification_is_a_line(facts: dict[str, Any], line: str) -> None:
    assert event_line(ContractVerified(turn=1, attempt=1, **facts)) == line


def test_what_is_not_met_is_shown_at_the_end_and_by_ctl_and_is_the_cause_in_a_batch(
    tmp_path: Path,
) -> None:
    contract = contract_with(FileExists("a.md"), FileExists("b.md"))
    result = asyncio.run(a_result(tmp_path, contract))
    out = io.StringIO()

    EventLines(out=out).end(result)
    told = CliRunner().invoke(
        app, ["ctl", "run", "show", result.run_id, "--store", str(tmp_path / "runs.db")]
    )

    missing = [
        f"{name} unmet: thing {number}: there is no file" in " ".join(text.split())
        for text in (out.getvalue(), told.output)
        for number, name in ((1, "R1"), (2, "R2"))
    ]
    assert missing == [True] * 4, out.getvalue() + told.output
    outcome = outcome_of(Task(task="go"), result, attempt=1, check=None)
    assert cause_of(outcome).startswith("R1: thing 1: ")
    assert cause_of(outcome).endswith("(and 1 more)")
