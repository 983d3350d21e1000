"""The contract of a run is verified whenever its agent says that it is done."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors.contracts import (
    AllOf,
    CommandSucceeds,
    ContainsText,
    Custom,
    CustomAnswer,
    CustomQuestion,
    FileExists,
    JsonSchemaValid,
    ModelJudged,
    Predicate,
    RequiredOutput,
    TaskContract,
    ToolResultSuccess,
)
from harness_actors.errors import ModelRefusedError
from harness_actors.events import ContinuationPrompt, ContractVerified, StopDecided
from harness_actors.messages import Message, ToolCall
from harness_actors.models.chain import Fallback, ModelChain
from harness_actors.policies import Deny, Hooks
from harness_actors.ports import Model, ToolContext
from harness_actors.records import WorkspaceSpec
from harness_actors.results import Usage
from harness_actors.signals import RunEnd
from harness_actors.state import COVERAGE, USAGE, VERIFIED
from harness_actors.testing.scripted import Reply
from harness_actors.tools.command import CommandRunner
from tests.contracts.grounds import contract_with
from tests.executors.driver import (
    Driver,
    RecordingModel,
    SimpleAgent,
    SimpleTool,
    a_tool,
    calls,
    finishes,
)


@dataclass(frozen=True)
class BoundAgent(SimpleAgent):
    hooks: Any = None
    predicates: Mapping[str, Any] = field(default_factory=dict)
    judges: Mapping[str, Model] = field(default_factory=dict)
    middleware: tuple[Any, ...] = ()


def writing(folder: Path) -> SimpleTool:
    """A tool that writes a file, and removes it where its text is null."""

    async def act(arguments: str, _context: ToolContext) -> str:
        for name, text in json.loads(arguments).items():
            if text is None:
                (folder / name).unlink()
            else:
                (folder / name).write_text(text)
        return "done"

    return SimpleTool("write", act)


@dataclass
class Bench:
    """Makes drivers that work in one folder."""

    folder: Path

    def driver(
        self, contract: TaskContract, script: list[Reply] | Callable[..., Any], **more: Any
    ) -> Driver:
        of_agent = {
            name: more.pop(name)
            for name in ("hooks", "predicates", "judges", "middleware")
            if name in more
        }
        tools = more.pop("tools", None) or [writing(self.folder)]
        agent = BoundAgent(RecordingModel(script), tools, **of_agent)
        spec = WorkspaceSpec(path=str(self.folder))
        return Driver(agent, workspace=spec, contract=contract, **more)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def writes(**files: str | None) -> Reply:
    return calls(("w", "write", json.dumps({f"{name}.md": text for name, text in files.items()})))


async def ended(driver: Driver) -> RunEnd:
    end = await driver.run()
    assert isinstance(end, RunEnd)
    driver.check_log()
    return end


def is_gone(pid: int) -> bool:
    command = Path(f"/proc/{pid}/cmdline")
    # Of one that nobody has waited for yet, nothing is left but its number.
    return not command.exists() or not command.read_bytes()


def told(driver: Driver) -> list[str]:
    """What the user's side said after the task."""
    return [message.text for message in driver.state.log if message.role == "user"][1:]


def verified(driver: Driver) -> list[bool]:
    return [event.satisfied for event in driver.happened(ContractVerified)]


REPORT = contract_with(FileExists("report.md"))


async def test_what_is_there_ends_the_run_verified(bench: Bench) -> None:
    driver = bench.driver(REPORT, [writes(report="hello"), finishes()])

    end = await ended(driver)

    assert (end.status, end.reason.kind, end.completion_verified) == ("done", "completed", True)
    assert driver.happened(ContractVerified) == [
        ContractVerified(turn=1, attempt=1, satisfied=True, met=1, required=1)
    ]
    assert driver.value(COVERAGE)["R1"]["status"] == "met"


async def test_a_false_claim_is_told_what_is_missing_in_one_message(bench: Bench) -> None:
    driver = bench.driver(REPORT, [finishes(), writes(report="hello"), finishes()])

    end = await ended(driver)

    assert (end.reason.kind, verified(driver)) == ("completed", [False, True])
    (message,) = told(driver)
    assert "R1: thing 1: " in message
    assert "'report.md'" in message
    assert "call `work_complete` again" in message
    assert len(driver.happened(ContinuationPrompt)) == 1
    assert message in driver.model.requests[1].messages[-1].text
    decisions = driver.happened(StopDecided)
    assert [(one.decision, one.reason) for one in decisions] == [
        ("continue", "not_accepted"),
        ("stop", "completed"),
    ]


async def test_work_complete_answers_neutrally(bench: Bench) -> None:
    driver = bench.driver(REPORT, [writes(report="x"), finishes()])
    await ended(driver)
    assert driver.results()[-1].text == "Noted; it is being checked."


async def test_what_was_there_before_counts_for_nothing(bench: Bench) -> None:
    contract = contract_with(FileExists("a.md"), FileExists("b.md"))
    driver = bench.driver(
        contract,
        [
            writes(a="x"),
            finishes(),
            writes(a=None, b="x"),
            finishes(),
            writes(a="x"),
            finishes(),
        ],
    )

    end = await ended(driver)

    assert (end.completion_verified, verified(driver)) == (True, [False, False, True])
    assert "R2" in told(driver)[0]
    assert "R1" not in told(driver)[0]
    assert "R1" in told(driver)[1]
    assert "R2" not in told(driver)[1]


async def test_a_completion_in_the_last_turn_is_verified_and_accepted(bench: Bench) -> None:
    driver = bench.driver(REPORT, [finishes(), writes(report="x"), finishes()], max_turns=2)
    end = await ended(driver)
    assert (end.status, end.reason.kind) == ("done", "completed")


async def test_an_unmet_contract_in_the_last_turn_is_no_completion(bench: Bench) -> None:
    driver = bench.driver(REPORT, lambda _: finishes(), max_turns=2)
    end = await ended(driver)
    assert (end.status, end.reason.kind) == ("limit", "max_turns")
    assert not end.completion_verified


async def test_where_an_answer_ends_the_run_the_answer_is_what_is_looked_at(bench: Bench) -> None:
    contract = contract_with(ContainsText("total: [0-9]+"))
    script = [Reply.text("It is done."), Reply.text("total: 42")]
    driver = bench.driver(contract, script, completion="answer")

    end = await ended(driver)

    assert (end.reason.kind, end.output_text) == ("answered", "total: 42")
    assert "then answer again" in told(driver)[0]


@pytest.mark.parametrize(
    ("policy", "status", "kind"),
    [("interactive", "done", "unverified"), ("strict_automation", "stalled", "blocked")],
)
async def test_who_claims_again_and_again_is_not_asked_for_ever(
    bench: Bench, policy: str, status: str, kind: str
) -> None:
    driver = bench.driver(
        REPORT, lambda _: finishes(), stop_policy=policy, continuation={"max_prompts": 3}
    )

    end = await ended(driver)

    assert (end.status, end.reason.kind, end.completion_verified) == (status, kind, False)
    assert len(told(driver)) == 3
    assert len(verified(driver)) == 4
    (cause,) = end.reason.details["causes"]
    assert "report.md" in cause
    assert "report.md" in end.reason.message


async def test_who_works_on_between_refusals_has_more_of_them(bench: Bench) -> None:
    names = [f"f{number}" for number in range(6)]
    contract = contract_with(*[FileExists(f"{name}.md") for name in names])
    script = [reply for name in names for reply in (writes(**{name: "x"}), finishes())]
    driver = bench.driver(contract, script, continuation={"max_prompts": 1})

    end = await ended(driver)

    assert end.completion_verified
    assert len(told(driver)) == 5


async def test_a_finding_that_changed_for_the_better_is_progress(bench: Bench) -> None:
    contract = contract_with(FileExists("a.md"), FileExists("b.md"), FileExists("c.md"))
    made = iter("abc")

    def somebody_else_works(_: object) -> Reply:
        (bench.folder / f"{next(made)}.md").write_text("x")
        return finishes()

    driver = bench.driver(contract, somebody_else_works, continuation={"max_prompts": 1})
    end = await ended(driver)
    assert end.completion_verified
    assert verified(driver) == [False, False, True]


async def test_who_only_works_is_ended_by_its_turns(bench: Bench) -> None:
    driver = bench.driver(
        REPORT,
        lambda messages: (
            finishes()
            if messages[-1].role == "tool" and "done" in messages[-1].text
            else writes(o="")
        ),
        max_turns=9,
        continuation={"max_prompts": 2},
    )
    end = await ended(driver)
    assert (end.status, end.reason.kind) == ("limit", "max_turns")


async def test_every_gate_is_asked_and_every_cause_told_in_the_one_message(bench: Bench) -> None:
    async def guard(_: object) -> Deny:
        return Deny("it is rude")

    async def stop(_: object) -> Deny:
        return Deny("the tests fail")

    hooks = Hooks(output_guard=guard, agent_stop=stop)
    driver = bench.driver(REPORT, lambda _: finishes(), hooks=hooks, max_turns=2)

    await ended(driver)

    (message,) = told(driver)
    assert all(cause in message for cause in ("it is rude", "the tests fail", "R1: thing 1"))


async def test_commands_run_in_the_workspace_and_are_told_of(bench: Bench) -> None:
    contract = contract_with(CommandSucceeds("echo of $HARNESS_RUN_ID; test -f report.md"))
    driver = bench.driver(contract, [finishes(), writes(report="x"), finishes()])

    end = await ended(driver)

    assert end.completion_verified
    assert "exited with 1; it printed: of run" in told(driver)[0]


async def test_commands_find_the_programs_that_those_of_the_agent_find(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory
) -> None:
    programs = tmp_path_factory.mktemp("programs")
    (programs / "its_check").write_text("#!/bin/sh\ntest $ANSWER = 42\n")
    (programs / "its_check").chmod(0o755)
    runner = CommandRunner(path=(str(programs),), variables={"ANSWER": "42"})
    contract = contract_with(CommandSucceeds("its_check"))
    driver = bench.driver(contract, [finishes()], tools=[runner.as_tool()])

    assert (await ended(driver)).completion_verified


async def test_tool_results_are_those_of_the_newest_call_of_this_run(bench: Bench) -> None:
    contract = contract_with(ToolResultSuccess("check"))
    answers = iter(["fine", ValueError("broken"), "fine"])

    async def act(_arguments: str, _context: ToolContext) -> str:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return str(answer)

    earlier = [
        Message.user("before"),
        Message.assistant(None, (ToolCall("e", "check", "{}"),)),
        Message.tool_result("e", "fine"),
    ]
    checks = calls(("c", "check"))
    driver = bench.driver(
        contract,
        # The first one stands in the log already.
        [checks, finishes(), checks, checks, finishes(), checks, finishes()],
        tools=[SimpleTool("check", act)],
        log=earlier,
    )

    end = await ended(driver)

    assert end.completion_verified
    assert verified(driver) == [False, False, True]
    texts = [message.text for message in driver.state.log if message.role == "user"][2:]
    assert "'check' was not called" in texts[0]
    assert "broken" in texts[1]


async def test_functions_of_the_agent_are_asked_by_name(bench: Bench) -> None:
    asked: list[CustomQuestion] = []

    def three(question: CustomQuestion) -> CustomAnswer:
        asked.append(question)
        return CustomAnswer(question.attempt == 2, "not yet")

    driver = bench.driver(
        contract_with(Custom("three", arguments={"n": 3})),
        lambda _: finishes("my words"),
        predicates={"three": three},
    )

    end = await ended(driver)

    assert end.completion_verified
    assert [one.attempt for one in asked] == [1, 2]
    assert (asked[0].workspace, asked[0].answer) == (bench.folder, "my words")
    assert dict(asked[0].arguments) == {"n": 3}


def judge_saying(*answers: str, **usage: int) -> RecordingModel:
    said = [Reply.text(answer) for answer in answers]
    return RecordingModel(said, usage=Usage(**{"input_tokens": 70, "output_tokens": 7, **usage}))


YES, NO = '{"met": true, "reason": "good"}', '{"met": false, "reason": "too short"}'


async def test_a_judge_is_a_model_of_its_own_and_the_run_pays_for_it(bench: Bench) -> None:
    answers = iter([NO, YES])
    judge = RecordingModel(
        lambda _: Reply.text(next(answers)),
        usage=Usage(input_tokens=70, output_tokens=7, cost_usd=0.25),
    )
    contract = contract_with(ModelJudged("it is polite", model="critic", files=("report.md",)))
    driver = bench.driver(
        contract, [writes(report="hi"), finishes(), finishes()], judges={"critic": judge}
    )

    end = await ended(driver)

    assert end.completion_verified
    assert "too short" in told(driver)[0]
    assert [len(request.messages) for request in judge.requests] == [1, 1]
    assert "it is polite" in judge.requests[0].messages[0].text
    assert "hi" in judge.requests[0].messages[0].text
    usage = driver.value(USAGE)
    assert (usage.model_calls, usage.cost_usd) == (3 + 2, 0.5)
    assert usage.input_tokens >= 140
    observed = [
        write.value["answer"]
        for delta in driver.deltas
        for write in delta.writes
        if write.key.startswith("harness.observed") and write.change == "append"
    ]
    assert [one["said"] for one in observed] == [[["scripted", NO]], [["scripted", YES]]]


async def test_without_a_name_the_model_of_the_run_judges(bench: Bench) -> None:
    def script(messages: Any) -> Reply:
        judged = len(messages) == 1 and "You judge" in messages[0].text
        return Reply.text(YES) if judged else finishes()

    driver = bench.driver(contract_with(ModelJudged("it is polite")), script)
    assert (await ended(driver)).completion_verified


@pytest.mark.parametrize("answer", ["Looks good!", "", '{"met": "yes"}'])
async def test_a_judge_that_answers_junk_has_not_found_anything(bench: Bench, answer: str) -> None:
    judge = RecordingModel(lambda _: Reply.text(answer))
    contract = contract_with(ModelJudged("it is polite", model="critic"))
    driver = bench.driver(contract, lambda _: finishes(), judges={"critic": judge}, max_turns=1)
    assert not (await ended(driver)).completion_verified
    assert "neither yes nor no" in driver.value(COVERAGE)["R1"]["notes"]


async def test_a_judge_that_fails_is_a_finding_and_no_failure_of_the_run(bench: Bench) -> None:
    async def breaks() -> None:
        raise ConnectionError("no route")

    judge = RecordingModel([], before=breaks)
    contract = contract_with(ModelJudged("x", model="critic"), FileExists("report.md"))
    driver = bench.driver(contract, lambda _: finishes(), judges={"critic": judge}, max_turns=1)
    end = await ended(driver)
    assert (end.status, end.reason.kind) == ("limit", "max_turns")
    assert "no route" in driver.value(COVERAGE)["R1"]["notes"]
    assert driver.value(USAGE).model_calls == 2


async def test_no_judge_is_asked_beyond_the_bounds_of_the_run(bench: Bench) -> None:
    judge = RecordingModel(lambda _: Reply.text(YES))
    contract = contract_with(ModelJudged("x", model="critic"))
    limits = {"model_calls": 1}
    driver = bench.driver(contract, lambda _: finishes(), judges={"critic": judge}, limits=limits)
    end = await ended(driver)
    assert (end.status, end.reason.kind) == ("limit", "model_calls")
    assert judge.requests == []


@pytest.mark.virtual_time
@pytest.mark.parametrize("limit", ["time_s", "working_s"])
async def test_a_verification_ends_with_the_time_of_its_run(bench: Bench, limit: str) -> None:
    async def hangs(_: CustomQuestion) -> bool:
        for _again in range(3):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1000)
        return True

    contract = contract_with(Custom("hangs", timeout_s=500))
    driver = bench.driver(contract, [finishes()], predicates={"hangs": hangs}, limits={limit: 30})
    began = asyncio.get_running_loop().time()

    end = await ended(driver)

    kind = {"time_s": "time", "working_s": "working_time"}[limit]
    assert (end.status, end.reason.kind, end.completion_verified) == ("limit", kind, False)
    assert 30 <= asyncio.get_running_loop().time() - began <= 31
    (event,) = driver.happened(ContractVerified)
    assert (event.limit, event.satisfied) == (kind, False)
    assert driver.value(VERIFIED) is None


async def test_a_command_is_killed_when_the_time_of_its_run_is_over(bench: Bench) -> None:
    contract = contract_with(CommandSucceeds("sleep 50 & echo $! > pid; wait"))
    driver = bench.driver(contract, [finishes()], limits={"time_s": 1})
    began = time.monotonic()
    end = await ended(driver)
    assert (end.reason.kind, time.monotonic() - began < 2) == ("time", True)
    await asyncio.sleep(0.2)
    assert is_gone(int((bench.folder / "pid").read_text()))


async def test_a_large_contract_fits_on_record_and_changes_one_item_at_a_time(
    bench: Bench,
) -> None:
    outputs = tuple(
        RequiredOutput(
            id=f"{number:0>90}", description="d" * 9_000, predicate=FileExists(f"{number}" * 100)
        )
        for number in range(999)
    )
    last = RequiredOutput(id="last", description="é" * 9_000, predicate=FileExists("report.md"))
    contract = TaskContract(goal="much", outputs=(*outputs, last))
    driver = bench.driver(contract, [finishes(), writes(report="x"), finishes()], max_turns=2)

    end = await ended(driver)

    assert end.reason.kind == "max_turns"
    puts = [
        [write.value[0] for write in delta.writes if write.key == COVERAGE.name]
        for delta in driver.deltas
    ]
    assert [len(names) for names in puts if names] == [1000, 1]
    assert [names for names in puts if names][1] == ["last"]
    assert len(told(driver)[0]) < 20_000


async def test_an_all_of_which_a_part_is_there_is_told_as_such(bench: Bench) -> None:
    both: Predicate = AllOf(
        (FileExists("report.md"), JsonSchemaValid(schema={"type": "object"}, file="f"))
    )
    driver = bench.driver(contract_with(both), [writes(report="x"), finishes()], max_turns=1)
    await ended(driver)
    assert driver.value(COVERAGE)["R1"]["status"] == "partially_met"


async def test_optional_outputs_are_looked_at_and_keep_nobody(bench: Bench) -> None:
    contract = TaskContract(
        goal="x",
        outputs=(
            RequiredOutput(id="R1", description="a", predicate=FileExists("a.md"), optional=True),
            RequiredOutput(id="R2", description="b", predicate=FileExists("b.md")),
        ),
    )
    driver = bench.driver(contract, [writes(b="x"), finishes()])
    assert (await ended(driver)).completion_verified
    assert driver.value(COVERAGE)["R1"]["status"] == "unmet"


async def test_a_run_that_only_talks_is_nudged_and_not_verified(bench: Bench) -> None:
    script = [Reply.text("Let me think."), writes(report="x"), finishes()]
    driver = bench.driver(REPORT, script)
    assert (await ended(driver)).completion_verified
    assert verified(driver) == [True]


async def test_without_a_contract_nothing_is_written_of_one(bench: Bench) -> None:
    agent = SimpleAgent(RecordingModel([calls(("c", "write")), finishes()]), [a_tool()])
    driver = Driver(agent)
    await ended(driver)
    written = {write.key for delta in driver.deltas for write in delta.writes}
    assert not written & {VERIFIED.name, COVERAGE.name, "harness.observed.agent_turn"}
    assert "contract" not in driver.spec.config.as_mapping()
    assert driver.results()[-1].text.startswith("Work recorded as complete")


async def test_dying_at_any_step_leaves_one_verdict_for_each_decision(bench: Bench) -> None:
    contract = contract_with(FileExists("report.md"), CommandSucceeds("true"))

    def driver() -> Driver:
        for file in bench.folder.iterdir():
            file.unlink()
        return bench.driver(contract, [finishes(), writes(report="x"), finishes()])

    whole = driver()
    await ended(whole)
    for steps in range(whole.crash.steps + 1):
        run = driver()
        end = await run.run_through_crashes(steps)
        assert isinstance(end, RunEnd), steps
        assert end.completion_verified, steps
        assert verified(run) == [False, True], steps
        assert [event.attempt for event in run.happened(ContractVerified)] == [1, 2], steps
        assert len(told(run)) == 1, steps
        assert len(run.happened(StopDecided)) == 2, steps


def test_a_contract_of_a_config_is_kept_as_plain_values() -> None:
    from harness_actors.config import HarnessConfig

    config = HarnessConfig(contract=REPORT)  # type: ignore[arg-type]
    assert config.contract == REPORT.as_plain()
    assert HarnessConfig.from_mapping(json.loads(json.dumps(config.as_mapping()))) == config
    assert replace(config, contract=None) == HarnessConfig()


async def test_where_the_agent_has_several_models_the_next_judges_if_one_does_not_answer(
    bench: Bench,
) -> None:
    async def breaks() -> None:
        raise ModelRefusedError("critic", "no such model")

    first = RecordingModel([], before=breaks)
    first.name = "another"
    chain = ModelChain(
        [first, RecordingModel(lambda _: Reply.text(YES))],
        Fallback(on=("errors", "refusal")),
    )
    contract = contract_with(ModelJudged("it is polite", model="critic"))
    driver = bench.driver(contract, [finishes()], judges={"critic": chain})

    assert (await ended(driver)).completion_verified
