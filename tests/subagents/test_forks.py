"""Agents that go on with the conversation of the one that sends them out."""

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness_actors import AgentHarness, ChatAgent
from harness_actors.config import ArtifactsConfig
from harness_actors.errors import ConfigError
from harness_actors.events import RunStarted
from harness_actors.messages import Message
from harness_actors.ports import ModelRequest, ModelResponse
from harness_actors.stores import JournalReader
from harness_actors.stores.conversations import conversation_of
from harness_actors.subagents import SubAgentSpec, explore
from harness_actors.testing import Reply, ScriptedModel
from harness_actors.tools import tool
from harness_actors.turn.delegation import FORKED
from tests.subagents.team import DONE, TOP, look, results, told, write
from tests.subagents.test_background import replays_as_it_was

ASIDE = SubAgentSpec(name="aside", description="Does one thing on the side.", fork=True)
BESIDE = SubAgentSpec(name="beside", description="The same.", fork=True, background=True)


class Kept(ScriptedModel):
    """Writes down what its requests begin with, also where a copy of it is asked."""

    def __init__(self, script: Any, requests: Path) -> None:
        super().__init__(script)
        self._requests = requests

    async def complete(self, request: ModelRequest) -> ModelResponse:
        with self._requests.open("ab") as file:
            messages = [one.encoded.decode() for one in request.messages]
            file.write(orjson.dumps([request.tools.encoded.decode(), *messages]) + b"\n")
        return await super().complete(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        yield await self.complete(request)


def last_said(conversation: Sequence[Message]) -> str:
    return [message.text for message in conversation if message.role == "user"][-1]


def says(conversation: Sequence[Message]) -> Reply:
    """Looks first, then sends out two; they say what they have seen."""
    if (said := last_said(conversation)).startswith("say"):
        return Reply.call("work_complete", {"summary": f"{said}: {results(conversation)[0]}"})
    match len(results(conversation)):
        case 0:
            return Reply.call("look", {"what": "sea"})
        case 1:
            return Reply.calls([("aside", {"prompt": "say a"}), ("aside", {"prompt": "say b"})])
        case _:
            return DONE


def agent(
    script: Any = says,
    *specs: SubAgentSpec,
    tools: Sequence[Any] = (look, write),
    model: Any = None,
) -> ChatAgent:
    return ChatAgent(
        model=model or ScriptedModel(script),
        instructions=TOP,
        tools=tools,
        sub_agents=specs or (ASIDE, explore()),
    )


async def run(one: ChatAgent, folder: Path, **settings: Any) -> tuple[Any, JournalReader]:
    store = folder / "runs.db"
    async with AgentHarness(one, store=store, runtime="local", **settings) as harness:
        result = await harness.run("Go.")
    return result, JournalReader(store)


async def test_it_knows_what_was_said_and_begins_with_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    result, journal = await run(agent(model=Kept(says, path)), tmp_path)
    assert (result.status, result.children) == ("done", 2)
    assert told(journal, result.run_id)[1:3] == ["say a: saw sea", "say b: saw sea"]
    await replays_as_it_was(journal, *(one.run_id for one in journal.headings()))
    # Nor is it another one's, where somebody reads it.
    fork = journal.load_run(f"{result.run_id}.1")
    assert fork is not None
    names = [one["function"]["name"] for one in conversation_of(journal, fork).tools or ()]
    assert names == ["look", "write", "aside", "explore", "work_complete"]
    events = [one.event for one in journal.load_events(0, run_id=fork.spec.run_id)]
    begun = [one for one in events if isinstance(one, RunStarted)]
    assert [one.task_preview for one in begun] == ["say a"]

    requests = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    # The tools, the system prompt, the task, the call and what came of it.
    (asked,) = [one for one in requests if len(one) == 5]
    forks = [one for one in requests if "say " in one[-1] and '"user"' in one[-1]]
    assert len(forks) == 2
    assert all(one[:-1] == asked for one in forks)


async def test_it_delegates_to_nobody(tmp_path: Path) -> None:
    def asks(conversation: Sequence[Message]) -> Reply:
        if last_said(conversation) != "fork":
            return DONE if results(conversation) else Reply.call("aside", {"prompt": "fork"})
        if results(conversation):
            return Reply.call("work_complete", {"summary": results(conversation)[-1]})
        return Reply.call("aside", {"prompt": "again"})

    result, journal = await run(agent(asks), tmp_path)
    assert (result.status, result.children) == ("done", 1)
    assert told(journal, result.run_id)[0] == FORKED


async def test_one_beside_its_parent_and_one_of_a_child_are_forks_too(tmp_path: Path) -> None:
    def asks(conversation: Sequence[Message]) -> Reply:
        said, seen = last_said(conversation), results(conversation)
        if said.startswith("say"):
            return Reply.text(f"{said}: {seen[0]}")
        if said == "middle":
            steps = [
                Reply.call("look", {"what": "hill"}),
                Reply.call("aside", {"prompt": "say deep"}),
                Reply.text(seen[-1] if seen else ""),
            ]
            return steps[len(seen)]
        match len(seen):
            case 0:
                return Reply.call("look", {"what": "sea"})
            case 1:
                both = [("beside", {"prompt": "say beside"}), ("middle", {"prompt": "middle"})]
                return Reply.calls(both)
            case 3:
                return Reply.call("agent_wait", {})
            case _:
                return Reply.text("over")

    middle = SubAgentSpec(
        name="middle",
        description="In between.",
        instructions="You are between.",
        sub_agents=[ASIDE],
    )
    result, journal = await run(
        agent(asks, BESIDE, middle), tmp_path, completion="answer", sub_agents={"max_depth": 2}
    )
    assert result.status == "done"
    ends = {one.run_id.removeprefix(result.run_id): one for one in journal.headings()}
    assert set(ends) == {"", ".1", ".2", ".2.1"}
    below = {name: await _output(journal, heading.run_id) for name, heading in ends.items() if name}
    assert below == {".1": "say beside: saw sea", ".2": "say deep: saw hill", ".2.1": below[".2"]}


async def _output(journal: JournalReader, run_id: str) -> str:
    stored = journal.load_run(run_id)
    assert stored is not None
    return list(stored.state.log)[-1].text


async def test_it_reads_the_long_results_of_its_parent(tmp_path: Path) -> None:
    @tool(effect="read_only")
    async def long() -> str:
        """Much."""
        return "0123456789" * 500 + " the end"

    def asks(conversation: Sequence[Message]) -> Reply:
        seen = results(conversation)
        if last_said(conversation) != "read":
            steps = [Reply.call("long", {}), Reply.call("aside", {"prompt": "read"}), DONE]
            return steps[len(seen)]
        if len(seen) == 1:
            (named,) = re.findall(r"artifact (a[0-9a-f]+)", seen[0])
            return Reply.call("read_artifact", {"id": named, "pattern": "the end"})
        return Reply.call("work_complete", {"summary": seen[-1]})

    one = agent(asks, tools=[long])
    result, journal = await run(one, tmp_path, artifacts=ArtifactsConfig(inline_chars=2_000))
    assert result.status == "done"
    assert "the end" in told(journal, result.run_id)[1]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("instructions", "You are another."),
        ("model", ScriptedModel([DONE])),
        ("tools", []),
        ("reads_only", True),
        ("output_type", int),
        ("sub_agents", [explore()]),
        ("completion", "explicit"),
    ],
)
def test_what_would_change_its_requests_is_refused(field: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=f"sub_agents.aside.{field}.*fork"):
        SubAgentSpec(name="aside", description="x", fork=True, **{field: value})


def test_fork_is_a_switch() -> None:
    with pytest.raises(ConfigError, match=r"sub_agents.aside.fork.*true or false"):
        SubAgentSpec(name="aside", description="x", fork="yes")  # type: ignore[arg-type]
