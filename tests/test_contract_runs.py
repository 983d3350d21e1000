"""Runs with a contract, through the whole harness on both runtimes."""

import json
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from harness_actors import AgentHarness, ChatAgent
from harness_actors.batch import Task, run_batch
from harness_actors.batch.outcomes import decode_outcome, encode_outcome
from harness_actors.config import HarnessConfig
from harness_actors.contracts import (
    AllOf,
    CommandSucceeds,
    ContainsText,
    Custom,
    FileExists,
    ModelJudged,
    TaskContract,
    ToolResultSuccess,
)
from harness_actors.errors import BadInputError, ConfigError
from harness_actors.events import ContractVerified, ToolReturned
from harness_actors.results import decode_result, encode_result
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import coding_tools
from tests.contracts.grounds import contract_with

DONE = Reply.call("work_complete", {"summary": "It is done."})
REPORT = contract_with(
    FileExists("report.md"), CommandSucceeds("grep -q total report.md"), Custom("signed")
)


def writes(path: str, text: str) -> Reply:
    return Reply.call("write_file", {"path": path, "content": text})


def signed(question: Any) -> bool:
    report = question.workspace / "report.md"
    return bool(report.exists() and report.read_text().endswith("A."))


def claims(_: object) -> Reply:
    return DONE


SCRIPT = [
    DONE,
    writes("report.md", "sum: 4"),
    DONE,
    writes("report.md", "total: 4 A."),
    DONE,
]


def an_agent(script: Any = SCRIPT, **more: Any) -> ChatAgent:
    return ChatAgent(
        model=ScriptedModel(script),
        tools=coding_tools(),
        **{"predicates": {"signed": signed}, **more},
    )


def a_harness(folder: Path, agent: ChatAgent | None = None, **more: Any) -> AgentHarness:
    given = {"runtime": "local", "store": folder / "runs.db", "workspace": folder / "work", **more}
    return AgentHarness(agent or an_agent(), **given)


@pytest.mark.parametrize("runtime", ["local", pytest.param("ray", marks=pytest.mark.ray)])
async def test_a_run_is_over_when_its_contract_is_met(tmp_path: Path, runtime: Any) -> None:
    async with a_harness(tmp_path, runtime=runtime, address="local") as harness:
        result = await harness.run("write a report", contract=REPORT)

    assert (result.status, result.reason.kind) == ("done", "completed")
    assert result.completion_verified
    assert result.contract is not None
    assert (result.contract.satisfied, result.contract.attempts) == (True, 3)
    assert [one.status for one in result.contract.requirements] == ["met"] * 3
    told = [event.event for event in result.transcript if event.event.type == "contract_verified"]
    assert [(one.met, one.unmet) for one in told if isinstance(one, ContractVerified)] == [
        (0, ("R1", "R2", "R3")),
        (1, ("R2", "R3")),
        (3, ()),
    ]
    written = json.loads(json.dumps(encode_result(result)))
    assert decode_result(written) == result.with_transcript(())


async def test_the_result_says_what_is_not_met(tmp_path: Path) -> None:
    both = AllOf((CommandSucceeds("true"), FileExists("b")))
    contract = contract_with(FileExists("a"), both, CommandSucceeds("true"))
    settings: dict[str, Any] = {"contract": contract, "stop_policy": "strict_automation"}
    async with a_harness(tmp_path, an_agent(claims), **settings) as harness:
        result = await harness.run("go")

    assert (result.status, result.reason.kind) == ("stalled", "blocked")
    assert result.contract is not None
    assert (result.contract.satisfied, result.contract.recommendation) == (False, "continue")
    assert [(one.id, one.status) for one in result.contract.unmet] == [
        ("R1", "unmet"),
        ("R2", "partially_met"),
    ]
    assert "'a'" in result.contract.unmet[0].why


async def test_the_contract_of_a_run_is_its_own(tmp_path: Path) -> None:
    async with a_harness(tmp_path, an_agent(claims)) as harness:
        with_one = await harness.run("go", contract=contract_with(ContainsText("is done")))
        without = await harness.run("go")
    assert with_one.contract is not None
    assert without.contract is None
    answers = [
        [one.event.text for one in result.transcript if isinstance(one.event, ToolReturned)]
        for result in (with_one, without)
    ]
    assert answers == [["Noted; it is being checked."], ["Work recorded as complete: It is done."]]
    assert "contract" not in encode_result(without)


@pytest.mark.parametrize(
    ("contract", "told"),
    [
        ({"goal": "x"}, "outputs: is missing"),
        ({"goal": "x", "outputs": [{"predicate": {"file_there": "a"}}]}, "outputs[0].predicate"),
        (
            contract_with(ToolResultSuccess("write_fiel")),
            "the agent has no tool 'write_fiel'; the nearest are write_file",
        ),
        (contract_with(Custom("nobody")), "no predicate 'nobody' is registered"),
        (contract_with(Custom("no_module:f")), "outputs[0].predicate"),
        (contract_with(ModelJudged("x", model="gpt-9")), "no judge is named 'gpt-9'"),
        (contract_with(FileExists("a")), "no workspace"),
        (contract_with(ContainsText("a", file="b")), "no workspace"),
        ("met", "contract"),
    ],
)
async def test_a_contract_that_no_run_could_meet_is_refused_before_it_begins(
    tmp_path: Path, contract: Any, told: str
) -> None:
    harness = a_harness(tmp_path, workspace=None)
    with pytest.raises((BadInputError, ConfigError)) as caught:
        await harness.run("go", contract=contract)
    assert told in str(caught.value)
    with pytest.raises((BadInputError, ConfigError)):
        a_harness(tmp_path, workspace=None, contract=contract)
    assert not (tmp_path / "runs.db").exists()


async def test_a_task_has_a_contract_of_its_own_or_that_of_its_agent(tmp_path: Path) -> None:
    strange = {"goal": "x", "outputs": [{"predicate": {"custom": "strange"}}]}
    tasks: list[Any] = [
        {"id": "own", "task": "go", "contract": {"goal": "x", "outputs": ["a word"]}},
        {"id": "agents", "task": "go"},
        Task(id="python", task="go", contract=TaskContract.simple("x", "a word")),  # type: ignore[arg-type]
        {"id": "bad", "task": "go", "contract": {"goal": "x"}},
        {"id": "strange", "task": "go", "contract": strange},
    ]
    batch = run_batch(
        tasks,
        an_agent(claims),
        runtime="local",
        run_dir=tmp_path / "run",
        config=HarnessConfig(
            contract=contract_with(FileExists("never")),  # type: ignore[arg-type]
            stop_policy="strict_automation",
        ),
    )
    found = {outcome.id: outcome async for outcome in batch}

    for name in ("own", "python"):
        held = found[name].contract
        assert held is not None
        assert held.satisfied
    agents = found["agents"]
    assert (agents.status, agents.reason.kind) == ("stalled", "blocked")
    assert agents.contract is not None
    assert agents.contract.unmet[0].id == "R1"
    assert found["bad"].reason.kind == "bad_input"
    assert "contract.outputs: is missing" in found["bad"].reason.message
    assert "'strange'" in found["strange"].reason.message
    lines = (tmp_path / "run" / "results.jsonl").read_text().splitlines()
    read = {one.id: one for one in (decode_outcome(json.loads(line)) for line in lines)}
    assert read["agents"] == agents
    assert "contract" not in encode_outcome(found["bad"])
    assert decode_outcome(encode_outcome(found["bad"])).contract is None


async def test_an_unverified_run_is_done_and_says_so(tmp_path: Path) -> None:
    contract, few = contract_with(FileExists("never")), {"max_prompts": 1}
    agent = an_agent(claims)
    async with a_harness(tmp_path, agent, contract=contract, continuation=few) as harness:
        result = await harness.run("go")
    assert (result.status, result.reason.kind) == ("done", "unverified")
    assert not result.completion_verified


def kills(question: Any) -> bool:
    """Ends its process: at the first look in the middle of it, at the second just after it."""
    looks = question.workspace / "looks.txt"
    with looks.open("a") as file:
        file.write("look\n")
    match len(looks.read_text().splitlines()):
        case 1:
            os.kill(os.getpid(), signal.SIGKILL)
        case 2:
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return True


@pytest.mark.ray
async def test_a_process_that_dies_in_a_verification_or_after_it_costs_no_run(
    tmp_path: Path,
) -> None:
    contract = contract_with(Custom("kills"), FileExists("report.md"))
    script = [DONE, writes("report.md", "total: 4"), DONE]
    agent = an_agent(script, predicates={"kills": kills})
    async with a_harness(tmp_path, agent, runtime="ray", address="local") as harness:
        result = await harness.run("write a report", contract=contract)

    assert (result.status, result.reason.kind) == ("done", "completed")
    told = [one.event for one in result.transcript if isinstance(one.event, ContractVerified)]
    assert [one.attempt for one in told] == [1, 2]
    assert [one.satisfied for one in told] == [False, True]
    types = [one.event.type for one in result.transcript]
    assert types.count("executor_lost") >= 1
    assert types.count("stop_decided") == 2
    assert types.count("continuation_prompt") == 1
    assert len((tmp_path / "work" / "looks.txt").read_text().splitlines()) >= 3
