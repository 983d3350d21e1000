"""Runs that are to come to a value, through the whole harness on both runtimes."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness_actors import AgentHarness, ChatAgent
from harness_actors.batch import Task, run_batch
from harness_actors.batch.outcomes import decode_outcome, encode_outcome
from harness_actors.contracts import ContainsText
from harness_actors.errors import ConfigError, ModelSetupError
from harness_actors.events import ContinuationPrompt, ToolReturned
from harness_actors.policies import Deny
from harness_actors.results import HarnessResult, decode_result, encode_result
from harness_actors.stores import JournalReader
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import ask_user
from tests.contracts.grounds import contract_with
from tests.outputs.forms import SCHEMA, Faulty, Place, Report, Slow
from tests.outputs.later import Basket, Fruit, Leaf, Tree

ASKED = "Count.\n\nWhen the task is done, answer with JSON and with nothing else."


def done(output: Any, summary: str = "It is done.") -> Reply:
    return Reply.call("work_complete", {"summary": summary, "output": output})


def says(value: Any) -> Reply:
    return Reply.text(value if isinstance(value, str) else json.dumps(value))


def a_harness(folder: Path, script: Any, output_type: Any = None, **more: Any) -> AgentHarness:
    of_agent = {name: more.pop(name) for name in ("hooks", "tools", "instructions") if name in more}
    agent = ChatAgent(model=ScriptedModel(script), output_type=output_type, **of_agent)
    return AgentHarness(agent, **{"runtime": "local", "store": folder / "runs.db", **more})


async def ran(folder: Path, script: Any, output_type: Any = None, **more: Any) -> HarnessResult:
    async with a_harness(folder, script, output_type, **more) as harness:
        return await harness.run("report")


def told(result: HarnessResult) -> list[str]:
    """What calls were answered."""
    return [one.event.text for one in result.transcript if isinstance(one.event, ToolReturned)]


def nudges(result: HarnessResult) -> int:
    return sum(isinstance(one.event, ContinuationPrompt) for one in result.transcript)


@pytest.mark.parametrize("runtime", ["local", pytest.param("ray", marks=pytest.mark.ray)])
async def test_a_run_comes_to_an_instance_of_its_type(tmp_path: Path, runtime: Any) -> None:
    script = [done({"total": 3}), done({"total": 4, "lines": [{"name": "a"}]})]
    more = {"runtime": runtime, "address": "local"}
    result = await ran(tmp_path, script, Report, **more)

    assert (result.status, result.reason.kind, result.completion_verified) == (
        "done",
        "completed",
        True,
    )
    assert isinstance(result.output, Report)
    assert result.output == Report.model_validate({"total": 4, "lines": [{"name": "a"}]})
    assert result.output_plain == {"total": 4, "lines": [{"name": "a"}]}
    assert result.output_text == "It is done."
    assert "output.total: Value error, a total is even, got 3" in told(result)[0]
    written = json.loads(json.dumps(encode_result(result)))
    assert written["output"] == {"total": 4, "lines": [{"name": "a"}]}
    assert decode_result(written).output == result.output_plain


@pytest.mark.parametrize("runtime", ["local", pytest.param("ray", marks=pytest.mark.ray)])
async def test_types_travel_with_all_that_their_annotations_name(
    tmp_path: Path, runtime: Any
) -> None:
    values: list[tuple[Any, dict[str, Any], Any]] = [
        (
            Tree,
            {"leaves": [{"name": "a"}], "below": [{"leaves": []}]},
            Tree([Leaf("a")], [Tree([])]),
        ),
        (Basket, {"trees": [{"name": "b"}]}, Basket(trees=[Fruit(name="b")])),
        (Place, {"city": "Rome"}, Place("Rome")),
        (SCHEMA, {"total": 1}, {"total": 1}),
    ]

    def script(messages: Any) -> Reply:
        task = next(m.text for m in reversed(messages) if m.role == "user")
        spoken = messages[-1].role == "tool"
        return done(json.loads(task) if spoken else "none of these")

    async with a_harness(tmp_path, script, runtime=runtime, address="local") as harness:
        for kind, value, wanted in values:
            result = await harness.run(json.dumps(value), output_type=kind)
            assert result.output == wanted
            assert "break its schema" in told(result)[0]


async def test_an_answer_is_the_value(tmp_path: Path) -> None:
    script = [says("all is well"), says({"total": 3}), says('So:\n```json\n{"total": 4}\n```')]
    result = await ran(tmp_path, script, Report, completion="answer")

    assert (result.status, result.reason.kind) == ("done", "answered")
    assert result.output == Report(total=4)
    assert nudges(result) == 2


async def test_a_dataclass_and_a_schema_do_as_well(tmp_path: Path) -> None:
    place = await ran(tmp_path / "a", [done({"city": "Rome"})], Place)
    assert place.output == Place("Rome")
    total = await ran(tmp_path / "b", [done({"total": "x"}), done({"total": 1})], SCHEMA)
    assert total.output == {"total": 1}
    assert "output.total: must be of type 'integer'" in told(total)[0]


async def test_values_that_are_nothing_much_are_values(tmp_path: Path) -> None:
    for at, (kind, value) in enumerate([(int, 0), (bool, False), (list[int], []), (dict, {})]):
        result = await ran(tmp_path / str(at), [done(value)], kind)
        assert (result.output, result.completion_verified) == (value, True)


@pytest.mark.parametrize(
    ("policy", "ending"),
    [("interactive", ("done", "unverified")), ("strict_automation", ("stalled", "blocked"))],
)
async def test_who_never_answers_by_the_type_comes_to_nothing(
    tmp_path: Path, policy: Any, ending: Any
) -> None:
    result = await ran(
        tmp_path, lambda _: says({"total": 3}), Report, completion="answer", stop_policy=policy
    )
    assert (result.status, result.reason.kind) == ending
    assert result.output is None
    assert "a total is even" in result.reason.details["causes"][0]
    assert nudges(result) == 5


@pytest.mark.parametrize("gate", ["contract", "hooks"])
async def test_a_value_that_fits_is_there_though_another_gate_objects(
    tmp_path: Path, gate: str
) -> None:
    async def stop(event: Any) -> Any:
        return Deny("not on a Monday")

    gates: dict[str, Any] = {
        "contract": contract_with(ContainsText("signed")),
        "hooks": {"agent_stop": stop},
    }
    more = {gate: gates[gate]}
    result = await ran(tmp_path, lambda _: says({"total": 4}), Report, completion="answer", **more)
    assert (result.status, result.reason.kind) == ("done", "unverified")
    assert result.output == Report(total=4)


async def test_a_run_that_is_not_done_has_no_value(tmp_path: Path) -> None:
    more: dict[str, Any] = {"contract": contract_with(ContainsText("signed")), "max_turns": 2}
    result = await ran(tmp_path, lambda _: done({"total": 4}), Report, **more)
    assert (result.status, result.reason.kind) == ("limit", "max_turns")
    assert result.output is None


async def test_all_causes_stand_in_one_message(tmp_path: Path) -> None:
    async def stop(event: Any) -> Any:
        return Deny("not on a Monday")

    result = await ran(
        tmp_path,
        [says("words")] * 9,
        Report,
        completion="answer",
        hooks={"agent_stop": stop},
        contract=contract_with(ContainsText("signed")),
    )
    log = JournalReader(tmp_path / "runs.db").load_run(result.run_id)
    assert log is not None
    said = [message.text for message in log.state.log if message.role == "user"][1]
    for cause in ("not on a Monday", "it is not JSON", "signed"):
        assert cause in said


@pytest.mark.parametrize("completion", ["explicit", "answer"])
async def test_code_of_the_user_that_fails_ends_the_run(tmp_path: Path, completion: Any) -> None:
    reply = done({"total": 13}) if completion == "explicit" else says({"total": 13})
    result = await ran(tmp_path, [reply], Faulty, completion=completion)
    assert (result.status, result.reason.kind) == ("failed", "agent_error")
    assert "KeyError" in result.reason.message
    assert "_look_up" in result.reason.traceback
    assert result.output is None


@pytest.mark.parametrize("completion", ["explicit", "answer"])
async def test_looking_at_a_value_ends_with_the_time_of_the_run(
    tmp_path: Path, completion: Any
) -> None:
    value = {"seconds": 5}
    reply = done(value) if completion == "explicit" else says(value)
    result = await ran(tmp_path, [reply], Slow, completion=completion, limits={"time_s": 0.3})
    assert (result.status, result.reason.kind) == ("limit", "time")
    assert result.wall_s < 3


async def test_the_type_of_a_run_is_its_own(tmp_path: Path) -> None:
    def script(messages: Any) -> Reply:
        task = next(m.text for m in reversed(messages) if m.role == "user")
        return done(json.loads(task))

    async with a_harness(tmp_path, script, Report) as harness:
        first = await harness.run('{"total": 2}')
        second = await harness.run('{"city": "Rome"}', output_type=Place)
        kept = harness._typed._programs[0][1]
        third = await harness.run('{"city": "Oslo"}', output_type=Place)
        fourth = await harness.run('{"total": 4}')
        assert len(harness._typed._programs) == 1
    assert [first.output, second.output, third.output, fourth.output] == [
        Report(total=2),
        Place("Rome"),
        Place("Oslo"),
        Report(total=4),
    ]
    reader = JournalReader(tmp_path / "runs.db")
    codes = []
    for result in (first, second, third, fourth):
        stored = reader.load_run(result.run_id)
        assert stored is not None
        codes.append(stored.spec.code)
    assert codes == [codes[0], kept.code, kept.code, codes[0]]


async def test_a_run_that_is_taken_up_comes_to_the_same(tmp_path: Path) -> None:
    script = [Reply.call("ask_user", {"question": "where?"}), done({"city": "Rome"})]
    async with a_harness(tmp_path, script, tools=[ask_user]) as harness:
        asked = await harness.run("go", output_type=Place)
        assert asked.status == "awaiting_input"
        (question,) = asked.questions
        result = await harness.resume(asked.run_id, answers={question.id: "there"})
        assert result.output == Place("Rome")
    async with a_harness(tmp_path, [], Place) as other:
        again = await other.resume(asked.run_id)
        assert again.output == Place("Rome")
    async with a_harness(tmp_path, []) as untyped:
        plain = await untyped.resume(asked.run_id)
        assert plain.output == {"city": "Rome"}
    async with a_harness(tmp_path, [], Report) as another:
        plain = await another.resume(asked.run_id)
        assert plain.output == {"city": "Rome"}


async def test_a_batch_has_plain_values(tmp_path: Path) -> None:
    agent = ChatAgent(model=ScriptedModel([done({"total": 4})]), output_type=Report)
    batch = run_batch([Task(id="a", task="go")], agent, runtime="local", run_dir=tmp_path / "run")
    (outcome,) = [one async for one in batch]
    assert outcome.output == {"total": 4}
    assert decode_outcome(encode_outcome(outcome)) == outcome
    (line,) = (tmp_path / "run" / "results.jsonl").read_text().splitlines()
    assert json.loads(line)["output"] == {"total": 4}


async def test_who_has_no_type_has_no_byte_of_it(tmp_path: Path) -> None:
    plain = Reply.call("work_complete", {"summary": "It is done."})
    result = await ran(tmp_path, [plain])
    assert "output" not in encode_result(result)
    assert result.output is None
    assert result.output_plain is None


async def test_the_model_is_told_the_schema_where_its_answer_is_the_value(tmp_path: Path) -> None:
    def script(messages: Any) -> Reply:
        system = messages[0]
        told = system.role == "system" and '"total"' in system.text
        return says({"total": 4} if told and system.text.startswith(ASKED) else "what?")

    async with a_harness(tmp_path, script, Report, completion="answer", instructions="Count.") as h:
        result = await h.run("go")
        conversation = await h.conversation(result.run_id)
    assert nudges(result) == 0
    assert result.output == Report(total=4)
    assert conversation[0]["role"] == "system"
    assert conversation[0]["content"].startswith(ASKED)
    assert '"total"' in conversation[0]["content"]


async def test_what_is_no_type_of_a_run_is_told_before_it_begins(tmp_path: Path) -> None:
    async with a_harness(tmp_path, []) as harness:
        with pytest.raises(ConfigError, match="output_type"):
            await harness.run("go", output_type=5)
        assert harness.run_id is None
        assert not harness.is_running


async def test_a_model_that_fails_after_a_refused_value_is_told_from_code_that_fails(
    tmp_path: Path,
) -> None:
    script = [done({"total": 3}), Reply.error(ModelSetupError("scripted", "gone"))]
    result = await ran(tmp_path, script, Report)
    assert (result.status, result.reason.kind) == ("failed", "model_error")
