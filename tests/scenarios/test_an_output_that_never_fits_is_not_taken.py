"""An output that never fits its schema ends nothing: the model is told why, and then stopped."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness_actors.models import OpenAIModel
from harness_actors.testing import Reply
from harness_actors.testing.faults import Refuse
from tests.outputs.forms import SCHEMA
from tests.scenarios.stage import AT_ONCE, Played, Scenario, play, play_killed

AGENT = {"tools": [], "output_type": SCHEMA}


def claims(body: dict[str, Any]) -> Reply:
    """Each time another value that does not fit."""
    spoken = sum(message["role"] == "assistant" for message in body["messages"])
    value = {"total": f"about {spoken}"}
    return Reply.call("work_complete", {"summary": f"done {spoken}", "output": value})


def answers(body: dict[str, Any]) -> Reply:
    spoken = sum(message["role"] == "assistant" for message in body["messages"])
    return Reply.text(json.dumps({"total": -1 - spoken}))


SCENARIO = Scenario(script=claims, agent=AGENT)
BY_ANSWER = {"completion": "answer"}


def check(played: Played) -> None:
    assert played.ending == ("stalled", "repetition", False)
    assert played.result.output is None
    for number, answer in enumerate(played.answers):
        assert f"output.total: must be of type 'integer', not 'about {number}'" in answer
    # It is told once that nothing but failures comes of it, and has two more rounds then.
    assert len(played.requests) == 7
    assert len(played.told) == 1
    for request in played.requests:
        (tool,) = request["tools"]
        parameters = tool["function"]["parameters"]
        assert parameters["properties"]["output"]["properties"] == SCHEMA["properties"]
        assert parameters["required"] == ["summary", "output"]
        assert "strict" not in tool["function"]
        assert "response_format" not in request


async def test_by_the_tool_that_ends_a_run(tmp_path: Path) -> None:
    check(await play(SCENARIO, tmp_path))


@pytest.mark.parametrize("seed", [1, 2])
async def test_it_is_so_when_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    check(await play_killed(__name__, tmp_path, seed))


@pytest.mark.parametrize(
    ("policy", "ending"),
    [
        ("interactive", ("done", "unverified", False)),
        ("strict_automation", ("stalled", "blocked", False)),
    ],
)
async def test_by_answers(tmp_path: Path, policy: str, ending: tuple[str, str, bool]) -> None:
    settings = {**BY_ANSWER, "stop_policy": policy}
    played = await play(Scenario(script=answers, agent=AGENT, settings=settings), tmp_path)

    assert played.ending == ending
    assert played.result.output is None
    assert len(played.requests) == 6
    assert len(played.told) == 5, "one message for each answer"
    for number, told in enumerate(played.told):
        assert told.count(f"output.total: {-1 - number} breaks 'minimum', which is 0") == 1
        assert told.count("does not count as done yet") == 1
        assert "answer again" in told
    (cause,) = played.result.reason.details["causes"]
    assert "output.total: -6 breaks 'minimum'" in cause
    (system,) = played.said_by("system")
    assert json.dumps(SCHEMA, separators=(",", ":")) in system["content"]


def strict(url: str) -> OpenAIModel:
    return OpenAIModel("scripted", base_url=url, backoff=AT_ONCE, structured_output=True)


async def strictly(scenario: Scenario, folder: Path) -> Played:
    """The same with a provider that has a strict mode."""
    async with scenario.server() as server:
        one = Scenario(
            script=scenario.script,
            agent={**scenario.agent, "model": strict(server.base_url)},
            settings=scenario.settings,
        )
        async with one.harness(folder, server.base_url) as harness:
            result = await harness.run("Report.")
    bodies = tuple(request.body for request in server.seen)
    return Played(result=result, bodies=bodies, workspace=folder / "work")


async def test_a_provider_with_a_strict_mode_is_sent_the_schema(tmp_path: Path) -> None:
    fits = {"total": 3, "note": "x"}

    def script(body: dict[str, Any]) -> Reply:
        if "response_format" in body:
            return Reply.text(json.dumps(fits))
        return Reply.call("work_complete", {"summary": "done", "output": fits})

    by_tool = await strictly(Scenario(script=script, agent=AGENT), tmp_path / "tool")
    by_answer = await strictly(
        Scenario(script=script, agent=AGENT, settings=BY_ANSWER), tmp_path / "answer"
    )

    assert by_tool.result.output == by_answer.result.output == fits
    assert by_tool.ending == ("done", "completed", True)
    assert by_answer.ending == ("done", "answered", True)
    (request,) = by_tool.requests
    (tool,) = request["tools"]
    assert tool["function"]["strict"] is True
    assert tool["function"]["parameters"]["properties"]["output"]["required"] == ["total", "note"]
    (request,) = by_answer.requests
    asked = request["response_format"]["json_schema"]
    assert (asked["strict"], asked["schema"]["required"]) == (True, ["total", "note"])
    assert not by_answer.said_by("system"), "its provider tells the model"


@pytest.mark.parametrize("settings", [{}, BY_ANSWER])
async def test_a_provider_that_refuses_the_schema_is_asked_without(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    def script(body: dict[str, Any]) -> Reply:
        spoken = sum(message["role"] == "assistant" for message in body["messages"])
        value = {"total": spoken - 1}
        if settings:
            return Reply.text(json.dumps(value))
        return Reply.call("work_complete", {"summary": "done", "output": value})

    def refuses(_: int, body: dict[str, Any]) -> Refuse | None:
        held = "response_format" in body or '"strict"' in json.dumps(body)
        return Refuse(400, "invalid_request_error", "unknown field") if held else None

    scenario = Scenario(script=script, agent=AGENT, settings=settings, faults=refuses)
    played = await strictly(scenario, tmp_path)

    assert played.result.status == "done"
    assert played.result.output == {"total": 0}
    # Once with the schema, and never again.
    held = [b"response_format" in body or b'"strict"' in body for body in played.bodies]
    assert held == [True, False, False]
    assert played.result.usage.model_calls == 2
