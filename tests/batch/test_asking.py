"""Agents of a batch that ask their user, with the actors of this process and real tools."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_actors.actors import open_runtime
from harness_actors.agents import ChatAgent
from harness_actors.batch import Task, TaskOutcome, run_batch
from harness_actors.batch.tasks import Check
from harness_actors.config import HarnessConfig, OnQuestion
from harness_actors.errors import ConfigError
from harness_actors.harness import AgentHarness
from harness_actors.messages import Message
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.results import OpenQuestion, Usage
from harness_actors.testing import LoopbackServer, Reply, ScriptedModel, over_messages
from harness_actors.tools import ask_user, coding_tools


def asks(messages: Sequence[Message]) -> Reply:
    """Asks for a color, and for a size where it is told to, and writes what it was answered."""
    results = [message.text for message in messages if message.role == "tool"]
    task = next(message.text for message in messages if message.role == "user")
    if not task.startswith("ask"):
        return Reply.call("work_complete", {"summary": "nothing to ask"})
    rounds = sum(message.role == "assistant" for message in messages)
    if rounds == 0:
        questions = [("ask_user", {"question": "Which color?", "options": ["red", "blue"]})]
        if task == "ask twice":
            questions.append(("ask_user", {"question": "Which size?"}))
        return Reply.calls(questions)
    if rounds == 1:
        return Reply.call("write_file", {"path": "color.txt", "content": " ".join(results)})
    return Reply.call("work_complete", {"summary": results[0]})


def an_asking_agent(model: ScriptedModel | None = None) -> ChatAgent:
    return ChatAgent(model=model or ScriptedModel(asks), tools=[*coding_tools(), ask_user])


async def outcomes_of(tasks: Sequence[Any], folder: Path, **more: Any) -> dict[str, TaskOutcome]:
    agent = more.pop("agent", None) or an_asking_agent()
    stream = run_batch(tasks, agent, runtime="local", run_dir=folder, **more)
    return {outcome.id: outcome async for outcome in stream}


async def answer(folder: Path, outcome: TaskOutcome, **answers: str) -> None:
    """What another command does that only answers."""
    runtime = await open_runtime("local", store=folder / "runs.db", command="answers")
    assert outcome.run_id is not None
    await runtime.answer(outcome.run_id, answers)
    await runtime.close()


def lines_of(folder: Path) -> list[str]:
    lines = (folder / "results.jsonl").read_text().splitlines()
    return sorted(json.loads(line)["id"] for line in lines)


CHECKED = Task(
    id="t1", task="ask", check=Check(command="test -e color.txt && grep . color.txt >> ../../seen")
)


async def test_an_answer_of_another_day_is_what_the_run_goes_on_with(tmp_path: Path) -> None:
    model = ScriptedModel(asks)
    tasks = [CHECKED, Task(id="t2", task="say nothing")]
    agent = an_asking_agent(model)
    first = await outcomes_of(tasks, tmp_path, agent=agent)
    waiting = first["t1"]
    (question,) = waiting.questions

    assert (waiting.status, waiting.check, waiting.model_calls) == ("awaiting_input", None, 1)
    assert (question.text, question.options) == ("Which color?", ("red", "blue"))
    assert lines_of(tmp_path) == ["t2"]
    (kept,) = (path for path in (tmp_path / "workspaces").iterdir() if path.name == waiting.run_id)
    (kept / "mine.txt").write_text("left here")

    again = await outcomes_of(tasks, tmp_path, agent=agent)
    assert {name: one.status for name, one in again.items()} == {"t1": "awaiting_input"}
    assert again["t1"].questions == waiting.questions
    assert (again["t1"].usage, again["t1"].turns) == (waiting.usage, waiting.turns)

    await answer(tmp_path, waiting, q1="blue")
    last = await outcomes_of(tasks, tmp_path, agent=agent)

    done = last["t1"]
    assert (done.status, done.output_text, done.run_id) == ("done", "blue", waiting.run_id)
    assert done.check is not None
    assert done.model_calls == 3, "it asked once"
    assert (kept / "mine.txt").exists()
    assert lines_of(tmp_path) == ["t1", "t2"]


async def test_a_run_that_was_answered_in_part_asks_its_model_nothing(tmp_path: Path) -> None:
    tasks = [Task(id="t1", task="ask twice")]
    waiting = (await outcomes_of(tasks, tmp_path))["t1"]
    assert [one.id for one in waiting.questions] == ["q1", "q2"]
    await answer(tmp_path, waiting, q2="large")

    half = (await outcomes_of(tasks, tmp_path))["t1"]
    assert ([one.id for one in half.questions], half.model_calls) == (["q1"], 1)

    await answer(tmp_path, waiting, q1="red")
    done = (await outcomes_of(tasks, tmp_path))["t1"]
    assert (done.status, done.model_calls) == ("done", 3)
    assert done.run_id is not None
    written = tmp_path / "workspaces" / done.run_id / "color.txt"
    assert written.read_text() == "red large"


async def test_a_run_that_a_harness_has_answered_to_its_end_has_its_line(tmp_path: Path) -> None:
    tasks = [Task(id="t1", task="ask")]
    waiting = (await outcomes_of(tasks, tmp_path))["t1"]
    assert waiting.run_id is not None
    harness = AgentHarness(an_asking_agent(), runtime="local", store=tmp_path / "runs.db")
    async with harness:
        await harness.resume(waiting.run_id, answers={"q1": "red"})

    done = (await outcomes_of(tasks, tmp_path))["t1"]

    assert (done.status, done.output_text, done.attempt) == ("done", "red", 1)
    assert lines_of(tmp_path) == ["t1"]


async def test_a_program_that_answers_at_once_needs_no_second_call(tmp_path: Path) -> None:
    asked: list[OpenQuestion] = []

    async def answers(question: OpenQuestion) -> str:
        asked.append(question)
        return question.options[0] if question.options else "large"

    tasks = [Task(id=f"t{number}", task="ask twice") for number in range(4)]
    agent = an_asking_agent()
    stream = run_batch(tasks, agent, runtime="local", concurrency=2, on_question=answers)
    outcomes = [outcome async for outcome in stream]

    assert [one.status for one in outcomes] == ["done"] * 4
    assert {one.output_text for one in outcomes} == {"red"}
    assert len(asked) == 8


async def test_a_folder_that_nobody_comes_back_to_has_no_waiting_runs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="on_question: the agent may ask its user, by ask_user"):
        await anext(run_batch(["ask"], an_asking_agent(), runtime="local"))

    (tmp_path / "asks.yaml").write_text(
        "model: {id: m, base_url: 'http://127.0.0.1:9'}\nenvironment: {tools: [ask_user]}\n"
    )
    own = {"id": "t1", "task": "ask", "agent": str(tmp_path / "asks.yaml")}
    agent = ChatAgent(model=ScriptedModel(asks))
    (outcome,) = [one async for one in run_batch([own], agent, runtime="local")]

    assert outcome.reason.kind == "bad_input"
    assert "without a run_dir its runs could not be answered later" in outcome.reason.message


@pytest.mark.parametrize(
    ("word", "status", "kind"),
    [("deny", "done", "completed"), ("fail", "failed", "agent_error")],
)
async def test_without_anybody_to_answer_no_run_waits(
    word: OnQuestion, status: str, kind: str
) -> None:
    config = HarnessConfig(on_question=word)
    stream = run_batch(["ask"], an_asking_agent(), runtime="local", config=config, retry_on_error=2)
    (outcome,) = [one async for one in stream]

    assert (outcome.status, outcome.reason.kind) == (status, kind)
    assert outcome.attempt == 1, "nobody would answer the second time either"
    assert outcome.is_final


@pytest.mark.parametrize(
    ("word", "status"), [("wait", "awaiting_input"), ("deny", "done"), ("fail", "failed")]
)
async def test_the_agent_file_of_a_task_says_what_becomes_of_its_questions(
    word: str, status: str, tmp_path: Path
) -> None:
    async with LoopbackServer(over_messages(asks)) as server:
        (tmp_path / "asks.yaml").write_text(
            f"model: {{id: m, base_url: '{server.base_url}'}}\n"
            "environment: {tools: [ask_user, write_file]}\n"
            f"harness: {{on_question: {word}}}\n"
        )
        task = {"id": "t1", "task": "ask", "agent": str(tmp_path / "asks.yaml")}
        outcomes = await outcomes_of([task], tmp_path / "run")

    assert outcomes["t1"].status == status


class Dollar(ScriptedModel):
    """A scripted model whose answers cost a dollar."""

    async def complete(self, request: ModelRequest) -> ModelResponse:
        answer = await super().complete(request)
        usage = Usage(model_calls=1, input_tokens=9, output_tokens=1, cost_usd=1.0)
        return ModelResponse(text=answer.text, tool_calls=answer.tool_calls, usage=usage)


async def test_a_budget_holds_over_a_wait(tmp_path: Path) -> None:
    """1 USD before the question; 2 behind it, of which a budget of 2 leaves one."""
    tasks, agent = [Task(id="t1", task="ask")], an_asking_agent(Dollar(asks))
    waiting = (await outcomes_of(tasks, tmp_path, agent=agent, budget_usd=2.0))["t1"]
    assert waiting.usage.cost_usd == 1.0
    await answer(tmp_path, waiting, q1="red")

    stopped = (await outcomes_of(tasks, tmp_path, agent=agent, budget_usd=2.0))["t1"]

    assert (stopped.status, stopped.reason.kind) == ("limit", "budget")
    assert stopped.usage.cost_usd == 2.0
    assert json.loads((tmp_path / "summary.json").read_text())["usage"]["cost_usd"] == 2.0


async def test_a_limit_of_a_run_holds_over_a_wait(tmp_path: Path) -> None:
    task = {"id": "t1", "task": "ask", "limits": {"model_calls": 1}}
    waiting = (await outcomes_of([task], tmp_path))["t1"]
    await answer(tmp_path, waiting, q1="red")

    ended = (await outcomes_of([task], tmp_path))["t1"]

    assert (ended.status, ended.reason.kind) == ("limit", "model_calls")
