"""The last turn that is allowed counts as any other."""

from pathlib import Path

import pytest

from harness_actors.contracts import FileExists
from harness_actors.testing import Reply
from tests.contracts.grounds import contract_with
from tests.scenarios.stage import DONE, Played, Scenario, in_order, play, writes

LAST = {"max_turns": 2}
SCENARIO = Scenario(
    script=in_order(Reply.text("I will."), writes("report.md", "x"), DONE),
    settings={**LAST, "contract": contract_with(FileExists("report.md"))},
)


def check(played: Played) -> None:
    assert played.ending == ("done", "completed", True)
    assert played.result.turn_count == 2
    assert len(played.requests) == 3
    assert len(played.told) == 1
    assert (played.workspace / "report.md").read_text() == "x"


async def test_with_a_contract_that_is_met(tmp_path: Path) -> None:
    check(await play(SCENARIO, tmp_path))


async def test_with_an_answer(tmp_path: Path) -> None:
    answer = Scenario(
        script=in_order(Reply.text("42")), settings={"completion": "answer", "max_turns": 1}
    )
    played = await play(answer, tmp_path)
    assert played.ending == ("done", "answered", True)
    assert (played.result.output_text, len(played.requests), played.told) == ("42", 1, [])


@pytest.mark.parametrize("said", [Reply.text("I will."), DONE])
async def test_one_turn_too_late_is_a_limit(tmp_path: Path, said: Reply) -> None:
    late = Scenario(script=in_order(said, said, DONE), settings=SCENARIO.settings)
    played = await play(late, tmp_path)
    assert played.ending == ("limit", "max_turns", False)
    assert len(played.requests) == 2
