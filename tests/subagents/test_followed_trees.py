"""What happens in children is told in the stream of whoever follows their parent."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness_actors import HarnessResult
from harness_actors.events import ChildEnded, ChildrenStarted, RunCompleted, RunEvent, ToolReturned
from harness_actors.messages import Message
from harness_actors.stores import JournalReader
from harness_actors.subagents import SubAgentSpec, explore
from harness_actors.testing import Reply
from tests.subagents.team import Team, asked, exploring, in_order, looks, results

LOW = SubAgentSpec(name="low", description="Looks.", instructions="You are low.")
MIDDLE = SubAgentSpec(
    name="middle", description="Asks.", instructions="You are between.", sub_agents=[LOW]
)


def deep() -> Team:
    """One that delegates to one that delegates."""
    top = in_order(
        Reply.calls([("middle", {"prompt": "a"}), ("middle", {"prompt": "b"})]),
        Reply.call("work_complete", {"summary": "done"}),
    )

    def between(conversation: Sequence[Message]) -> Reply:
        if not results(conversation):
            return Reply.call("low", {"prompt": asked(conversation)})
        return Reply.text("so")

    return Team(top, below={"You are between": between, "You are low": looks}, specs=[MIDDLE])


async def told(team: Team, store: Path, **given: Any) -> list[RunEvent]:
    settings = {"sub_agents": {"max_depth": 2}}
    async with team.harness(store, **settings) as harness:
        stream = harness.run_stream("Go.", **given)
        return [item async for item in stream if isinstance(item, RunEvent)]


@pytest.mark.parametrize("text", [True, False])
async def test_each_event_of_a_tree_comes_once_with_its_path(tmp_path: Path, text: bool) -> None:
    store = tmp_path / "runs.db"
    events = await told(deep(), store, text=text, children=True)

    run_id = events[0].run_id
    paths = {event.run_id: event.path for event in events}
    assert paths == {
        run_id: "",
        f"{run_id}.1": "middle",
        f"{run_id}.2": "middle",
        f"{run_id}.1.1": "middle/low",
        f"{run_id}.2.1": "middle/low",
    }
    # All that is on disk of those below, in its order.
    below = [(one.position, one.run_id, one.event) for one in events if one.path]
    on_disk = JournalReader(store).load_events(0)
    assert below == [(e.position, e.run_id, e.event) for e in on_disk if e.run_id != run_id]
    # Each begins behind the event that says so, and ends before its parent is told.
    kinds = [(one.run_id, type(one.event)) for one in events]
    begun = kinds.index((run_id, ChildrenStarted))
    assert all(one.run_id == run_id for one in events[:begun])
    ended = [one.event.run_id for one in events if isinstance(one.event, ChildEnded)]
    for child in ended:
        last = next(at for at, one in enumerate(events) if one.run_id == child and _is_over(one))
        parents = [at for at, one in enumerate(events) if _tells_of(one, child)]
        assert parents
        assert last < parents[0] or events[last].position == events[parents[0]].position


def _is_over(event: RunEvent) -> bool:
    return isinstance(event.event, RunCompleted)


def _tells_of(event: RunEvent, child: str) -> bool:
    return isinstance(event.event, ChildEnded) and event.event.run_id == child


@pytest.mark.parametrize("text", [True, False])
async def test_without_being_asked_for_they_do_not_come(tmp_path: Path, text: bool) -> None:
    events = await told(deep(), tmp_path / "runs.db", text=text)

    assert {(event.run_id, event.path) for event in events} == {(events[0].run_id, "")}


async def test_the_result_is_that_of_the_run_and_comes_last(tmp_path: Path) -> None:
    async with Team(exploring("a")).harness(tmp_path / "runs.db") as harness:
        items = [item async for item in harness.run_stream("Go.", children=True)]

    assert isinstance(items[-1], HarnessResult)
    assert sum(isinstance(item, HarnessResult) for item in items) == 1
    assert {event.path for event in items[-1].transcript} == {""}


async def test_paths_are_known_of_those_that_were_begun_before_anybody_followed(
    tmp_path: Path,
) -> None:
    store = tmp_path / "runs.db"
    settings = {"sub_agents": {"max_depth": 2}}
    async with deep().harness(store, **settings) as harness:
        async for item in harness.run_stream("Go.", children=True):
            if isinstance(item, RunEvent) and item.path == "middle/low":
                break
    async with deep().harness(store, **settings) as harness:
        run_id = JournalReader(store).headings()[0].run_id
        items = [item async for item in harness.resume_stream(run_id, children=True)]

    paths = {item.run_id: item.path for item in items if isinstance(item, RunEvent)}
    assert paths[f"{run_id}.1.1"] == "middle/low"
    assert paths[f"{run_id}.2"] == "middle"


@pytest.mark.ray
@pytest.mark.timeout(180)
async def test_it_is_so_on_ray(tmp_path: Path) -> None:
    team = Team(exploring("a", "b"), specs=[explore()])
    async with team.harness(tmp_path / "runs.db", runtime="ray") as harness:
        items = [item async for item in harness.run_stream("Go.", children=True)]

    seen = [item for item in items if isinstance(item, RunEvent) and item.path == "explore"]
    answers = [one.event.text for one in seen if isinstance(one.event, ToolReturned)]
    assert sorted(answers) == ["saw a", "saw b"]
