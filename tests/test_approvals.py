"""Approvals as a user meets them: asked in one process and decided in another, over real HTTP."""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness_actors import (
    AgentHarness,
    Approve,
    ChatAgent,
    HarnessResult,
    OpenAIModel,
    Refuse,
    Respond,
    Task,
    run_batch,
    tool,
)
from harness_actors.actors import open_runtime
from harness_actors.batch import TaskOutcome
from harness_actors.errors import AnswerError, ConfigError, RunNotFoundError
from harness_actors.events import QuestionAnswered, Repaired
from harness_actors.messages import Message
from harness_actors.policies import ApprovalRule, Approvals, Ask, BeforeTool
from harness_actors.replay import load_recording, replay
from harness_actors.results import OpenQuestion
from harness_actors.stores import JournalReader
from harness_actors.testing import LoopbackServer, Reply, ScriptedModel, over_messages
from harness_actors.tools import ask_user

LEDGER = "ledger"
LOW = Approvals.of_autonomy("low")


@tool
def refund(order: int, usd: float, ledger: str) -> str:
    """Refund an order.

    Args:
        order: Which.
        usd: How much.
        ledger: Where it is written down.
    """
    with Path(ledger).open("a") as file:
        file.write(f"{order} {usd:g}\n")
    return f"refunded {usd:g} USD of order {order}"


def asks(folder: Path, *messages: Sequence[int]) -> Callable[[Sequence[Message]], Reply]:
    """Refunds so much of these orders, message by message, and says then what it was told."""

    def script(log: Sequence[Message]) -> Reply:
        spoken = sum(message.role == "assistant" for message in log)
        if spoken < len(messages):
            ledger = str(folder / LEDGER)
            return Reply.calls(
                [
                    ("refund", {"order": order, "usd": 5.0, "ledger": ledger})
                    for order in messages[spoken]
                ]
            )
        told = [message.text for message in log if message.role == "tool"]
        return Reply.call("work_complete", {"summary": " / ".join(told)})

    return script


def changed_since() -> Approve:
    """A decision whose arguments were plain JSON when it was made."""
    arguments = {"order": 17, "usd": 5.0}
    decision = Approve(arguments)
    arguments["usd"] = float("nan")
    return decision


def booked(folder: Path) -> list[str]:
    path = folder / LEDGER
    return path.read_text().splitlines() if path.exists() else []


def a_harness(
    folder: Path,
    *messages: Sequence[int],
    approvals: Approvals | None = LOW,
    hooks: Any = None,
    model: Any = None,
    **more: Any,
) -> AgentHarness:
    agent = ChatAgent(
        model=model or ScriptedModel(asks(folder, *(messages or [[17]]))),
        tools=[refund, ask_user],
        approvals=approvals,
        hooks=hooks,
    )
    return AgentHarness(agent, runtime="local", store=folder / "runs.db", **more)


async def waiting(folder: Path, *messages: Sequence[int], **more: Any) -> HarnessResult:
    async with a_harness(folder, *messages, **more) as harness:
        result = await harness.run("refund them")
    assert result.status == "awaiting_input"
    return result


async def decided(folder: Path, run_id: str, *messages: Sequence[int], **answers: Any) -> Any:
    async with a_harness(folder, *messages) as harness:
        return await harness.resume(run_id, answers=answers)


async def check_replay(folder: Path, run_id: str) -> None:
    replayed = await replay(load_recording(JournalReader(folder / "runs.db"), run_id))
    assert replayed.same, replayed.differences


async def test_what_is_asked_over_http_is_decided_in_another_process_and_made_there(
    tmp_path: Path,
) -> None:
    orders = [[1, 2, 3, 4]]
    async with LoopbackServer(over_messages(asks(tmp_path, *orders))) as server:
        model = OpenAIModel("scripted", base_url=server.base_url, api_key="k")
        first = await waiting(tmp_path, model=model)
        assert (first.reason.kind, first.reason.message) == ("approval", "4 calls to approve")
        one = first.questions[0]
        assert (one.id, one.kind, one.tool, one.options) == ("q1", "approval", "refund", ())
        assert one.arguments == {"order": 1, "usd": 5.0, "ledger": str(tmp_path / LEDGER)}
        assert booked(tmp_path) == []

        async with a_harness(tmp_path, model=model) as harness:
            edited = {**one.arguments, "order": 2, "usd": 1.5}
            result = await harness.resume(
                first.run_id,
                answers={
                    "q1": Approve(),
                    "q2": Approve(edited),
                    "q3": Refuse("it was paid back before"),
                    "q4": Respond("order 4 was refunded by hand"),
                },
            )

    assert booked(tmp_path) == ["1 5", "2 1.5"]
    assert result.output_text == (
        "refunded 5 USD of order 1 / refunded 1.5 USD of order 2 / The call was not made: its user "
        "did not approve of it: it was paid back before / order 4 was refunded by hand"
    )
    await check_replay(tmp_path, first.run_id)


async def test_a_function_decides_at_once_and_is_asked_once_of_what_stands(tmp_path: Path) -> None:
    asked: list[Any] = []

    def decide(question: OpenQuestion) -> Approve | str:
        assert question.arguments is not None
        asked.append(question.arguments["order"])
        return Approve(standing="tool") if question.arguments["order"] == 2 else "no"

    async with a_harness(tmp_path, [1], [2], [3, 4], on_question=decide) as harness:
        result = await harness.run("refund them")

    assert result.status == "done"
    answered = [told.event for told in result.transcript if told.event.type == "question_answered"]
    assert answered == [
        QuestionAnswered(question_id="q1", decision="deny"),
        QuestionAnswered(question_id="q2", decision="approve"),
    ]
    assert asked == [1, 2]
    assert booked(tmp_path) == ["2 5", "3 5", "4 5"]
    await check_replay(tmp_path, result.run_id)


async def test_decisions_may_come_one_by_one(tmp_path: Path) -> None:
    first = await waiting(tmp_path, [1, 2])

    part = await decided(tmp_path, first.run_id, [1, 2], q2="yes")
    assert (part.status, [one.id for one in part.questions]) == ("awaiting_input", ["q1"])
    assert part.reason.message == "1 call to approve"
    assert booked(tmp_path) == []

    rest = await decided(tmp_path, first.run_id, [1, 2], q1="no")
    assert (rest.status, booked(tmp_path)) == ("done", ["2 5"])


async def test_questions_and_approvals_of_one_message_are_told_apart(tmp_path: Path) -> None:
    def script(log: Sequence[Message]) -> Reply:
        if log[-1].role == "tool":
            return Reply.call("work_complete", {"summary": log[-1].text})
        call = {"order": 1, "usd": 2, "ledger": str(tmp_path / LEDGER)}
        return Reply.calls([("refund", call), ("ask_user", {"question": "Which?"})])

    first = await waiting(tmp_path, model=ScriptedModel(script))

    assert (first.reason.kind, first.reason.message) == (
        "approval",
        "1 call to approve and 1 question to answer",
    )
    assert [(one.kind, one.tool) for one in first.questions] == [
        ("approval", "refund"),
        ("question", None),
    ]
    (heading,) = JournalReader(tmp_path / "runs.db").headings()
    assert [one.get("kind") for one in heading.open_questions] == ["approval", None]


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({"q7": Approve()}, "it has no question 'q7'; open are q1"),
        ({"q1": "perhaps"}, "'perhaps' is no decision: say yes or no"),
        ({"q1": '{"decision": "maybe"}'}, "must be one of approve, deny, respond"),
        ({"q1": '{"decision": "deny", "arguments": {}}'}, "to deny has no field 'arguments'"),
        ({"q1": ""}, "is empty"),
        (
            {"q1": Approve({"order": 17, "usd": "much"})},
            "the arguments for 'q1' break the schema of refund: $: 'ledger' is missing",
        ),
        (
            {"q1": Approve({"order": 17, "usd": 1, "ledger": "l", "to": "me"})},
            "$: there may be no 'to'",
        ),
        (
            {"q1": '{"decision": "approve", "arguments": {"order": 1.5, "usd": 1, "ledger": ""}}'},
            "$.order: must be of type 'integer', not 1.5",
        ),
        ({"q1": '{"decision": "approve", "arguments": [1]}'}, "no JSON object"),
        (
            {"q1": '{"decision": "approve", "arguments": {"order": 1e999}}'},
            "is no decision",
        ),
        ({"q1": 7}, "the answer to 'q1' must be a text or a decision, not int"),
        ({"q1": changed_since()}, "'q1' cannot be taken: the arguments are"),
    ],
)
async def test_what_is_no_decision_changes_nothing(
    tmp_path: Path, answers: dict[str, Any], said: str
) -> None:
    first = await waiting(tmp_path)

    with pytest.raises(AnswerError) as caught:
        await decided(tmp_path, first.run_id, **answers)

    assert said in str(caught.value)
    (heading,) = JournalReader(tmp_path / "runs.db").headings()
    assert [one["answer"] for one in heading.questions] == [None]
    result = await decided(tmp_path, first.run_id, q1="yes")
    assert (result.status, booked(tmp_path)) == ("done", ["17 5"])


async def test_answers_that_are_by_no_id_are_refused(tmp_path: Path) -> None:
    first = await waiting(tmp_path)
    async with a_harness(tmp_path) as harness:
        for answers in (["yes"], "yes", {"q1"}):
            with pytest.raises(AnswerError, match="must be given by the ids of its questions"):
                await harness.resume(first.run_id, answers=answers)  # type: ignore[arg-type]


async def test_a_large_number_is_what_was_approved(tmp_path: Path) -> None:
    first = await waiting(tmp_path)
    edited = {"order": 2**70 + 1, "usd": 5, "ledger": str(tmp_path / LEDGER)}

    await decided(tmp_path, first.run_id, q1=Approve(edited))

    assert booked(tmp_path) == [f"{2**70 + 1} 5"]


async def test_what_was_shown_in_part_is_not_what_a_call_is_made_with(tmp_path: Path) -> None:
    @tool
    def write(path: str, content: str) -> str:
        """Write a file."""
        (tmp_path / path).write_text(content)
        return "written"

    whole = "x" * 30_000
    script = [
        Reply.call("write", {"path": "a", "content": whole}),
        Reply.call("work_complete", {"summary": "x"}),
    ]
    agent = ChatAgent(model=ScriptedModel(script), tools=[write], approvals=LOW)
    async with AgentHarness(agent, runtime="local", store=tmp_path / "runs.db") as harness:
        first = await harness.run("write it")
        (question,) = first.questions
        assert question.arguments is not None
        edited = Approve({**question.arguments, "path": "b"})
        with pytest.raises(AnswerError, match="the argument 'content' for 'q1' was taken from"):
            await harness.resume(first.run_id, answers={"q1": edited})
        edited = Approve({"path": "b", "content": whole})
        assert (await harness.resume(first.run_id, answers={"q1": edited})).status == "done"
    assert (tmp_path / "b").read_text() == whole
    assert not (tmp_path / "a").exists()


async def test_a_call_with_what_is_no_number_may_be_edited(tmp_path: Path) -> None:
    ledger = str(tmp_path / LEDGER)
    not_a_number = json.dumps({"order": 17, "usd": float("nan"), "ledger": ledger})
    script = [
        Reply(asked=(("refund", not_a_number),)),
        Reply.call("work_complete", {"summary": "x"}),
    ]
    first = await waiting(tmp_path, model=ScriptedModel(script))
    edited = Approve({"order": 17, "usd": 5.0, "ledger": ledger})
    async with a_harness(tmp_path, model=ScriptedModel(script[1:])) as harness:
        await harness.resume(first.run_id, answers={"q1": edited})
    assert booked(tmp_path) == ["17 5"]


async def test_the_first_decision_counts_and_a_run_that_is_over_takes_none(tmp_path: Path) -> None:
    first = await waiting(tmp_path, [1, 2])
    await decided(tmp_path, first.run_id, [1, 2], q1="no")

    with pytest.raises(AnswerError, match="'q1' was answered before; the first answer counts"):
        await decided(tmp_path, first.run_id, [1, 2], q1=Approve())
    await decided(tmp_path, first.run_id, [1, 2], q2="no")
    with pytest.raises(AnswerError, match="it is over: done"):
        await decided(tmp_path, first.run_id, [1, 2], q2=Approve())
    with pytest.raises(RunNotFoundError):
        await decided(tmp_path, "nowhere", [1, 2], q2=Approve())
    assert booked(tmp_path) == []


async def test_a_question_is_not_decided(tmp_path: Path) -> None:
    script = [
        Reply.call("ask_user", {"question": "Which?"}),
        Reply.call("work_complete", {"summary": "x"}),
    ]
    first = await waiting(tmp_path, model=ScriptedModel(script))

    with pytest.raises(AnswerError, match="'q1' is a question, and no call to decide about"):
        await decided(tmp_path, first.run_id, q1=Approve())


async def test_what_a_function_may_answer_is_said_where_it_answers_something_else(
    tmp_path: Path,
) -> None:
    async with a_harness(tmp_path, on_question=lambda _: True) as harness:
        with pytest.raises(ConfigError, match="must answer a text, a decision or None, not bool"):
            await harness.run("refund them")


async def test_arguments_that_only_the_tool_can_judge_fail_as_those_of_its_model(
    tmp_path: Path,
) -> None:
    first = await waiting(tmp_path)
    wrong = {"order": 1, "usd": 2, "ledger": str(tmp_path / "no" / "such" / "folder")}

    result = await decided(tmp_path, first.run_id, q1=Approve(wrong))

    assert result.status == "done"
    assert result.output_text.startswith("FileNotFoundError")


async def expired(result: HarnessResult) -> None:
    (one,) = result.questions
    assert one.expires_at is not None
    await asyncio.sleep(max(0.0, one.expires_at - time.time()))


@pytest.mark.parametrize(
    ("on_expiry", "told", "lines"),
    [
        ("deny", "did not approve of it: nobody has decided about it in time", []),
        ("approve", "refunded 5 USD of order 17", ["17 5"]),
    ],
)
async def test_what_nobody_decides_in_time_is_decided_when_it_is_taken_up(
    tmp_path: Path, on_expiry: Any, told: str, lines: list[str]
) -> None:
    policy = Approvals(otherwise="ask", expires_s=0.05, on_expiry=on_expiry)
    first = await waiting(tmp_path, approvals=policy)
    await expired(first)

    (heading,) = JournalReader(tmp_path / "runs.db").headings()
    assert (heading.phase, heading.is_answered) == ("waiting", True)
    assert heading.questions[0]["expired"] is True
    with pytest.raises(AnswerError, match="the time to decide about 'q1' is over: it has expired"):
        await decided(tmp_path, first.run_id, q1="yes")
    result = await decided(tmp_path, first.run_id)

    assert told in result.output_text
    assert booked(tmp_path) == lines
    await check_replay(tmp_path, first.run_id)


async def test_who_takes_too_long_to_decide_at_once_has_not_decided(tmp_path: Path) -> None:
    async def late(question: OpenQuestion) -> Approve:
        assert question.expires_at is not None
        await asyncio.sleep(max(0.0, question.expires_at - time.time()) + 0.01)
        return Approve()

    policy = Approvals(otherwise="ask", expires_s=0.05)
    async with a_harness(tmp_path, approvals=policy, on_question=late) as harness:
        result = await harness.run("refund them")

    assert result.status == "done"
    assert "in time" in result.output_text
    assert booked(tmp_path) == []


@pytest.mark.parametrize(
    ("setting", "status", "said"),
    [
        ("deny", "done", "nobody is there to be asked"),
        ("fail", "failed", "a person must approve of a call of 'refund'"),
    ],
)
async def test_where_nobody_is_to_be_asked(
    tmp_path: Path, setting: Any, status: str, said: str
) -> None:
    async with a_harness(tmp_path, on_question=setting) as harness:
        result = await harness.run("refund them")

    assert result.status == status
    assert said in (result.output_text or result.reason.message)
    assert booked(tmp_path) == []


async def large_ones(event: BeforeTool) -> Ask | None:
    return Ask("it is a lot") if event.arguments["order"] == 2 else None


async def test_a_hook_asks_too(tmp_path: Path) -> None:
    first = await waiting(tmp_path, [1, 2, 3], approvals=None, hooks={"pre_tool": large_ones})

    assert [(one.id, one.why) for one in first.questions] == [("q1", "it is a lot")]
    assert booked(tmp_path) == ["1 5"]
    result = await decided(tmp_path, first.run_id, [1, 2, 3], q1="yes")
    assert (result.status, booked(tmp_path)) == ("done", ["1 5", "2 5", "3 5"])


async def outcomes_of(folder: Path, *tasks: Task, **more: Any) -> dict[str, TaskOutcome]:
    def script(log: Sequence[Message]) -> Reply:
        told = [message.text for message in log if message.role == "tool"]
        order = int(next(message.text for message in log if message.role == "user"))
        if not told:
            return asks(folder, [order])(log)
        return Reply.call("work_complete", {"summary": told[0]})

    agent = ChatAgent(
        model=ScriptedModel(script), tools=[refund], approvals=more.pop("approvals", LOW)
    )
    stream = run_batch(tasks, agent, runtime="local", **more)
    return {outcome.id: outcome async for outcome in stream}


TASKS = [Task(id=f"t{number}", task=str(number)) for number in (1, 2)]


async def test_runs_of_a_batch_wait_and_the_same_command_goes_on(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    first = await outcomes_of(tmp_path, *TASKS, run_dir=run_dir)
    assert {one.status for one in first.values()} == {"awaiting_input"}
    assert first["t1"].questions[0].tool == "refund"
    summary = json.loads((run_dir / "summary.json").read_text())
    (told, _) = summary["waiting"]["runs"]
    assert told["questions"][0]["kind"] == "approval"

    runtime = await open_runtime("local", store=run_dir / "runs.db", command="answers")
    await runtime.answer(str(first["t1"].run_id), {"q1": "yes"})
    await runtime.close()
    again = await outcomes_of(tmp_path, *TASKS, run_dir=run_dir)

    assert {name: one.status for name, one in again.items()} == {
        "t1": "done",
        "t2": "awaiting_input",
    }
    assert booked(tmp_path) == ["1 5"]


async def test_a_batch_that_is_run_again_takes_up_what_has_expired(tmp_path: Path) -> None:
    policy = Approvals(otherwise="ask", expires_s=0.05)
    more: dict[str, Any] = {"run_dir": tmp_path / "run", "approvals": policy}
    first = await outcomes_of(tmp_path, *TASKS, **more)
    await asyncio.sleep(
        max(0.0, *((one.questions[0].expires_at or 0.0) - time.time() for one in first.values()))
    )

    again = await outcomes_of(tmp_path, *TASKS, **more)

    assert {one.status for one in again.values()} == {"done"}
    assert booked(tmp_path) == []


@tool(effect="read_only")
async def wait_for(path: str) -> str:
    """Wait until there is a file.

    Args:
        path: Where.
    """
    while not Path(path).exists():  # noqa: ASYNC110, ASYNC240 - whatever loop it is in
        await asyncio.sleep(0.01)
    return "it is there"


async def test_a_batch_that_still_works_takes_up_what_has_expired(tmp_path: Path) -> None:
    """Its other run ends when that one has."""
    done = tmp_path / "done"

    def script(log: Sequence[Message]) -> Reply:
        told = [message.text for message in log if message.role == "tool"]
        if told:
            return Reply.call("work_complete", {"summary": told[0]})
        if any(message.text == "wait" for message in log):
            return Reply.call("wait_for", {"path": str(done)})
        return asks(tmp_path, [1])(log)

    policy = replace(LOW, expires_s=0.2, on_expiry="approve")
    agent = ChatAgent(model=ScriptedModel(script), tools=[refund, wait_for], approvals=policy)
    given = [Task(id="t1", task="refund"), Task(id="t2", task="wait")]
    told = []
    async with asyncio.timeout(60):
        async for outcome in run_batch(given, agent, runtime="local", run_dir=tmp_path / "run"):
            told.append((outcome.id, outcome.status))
            if told[-1] == ("t1", "done"):
                done.touch()

    assert told == [("t1", "awaiting_input"), ("t1", "done"), ("t2", "done")]
    assert booked(tmp_path) == ["1 5"]


async def test_a_function_decides_for_a_batch(tmp_path: Path) -> None:
    def decide(question: OpenQuestion) -> Approve | Refuse:
        assert question.arguments is not None
        return Approve() if question.arguments["order"] == 1 else Refuse()

    found = await outcomes_of(tmp_path, *TASKS, on_question=decide)

    assert {one.status for one in found.values()} == {"done"}
    assert booked(tmp_path) == ["1 5"]


async def test_a_batch_whose_runs_nobody_could_ever_approve_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="whether it may make a call, and without a run_dir"):
        await outcomes_of(tmp_path, *TASKS)


class OwnAgent:
    """An agent of a class of one's own, whose policy is none."""

    name, instructions, tools, approvals = "own", "", (), "low"
    model = ScriptedModel([])


async def test_an_agent_of_ones_own_class_with_a_policy_that_is_none_fails(tmp_path: Path) -> None:
    async with AgentHarness(OwnAgent(), runtime="local", store=tmp_path / "runs.db") as harness:
        result = await harness.run("refund them")

    assert (result.status, result.reason.kind) == ("failed", "agent_error")
    assert "approvals: must be Approvals(...), not 'low'" in result.reason.message


def test_an_agent_refuses_a_policy_that_is_none() -> None:
    model = ScriptedModel([])
    with pytest.raises(ConfigError, match=r"approvals: must be Approvals\(...\), not 'low'"):
        ChatAgent(model=model, approvals="low")  # type: ignore[arg-type]
    slip = Approvals(rules=[ApprovalRule(decide="deny", tools=["refnd"])])
    with pytest.raises(ConfigError, match="there is no tool 'refnd'; the agent has "):
        ChatAgent(model=model, tools=[refund], approvals=slip)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from harness_actors import AgentHarness, ChatAgent, tool
from harness_actors.policies import Approvals
from harness_actors.testing import Reply, ScriptedModel

folder, where, answer = Path(sys.argv[1]), sys.argv[2], sys.argv[3]


def die(at):
    if at == where:
        os.kill(os.getpid(), signal.SIGKILL)


@tool
async def pay(usd: float) -> str:
    "Pay."
    with (folder / "ledger").open("a") as file:
        file.write(f"{usd:g}\\n")
    die("behind")
    return "paid"


def script(log):
    told = [message.text for message in log if message.role == "tool"]
    if told:
        return Reply.call("work_complete", {"summary": told[0]})
    return Reply.call("pay", {"usd": 5})


async def decide(question):
    with (folder / "asked").open("a") as file:
        file.write(f"{question.id}\\n")
    die("asking")
    return answer


async def main():
    agent = ChatAgent(
        model=ScriptedModel(script), tools=[pay], approvals=Approvals.of_autonomy("low")
    )
    store = folder / "runs.db"
    async with AgentHarness(agent, runtime="local", store=store, on_question=decide) as harness:
        known = folder / "run"
        if known.exists():
            result = await harness.resume(known.read_text())
        else:
            stream = harness.run_stream("pay", text=False)
            known.write_text((await anext(stream)).run_id)
            async for result in stream:
                pass
    print(result.status, result.output_text, sep=": ")


asyncio.run(main())
"""


def killed(folder: Path, where: str, answer: str = "yes") -> "subprocess.CompletedProcess[str]":
    program = [sys.executable, "-c", KILLED, str(folder), where, answer]
    return subprocess.run(program, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("where", "told", "asked", "paid"),
    [
        ("asking", "done: paid", 2, 1),
        ("behind", "done: The outcome of this call is unknown", 1, 1),
    ],
)
def test_a_process_that_is_killed_asks_nobody_again_and_makes_no_call_twice(
    tmp_path: Path, where: str, told: str, asked: int, paid: int
) -> None:
    first = killed(tmp_path, where)
    assert first.returncode == -signal.SIGKILL, first.stderr

    second = killed(tmp_path, "nowhere")

    assert second.returncode == 0, second.stderr
    assert (tmp_path / "asked").read_text().splitlines() == ["q1"] * asked
    assert len(booked(tmp_path)) == paid
    assert second.stdout.startswith(told), second.stdout
    run_id = (tmp_path / "run").read_text()
    recording = load_recording(JournalReader(tmp_path / "runs.db"), run_id)
    events = [event for change in recording.changes for event in change.delta.events]
    assert any(isinstance(event, Repaired) for event in events) is (where == "behind")
    asyncio.run(check_replay(tmp_path, run_id))
