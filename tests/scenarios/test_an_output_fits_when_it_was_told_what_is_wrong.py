"""Whoever is told in what an output does not fit can make it fit, and the result carries it."""

import json
from pathlib import Path

import pytest

from harness_actors.testing import Reply
from tests.outputs.forms import Report
from tests.scenarios.stage import Played, Scenario, in_order, play, play_killed, writes

FITS = {"total": 4, "lines": [{"name": "rent", "usd": 4}]}


def done(output: object) -> Reply:
    return Reply.call("work_complete", {"summary": "The report is written.", "output": output})


SCENARIO = Scenario(
    script=in_order(
        done({"total": 3}),
        writes("report.md", "total: 4"),
        done({"total": 4, "lines": [{}]}),
        done(FITS),
    ),
    agent={"output_type": Report},
)
ANSWERED = Scenario(
    script=in_order(
        Reply.text("It is four."),
        Reply.text('{"total": 3}'),
        Reply.text(f"```json\n{json.dumps(FITS)}\n```"),
    ),
    agent={"output_type": Report, "tools": []},
    settings={"completion": "answer"},
)


def check(played: Played) -> None:
    assert played.ending == ("done", "completed", True)
    assert played.result.output_plain == FITS
    assert played.result.output_text == "The report is written."
    assert len(played.requests) == 4
    assert not played.told, "what is wrong is the result of the call"
    first, written, second = played.answers
    assert "output.total: Value error, a total is even, got 3" in first
    assert "output.lines.0.name: required, but left out" in second
    assert "report.md" in written
    schema = played.requests[0]["tools"][-1]["function"]["parameters"]
    assert schema["required"] == ["summary", "output"]
    assert schema["$defs"]["Line"]["required"] == ["name"]


async def test_the_result_carries_the_value(tmp_path: Path) -> None:
    played = await play(SCENARIO, tmp_path)
    check(played)
    assert played.result.output == Report.model_validate(FITS)


@pytest.mark.parametrize("seed", [1, 2])
async def test_it_is_so_when_the_process_is_killed(tmp_path: Path, seed: int) -> None:
    check(await play_killed(__name__, tmp_path, seed))


async def test_an_answer_that_fits_is_the_value(tmp_path: Path) -> None:
    played = await play(ANSWERED, tmp_path)
    assert played.ending == ("done", "answered", True)
    assert played.result.output == Report.model_validate(FITS)
    assert len(played.requests) == 3
    first, second = played.told
    assert "it is not JSON" in first
    assert "a total is even" in second
